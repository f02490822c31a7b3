"""Copy the lines that other programs append to a file while this program replaces the file.

For each record, a client (2.1.42 to 2.1.329) opens a transcript by its path, writes, and closes the
transcript again. After this program has renamed the new file, clients therefore soon write to the
new file. But a client that opened the transcript before the rename may still write to the old file.
This program therefore keeps the old file open and copies such records to the new file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time

from resume_hooks.paths import read_bytes_at

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CHUNK_BYTES = 1024 * 1024  # The number of bytes that are copied or compared at a time.
# The maximum number of seconds that a program needs between looking up a path and opening the file.
OPEN_GRACE_SECONDS = 0.05
# The number of seconds without a new byte after which no more writes are expected.
QUIET_SECONDS_BEFORE_END = 0.3
# The maximum number of seconds to wait while other programs keep writing to the old file.
MAX_COPYING_SECONDS = 5.0
# The maximum number of seconds to wait for the rest of a line that is being written.
MAX_PARTIAL_LINE_WAIT_SECONDS = 0.5
PAUSE_SECONDS = 0.005


class AppendedLineCopier:
    """Copies the end of the open file ``source`` to a new file.

    ``position`` is the offset in ``source`` of the first byte that has not been copied yet.
    """

    def __init__(self, source: int, position: int) -> None:
        self._source = source
        self.position = position

    def append_new_lines(self, target_fd: int) -> int:
        """Append all new complete lines to ``target_fd``. Return the number of bytes that were appended.

        An incomplete line is not appended until its rest arrives, because another program's record
        could otherwise be written into the middle of the line. Raise OSError on failure.
        """
        copied_bytes = 0
        while lines := self._read_new_lines():
            self._append_bytes(target_fd, lines)
            copied_bytes += len(lines)
        return copied_bytes

    def copy_all_lines(self, target_fd: int) -> None:
        """Copy all new lines. Wait for the rest of an incomplete line, but only for a short time."""
        self.append_new_lines(target_fd)
        wait_until_last_line_is_complete(self._source)
        self.append_new_lines(target_fd)

    def copy_later_writes(self, target_fd: int) -> bool:
        """Copy what other programs still write to the old file, until no more writes are expected.

        ``target_fd`` is open for appending. Because other programs also write to ``target_fd``,
        only complete lines are copied. Return True if a program certainly still has the old file
        open for writing.
        """
        start = last_write = time.monotonic()
        try:
            while True:
                is_open = is_open_for_writing(self._source)
                now = time.monotonic()
                if self._copy_whole_lines(target_fd):
                    last_write = now
                elif now - last_write >= (
                    OPEN_GRACE_SECONDS if is_open is False else QUIET_SECONDS_BEFORE_END
                ):
                    break
                if now - start >= MAX_COPYING_SECONDS:
                    break
                time.sleep(PAUSE_SECONDS)
        finally:
            self._copy_whole_lines(target_fd)
            while rest := read_bytes_at(self._source, CHUNK_BYTES, self.position):
                # Without a line feed, the next record would be appended to this line.
                ending = b"" if len(rest) == CHUNK_BYTES else b"\n"
                self._append_bytes(target_fd, rest, ending)
        return is_open is True

    def _copy_whole_lines(self, target_fd: int) -> int:
        """Copy new lines, but first wait until the last line of ``target_fd`` is complete.

        This line may be incomplete because other programs also write to ``target_fd``. Return the
        number of bytes that were copied.
        """
        if not self._read_new_lines():
            return 0
        deadline = time.monotonic() + MAX_PARTIAL_LINE_WAIT_SECONDS
        # If the copied bytes end inside a line, the next bytes must be the rest of that line.
        ends_with_whole_line = (
            not self.position or read_bytes_at(self._source, 1, self.position - 1) == b"\n"
        )
        while ends_with_whole_line and has_partial_line(target_fd):
            if time.monotonic() >= deadline:
                # No program will complete the line. End it, so that it does not damage the next
                # record.
                os.write(target_fd, b"\n")
                break
            time.sleep(PAUSE_SECONDS)
        return self.append_new_lines(target_fd)

    def _read_new_lines(self) -> bytes:
        length = CHUNK_BYTES
        while piece := read_bytes_at(self._source, length, self.position):
            whole_lines = piece[: piece.rfind(b"\n") + 1]
            if whole_lines or len(piece) < length:
                return whole_lines
            length *= 2
        return b""

    def _append_bytes(self, target_fd: int, content: bytes, ending: bytes = b"") -> None:
        written = os.write(target_fd, content + ending)
        self.position += min(written, len(content))
        if written < len(content) + len(ending):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def wait_until_last_line_is_complete(descriptor: int) -> None:
    """Wait for the rest of a line that another program may be writing to an open file.

    Stop after a short time, because the line may never be completed.
    """
    deadline = time.monotonic() + MAX_PARTIAL_LINE_WAIT_SECONDS
    while has_partial_line(descriptor) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)


def has_partial_line(descriptor: int) -> bool:
    """Check whether the last line of an open file lacks its line ending."""
    size = os.fstat(descriptor).st_size
    return size > 0 and read_bytes_at(descriptor, 1, size - 1) != b"\n"


def is_open_for_writing(descriptor: int) -> bool | None:
    """Check whether another program has the file open for writing.

    Return None if the system cannot tell. On Linux, this is tested with a read lease, which the
    system grants only if no program has the file open for writing. The lease is released
    immediately. A program that opens the file for writing in the meantime waits until the lease is
    released.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # By default, the signal for a lease would end this process, but SIGURG is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return True
        return None
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def begins_with_copy(descriptor: int, copy_path: str) -> bool:
    """Check whether an open file begins with all the bytes of the file ``copy_path``.

    Raise OSError if either file cannot be read.
    """
    offset = 0
    with open(copy_path, "rb", buffering=0) as stream:
        while piece := stream.read(CHUNK_BYTES):
            if read_bytes_at(descriptor, len(piece), offset) != piece:
                return False
            offset += len(piece)
    return True
