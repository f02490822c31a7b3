"""Locks between processes; the system releases one when its holder ends, so none is ever stale.

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

NAME = "lock"  # the lock file in a folder that one process at a time may change
_BEYOND = 1 << 40  # the byte locked on Windows, where nobody else can use it: behind any end

_PAUSE = 0.005
_TRIES = 20  # how often a lock file is opened anew that its holder removed just then


def lock(descriptor: int, patience: float | None = 0.0) -> bool | None:
    """Lock an open file or folder until it is closed.

    None: wait as long as it takes, else so many seconds.

    False if another process holds the lock, None where the volume or the system knows no locks.
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
    import msvcrt  # exists on Windows alone

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
    """Hold the lock of a folder in the state folder while the block runs.

    The folder is made, and removed if empty.

    SessionOpen, which says ``busy``, if another process holds it for longer than ``patience``
    seconds; WriteFailed, which begins with ``failed``, where the lock file can't be made. A volume
    without locks holds nobody up.
    """
    descriptor, locked = _acquire(folder, where, busy, failed, time.monotonic() + patience)
    try:
        yield
    finally:
        if locked:
            with contextlib.suppress(OSError):  # whoever has the lock file open tries anew
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
    raise WriteFailed(f"{failed} {path}: it comes and goes", "Nothing was changed. Try again.")


def _open(path: str, where: Where, failed: str) -> int | None:
    """The open lock file; None if its folder was removed just now.

    WriteFailed where it can't be made.
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
            return None  # there when it was to be made, and gone when it was looked at
        raise WriteFailed(
            f"{failed} {folder}: {error.strerror or error}",
            UNCHANGED,
        ) from error


def leads_to(path: str, descriptor: int) -> bool:
    """Whether a path is still that of an open file."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
