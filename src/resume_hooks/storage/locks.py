"""Locks between processes. The system releases a lock when its holder ends, so locks are never stale.

Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from resume_hooks.errors import SessionOpen, WriteFailed
from resume_hooks.paths import Where, private_folder
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import MODE, UNCHANGED

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = "lock"  # the lock file of a folder that only one process at a time may change
_BEYOND = 1 << 40  # the locked byte on Windows, far beyond the end of any file

_PAUSE = 0.005
_TRIES = 20  # attempts to open a lock file that its holder removes between our steps


def lock(descriptor: int, patience: float | None = 0.0) -> bool | None:
    """Lock an open file or folder until it is closed.

    Wait for up to ``patience`` seconds, or without a limit if it is None.

    Return False if another process holds the lock, None if the volume or the system does not
    support locks.
    """
    if patience is None:
        deadline = None
    else:
        deadline = time.monotonic() + patience
    while True:
        try:
            _try_lock(descriptor, wait=deadline is None)
        except (BlockingIOError, PermissionError):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        except OSError:
            return None
        else:
            return True


def _try_lock(descriptor: int, *, wait: bool) -> None:
    if hasattr(fcntl, "flock"):
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    import msvcrt  # exists on Windows only

    was = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _BEYOND, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    finally:
        os.lseek(descriptor, was, os.SEEK_SET)


@contextlib.contextmanager
def locked_folder(
    folder: str, where: Where, busy: str, failed: str, patience: float = 0.0
) -> Iterator[None]:
    """Hold the lock of a folder in the state folder during the block.

    Create the folder first; afterwards remove it if it is empty.

    Raise SessionOpen with the message ``busy`` if another process holds the lock for longer than
    ``patience`` seconds, and WriteFailed, with ``failed`` first, if the lock file can't be created.
    On a volume without locks continue without one.
    """
    descriptor, locked = _acquire(folder, where, busy, failed, time.monotonic() + patience)
    try:
        yield
    finally:
        if locked:
            with contextlib.suppress(OSError):  # a process that has the lock file open retries
                if os.listdir(folder) == [NAME]:
                    removal.remove_file(os.path.join(folder, NAME), where.state)
                    removal.remove_empty(folder, where.state)
        os.close(descriptor)


def _acquire(
    folder: str, where: Where, busy: str, failed: str, deadline: float
) -> tuple[int, bool]:
    path = os.path.join(folder, NAME)
    for _ in range(_TRIES):
        descriptor = _open(path, where, failed)
        if descriptor is None:
            continue
        locked = lock(descriptor, max(0.0, deadline - time.monotonic()))
        if locked is False:
            os.close(descriptor)
            raise SessionOpen(busy, "Wait until that is done, then try again.")
        if not locked or leads_to(path, descriptor):
            return descriptor, bool(locked)
        os.close(descriptor)  # its holder removed it between our two steps
    raise WriteFailed(f"{failed} {path}: it keeps changing", "Nothing was changed. Try again.")


def _open(path: str, where: Where, failed: str) -> int | None:
    """Open the lock file; return None if its folder was just removed.

    Raise WriteFailed if it can't be created.
    """
    folder = os.path.dirname(path)
    try:
        private_folder(folder, where)
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), MODE)
    except FileNotFoundError:
        return None
    except OSError as error:
        if isinstance(error, FileExistsError):
            there = error.filename
        else:
            there = None
        if there and (os.path.isdir(there) or not os.path.lexists(there)):
            return None  # it existed when we tried to create it, and was removed before we checked
        raise WriteFailed(
            f"{failed} {folder}: {error.strerror or error}",
            UNCHANGED,
        ) from error


def leads_to(path: str, descriptor: int) -> bool:
    """Check whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
