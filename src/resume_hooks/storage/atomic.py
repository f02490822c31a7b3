"""The only writer of session files: whole or not at all, checked as read back before it gets its name.

A crash at any point leaves either nothing that a client would see, or the complete file: the bytes
go to a temporary file in the same folder (never named ``.jsonl``), are synced, checked, and only
then linked to the name.
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
from resume_hooks.storage.append_carryover import Splice, await_line_end, begins_with, is_torn
from resume_hooks.storage.locks import lock
from resume_hooks.storage.state_file import (
    MODE,
    convert_os_error,
    create_file,
    read_open,
    spare_name,
    sweep_spare_names,
    sync_folder,
)

BUFFER = 1024 * 1024  # bytes that are written at a time
TRIES = 20  # how often a file is opened anew that somebody replaced just then


def create_session(path: str, chunks: Iterable[bytes], check: Callable[[str], None]) -> None:
    """Create ``path`` with ``chunks``, exclusively, after ``check(temporary path)`` found nothing to object to.

    Raises WriteFailed where the disk refuses or the name is taken, and whatever ``check`` raises;
    in every case nothing is left behind.
    """
    folder = os.path.dirname(path)
    sweep_spare_names(folder)
    with convert_os_error(f"Could not write {path}"), spare_name(folder) as temporary:
        with _new_file(temporary, chunks):
            check(temporary)
        name_exclusively(temporary, path)
        sync_folder(folder)


def replace_session(
    path: str, original: int, kept: str, chunks: Iterable[bytes], check: Callable[[str], None]
) -> bool:
    """Put ``chunks`` in place of what ``kept``, an exact copy, holds of ``path``.

    What was appended since goes on.

    ``original`` is the file, open to be read: what somebody still writes into it after the rename
    is carried over. Returns whether a program holds it open even then. Raises WriteFailed and
    whatever ``check(temporary path)`` raises; nothing was changed then, unless the message says so.
    A crash leaves the file as it was or the new one.
    """
    folder = os.path.dirname(path)
    sweep_spare_names(folder)
    with convert_os_error(f"Could not rewrite {path}"), spare_name(folder) as temporary:
        splice = Splice(original, os.path.getsize(kept))
        with _new_file(temporary, chunks):
            check(temporary)
        with open(temporary, "a+b", buffering=0) as target:
            was, ours = os.fstat(original), os.fstat(target.fileno())
            if (was.st_uid, was.st_gid) != (
                ours.st_uid,
                ours.st_gid,
            ):  # root leaves it to whom it belongs
                os.fchown(target.fileno(), was.st_uid, was.st_gid)
            splice.settle(target.fileno())
            os.fsync(target.fileno())
            if not os.path.samestat(os.lstat(path), os.fstat(original)) or not begins_with(
                original, kept
            ):
                raise WriteFailed(
                    f"{path} was rewritten by another program meanwhile",
                    "Nothing was changed. Run the command again.",
                )
            splice.carry(target.fileno())
            # An old session that is rewritten is neither the latest nor open; what is carried over
            # later counts anew.
            was = os.fstat(original)
            os.utime(temporary, ns=(was.st_atime_ns, was.st_mtime_ns))
            os.replace(temporary, path)
            return _finish_replacement(path, splice, target.fileno())


def append_line(path: str, line: bytes) -> None:
    """Append one whole line (without its ending) to a private file of ours.

    Concurrent writers don't mix.

    A torn last line of an interrupted writer is ended first, so that it can't swallow this one. A
    file with a second name, which need not be ours, is left to that name as it is; a copy takes its
    place. OSError on failure.
    """
    for _ in range(TRIES):
        descriptor = _open_to_append(path, os.O_CREAT)
        try:
            lock(descriptor, None)
            if not os.path.samestat(os.lstat(path), os.fstat(descriptor)):
                continue  # it was replaced while we waited for it
            if os.fstat(descriptor).st_nlink > 1:
                _unshare(path, descriptor)
                continue
            append_synced(descriptor, line + b"\n")
            return
        finally:
            os.close(descriptor)
    raise OSError(errno.EMLINK, f"{path} is linked anew again and again", path)


def append_records(path: str, lines: Sequence[bytes]) -> None:
    """Append whole lines (without their endings) to a session file that is there.

    All of them, or WriteFailed and none.

    A line that a client is writing just then is waited for. The file's time stays, unless others
    write too: by it the client tells which session is the latest, and which are old enough to be
    deleted.
    """
    with convert_os_error(
        f"Could not add to {path}",
        "Nothing was changed. Check free space and the permissions of the file.",
    ):
        descriptor = _open_to_append(path)
        try:
            await_line_end(descriptor)
            was = os.fstat(descriptor)
            written = append_synced(descriptor, b"".join(line + b"\n" for line in lines))
            _keep_time(descriptor, was, was.st_size + written)
        finally:
            os.close(descriptor)


def _open_to_append(path: str, create: int = 0) -> int:
    """A regular file, open to be appended to; OSError for anything else, links among them."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | create | flags, MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return descriptor


