"""Write session files. No other module does so.

The bytes are first written to a temporary file in the same folder. Its name never ends with
``.jsonl``. The temporary file is synced and checked, and only then gets the final name. So after a
crash, clients see either no file or the complete file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from resume_hooks.errors import WriteFailed
from resume_hooks.storage import removal
from resume_hooks.storage.append_carryover import (
    AppendedLineCopier,
    begins_with_copy,
    has_partial_line,
    wait_until_last_line_is_complete,
)
from resume_hooks.storage.locks import lock_descriptor
from resume_hooks.storage.state_file import (
    PRIVATE_MODE,
    convert_os_error,
    create_file,
    read_chunks,
    remove_stale_temporaries,
    sync_folder,
    temporary_name,
)

BUFFER_BYTES = 1024 * 1024  # The number of bytes that are written at a time.
# The maximum number of attempts to open a file that another program may be replacing.
MAX_OPEN_ATTEMPTS = 20


def create_session(path: str, chunks: Iterable[bytes], check: Callable[[str], None]) -> None:
    """Create the new file ``path`` from ``chunks``, unless ``check`` raises an error.

    ``check`` is called with the path of a temporary file that has the same content. Raise
    WriteFailed if the write fails or if ``path`` exists. After any failure, no file remains.
    """
    folder = os.path.dirname(path)
    remove_stale_temporaries(folder)
    with convert_os_error(f"Could not write {path}"), temporary_name(folder) as temporary:
        with _write_new_file(temporary, chunks):
            check(temporary)
        link_exclusively(temporary, path)
        sync_folder(folder)


def replace_session(
    path: str,
    original_fd: int,
    copy_path: str,
    chunks: Iterable[bytes],
    check: Callable[[str], None],
) -> bool:
    """Replace a session's file, but keep the lines that other programs append during the replacement.

    ``original_fd`` is a descriptor of the file, open for reading, and ``copy_path`` is the path of
    an exact copy of the file. The new content is ``chunks``, followed by all lines that were
    appended after the copy was made. Lines that a program writes to the old file even after the new
    file has taken its place are also copied to the new file. Return whether a program still has the
    old file open for writing.

    ``check`` is called with the path of a temporary file that has the new content. Raise
    WriteFailed, or the error that ``check`` raises. In both cases, the file is unchanged unless the
    message says something else. After a crash, either the old or the new file exists.
    """
    folder = os.path.dirname(path)
    remove_stale_temporaries(folder)
    with convert_os_error(f"Could not rewrite {path}"), temporary_name(folder) as temporary_path:
        copier = AppendedLineCopier(original_fd, os.path.getsize(copy_path))
        with _write_new_file(temporary_path, chunks):
            check(temporary_path)
        with open(temporary_path, "a+b", buffering=0) as target:
            old_status, new_status = os.fstat(original_fd), os.fstat(target.fileno())
            # If this program runs as root, the new file must get the owner of the old one.
            if (old_status.st_uid, old_status.st_gid) != (
                new_status.st_uid,
                new_status.st_gid,
            ):
                os.fchown(target.fileno(), old_status.st_uid, old_status.st_gid)
            copier.copy_all_lines(target.fileno())
            os.fsync(target.fileno())
            if not os.path.samestat(os.lstat(path), os.fstat(original_fd)) or not begins_with_copy(
                original_fd, copy_path
            ):
                raise WriteFailed(
                    f"{path} was rewritten by another program in the meantime",
                    "Nothing was changed. Run the command again.",
                )
            copier.append_new_lines(target.fileno())
            # Keep the file's times, because an old session must not become the latest session or be
            # treated as open only because it is rewritten. If later lines are copied, the times
            # change again.
            old_status = os.fstat(original_fd)
            os.utime(temporary_path, ns=(old_status.st_atime_ns, old_status.st_mtime_ns))
            os.replace(temporary_path, path)
            return _finish_replacement(path, copier, target.fileno())


def append_line(path: str, line: bytes) -> None:
    """Append a line to a private file of this plugin. ``line`` does not include the line feed.

    The lines of concurrent writers are never mixed. If an interrupted writer left an incomplete
    last line, end that line first. If the file has a second hard link, which may belong to someone
    else, replace the file with a copy and append to the copy. Raise OSError on failure.
    """
    for _ in range(MAX_OPEN_ATTEMPTS):
        descriptor = _open_to_append(path, os.O_CREAT)
        try:
            lock_descriptor(descriptor, None)
            if not os.path.samestat(os.lstat(path), os.fstat(descriptor)):
                continue  # The file was replaced while this process waited for the lock.
            if os.fstat(descriptor).st_nlink > 1:
                _replace_with_copy(path, descriptor)
                continue
            append_and_sync(descriptor, line + b"\n")
            return
        finally:
            os.close(descriptor)
    raise OSError(errno.EMLINK, f"{path} keeps getting new hard links", path)


def append_records(path: str, lines: Sequence[bytes]) -> None:
    """Append lines to an existing session file. ``lines`` do not include their line feeds.

    Append all of the lines, or raise WriteFailed and append none. If a client is writing a line,
    wait until the client has finished the line. Restore the file's time unless another program also
    writes to the file, because clients use this time to find the latest session and to delete old
    sessions.
    """
    with convert_os_error(
        f"Could not add to {path}",
        "Nothing was changed. Check the free disk space and the permissions of the file.",
    ):
        descriptor = _open_to_append(path)
        try:
            wait_until_last_line_is_complete(descriptor)
            old_status = os.fstat(descriptor)
            written = append_and_sync(descriptor, b"".join(line + b"\n" for line in lines))
            _restore_time(descriptor, old_status, old_status.st_size + written)
        finally:
            os.close(descriptor)


def _open_to_append(path: str, extra_flags: int = 0) -> int:
    """Open a regular file for appending. Raise OSError for a link and for any other type of file."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | extra_flags | flags, PRIVATE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return descriptor


