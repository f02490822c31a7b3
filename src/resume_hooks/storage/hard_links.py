"""Make hard links, compare files, and choose files to remove.

Symbolic links are copied as links and never followed.
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

from resume_hooks.storage.atomic import BUFFER_BYTES, link_exclusively
from resume_hooks.storage.state_file import PRIVATE_MODE, temporary_name

RECENT_USE_SECONDS = 60 * 60
"""The minimum number of seconds between the last use of a file and its removal. Only files that can
be made again are removed."""

_NO_FOLLOW_FLAG = getattr(os, "O_NOFOLLOW", 0)


def link_or_copy(source: str, target: str) -> None:
    """Create a hard link at ``target`` to a file or symbolic link.

    If hard links are impossible, create a verified copy instead. Raise OSError if this fails too.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except (FileExistsError, FileNotFoundError):
        raise
    # The target is on another file system, or the file system has no hard links.
    except (OSError, NotImplementedError):
        with temporary_name(os.path.dirname(target)) as temporary:
            _copy_file(source, temporary)
            if not has_same_bytes(source, temporary):
                raise OSError(errno.EIO, "Changed while it was copied", source) from None
            link_exclusively(temporary, target)


def list_files_below(path: str) -> list[str]:
    """Return the relative paths of all files and links below a folder, sorted.

    If ``path`` is not a folder, return ``[""]``. Raise OSError if a folder cannot be read.
    """

    def raise_error(error: OSError) -> None:
        raise error

    if not _is_folder(path):
        return [""]
    relative_paths = []
    for folder, folders, files in os.walk(path, onerror=raise_error):
        links = []
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                links.append(name)
        for name in (*files, *links):
            relative_paths.append(os.path.relpath(os.path.join(folder, name), path))
    return sorted(relative_paths)


def list_file_sizes(folder: str) -> Iterator[int]:
    """Yield the size in bytes of each file below a folder, without following links.

    Files that cannot be read are skipped.
    """
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(root, name)).st_size


def choose_files_to_remove(
    files: Iterable[tuple[float, str, int]], excess_bytes: int
) -> Iterator[str]:
    """Yield files to remove, the least recently used first, to free ``excess_bytes``.

    Each item of ``files`` is the time of the last use, the path, and the size of a file or folder
    that can be made again. Files that were used within the last ``RECENT_USE_SECONDS`` are never
    yielded.
    """
    now = time.time()
    for last_use, path, size in sorted(files):
        if excess_bytes > 0 and not 0 <= now - last_use < RECENT_USE_SECONDS:
            yield path
            excess_bytes -= size


def has_same_bytes(path: str, other_path: str) -> bool:
    """Check whether two files or two links have the same content. Raise OSError if one can't be read."""
    status, other_status = os.lstat(path), os.lstat(other_path)
    if (
        stat.S_IFMT(status.st_mode) != stat.S_IFMT(other_status.st_mode)
        or status.st_size != other_status.st_size
    ):
        return False
    return os.path.samestat(status, other_status) or hash_file(path) == hash_file(other_path)


def hash_file(path: str) -> str:
    """Return the SHA-256, in hex, of a file's bytes or a link's target.

    For any other type of file, return the hash of the type's number. Raise OSError if the file
    can't be read.
    """
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    if not stat.S_ISREG(mode):
        return hashlib.sha256(str(stat.S_IFMT(mode)).encode()).hexdigest()
    with open(os.open(path, os.O_RDONLY | _NO_FOLLOW_FLAG), "rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_empty_file(path: str) -> bool:
    """Check whether ``path`` is an empty file. Clients and interrupted moves leave such files behind."""
    return os.path.isfile(path) and not os.path.islink(path) and not os.path.getsize(path)


def _copy_file(source: str, target: str) -> None:
    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
        return
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", source)
    descriptor = os.open(
        target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW_FLAG, PRIVATE_MODE
    )
    with (
        open(os.open(source, os.O_RDONLY | _NO_FOLLOW_FLAG), "rb") as old,
        open(descriptor, "wb") as new,
    ):
        shutil.copyfileobj(old, new, BUFFER_BYTES)
        new.flush()
        os.fsync(descriptor)
    shutil.copystat(source, target, follow_symlinks=False)


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)
