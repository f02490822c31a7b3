"""Remove files. This is the only code that does so, and it never follows a link below its root.

The root of a removal is this plugin's state folder, or a folder of the client or of a project that
the user chose. Each folder below the root is opened without following links, and the target is
removed relative to its open parent folder. So a link in place of a folder is never followed, even
if it is created during the removal. If the target itself is a link, the link is removed. A test
forbids ``unlink``, ``rmdir`` and similar calls elsewhere, with a few listed exceptions.

Only the standard library is used, with Python 3.9.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

# Windows does not support these calls.
_HAS_DESCRIPTOR_CALLS = os.unlink in os.supports_dir_fd and hasattr(os, "fwalk")
_OPEN_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW_FLAG = getattr(os, "O_NOFOLLOW", 0)
_MAX_REMOVAL_ATTEMPTS = 3  # The maximum number of attempts to remove a folder.


def remove_permanently(path: str, root: str, *, follow_root: bool = False) -> None:
    """Remove a file, a link or a whole folder permanently.

    ``follow_root`` means that the root belongs to the user and may be a link. Raise OSError if the
    target cannot be removed, does not exist, or is behind a link.
    """
    with _open_parent(path, root, follow_root) as (dir_fd, name):
        if dir_fd is None:
            _remove_by_path(path)
        else:
            remove_tree_from_folder(name, dir_fd)


def remove_file(path: str, root: str, *, follow_root: bool = False) -> None:
    """Remove a file or link. Raise OSError in the same cases as ``remove_permanently``."""
    with _open_parent(path, root, follow_root) as (dir_fd, name):
        os.unlink(path if dir_fd is None else name, dir_fd=dir_fd)


def remove_empty_folder(path: str, root: str, *, follow_root: bool = False) -> None:
    """Remove an empty folder. Raise OSError if the folder is not empty.

    Also raise OSError in the cases in which ``remove_permanently`` raises it.
    """
    with _open_parent(path, root, follow_root) as (dir_fd, name):
        os.rmdir(path if dir_fd is None else name, dir_fd=dir_fd)


def remove_if_possible(path: str, root: str, *, follow_root: bool = False) -> None:
    """Remove a file, a link or a whole folder. Ignore a target that is missing or cannot be removed."""
    with contextlib.suppress(OSError):
        remove_permanently(path, root, follow_root=follow_root)


def find_folder_limiting_removal(folder: str, state_folder: str) -> str:
    """Return the root for removing files from one of this plugin's folders.

    The root is the state folder, or ``folder`` itself if it is outside the state folder.
    """
    if folder.startswith(os.path.join(state_folder, "")):
        return state_folder
    return folder


def remove_file_from_folder(name: str, dir_fd: int | None) -> None:
    """Remove the file or link ``name`` from an open folder.

    If ``dir_fd`` is None, ``name`` is a path, and the caller knows that it contains no links.
    """
    os.unlink(name, dir_fd=dir_fd)


def remove_empty_subfolder(name: str, dir_fd: int) -> None:
    """Remove an empty folder from an open folder. Raise OSError."""
    os.rmdir(name, dir_fd=dir_fd)


def remove_tree_from_folder(name: str, dir_fd: int) -> None:
    """Remove ``name`` and everything below it from an open folder.

    If another program writes to a folder during the removal, try again. The threads of a search
    index, for example, may still write just after the index was closed. If the removal still fails,
    raise OSError after removing as much as possible.
    """
    for _ in range(_MAX_REMOVAL_ATTEMPTS - 1):
        try:
            return _remove_tree(name, dir_fd)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
    return _remove_tree(name, dir_fd)


def _remove_tree(name: str, dir_fd: int) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=dir_fd)
        return
    first_error = None
    try:
        for _, folders, files, folder_fd in os.fwalk(name, topdown=False, dir_fd=dir_fd):
            for entry in (*files, *folders):
                try:
                    _remove_entry(entry, folder_fd)
                except OSError as error:
                    first_error = first_error or error
    except RecursionError as error:
        raise OSError(errno.ENAMETOOLONG, "Folders are nested too deeply", name) from error
    if first_error is not None:
        raise first_error
    os.rmdir(name, dir_fd=dir_fd)


def _remove_entry(name: str, dir_fd: int) -> None:
    """Remove a file, a link, or an empty folder."""
    if stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
        os.rmdir(name, dir_fd=dir_fd)
    else:
        os.unlink(name, dir_fd=dir_fd)


@contextlib.contextmanager
def _open_parent(path: str, root: str, follow_root: bool) -> Iterator[tuple[int | None, str]]:
    """Open the parent folder of a path. Yield its descriptor and the last component of the path.

    The folders between ``root`` and the path are opened without following links. If the system
    cannot open folders, yield None instead of the descriptor.
    """
    try:
        steps = _split_path_below_root(path, root)
        if not _HAS_DESCRIPTOR_CALLS:
            _require_folders(root, steps[:-1], follow_root)
            yield None, steps[-1]
            return
        descriptor = os.open(root, _OPEN_FOLDER_FLAGS | (0 if follow_root else _NO_FOLLOW_FLAG))
        try:
            for step in steps[:-1]:
                subfolder = os.open(step, _OPEN_FOLDER_FLAGS | _NO_FOLLOW_FLAG, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = subfolder
            yield descriptor, steps[-1]
        finally:
            os.close(descriptor)
    except OSError as error:
        error.filename = path
        raise


def _split_path_below_root(path: str, root: str) -> list[str]:
    """Return the components of a path below ``root``: its folders' names, then its last name.

    Raise OSError if the path is not below ``root``.
    """
    top = os.path.join(root, "")
    if path.startswith(top):
        names = path[len(top) :].split(os.sep)
    else:
        names = []
    if not names or {"", os.curdir, os.pardir} & set(names) or "\0" in path:
        raise OSError(errno.EINVAL, f"It is not below {root}", path)
    return names


def _require_folders(root: str, folder_names: list[str], follow_root: bool) -> None:
    folder = root
    for step in ("", *folder_names):
        folder = os.path.join(folder, step) if step else folder
        mode = (os.stat if follow_root and not step else os.lstat)(folder).st_mode
        if not stat.S_ISDIR(mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)


def _remove_by_path(path: str) -> None:
    if stat.S_ISDIR(os.lstat(path).st_mode):
        import shutil  # Imported here because few systems need it.

        shutil.rmtree(path)
    else:
        os.unlink(path)
