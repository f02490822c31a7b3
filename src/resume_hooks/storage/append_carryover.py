"""What others append to a file while it is replaced: carried from the old file to the new one, nothing left behind.

Clients open a transcript by its path for each record and keep nothing open (2.1.42 to 2.1.329), so
that soon after a rename they write to the new file. What was opened before and written after lies
in the old one, which stays open here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time

from resume_hooks.paths import read_at

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CHUNK = 1024 * 1024  # bytes that are carried or compared at a time
GRACE = 0.05  # seconds that a program may be between looking a path up and opening what it found
QUIET = 0.3  # seconds without a new byte after which nobody is expected to write any more
LIMIT = 5.0  # seconds that a file which is written to without a pause is followed
TORN = 0.5  # seconds that a half-written line is waited for
PAUSE = 0.005


class Splice:
    """The end of the open file ``source`` from ``position`` on, which is moved as bytes are carried over."""

    def __init__(self, source: int, position: int) -> None:
        self._source = source
        self.position = position

    def carry(self, target: int) -> int:
        """Append to ``target`` the whole lines that are there by now; how many bytes.

        OSError where it can't be done.

        The start of a line waits for its rest, or another program's record would come to stand
        between the two.
        """
        carried = 0
        while piece := self._lines():
            self._append(target, piece)
            carried += len(piece)
        return carried

    def settle(self, target: int) -> None:
        """Carry over, and wait for the rest of a line that somebody may be writing, unless it was abandoned."""
        self.carry(target)
        await_line_end(self._source)
        self.carry(target)

    def follow(self, target: int) -> bool:
        """Carry over what is still written to the old file, until nobody is expected to.

        ``target`` is open to append: lines are added whole, since others write there too. Returns
        whether a program still has the old file open for writing, as far as the system tells.
        """
        began = last = time.monotonic()
        try:
            while True:
                held = held_for_writing(self._source)
                now = time.monotonic()
                if self._carry_between_lines(target):
                    last = now
                elif now - last >= (GRACE if held is False else QUIET):
                    break
                if now - began >= LIMIT:
                    break
                time.sleep(PAUSE)
        finally:
            self._carry_between_lines(target)
            while rest := read_at(self._source, CHUNK, self.position):
                ending = (
                    b"" if len(rest) == CHUNK else b"\n"
                )  # or the next record would become a part of it
                self._append(target, rest, ending)
        return held is True

    def _carry_between_lines(self, target: int) -> int:
        """Carry over once nobody is in the middle of a line in the new file, which others write to by now."""
        if not self._lines():
            return 0
        deadline = time.monotonic() + TORN
        # What was carried so far may end within a line, as the copy of a file does that was being
        # written.
        ended = not self.position or read_at(self._source, 1, self.position - 1) == b"\n"
        while ended and is_torn(target):
            if time.monotonic() >= deadline:
                os.write(target, b"\n")  # abandoned: it must not take a whole record with it
                break
            time.sleep(PAUSE)
        return self.carry(target)

    def _lines(self) -> bytes:
        length = CHUNK
        while piece := read_at(self._source, length, self.position):
            whole = piece[: piece.rfind(b"\n") + 1]
            if whole or len(piece) < length:
                return whole
            length *= 2
        return b""

    def _append(self, target: int, piece: bytes, ending: bytes = b"") -> None:
        written = os.write(target, piece + ending)
        self.position += min(written, len(piece))
        if written < len(piece) + len(ending):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def await_line_end(descriptor: int) -> None:
    """Wait for the rest of a line that somebody may be writing into an open file.

    For an abandoned one not for long.
    """
    deadline = time.monotonic() + TORN
    while is_torn(descriptor) and time.monotonic() < deadline:
        time.sleep(PAUSE)


def is_torn(descriptor: int) -> bool:
    """Whether the last line of an open file has no ending."""
    size = os.fstat(descriptor).st_size
    return size > 0 and read_at(descriptor, 1, size - 1) != b"\n"


def held_for_writing(descriptor: int) -> bool | None:
    """Whether somebody has the file open for writing; None where the system can't tell.

    Linux grants a read lease only on a file that nobody writes. It is given back at once; whoever
    opens the file just then is held up for that moment.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # Its usual signal would end this process; this one is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return True
        return None
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def begins_with(descriptor: int, copy: str) -> bool:
    """Whether an open file begins with all the bytes of the file ``copy``.

    OSError where one can't be read.
    """
    offset = 0
    with open(copy, "rb", buffering=0) as stream:
        while piece := stream.read(CHUNK):
            if read_at(descriptor, len(piece), offset) != piece:
                return False
            offset += len(piece)
    return True
