"""Private files of ours, replaced whole.

Temporary files beside them, and what removes those of a killed writer.

Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, private_folder, read_at
from resume_hooks.storage import removal

MODE = 0o600

PIECE = 1024 * 1024  # bytes that are read at a time
UNCHANGED = "Nothing was changed. Check free space and the permissions of the folder."
_TEMP_PREFIX = ".resume-hooks-"
_TEMP_SUFFIX = ".tmp"

_SYNCHRONIZE, _ACCESS_DENIED, _WAIT_TIMEOUT = 0x00100000, 5, 0x102
"""Of Windows: the right to wait for a process, what is said of one that isn't ours, and of one that has not ended."""


def replace_state_file(path: str, content: bytes | Iterable[bytes], where: Where) -> None:
    """Write a private file, synced, in place of a file or link; its folder is made.

    OSError leaves the old one.
    """
    folder = private_folder(os.path.dirname(path), where)
    sweep_spare_names(folder)
    with spare_name(folder) as temporary:
        create_file(temporary, [content] if isinstance(content, bytes) else content)
        os.replace(temporary, path)
    sync_folder(folder)


def create_file(path: str, pieces: Iterable[bytes], *, lasting: bool = True) -> int:
    """Write a new private file, synced if ``lasting``; its size.

    OSError where it can't be, or the name is taken.
    """
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), MODE
    )
    with os.fdopen(descriptor, "wb") as stream:
        os.chmod(path, MODE)  # whatever the umask took away
        for piece in pieces:
            stream.write(piece)
        stream.flush()
        if lasting:
            os.fsync(descriptor)
        return stream.tell()


def leave_mark(path: str, where: Where) -> bool:
    """Leave an empty private file, in a folder of ours; False where it is there already.

    OSError.
    """
    private_folder(os.path.dirname(path), where)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
        return True
    return False


def read_open(descriptor: int, size: int) -> Iterator[bytes]:
    """The first ``size`` bytes of an open file, a piece at a time, as far as it has them.

    Its position stays.
    """
    offset = 0
    while offset < size and (piece := read_at(descriptor, min(PIECE, size - offset), offset)):
        offset += len(piece)
        yield piece


def temporary_in(folder: str) -> str:
    """A name for a temporary file, which ``sweep_spare_names`` removes should its writer be killed."""
    return os.path.join(folder, f"{_TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}{_TEMP_SUFFIX}")


@contextlib.contextmanager
def spare_name(folder: str) -> Iterator[str]:
    """A name for a temporary file or folder.

    What still has it when the block is left is removed.
    """
    temporary = temporary_in(folder)
    try:
        yield temporary
    finally:
        discard_spare(temporary)


@contextlib.contextmanager
def convert_os_error(what: str, remedy: str = UNCHANGED) -> Iterator[None]:
    """Raise WriteFailed for an OSError of the block: ``what`` could not be done, and why the system says so."""
    try:
        yield
    except OSError as error:
        raise WriteFailed(f"{what}: {error.strerror or error}", remedy) from error


def sweep_spare_names(folder: str) -> None:
    """Remove temporary files whose writer was killed; those of running processes stay."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(_TEMP_PREFIX) and name.endswith(_TEMP_SUFFIX):
            process = name[len(_TEMP_PREFIX) :].split("-")[0]
            if process.isdecimal() and not process_runs(int(process)):
                discard_spare(os.path.join(folder, name))


def discard_spare(path: str) -> None:
    """Remove a temporary file or folder of our own.

    What can't be removed, or is gone, does no harm.

    Its name is ours wherever it lies, so links on the way to its folder are those by which it was
    made.
    """
    removal.discard(path, os.path.dirname(path), follow_root=True)


def process_runs(process: int) -> bool:
    """Whether a process id is in use; one that belongs to somebody else counts."""
    if os.name == "nt":
        return _runs_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _runs_on_windows(process: int) -> bool:
    """There ``os.kill`` would send it Ctrl+C.

    A handle without rights to anything but waiting harms nobody.
    """
    import ctypes  # nobody else pays for it

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(_SYNCHRONIZE, 0, process)
    if not handle:
        return bool(kernel.GetLastError() == _ACCESS_DENIED)
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
    finally:
        kernel.CloseHandle(handle)


def sync_folder(folder: str) -> None:
    """Make the names in a folder as durable as its file system makes them; some refuse to."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
