"""Write this plugin's private files atomically.

This module also creates temporary files beside the private files, and removes temporary files that
were left by killed processes. Only the standard library is used, with Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, make_private_folder, read_bytes_at
from resume_hooks.storage import removal

PRIVATE_MODE = 0o600

CHUNK_BYTES = 1024 * 1024  # The number of bytes that are read at a time.
NOTHING_CHANGED_REMEDY = "Nothing was changed. Check free space and the permissions of the folder."
_TEMP_PREFIX = ".resume-hooks-"
_TEMP_SUFFIX = ".tmp"

_SYNCHRONIZE, _ACCESS_DENIED, _WAIT_TIMEOUT = 0x00100000, 5, 0x102
"""Windows constants: the right to wait for a process, the error for another user's process, and the
result for a running process."""


def replace_state_file(path: str, content: bytes | Iterable[bytes], where: Where) -> None:
    """Create or replace a private file, and sync it. Create its folder if it is missing.

    If ``path`` is a link, the link itself is replaced. If OSError is raised, the old file is
    unchanged.
    """
    folder = make_private_folder(os.path.dirname(path), where)
    remove_stale_temporaries(folder)
    with temporary_name(folder) as temporary:
        create_file(temporary, [content] if isinstance(content, bytes) else content)
        os.replace(temporary, path)
    sync_folder(folder)


def create_file(path: str, chunks: Iterable[bytes], *, sync: bool = True) -> int:
    """Write a new private file and return its size. If ``sync`` is True, sync the file.

    Raise OSError if the write fails or if ``path`` exists.
    """
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), PRIVATE_MODE
    )
    with os.fdopen(descriptor, "wb") as stream:
        os.chmod(path, PRIVATE_MODE)  # The call sets the mode regardless of the umask.
        for chunk in chunks:
            stream.write(chunk)
        stream.flush()
        if sync:
            os.fsync(descriptor)
        return stream.tell()


def create_marker(path: str, where: Where) -> bool:
    """Create an empty private file in one of this plugin's folders.

    Return False if the file already exists. Raise OSError.
    """
    make_private_folder(os.path.dirname(path), where)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE))
        return True
    return False


def read_chunks(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of an open file in chunks.

    If the file has fewer bytes, yield all of them. The position in the open file does not change.
    """
    offset = 0
    while offset < size and (
        chunk := read_bytes_at(descriptor, min(CHUNK_BYTES, size - offset), offset)
    ):
        offset += len(chunk)
        yield chunk


def temporary_path(folder: str) -> str:
    """Return a path for a temporary file.

    If the process that writes the file is killed, ``remove_stale_temporaries`` removes the file
    later.
    """
    return os.path.join(folder, f"{_TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}{_TEMP_SUFFIX}")


@contextlib.contextmanager
def temporary_name(folder: str) -> Iterator[str]:
    """Yield a path for a temporary file or folder. Remove the file or folder after the ``with`` block."""
    temporary = temporary_path(folder)
    try:
        yield temporary
    finally:
        discard_temporary(temporary)


@contextlib.contextmanager
def convert_os_error(message: str, remedy: str = NOTHING_CHANGED_REMEDY) -> Iterator[None]:
    """Convert an OSError in the ``with`` block to WriteFailed.

    The error's message is ``message``, followed by the reason that the system gives.
    """
    try:
        yield
    except OSError as error:
        raise WriteFailed(f"{message}: {error.strerror or error}", remedy) from error


def remove_stale_temporaries(folder: str) -> None:
    """Remove the temporary files of killed processes, but keep those of running processes."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(_TEMP_PREFIX) and name.endswith(_TEMP_SUFFIX):
            process = name[len(_TEMP_PREFIX) :].split("-")[0]
            if process.isdecimal() and not is_process_running(int(process)):
                discard_temporary(os.path.join(folder, name))


def discard_temporary(path: str) -> None:
    """Remove a temporary file or folder that this plugin created. Ignore errors.

    Links on the path are followed, as they were when the file was created. This is safe because no
    other program uses the name of a temporary file.
    """
    removal.remove_if_possible(path, os.path.dirname(path), follow_root=True)


def is_process_running(process_id: int) -> bool:
    """Check whether a process with this id is running, even if it belongs to another user."""
    if os.name == "nt":
        return _is_windows_process_running(process_id)
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _is_windows_process_running(process_id: int) -> bool:
    """Check whether a process is running, by opening a handle that only allows waiting for it.

    ``os.kill`` is not used, because on Windows it would send Ctrl+C to the process.
    """
    import ctypes  # Imported here because only Windows needs it.

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(_SYNCHRONIZE, 0, process_id)
    if not handle:
        return bool(kernel.GetLastError() == _ACCESS_DENIED)
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
    finally:
        kernel.CloseHandle(handle)


def sync_folder(folder: str) -> None:
    """Write the names in a folder durably to disk.

    Errors are ignored, because some file systems cannot do this.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