def append_and_sync(descriptor: int, lines: bytes) -> int:
    """Append whole lines to an open file, sync the file, and return the number of bytes.

    If this fails, remove the part that was written.
    """
    lock_descriptor(descriptor, None)
    size = os.fstat(descriptor).st_size
    content = (b"\n" if has_partial_line(descriptor) else b"") + lines
    written = os.write(descriptor, content)
    if written < len(content):
        if os.fstat(descriptor).st_size == size + written:
            os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)
    return written


def _replace_with_copy(path: str, descriptor: int) -> None:
    with temporary_name(os.path.dirname(path)) as temporary:
        create_file(temporary, read_chunks(descriptor, os.fstat(descriptor).st_size))
        os.replace(temporary, path)


def _restore_time(descriptor: int, old_status: os.stat_result, size: int) -> None:
    """Set an open file's time back to the time in ``old_status`` if the file has ``size`` bytes.

    If the file has another size, another program has also written to it. Then keep the file's time.
    """
    # If the file belongs to another user, its time cannot be restored.
    with contextlib.suppress(OSError):
        new_status = os.fstat(descriptor)
        if new_status.st_size == size:
            os.utime(descriptor, ns=(new_status.st_atime_ns, old_status.st_mtime_ns))
            if os.fstat(descriptor).st_size != size:
                os.utime(descriptor)  # Another program wrote between the two calls.


def _finish_replacement(path: str, copier: AppendedLineCopier, target_fd: int) -> bool:
    """Copy the lines that were written to the old file after the rename.

    Return whether a program still has the old file open.
    """
    with convert_os_error(
        f"{path} was rewritten, but the new lines of a running client could not be added to the new file",
        "Free some space on the disk. The session's last lines may be missing. The backup contains what was trimmed.",
    ):
        is_open = copier.copy_later_writes(target_fd)
        os.fsync(target_fd)
    sync_folder(os.path.dirname(path))
    return is_open


@contextlib.contextmanager
def _write_new_file(path: str, chunks: Iterable[bytes]) -> Iterator[None]:
    """Write a new file. The file is synced when the ``with`` block ends.

    Raise OSError on failure.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
    with os.fdopen(descriptor, "wb", buffering=BUFFER_BYTES) as stream:
        os.chmod(path, PRIVATE_MODE)  # The call sets the mode regardless of the umask.
        for chunk in chunks:
            stream.write(chunk)
        stream.flush()
        if stream.tell() < BUFFER_BYTES:
            os.fsync(stream.fileno())
            yield
            return
        failures: list[OSError] = []
        syncing = threading.Thread(target=_sync_file, args=(stream.fileno(), failures))
        syncing.start()  # Syncing takes as long as checking, so both are done at the same time.
        try:
            yield
        finally:
            syncing.join()
        if failures:
            raise failures[0]


def _sync_file(descriptor: int, failures: list[OSError]) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        failures.append(error)


def link_exclusively(temporary: str, path: str, dir_fd: int | None = None) -> bool:
    """Give a finished file its final name, and never replace an existing file.

    Both paths are relative to the folder ``dir_fd`` if it is given. Return whether the file's
    temporary name still exists.
    """
    try:
        os.link(temporary, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise
        # Some network and FAT volumes do not support hard links. In this case, create an empty file
        # to reserve the name, and rename the finished file over it.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE, dir_fd=dir_fd))
        try:
            os.replace(temporary, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        except OSError:
            removal.remove_file_from_folder(path, dir_fd)
            raise
        return False
    return True
