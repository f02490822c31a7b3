"""Raw lines of a transcript, lossless: joining what is read gives the file's bytes again.

Lines end at a line feed only: transcripts hold raw U+2028 and U+0085 inside strings, where ``str`` methods split too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line as it lies on disk: 0-based ``number`` (-1 where unknown), byte ``offset``, ``raw`` with its ending."""

    number: int
    offset: int
    raw: bytes

    @property
    def body(self) -> bytes:
        """The line without its ending, and without the byte order mark that some editors put at the start."""
        body = self.raw.removesuffix(b"\n").removesuffix(b"\r")
        return body.removeprefix(BOM) if self.offset == 0 else body

    @property
    def torn(self) -> bool:
        """Whether the line has no ending: the last one of a file whose writer was interrupted."""
        return not self.raw.endswith(b"\n")


def read_lines(stream: BinaryIO, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Every line of a binary stream from where it stands; memory is bounded by the longest line.

    ``offset`` and ``number`` are those of the first line.
    """
    for place, raw in enumerate(stream, number):
        yield Line(place, offset, raw)
        offset += len(raw)


def read_tail(stream: BinaryIO, reach: int) -> Iterator[Line]:
    """The whole lines within the last ``reach`` bytes; their numbers count from the first one read."""
    size = stream.seek(0, os.SEEK_END)
    offset = stream.seek(max(0, size - reach - 1))
    if size > reach:
        offset += len(stream.readline())  # the rest of a line that began before the reach, or just its line feed
    for number, raw in enumerate(stream):
        yield Line(number, offset, raw)
        offset += len(raw)
