"""One file put into the vault: as a hard link where that is safe and the file system can, else as a checked copy.

Backups of the user's files are always copied: clients before 2.1.329 write a new version of a backup into the file
that has its name, and a link would change with it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator

from resume_hooks.archive.vault.sources import Source
from resume_hooks.archive.vault.tamper_seal import seal_of
from resume_hooks.paths import open_regular, private_folder
from resume_hooks.sessions.archived.layout import HISTORY, beside
from resume_hooks.sessions.archived.manifest import Part
from resume_hooks.sessions.archived.packs import PIECE
from resume_hooks.storage.state_file import MODE

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def put(source: Source, folder: str) -> Part:
    """Put a file of the client's into a folder of kept files, where it must be free. OSError where it can't be."""
    target = os.path.join(folder, beside(source.place))
    private_folder(os.path.dirname(target))
    if not source.place.startswith(f"{HISTORY}/") and (found := _linked(source.path, target)):
        part = _part(source.place, found.st_size, "", found, folder, linked=True)
        return part._replace(seal=seal_of(target, part.size))
    with open_regular(source.path, follow=False) as stream:
        found = os.fstat(stream.fileno())
        sha256 = copy(_first(stream.fileno(), found.st_size), target)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    return _part(source.place, os.path.getsize(target), sha256, found, folder, linked=False)


def put_again(part: Part, path: str, folder: str) -> Part:
    """Put a kept file into another folder of the same vault, as it is. OSError where it can't be."""
    target = os.path.join(folder, beside(part.place))
    private_folder(os.path.dirname(target))
    where = os.path.basename(folder)
    try:
        os.link(path, target, follow_symlinks=False)
    except OSError:
        with open_regular(path, follow=False) as stream:
            sha256 = copy(_first(stream.fileno(), part.size), target)
        os.utime(target, ns=(part.mtime_ns, part.mtime_ns))
        if part.sha256 and sha256 != part.sha256:
            raise OSError(errno.EIO, "It is not what was kept: its hash differs", path) from None
        return part._replace(where=where, sha256=sha256, linked=False, seal="")
    return part._replace(where=where)


def copy(pieces: Iterator[bytes], target: str) -> str:
    """Write a new private file, synced and compared as read back; its sha256 in hex. OSError where it can't be."""
    whole, back = hashlib.sha256(), hashlib.sha256()
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, MODE)
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        for piece in pieces:
            whole.update(piece)
            left = memoryview(piece)
            while left:
                left = left[stream.write(left) :]
        os.fsync(descriptor)
        stream.seek(0)
        while piece := stream.read(PIECE):
            back.update(piece)
    if back.digest() != whole.digest():
        raise OSError(errno.EIO, "It was read back otherwise than it was written", target)
    return whole.hexdigest()


def sha_of(path: str, size: int) -> str:
    """The sha256, in hex, of the first ``size`` bytes of a file. OSError where it can't be read, or has not so many."""
    whole = hashlib.sha256()
    with open_regular(path, follow=False) as stream:
        if os.fstat(stream.fileno()).st_size < size:
            raise OSError(errno.EIO, "It is shorter than it was", path)
        for piece in _first(stream.fileno(), size):
            whole.update(piece)
    return whole.hexdigest()


def _first(descriptor: int, size: int) -> Iterator[bytes]:
    """The first bytes of an open file, as far as it has them: what is appended meanwhile is for the next time."""
    offset = 0
    while offset < size and (piece := os.pread(descriptor, min(PIECE, size - offset), offset)):
        offset += len(piece)
        yield piece


def _linked(source: str, target: str) -> os.stat_result | None:
    """The state of a link that was made; None where none can be, on other file systems, for others' files."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        return None
    found = os.lstat(target)
    if stat.S_ISREG(found.st_mode):
        return found
    with contextlib.suppress(OSError):  # it was put in the file's place since that was looked at
        os.unlink(target)
    raise OSError(errno.EINVAL, "Not a regular file", source)


def _part(place: str, size: int, sha256: str, found: os.stat_result, folder: str, *, linked: bool) -> Part:
    mode = stat.S_IMODE(found.st_mode) & 0o777
    return Part(place, size, sha256, found.st_mtime_ns, mode, os.path.basename(folder), 0, linked, found.st_size)
