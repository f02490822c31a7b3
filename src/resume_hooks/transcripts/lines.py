"""Read the lines of a transcript. Joined again, the lines are exactly the bytes of the file.

A line ends only at a line feed. Transcripts contain the characters U+2028 and U+0085 in strings,
and methods of ``str`` would also split lines there.

Clients 2.1.42, 2.1.112 and 2.1.330 were measured with large transcripts. The part before a
compaction costs almost no time. Each MB of the live part takes 20 ms and 8 MB of memory, and adds 1
MB to every request. Each MB of an answer that is shown on the screen takes 2.4 s and 500 MB of
memory. Users reported that clients stopped responding.

The module must run with Python 3.9, because the hook that runs when a session starts uses it.
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
SEARCH_CHUNK_BYTES = 256 * 1024  # Number of bytes that a search reads at a time.
# Before more of a file is read, this number of bytes at the end of the part already read is
# compared. If these bytes are unchanged, the file was only appended to.
APPEND_CHECK_BYTES = 1_024
BYTES_BETWEEN_LINE_COUNTS = (
    64 * 1024
    # The file is read in steps of this number of bytes. The line count is stored after each step,
    # so that a line near a step can be found quickly.
)


class Line(NamedTuple):
    """A line of a file.

    ``number`` is the line number, counted from 0, or -1 if it is unknown. ``offset`` is the
    position of the line in bytes. ``raw`` contains the bytes of the line with its line ending.
    """

    number: int
    offset: int
    raw: bytes

    @property
    def body(self) -> bytes:
        """The line without its line ending, and without the byte order mark that some editors add."""
        body = self.raw.removesuffix(b"\n").removesuffix(b"\r")
        if self.offset == 0:
            return body.removeprefix(BOM)
        return body

    @property
    def is_torn(self) -> bool:
        """Whether the line has no line ending. This is the case for a last line whose write was interrupted."""
        return not self.raw.endswith(b"\n")


def read_lines(stream: BinaryIO, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Yield every line from the current position of ``stream`` on.

    ``offset`` and ``number`` are the offset and the number of the first of these lines.
    """
    for line_number, raw in enumerate(stream, number):
        yield Line(line_number, offset, raw)
        offset += len(raw)


def read_tail(stream: BinaryIO, tail_bytes: int) -> Iterator[Line]:
    """Yield the complete lines in the last ``tail_bytes`` bytes.

    The first of these lines gets the number 0.
    """
    size = stream.seek(0, os.SEEK_END)
    offset = stream.seek(max(0, size - tail_bytes - 1))
    if size > tail_bytes:
        # This is the rest of a line that started before the tail, or only its line feed.
        offset += len(stream.readline())
    for number, raw in enumerate(stream):
        yield Line(number, offset, raw)
        offset += len(raw)


