"""Files and folders given a second name, compared and removed.

No link is followed: links stay links.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator

from resume_hooks.storage.atomic import BUFFER, name_exclusively
from resume_hooks.storage.state_file import MODE, spare_name

IN_USE = 60 * 60
"""Seconds after its last use that a copy stays which can be made anew."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def second_name(source: str, target: str) -> None:
    """Give a file or link a free second name, or that of a copy, compared as read back. OSError."""
    try:
        os.link(source, target, follow_symlinks=False)
    except (FileExistsError, FileNotFoundError):
        raise
    except (OSError, NotImplementedError):  # another file system, or one without links
        with spare_name(os.path.dirname(target)) as temporary:
            _copy_file(source, temporary)
            if not has_same_bytes(source, temporary):
                raise OSError(errno.EIO, "Changed while it was copied", source) from None
            name_exclusively(temporary, target)


def paths_inside(path: str) -> list[str]:
    """Everything in a folder but folders, by its path, sorted; of anything else ``[""]``.

    OSError.
    """

    def refuse(error: OSError) -> None:
        raise error

    if not _is_folder(path):
        return [""]
    found = []
    for folder, folders, files in os.walk(path, onerror=refuse):
        links = []
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                links.append(name)
        for name in (*files, *links):
            found.append(os.path.relpath(os.path.join(folder, name), path))
    return sorted(found)


def sizes_in(folder: str) -> Iterator[int]:
    """The bytes of each file below a folder, as far as it can be looked into.

    No link is followed.
    """
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(root, name)).st_size


def least_recently_used(found: Iterable[tuple[float, str, int]], over: int) -> Iterator[str]:
    """Of files or folders that can be made anew those to remove, the least used first, so that ``over`` bytes go.

    Each comes as when it was last used, its path and size. What was used within ``IN_USE`` stays,
    whatever it takes.
    """
    now = time.time()
    for used, path, size in sorted(found):
        if over > 0 and not 0 <= now - used < IN_USE:
            yield path
            over -= size


def has_same_bytes(one: str, other: str) -> bool:
    """Whether two files, or two links, hold the same bytes. OSError where one can't be read."""
    first, second = os.lstat(one), os.lstat(other)
    if stat.S_IFMT(first.st_mode) != stat.S_IFMT(second.st_mode) or first.st_size != second.st_size:
        return False
    return os.path.samestat(first, second) or digest(one) == digest(other)


def digest(path: str) -> str:
    """The sha256, in hex, of a file's bytes, of a link's text; anything else is told by its kind.

    OSError.
    """
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    if not stat.S_ISREG(mode):
        return hashlib.sha256(str(stat.S_IFMT(mode)).encode()).hexdigest()
    with open(os.open(path, os.O_RDONLY | _NO_LINK), "rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_stub(path: str) -> bool:
    """Whether an empty file lies there: clients leave such, and so does a move that was killed."""
    return os.path.isfile(path) and not os.path.islink(path) and not os.path.getsize(path)


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


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)
