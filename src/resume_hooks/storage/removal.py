"""The only place where anything is removed: below a root, through open folders, and behind no link.

A path says where its root is: our state folder, or the folder that the user has the client or a
project in. From there on every step is opened without following a link, and what is removed is
named from the folder that is open, so that a link in the place of a folder, there before or put
there meanwhile, leads nowhere. A link itself is removed as a link. A test forbids ``unlink``,
``rmdir`` and their like elsewhere, with the few exceptions that it names.

Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

_BY_DESCRIPTOR = os.unlink in os.supports_dir_fd and hasattr(os, "fwalk")  # Windows can't
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_TRIES = 3  # times that a folder is emptied before it counts as one that can't be


def remove_for_good(path: str, root: str, *, follow_root: bool = False) -> None:
    """Remove a file, a link or a whole folder for good.

    OSError where it can't be, is gone, or lies behind a link.

    ``follow_root``: the root is the user's own, who may have made it a link.
    """
    with _open_parent(path, root, follow_root) as (within, name):
        if within is None:
            _remove_by_path(path)
        else:
            remove_at(name, within)


def remove_file(path: str, root: str, *, follow_root: bool = False) -> None:
    """The same for anything but a folder."""
    with _open_parent(path, root, follow_root) as (within, name):
        os.unlink(path if within is None else name, dir_fd=within)


def remove_empty(path: str, root: str, *, follow_root: bool = False) -> None:
    """Remove a folder in which nothing is. OSError as above, and where something is in it."""
    with _open_parent(path, root, follow_root) as (within, name):
        os.rmdir(path if within is None else name, dir_fd=within)


def discard(path: str, root: str, *, follow_root: bool = False) -> None:
    """Remove a file, a link or a whole folder; what can't be removed, or is gone, does no harm."""
    with contextlib.suppress(OSError):
        remove_for_good(path, root, follow_root=follow_root)


def removal_root(folder: str, state: str) -> str:
    """The root of what lies in a folder of ours: the state folder, or itself where that could not be written."""
    if folder.startswith(os.path.join(state, "")):
        return state
    return folder


def remove_name(name: str, within: int | None) -> None:
    """Remove the file or link that has a name in an open folder, or, with None, a path whose folder is its maker's."""
    os.unlink(name, dir_fd=within)


def remove_empty_name(name: str, within: int) -> None:
    """Remove the folder that has a name in an open one, where nothing is in it. OSError."""
    os.rmdir(name, dir_fd=within)


def remove_at(name: str, within: int) -> None:
    """Remove what has a name in an open folder, with all below it. OSError.

    What could be removed is gone then.

    A folder that somebody writes into meanwhile, as an index does that is just closed, is looked
    through again.
    """
    for _ in range(_TRIES - 1):
        try:
            return _remove_tree(name, within)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
    return _remove_tree(name, within)


def _remove_tree(name: str, within: int) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=within)
        return
    failed = None
    try:
        for _, folders, files, below in os.fwalk(name, topdown=False, dir_fd=within):
            for each in (*files, *folders):
                try:
                    _remove_one(each, below)
                except OSError as error:
                    failed = failed or error
    except RecursionError as error:
        raise OSError(errno.ENAMETOOLONG, "Folders lie too deep in one another", name) from error
    if failed is not None:
        raise failed
    os.rmdir(name, dir_fd=within)


def _remove_one(name: str, within: int) -> None:
    """Remove a file, a link, or a folder that was emptied."""
    if stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
        os.rmdir(name, dir_fd=within)
    else:
        os.unlink(name, dir_fd=within)


@contextlib.contextmanager
def _open_parent(path: str, root: str, follow_root: bool) -> Iterator[tuple[int | None, str]]:
    """The open folder that has a path below a root, and its name there.

    None where the system opens no folders.
    """
    try:
        steps = _steps(path, root)
        if not _BY_DESCRIPTOR:
            _require_folders(root, steps[:-1], follow_root)
            yield None, steps[-1]
            return
        descriptor = os.open(root, _FOLDER | (0 if follow_root else _NO_LINK))
        try:
            for step in steps[:-1]:
                deeper = os.open(step, _FOLDER | _NO_LINK, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor, steps[-1]
        finally:
            os.close(descriptor)
    except OSError as error:
        error.filename = path
        raise


def _steps(path: str, root: str) -> list[str]:
    """The names from a root to a path below it. OSError where it is not below it."""
    top = os.path.join(root, "")
    if path.startswith(top):
        steps = path[len(top) :].split(os.sep)
    else:
        steps = []
    if not steps or {"", os.curdir, os.pardir} & set(steps) or "\0" in path:
        raise OSError(errno.EINVAL, f"It does not lie below {root}", path)
    return steps


def _require_folders(root: str, steps: list[str], follow_root: bool) -> None:
    folder = root
    for step in ("", *steps):
        folder = os.path.join(folder, step) if step else folder
        mode = (os.stat if follow_root and not step else os.lstat)(folder).st_mode
        if not stat.S_ISDIR(mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)


def _remove_by_path(path: str) -> None:
    if stat.S_ISDIR(os.lstat(path).st_mode):
        import shutil  # few systems need it

        shutil.rmtree(path)
    else:
        os.unlink(path)
