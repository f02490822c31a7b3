"""Raw lines of a transcript. Reading is lossless: the joined lines are the file's bytes.

Lines end only at a line feed: transcripts contain raw U+2028 and U+0085 inside strings, which
``str`` methods also split.

The limits of clients were measured with 2.1.42, 2.1.112 and 2.1.330. The part before a compaction
costs almost nothing. Each MB of the live part costs 20 ms, 8 MB of memory and a MB in every
request; each MB of a displayed answer 2.4 s and 500 MB. Users saw clients hang. Python 3.9: the
session-start hook uses this module.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO, NamedTuple

from resume_hooks.errors import SessionNotFound

BOM = b"\xef\xbb\xbf"
SEARCHED_BYTES = 256 * 1024  # bytes to hold at a time in a search
# bytes before the read end whose comparison shows whether a file was only appended to
COMPARED_BYTES = 1_024
STEP = 64 * 1024  # bytes to read at a time for nearby lines, and between two stored line counts


class Line(NamedTuple):
    """A line on disk: 0-based ``number`` (-1 if unknown), byte ``offset``, and ``raw`` bytes with the line ending."""

    number: int
    offset: int
    raw: bytes

    @property
    def body(self) -> bytes:
        """The line without its ending, and without the byte order mark that some editors add."""
        body = self.raw.removesuffix(b"\n").removesuffix(b"\r")
        if self.offset == 0:
            return body.removeprefix(BOM)
        return body

    @property
    def torn(self) -> bool:
        """Whether the line has no ending, as the last one after an interrupted write."""
        return not self.raw.endswith(b"\n")


def read_lines(stream: BinaryIO, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Yield every line from a stream's position, which has this ``offset`` and line ``number``."""
    for place, raw in enumerate(stream, number):
        yield Line(place, offset, raw)
        offset += len(raw)


def read_tail(stream: BinaryIO, reach: int) -> Iterator[Line]:
    """Yield the whole lines within the last ``reach`` bytes.

    Their numbers count from the first line read.
    """
    size = stream.seek(0, os.SEEK_END)
    offset = stream.seek(max(0, size - reach - 1))
    if size > reach:
        offset += len(
            stream.readline()
        )  # the rest of a line that began before the reach, or just its line feed
    for number, raw in enumerate(stream):
        yield Line(number, offset, raw)
        offset += len(raw)


class SharedFile:
    """A transcript that is opened once, on first use, and shared by successive readers.

    They all see the same file, even if another file takes its name meanwhile. A reader that starts
    during another one's read opens the file again. It is closed with the last reference.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._stream: BinaryIO | None = None
        self._is_in_use = False

    def __del__(self) -> None:
        if self._stream is not None:
            self._stream.close()

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Yield the file from its beginning. Raise OSError if it can't be read."""
        if self._is_in_use:
            with open(self.path, "rb", buffering=SEARCHED_BYTES) as own:
                yield own
            return
        if self._stream is None:
            self._stream = open(self.path, "rb", buffering=4 * STEP)  # noqa: SIM115 - closed with this
        self._is_in_use = True
        try:
            self._stream.seek(0)
            yield self._stream
        finally:
            self._is_in_use = False


def transcript_path(file: str | SharedFile) -> str:
    """Return a transcript's path."""
    if isinstance(file, SharedFile):
        return file.path
    return file


@contextmanager
def open_transcript(file: str | SharedFile, buffering: int = -1) -> Iterator[BinaryIO]:
    """Open a file for reading from its beginning. Raise SessionNotFound if it can't be read."""
    try:
        if isinstance(file, SharedFile):
            opening: AbstractContextManager[BinaryIO] = file.stream()
        else:
            opening = open(file, "rb", buffering=buffering)  # noqa: SIM115 - closed below
        with opening as stream:
            yield stream
    except OSError as error:
        raise SessionNotFound(
            f"{transcript_path(file)} can't be read: {error.strerror}", "Check the path."
        ) from error


def read_exactly(stream: BinaryIO, offset: int, length: int) -> bytes:
    """Return bytes of a file. Raise SessionNotFound if it has become shorter."""
    stream.seek(offset)
    found = stream.read(length)
    if len(found) < length:
        raise SessionNotFound(f"{stream.name} changed while it was read", "Run the command again.")
    return found