def append_synced(descriptor: int, lines: bytes) -> int:
    """Write whole lines at the end of an open file, synced; how many bytes.

    What did not fit is taken back.
    """
    lock(descriptor, None)
    size = os.fstat(descriptor).st_size
    whole = (b"\n" if is_torn(descriptor) else b"") + lines
    written = os.write(descriptor, whole)
    if written < len(whole):
        if os.fstat(descriptor).st_size == size + written:
            os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)
    return written


def _unshare(path: str, descriptor: int) -> None:
    with spare_name(os.path.dirname(path)) as temporary:
        create_file(temporary, read_open(descriptor, os.fstat(descriptor).st_size))
        os.replace(temporary, path)


def _keep_time(descriptor: int, was: os.stat_result, size: int) -> None:
    """Give an open file the time that it had, if it has the ``size`` that our own writing made."""
    with contextlib.suppress(OSError):  # another user's file, which we may write: it counts as new
        now = os.fstat(descriptor)
        if now.st_size == size:
            os.utime(descriptor, ns=(now.st_atime_ns, was.st_mtime_ns))
            if os.fstat(descriptor).st_size != size:
                os.utime(descriptor)  # somebody wrote between the two calls


def _finish_replacement(path: str, splice: Splice, target: int) -> bool:
    """See to what comes after the rename; whether a program still has the old file open."""
    with convert_os_error(
        f"{path} was rewritten, but what a running client added meanwhile could not be",
        "Make room on the disk. The last lines may be missing; what was trimmed is in the backup.",
    ):
        held = splice.follow(target)
        os.fsync(target)
    sync_folder(os.path.dirname(path))
    return held


@contextlib.contextmanager
def _new_file(path: str, chunks: Iterable[bytes]) -> Iterator[None]:
    """Write a new file; it is synced while the block runs, and is so when the block is left.

    OSError if it can't be.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    with os.fdopen(descriptor, "wb", buffering=BUFFER) as stream:
        os.chmod(path, MODE)  # whatever the umask took away
        for chunk in chunks:
            stream.write(chunk)
        stream.flush()
        if stream.tell() < BUFFER:
            os.fsync(stream.fileno())
            yield
            return
        failures: list[OSError] = []
        syncing = threading.Thread(target=_sync, args=(stream.fileno(), failures))
        syncing.start()  # the disk takes as long as a check of what was written
        try:
            yield
        finally:
            syncing.join()
        if failures:
            raise failures[0]


def _sync(descriptor: int, failures: list[OSError]) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        failures.append(error)


def name_exclusively(temporary: str, path: str, within: int | None = None) -> bool:
    """Name a finished file, seen from ``within``, never over an existing one.

    Whether its old name is left, too.
    """
    try:
        os.link(temporary, path, src_dir_fd=within, dst_dir_fd=within)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise
        # No hard links here (some network and FAT volumes): reserve the name, then rename over the
        # reservation.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE, dir_fd=within))
        try:
            os.replace(temporary, path, src_dir_fd=within, dst_dir_fd=within)
        except OSError:
            removal.remove_name(path, within)
            raise
        return False
    return True
