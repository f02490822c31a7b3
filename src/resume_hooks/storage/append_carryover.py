"""Carry over the lines that other programs append to a file while we replace it.

Clients open a transcript by its path for each record and close it again (2.1.42 to 2.1.329), so
soon after a rename they write to the new file. A record that was opened before the rename and
written after it ends up in the old file, which we keep open here.
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

CHUNK_BYTES = 1024 * 1024  # the number of bytes to carry over or compare at a time
# the maximum number of seconds from a program's lookup of a path until it opens the file
OPEN_GRACE_SECONDS = 0.05
QUIET_SECONDS = 0.3  # after this number of seconds without a new byte, no more writes are expected
# the maximum number of seconds to follow a file that other programs write to without a pause
MAX_FOLLOW_SECONDS = 5.0
PARTIAL_LINE_SECONDS = 0.5  # the number of seconds to wait for the rest of a half-written line
PAUSE_SECONDS = 0.005


class AppendCarryover:
    """Carries over the end of the open file ``source``, from ``position``, which advances."""

    def __init__(self, source: int, position: int) -> None:
        self._source = source
        self.position = position

    def append_new_lines(self, target: int) -> int:
        """Append all complete lines so far to ``target``, and return the number of bytes.

        Raise OSError on failure.

        A partial line is not appended until its rest arrives. Otherwise another program's record
        could be written in between.
        """
        carried = 0
        while lines := self._iterate_new_lines():
            self._append(target, lines)
            carried += len(lines)
        return carried

    def settle(self, target: int) -> None:
        """Carry over all lines. Wait for the rest of an unfinished line, but not for ever."""
        self.append_new_lines(target)
        wait_for_line_end(self._source)
        self.append_new_lines(target)

    def follow(self, target: int) -> bool:
        """Carry over later writes to the old file until no more are expected.

        ``target`` is open for appending. Only whole lines are added, because other programs also
        write to it. Return True if a program is known to have the old file still open for writing.
        """
        start = last_write = time.monotonic()
        try:
            while True:
                is_open = is_open_for_writing(self._source)
                now = time.monotonic()
                if self._carry_over_whole_lines(target):
                    last_write = now
                elif now - last_write >= (
                    OPEN_GRACE_SECONDS if is_open is False else QUIET_SECONDS
                ):
                    break
                if now - start >= MAX_FOLLOW_SECONDS:
                    break
                time.sleep(PAUSE_SECONDS)
        finally:
            self._carry_over_whole_lines(target)
            while rest := read_bytes_at(self._source, CHUNK_BYTES, self.position):
                # otherwise the next record would continue this line
                ending = b"" if len(rest) == CHUNK_BYTES else b"\n"
                self._append(target, rest, ending)
        return is_open is True

    def _carry_over_whole_lines(self, target: int) -> int:
        """Carry over once the last line of the new file is complete, because other programs also write to it."""
        if not self._iterate_new_lines():
            return 0
        deadline = time.monotonic() + PARTIAL_LINE_SECONDS
        # The bytes carried over so far may themselves end inside a line, if the file was copied
        # during a write.
        carried_whole_lines = (
            not self.position or read_bytes_at(self._source, 1, self.position - 1) == b"\n"
        )
        while carried_whole_lines and has_partial_line(target):
            if time.monotonic() >= deadline:
                # the line was abandoned: end it, so that it does not damage our record
                os.write(target, b"\n")
                break
            time.sleep(PAUSE_SECONDS)
        return self.append_new_lines(target)

    def _iterate_new_lines(self) -> bytes:
        length = CHUNK_BYTES
        while piece := read_bytes_at(self._source, length, self.position):
            whole_lines = piece[: piece.rfind(b"\n") + 1]
            if whole_lines or len(piece) < length:
                return whole_lines
            length *= 2
        return b""

    def _append(self, target: int, piece: bytes, ending: bytes = b"") -> None:
        written = os.write(target, piece + ending)
        self.position += min(written, len(piece))
        if written < len(piece) + len(ending):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def wait_for_line_end(descriptor: int) -> None:
    """Wait for the rest of a line that another program may be writing to an open file.

    Stop after a short time if the line was abandoned.
    """
    deadline = time.monotonic() + PARTIAL_LINE_SECONDS
    while has_partial_line(descriptor) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)


def has_partial_line(descriptor: int) -> bool:
    """Check whether the last line of an open file lacks its line ending."""
    size = os.fstat(descriptor).st_size
    return size > 0 and read_bytes_at(descriptor, 1, size - 1) != b"\n"


def is_open_for_writing(descriptor: int) -> bool | None:
    """Check whether another program has the file open for writing. Return None if the system cannot tell.

    Linux grants a read lease only on a file without writers. The lease is returned at once. A
    program that opens the file in the meantime waits until then.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # The default signal for a lease would end this process; this one is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return True
        return None
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def begins_with_copy(descriptor: int, copy: str) -> bool:
    """Check whether an open file begins with all the bytes of the file ``copy``.

    Raise OSError if either file cannot be read.
    """
    offset = 0
    with open(copy, "rb", buffering=0) as stream:
        while piece := stream.read(CHUNK_BYTES):
            if read_bytes_at(descriptor, len(piece), offset) != piece:
                return False
            offset += len(piece)
    return True