def read_lines_backwards(stream: BinaryIO, end: int) -> Iterator[Line]:
    """Yield the lines that begin before the byte ``end``, last one first.

    They have no numbers.
    """
    later: list[
        bytes
    ] = []  # the parts of a line whose beginning was not reached yet, last one first
    step = STEP
    while end > 0:
        start = max(0, end - step)
        piece = read_exactly(stream, start, end - start)
        stop = len(piece)
        while stop > 0:
            # A line feed at the very end belongs to this line; any other one ends the previous
            # line.
            feed = piece.rfind(b"\n", 0, stop if later else stop - 1)
            if feed < 0:
                later.append(piece[:stop])
                break
            yield Line(-1, start + feed + 1, b"".join([piece[feed + 1 : stop], *later[::-1]]))
            later, stop = [], feed + 1
        end, step = start, min(2 * step, SEARCHED_BYTES)
    if later:
        yield Line(-1, 0, b"".join(later[::-1]))


def find_last_line_with(stream: BinaryIO, needle: bytes, end: int, floor: int = 0) -> int:
    """Return the offset of the last line with ``needle`` between the bytes ``floor`` and ``end``, or -1."""
    after = b""
    while end > floor:
        start = max(floor, end - SEARCHED_BYTES)
        piece = read_exactly(stream, start, end - start) + after
        found = piece.rfind(needle)
        if found >= 0:
            return find_line_start(stream, start + found)
        after, end = piece[: len(needle) - 1], start
    return -1


def find_line_start(stream: BinaryIO, place: int) -> int:
    """Return the offset of the line that contains the byte at ``place``."""
    step = STEP
    while place > 0:
        start = max(0, place - step)
        found = read_exactly(stream, start, place - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        place, step = start, min(2 * step, SEARCHED_BYTES)
    return 0


class LineNumbers:
    """Line numbers in a file's first ``size`` bytes. Line feeds are counted once, as far as necessary."""

    def __init__(self, size: int) -> None:
        self._size = size
        # the number of line feeds before each step, and before the uncounted rest
        self._before = [0]

    def total(self, stream: BinaryIO) -> int:
        """Return the number of lines, including one without an ending."""
        self._count_lines(stream, self._size)
        unended = self._size > 0 and read_exactly(stream, self._size - 1, 1) != b"\n"
        return self._before[-1] + unended

    def of(self, stream: BinaryIO, offset: int) -> int:
        """Return the 0-based number of the line at ``offset``."""
        self._count_lines(stream, offset)
        step, rest = divmod(offset, STEP)
        return self._before[step] + read_exactly(stream, offset - rest, rest).count(b"\n")

    def start(self, stream: BinaryIO, number: int) -> int:
        """Return the offset of the line with this number, or -1 past the end."""
        if number <= 0:
            if number == 0 < self._size:
                return 0
            return -1
        while self._before[-1] < number and self._lines_counted < self._size:
            self._count_lines(stream, self._lines_counted + SEARCHED_BYTES)
        if self._before[-1] < number:
            return -1
        step = bisect_left(self._before, number) - 1
        piece = read_exactly(stream, step * STEP, min(STEP, self._size - step * STEP))
        feed = -1
        for _ in range(number - self._before[step]):
            feed = piece.index(b"\n", feed + 1)
        start = step * STEP + feed + 1
        if start < self._size:
            return start
        return -1

    @property
    def _lines_counted(self) -> int:
        return min((len(self._before) - 1) * STEP, self._size)

    def _count_lines(self, stream: BinaryIO, end: int) -> None:
        while self._lines_counted < min(end, self._size):
            piece = read_exactly(
                stream, self._lines_counted, min(STEP, self._size - self._lines_counted)
            )
            self._before.append(self._before[-1] + piece.count(b"\n"))


def read_bytes_before(stream: BinaryIO, end: int) -> bytes:
    """Return the bytes before ``end`` that show whether a file was only appended to."""
    start = max(0, end - COMPARED_BYTES)
    stream.seek(start)
    return stream.read(end - start)


GIANT = 100_000_000  # bytes above which clients were reported to hang or run out of memory
# bytes that no request can contain: 2.5 million tokens, or more images than the API accepts
GIANT_LINE = 10_000_000


def measure_longest_line(path: str) -> int:
    """Return the length in bytes of a file's longest line, 0 for an empty file. Raise OSError if it can't be read."""
    longest = start = 0
    with open(path, "rb") as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # empty
            return 0
        with content:
            while start < len(content):
                # Skip whole lines that are not longer than the longest so far.
                ended = content.rfind(b"\n", start, start + longest + 1)
                if ended < 0:
                    ended = content.find(b"\n", start + longest)
                    ended = len(content) if ended < 0 else ended
                    longest = max(longest, ended - start)
                start = ended + 1
    return longest
