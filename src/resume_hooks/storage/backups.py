"""Backups of sessions that are rewritten in place: exact copies in the state folder, one folder a session.

Copies, not links: a program that still has the old file open would go on writing into a link.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from resume_hooks import clock
from resume_hooks.errors import SessionLive, WriteFailed
from resume_hooks.paths import private_folder, state_home
from resume_hooks.storage.append_carryover import CHUNK, begins_with
from resume_hooks.storage.atomic import MODE

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FOLDER = "backups"
LOCK = "lock"
"""A file in the folder of each session, removed with the folder where no backup came of it."""

NOT_KEPT = "The session was not backed up to"

TRIES = 20
"""How often a lock is taken anew that its holder removed just then."""


def folder_of(session_id: str, environ: Mapping[str, str]) -> str:
    """Where the backups of a session lie; it may not exist."""
    return os.path.join(state_home(environ), FOLDER, session_id)


@contextlib.contextmanager
def only_one(session_id: str, environ: Mapping[str, str]) -> Iterator[None]:
    """While the block runs nobody else rewrites this session in place; SessionLive where somebody does."""
    path = os.path.join(folder_of(session_id, environ), LOCK)
    with alone(path, environ, "This session is being trimmed in place already", NOT_KEPT):
        yield


@contextlib.contextmanager
def alone(path: str, environ: Mapping[str, str], busy: str, failed: str) -> Iterator[None]:
    """While the block runs nobody else holds the lock ``path``; SessionLive, which says ``busy``, where somebody does.

    Its folder, in the state folder, is removed with it where nothing else is in there. WriteFailed, which begins with
    ``failed``, where it can't be made.
    """
    descriptor, locked = _lock(path, environ, busy, failed)
    try:
        yield
    finally:
        if locked:
            _remove_if_empty(os.path.dirname(path))
        os.close(descriptor)


def keep(session_id: str, descriptor: int, environ: Mapping[str, str]) -> str:
    """Copy the open file as it is now, on disk and compared as read back; returns the path.

    WriteFailed where that can't be done; then no copy is left.
    """
    path = os.path.join(folder_of(session_id, environ), f"{clock.now().replace(':', '-')}.jsonl")
    whole = False
    try:
        _copy(descriptor, path)
        whole = begins_with(descriptor, path)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        if not whole:
            drop(path)
    if not whole:
        raise WriteFailed("The session changed while its backup was made", "Nothing was changed. Run it again.")
    return path


def instant_of(path: str) -> str:
    """The instant that a backup is named by; ``""`` for any other file."""
    name = os.path.basename(path).removesuffix(".jsonl")
    return f"{name[:11]}{name[11:].replace('-', ':')}" if name[10:11] == "T" and name.endswith("Z") else ""


def drop(path: str) -> None:
    """Remove a backup that stands for nothing."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _lock(path: str, environ: Mapping[str, str], busy: str, failed: str) -> tuple[int, bool]:
    """The open lock, and whether it is held; a volume without locks holds none.

    There of two writers the second finds the file changed. SessionLive, WriteFailed.
    """
    for _ in range(TRIES):
        descriptor = _open_lock(path, environ, failed)
        if descriptor is None:
            continue
        locked = _hold(descriptor, busy)
        if not locked or _leads_to(path, descriptor):
            return descriptor, locked
        os.close(descriptor)  # its holder removed it between our two steps
    raise WriteFailed(f"{failed} {path}: it comes and goes", "Nothing was changed. Try again.")


def _open_lock(path: str, environ: Mapping[str, str], failed: str) -> int | None:
    """The open file; None where its folder was removed just now. WriteFailed where it can't be made."""
    folder = os.path.dirname(path)
    try:
        for each in (state_home(environ), os.path.dirname(folder), folder):
            private_folder(each)
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), MODE)
    except FileNotFoundError:
        return None
    except OSError as error:
        if isinstance(error, FileExistsError) and not _stands_in_the_way(error.filename):
            return None  # there when it was to be made, and gone when it was looked at
        raise _refused(folder, error, failed) from error


def _stands_in_the_way(path: object) -> bool:
    """Whether something that is no folder is where one has to be."""
    return isinstance(path, str) and os.path.lexists(path) and not os.path.isdir(path)


def _hold(descriptor: int, busy: str) -> bool:
    """Lock an open file; False where the volume knows no locks. SessionLive where another process holds it."""
    locked = False
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        except BlockingIOError as error:
            os.close(descriptor)
            raise SessionLive(busy, "Wait until that is done, then try again.") from error
        except OSError:
            pass
    return locked


def _leads_to(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_if_empty(folder: str) -> None:
    """Remove the folder of a session without a backup, while its lock is held: whoever has it open tries anew."""
    with contextlib.suppress(OSError):
        if os.listdir(folder) == [LOCK]:
            os.unlink(os.path.join(folder, LOCK))
            os.rmdir(folder)


def _copy(descriptor: int, path: str) -> None:
    size, offset = os.fstat(descriptor).st_size, 0
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), MODE)
    with os.fdopen(target, "wb", buffering=0) as stream:
        os.chmod(path, MODE)  # whatever the umask took away
        while offset < size and (piece := os.pread(descriptor, min(CHUNK, size - offset), offset)):
            offset += stream.write(piece)
        os.fsync(target)


def _refused(path: str, error: OSError, failed: str = NOT_KEPT) -> WriteFailed:
    return WriteFailed(
        f"{failed} {path}: {error.strerror or error}",
        "Nothing was changed. Check free space and the permissions of the folder.",
    )