class SharedFile:
    """A transcript that several readers share. It is opened when the first reader needs it.

    All readers read the same file, even if another file replaces it at its path in the meantime. If
    a reader starts while another one is reading, the new reader opens the file again. The file is
    closed when the last reference to this object is deleted.
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
        """Yield the file, positioned at its start. Raises OSError if the file cannot be read."""
        if self._is_in_use:
            with open(self.path, "rb", buffering=SEARCH_CHUNK_BYTES) as own_stream:
                yield own_stream
            return
        if self._stream is None:
            self._stream = open(self.path, "rb", buffering=4 * BYTES_BETWEEN_LINE_COUNTS)  # noqa: SIM115 - closed with this
        self._is_in_use = True
        try:
            self._stream.seek(0)
            yield self._stream
        finally:
            self._is_in_use = False


def transcript_path(file: str | SharedFile) -> str:
    """Return the path of a transcript."""
    if isinstance(file, SharedFile):
        return file.path
    return file


@contextmanager
def open_transcript(file: str | SharedFile, buffering: int = -1) -> Iterator[BinaryIO]:
    """Open a transcript at its start. Raises SessionNotFound if the file cannot be read."""
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
    """Return ``length`` bytes at ``offset``.

    Raises SessionNotFound if the file is too short, because it has changed.
    """
    stream.seek(offset)
    content = stream.read(length)
    if len(content) < length:
        raise SessionNotFound(f"{stream.name} changed while it was read", "Run the command again.")
    return content


def read_lines_backwards(stream: BinaryIO, end: int) -> Iterator[Line]:
    """Yield the lines that start before the byte ``end``, the last one first.

    The lines have no numbers.
    """
    # The parts of a line whose beginning has not been read yet, last part first.
    later_lines: list[bytes] = []
    step_bytes = BYTES_BETWEEN_LINE_COUNTS
    while end > 0:
        start = max(0, end - step_bytes)
        chunk = read_exactly(stream, start, end - start)
        line_end = len(chunk)
        while line_end > 0:
            # A line feed at the very end of the first chunk ends the current line. Any other line
            # feed ends the line before the current one.
            line_feed = chunk.rfind(b"\n", 0, line_end if later_lines else line_end - 1)
            if line_feed < 0:
                later_lines.append(chunk[:line_end])
                break
            yield Line(
                -1,
                start + line_feed + 1,
                b"".join([chunk[line_feed + 1 : line_end], *later_lines[::-1]]),
            )
            later_lines, line_end = [], line_feed + 1
        end, step_bytes = start, min(2 * step_bytes, SEARCH_CHUNK_BYTES)
    if later_lines:
        yield Line(-1, 0, b"".join(later_lines[::-1]))


def find_offset_of_last_line_containing(
    stream: BinaryIO, needle: bytes, end: int, min_offset: int = 0
) -> int:
    """Return the offset of the last line with ``needle`` between ``min_offset`` and ``end``, or -1."""
    next_beginning = b""
    while end > min_offset:
        start = max(min_offset, end - SEARCH_CHUNK_BYTES)
        chunk = read_exactly(stream, start, end - start) + next_beginning
        position = chunk.rfind(needle)
        if position >= 0:
            return find_line_start(stream, start + position)
        next_beginning, end = chunk[: len(needle) - 1], start
    return -1


def find_line_start(stream: BinaryIO, position: int) -> int:
    """Return the offset of the line that contains the byte at ``position``."""
    step_bytes = BYTES_BETWEEN_LINE_COUNTS
    while position > 0:
        start = max(0, position - step_bytes)
        line_feed = read_exactly(stream, start, position - start).rfind(b"\n")
        if line_feed >= 0:
            return start + line_feed + 1
        position, step_bytes = start, min(2 * step_bytes, SEARCH_CHUNK_BYTES)
    return 0


class LineNumbers:
    """Converts between offsets and line numbers in the first ``size`` bytes of a file.

    Each line feed is counted only once, and only when a conversion needs it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        # Item ``n`` is the number of line feeds in the first ``n`` steps. A step has
        # ``BYTES_BETWEEN_LINE_COUNTS`` bytes.
        self._line_feeds_before_steps = [0]

    def count_lines(self, stream: BinaryIO) -> int:
        """Return the number of lines. A last line without a line ending is counted too."""
        self._extend_line_count(stream, self._size)
        has_unended_line = self._size > 0 and read_exactly(stream, self._size - 1, 1) != b"\n"
        return self._line_feeds_before_steps[-1] + has_unended_line

    def find_line_number(self, stream: BinaryIO, offset: int) -> int:
        """Return the number of the line at ``offset``, counted from 0."""
        self._extend_line_count(stream, offset)
        step, rest_bytes = divmod(offset, BYTES_BETWEEN_LINE_COUNTS)
        rest = read_exactly(stream, offset - rest_bytes, rest_bytes)
        return self._line_feeds_before_steps[step] + _count_line_feeds(rest)

    def find_line_offset(self, stream: BinaryIO, number: int) -> int:
        """Return the offset of the line with this number, or -1 if the file has fewer lines."""
        if number <= 0:
            if number == 0 < self._size:
                return 0
            return -1
        while self._line_feeds_before_steps[-1] < number and self._counted_bytes < self._size:
            self._extend_line_count(stream, self._counted_bytes + SEARCH_CHUNK_BYTES)
        if self._line_feeds_before_steps[-1] < number:
            return -1
        step = bisect_left(self._line_feeds_before_steps, number) - 1
        chunk = read_exactly(
            stream,
            step * BYTES_BETWEEN_LINE_COUNTS,
            min(BYTES_BETWEEN_LINE_COUNTS, self._size - step * BYTES_BETWEEN_LINE_COUNTS),
        )
        line_feed = -1
        for _ in range(number - self._line_feeds_before_steps[step]):
            line_feed = chunk.index(b"\n", line_feed + 1)
        start = step * BYTES_BETWEEN_LINE_COUNTS + line_feed + 1
        if start < self._size:
            return start
        return -1

    @property
    def _counted_bytes(self) -> int:
        return min((len(self._line_feeds_before_steps) - 1) * BYTES_BETWEEN_LINE_COUNTS, self._size)

    def _extend_line_count(self, stream: BinaryIO, end: int) -> None:
        while self._counted_bytes < min(end, self._size):
            chunk = read_exactly(
                stream,
                self._counted_bytes,
                min(BYTES_BETWEEN_LINE_COUNTS, self._size - self._counted_bytes),
            )
            self._line_feeds_before_steps.append(
                self._line_feeds_before_steps[-1] + _count_line_feeds(chunk)
            )


def _count_line_feeds(content: bytes) -> int:
    """Return the number of line feeds.

    For the long lines of transcripts, this is four times as fast as ``bytes.count``.
    """
    count = 0
    position = content.find(b"\n")
    while position >= 0:
        count += 1
        position = content.find(b"\n", position + 1)
    return count


def read_bytes_before(stream: BinaryIO, end: int) -> bytes:
    """Return the bytes directly before ``end``, at most APPEND_CHECK_BYTES.

    The caller later reads the same bytes again. If they are unchanged, the file was only appended
    to.
    """
    start = max(0, end - APPEND_CHECK_BYTES)
    stream.seek(start)
    return stream.read(end - start)


# If a file has more than this number of bytes, clients are reported to hang or to run out of
# memory.
MIN_GIANT_FILE_BYTES = 100_000_000
# A line of at least this number of bytes fits into no request: it contains 2.5 million tokens, or
# more images than the API accepts.
MIN_GIANT_LINE_BYTES = 10_000_000


def measure_longest_line(path: str) -> int:
    """Return the length in bytes of a file's longest line, or 0 if the file is empty.

    Raises OSError if the file cannot be read.
    """
    longest_length = start = 0
    with open(path, "rb") as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # empty
            return 0
        with content:
            while start < len(content):
                # Skip together all whole lines that cannot be longer than the longest line found so
                # far.
                line_end = content.rfind(b"\n", start, start + longest_length + 1)
                if line_end < 0:
                    line_end = content.find(b"\n", start + longest_length)
                    line_end = len(content) if line_end < 0 else line_end
                    longest_length = max(longest_length, line_end - start)
                start = line_end + 1
    return longest_length
