"""Files and folders moved whole: by renaming, and between file systems copied, compared, and only then removed.

At every instant the whole is at one of the two places at least, or beside the first under a hidden name. Nothing that
is there is written over, nothing is removed that changed since it was copied, and no link is followed: links move as
links.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.storage.atomic import BUFFER, name_exclusively
from resume_hooks.storage.state_file import MODE, sync_folder

PART = ".part"
"""What the name of a copy ends with that is not whole yet."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Weight(NamedTuple):
    """What a file or a folder holds: files, bytes, and a digest over the names and contents of all of them."""

    files: int
    size: int
    sha256: str


def move(source: str, target: str) -> None:
    """Move a file, a folder or a link to a name that is free. OSError where it can't be moved, or is not free."""
    _move(source, target, _copy_over)


def take(source: str, target: str, hidden: str) -> None:
    """Move what other programs may be writing; between file systems it has the name ``hidden``, beside it, meanwhile.

    What they write to the old name begins a new file, which stays. OSError as of ``move``, and where somebody who had
    it open before went on writing: it has its name again then, or is ``hidden`` still where that was taken.
    """
    _move(source, target, lambda old, new: _take_over(old, new, hidden))


def inside(path: str) -> list[str]:
    """Everything in a folder that is no folder itself, by its path from there, sorted; of anything else ``[""]``.

    OSError where something can't be listed.
    """
    if not _is_folder(path):
        return [""]
    return sorted(os.path.relpath(os.path.join(folder, name), path) for folder, names in _walk(path) for name in names)


def pairs(one: str, other: str) -> list[tuple[str, str]]:
    """Everything ``inside`` a path, each with where it belongs in another place. OSError as of ``inside``."""
    return [(os.path.join(one, name), os.path.join(other, name)) if name else (one, other) for name in inside(one)]


def weigh(path: str, *, contents: bool = True) -> Weight:
    """The weight of a file or a folder; without ``contents`` no digest. OSError where something can't be read."""
    names, size, whole = inside(path), 0, hashlib.sha256()
    for name in names:
        file = os.path.join(path, name) if name else path
        size += os.lstat(file).st_size
        if contents:
            whole.update(os.fsencode(name) + b"\0" + _digest(file))
    return Weight(len(names), size, whole.hexdigest() if contents else "")


def sizes_in(folder: str) -> Iterator[int]:
    """The bytes of each file below a folder, as far as it can be looked into; no link is followed."""
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(root, name)).st_size


def is_same(one: str, other: str) -> bool:
    """Whether two files, or two links, hold the same bytes. OSError where one can't be read."""
    first, second = os.lstat(one), os.lstat(other)
    if stat.S_IFMT(first.st_mode) != stat.S_IFMT(second.st_mode) or first.st_size != second.st_size:
        return False
    return os.path.samestat(first, second) or _digest(one) == _digest(other)


def is_stub(path: str) -> bool:
    """Whether an empty file lies there: clients leave such, and so does a move that was killed."""
    return os.path.isfile(path) and not os.path.islink(path) and not os.path.getsize(path)


def remove(path: str) -> None:
    """Remove a file, a link or a whole folder for good. OSError where it can't be."""
    if _is_folder(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _move(source: str, target: str, between: Callable[[str, str], None]) -> None:
    """Rename, or where the two places are on different file systems move as ``between`` does."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    try:
        _rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        between(source, target)
    for folder in {os.path.dirname(source), os.path.dirname(target)}:
        sync_folder(folder)


def _rename(source: str, target: str) -> None:
    if not stat.S_ISREG(os.lstat(source).st_mode):
        os.rename(source, target)
    elif name_exclusively(source, target):  # unlike a rename it refuses a name that somebody took just now
        try:
            os.unlink(source)
        except OSError:  # of two that move the same file one has it
            os.unlink(target)
            raise


def _take_over(source: str, target: str, hidden: str) -> None:
    if os.path.lexists(hidden):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), hidden)
    try:
        _rename(source, hidden)
        sync_folder(os.path.dirname(source))
        _copy_over(hidden, target)
    finally:
        if os.path.lexists(hidden) and not os.path.lexists(source):
            _rename(hidden, source)


def _copy_over(source: str, target: str) -> None:
    """Move between file systems. OSError where the source changed meanwhile: what was not copied stays there."""
    part = target + PART
    if os.path.lexists(part):
        remove(part)  # of a copy that was interrupted
    seen = _look(source)
    try:
        _copy(source, part)
        os.rename(part, target)
        sync_folder(os.path.dirname(target))  # the copy lasts before anything is removed
    finally:
        if os.path.lexists(part):
            remove(part)
    if _look(source) != seen:  # after all is copied and digested, before anything is removed
        remove(target)
        raise OSError(errno.EBUSY, "Changed while it was copied", source)
    for name in inside(source):
        path = os.path.join(source, name) if name else source
        if _state(path) == seen.get(name):
            os.unlink(path)
    if os.path.lexists(source):
        _remove_empty(source)
    if os.path.lexists(source):
        raise OSError(errno.EBUSY, "Changed while it was removed", source)


def _look(path: str) -> dict[str, tuple[int, ...]]:
    """How a file or everything in a folder, folders too, is just now."""
    folders = [os.path.relpath(folder, path) for folder, _ in _walk(path)] if _is_folder(path) else []
    return {name: _state(os.path.join(path, name) if name else path) for name in (*folders, *inside(path))}


def _state(path: str) -> tuple[int, ...]:
    now = os.lstat(path)
    return (now.st_dev, now.st_ino, now.st_mode, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


def _copy(source: str, target: str) -> None:
    """Copy what is in ``source``, on disk and compared as read back."""
    found = pairs(source, target)
    folders = [folder for folder, _ in _walk(source)] if _is_folder(source) else []
    for folder in folders:
        os.mkdir(os.path.normpath(os.path.join(target, os.path.relpath(folder, source))), 0o700)
    for old, new in found:
        _copy_file(old, new)
        if not is_same(old, new):
            raise OSError(errno.EIO, "Changed while it was copied", old)
    for folder in reversed(folders):
        copied = os.path.normpath(os.path.join(target, os.path.relpath(folder, source)))
        shutil.copystat(folder, copied, follow_symlinks=False)
        sync_folder(copied)


def _copy_file(source: str, target: str) -> None:
    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
        return
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", source)
    made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, MODE)
    with open(os.open(source, os.O_RDONLY | _NO_LINK), "rb") as old, open(made, "wb") as new:
        shutil.copyfileobj(old, new, BUFFER)
        new.flush()
        os.fsync(made)
    shutil.copystat(source, target, follow_symlinks=False)


def _digest(path: str) -> bytes:
    """The digest of a file's bytes, of a link's text; anything else is told by its kind."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return hashlib.sha256(os.fsencode(os.readlink(path))).digest()
    if not stat.S_ISREG(mode):
        return hashlib.sha256(str(stat.S_IFMT(mode)).encode()).digest()
    with open(os.open(path, os.O_RDONLY | _NO_LINK), "rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _walk(path: str) -> Iterator[tuple[str, list[str]]]:
    """A folder and those in it, from the outside in, each with the names in it that are no folders."""

    def refuse(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(path, onerror=refuse):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        yield folder, [*files, *links]


def _remove_empty(path: str) -> None:
    """Remove a folder and those in it, as far as nothing is left in them."""
    for folder in sorted((folder for folder, _ in _walk(path)), key=len, reverse=True):
        if not os.listdir(folder):
            os.rmdir(folder)


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)
