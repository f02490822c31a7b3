"""The only writer of session files: whole or not at all, checked as read back before it gets its name.

A crash at any point leaves either nothing that a client would see, or the complete file: the bytes go to a
temporary file in the same folder (never named ``.jsonl``), are synced, checked, and only then linked to the name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterable

from resume_hooks.errors import WriteFailed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MODE = 0o600
_TEMP_PREFIX = ".resume-hooks-"
_TEMP_SUFFIX = ".tmp"


def create_session(path: str, chunks: Iterable[bytes], check: Callable[[str], None]) -> None:
    """Create ``path`` with ``chunks``, exclusively, after ``check(temporary path)`` found nothing to object to.

    Raises WriteFailed where the disk refuses or the name is taken, and whatever ``check`` raises; in every
    case nothing is left behind.
    """
    folder = os.path.dirname(path)
    sweep(folder)
    temporary = os.path.join(folder, f"{_TEMP_PREFIX}{os.getpid()}-{secrets.token_hex(4)}{_TEMP_SUFFIX}")
    try:
        _write(temporary, chunks)
        check(temporary)
        _name_exclusively(temporary, path)
        _sync_folder(folder)
    except OSError as error:
        raise WriteFailed(
            f"Could not write {path}: {error.strerror or error}",
            "Nothing was changed. Check free space and the permissions of the folder.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def append_line(path: str, line: bytes) -> None:
    """Append one whole line (without its ending) to a private file of ours; concurrent writers don't mix.

    A torn last line of an interrupted writer is ended first, so that it can't swallow this one. OSError on failure.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), MODE)
    try:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a volume without locks: at worst an empty line
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        whole = (b"\n" if torn else b"") + line + b"\n"
        if os.write(descriptor, whole) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: str) -> None:
    """Remove temporary files whose writer was killed; those of running processes stay."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(_TEMP_PREFIX) and name.endswith(_TEMP_SUFFIX):
            process = name[len(_TEMP_PREFIX) :].split("-")[0]
            if process.isdecimal() and not process_runs(int(process)):
                with contextlib.suppress(OSError):  # another sweep was faster
                    os.unlink(os.path.join(folder, name))


def process_runs(process: int) -> bool:
    """Whether a process id is in use; one that belongs to somebody else counts."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _write(path: str, chunks: Iterable[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    with os.fdopen(descriptor, "wb") as stream:
        os.chmod(path, MODE)  # whatever the umask took away
        for chunk in chunks:
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())


def _name_exclusively(temporary: str, path: str) -> None:
    """Give the finished file its name, never over an existing one."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # No hard links here (some network and FAT volumes): reserve the name, then rename over the reservation.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
        try:
            os.replace(temporary, path)
        except OSError:
            os.unlink(path)
            raise


def _sync_folder(folder: str) -> None:
    # Some file systems refuse to sync a folder; the name is then as durable as they make it.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
