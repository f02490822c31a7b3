"""Locks between processes. The system releases a lock when the process that has the lock ends.

So no lock remains after a crash. Only the standard library is used, with Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import SessionInUse, WriteFailed
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import NOTHING_CHANGED_REMEDY, PRIVATE_MODE

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# The name of the lock file in a folder that only one process at a time may change.
LOCK_FILE_NAME = "lock"
# The offset of the byte that is locked on Windows. It is far beyond the end of any file.
_LOCKED_BYTE_OFFSET = 1 << 40

_LOCK_RETRY_SECONDS = 0.005
# The maximum number of attempts to open a lock file that another process may be removing.
_MAX_OPEN_ATTEMPTS = 20


def lock_descriptor(descriptor: int, timeout: float | None = 0.0) -> bool | None:
    """Lock an open file or folder until it is closed.

    Wait for up to ``timeout`` seconds, or without a limit if ``timeout`` is None. Return False if
    another process has the lock, or None if the volume or the system does not support locks.
    """
    if timeout is None:
        deadline = None
    else:
        deadline = time.monotonic() + timeout
    while True:
        try:
            _try_lock(descriptor, wait=deadline is None)
        except (BlockingIOError, PermissionError):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_RETRY_SECONDS)
        except OSError:
            return None
        else:
            return True


def _try_lock(descriptor: int, *, wait: bool) -> None:
    if hasattr(fcntl, "flock"):
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    import msvcrt  # This module exists only on Windows.

    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _LOCKED_BYTE_OFFSET, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    finally:
        os.lseek(descriptor, position, os.SEEK_SET)


@contextlib.contextmanager
def lock_folder(
    folder: str, where: Where, busy_message: str, failure_message: str, timeout: float = 0.0
) -> Iterator[None]:
    """Lock a folder in the state folder until the ``with`` block ends. Create the folder if necessary.

    After the block, remove the folder if it is empty. If another process has the lock for longer
    than ``timeout`` seconds, raise SessionInUse with the message ``busy_message``. If the lock file
    cannot be created, raise WriteFailed with a message that starts with ``failure_message``. If the
    volume does not support locks, continue without a lock.
    """
    lock = _acquire_lock(folder, where, busy_message, failure_message, time.monotonic() + timeout)
    try:
        yield
    finally:
        if lock.is_supported:
            # A process that waits for this lock notices that the file was removed, and creates a
            # new lock file.
            with contextlib.suppress(OSError):
                if os.listdir(folder) == [LOCK_FILE_NAME]:
                    removal.remove_file(os.path.join(folder, LOCK_FILE_NAME), where.state)
                    removal.remove_empty_folder(folder, where.state)
        os.close(lock.descriptor)


class _Lock(NamedTuple):
    descriptor: int
    is_supported: bool


def _acquire_lock(
    folder: str, where: Where, busy_message: str, failure_message: str, deadline: float
) -> _Lock:
    path = os.path.join(folder, LOCK_FILE_NAME)
    for _ in range(_MAX_OPEN_ATTEMPTS):
        descriptor = _open_lock_file(path, where, failure_message)
        if descriptor is None:
            continue
        locked = lock_descriptor(descriptor, max(0.0, deadline - time.monotonic()))
        if locked is False:
            os.close(descriptor)
            raise SessionInUse(busy_message, "Wait until that is done, then try again.")
        if not locked or is_path_of_descriptor(path, descriptor):
            return _Lock(descriptor, is_supported=bool(locked))
        os.close(descriptor)  # Another process removed the lock file after this process opened it.
    raise WriteFailed(
        f"{failure_message} {path}: it keeps changing", "Nothing was changed. Try again."
    )


def _open_lock_file(path: str, where: Where, failure_message: str) -> int | None:
    """Open the lock file. Return None if another process has just removed the file or its folder.

    Raise WriteFailed if the file can't be created.
    """
    folder = os.path.dirname(path)
    try:
        make_private_folder(folder, where)
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), PRIVATE_MODE)
    except FileNotFoundError:
        return None
    except OSError as error:
        if isinstance(error, FileExistsError):
            existing_path = error.filename
        else:
            existing_path = None
        if existing_path and (os.path.isdir(existing_path) or not os.path.lexists(existing_path)):
            # The path existed when this process tried to create it, but another process has removed
            # it since.
            return None
        raise WriteFailed(
            f"{failure_message} {folder}: {error.strerror or error}",
            NOTHING_CHANGED_REMEDY,
        ) from error


def is_path_of_descriptor(path: str, descriptor: int) -> bool:
    """Check whether a path still refers to the open file ``descriptor``."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
