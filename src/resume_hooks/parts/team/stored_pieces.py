"""The pieces of a session's files as the server has them: fetched in slices, unpacked, compared with their digests.

Of a piece no more than ``SLICE`` bytes are held at a time, whatever the server says of its size.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from resume_hooks.derive.imports.read_bundle import is_place
from resume_hooks.errors import ImportFailed
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.pieces import MOST_LINE, MOST_RAW
from resume_hooks.parts.team.rows import Database, Form

SLICE = 1024 * 1024
"""Bytes of a piece that are fetched, or unpacked, at a time."""

MOST_STORED = MOST_LINE + MOST_LINE // 1000 + MOST_RAW
"""Bytes that a piece takes on the server: what can't be packed grows by a few."""


class StoredPiece(NamedTuple):
    """Whole lines of a file as the server has them: ``raw`` bytes, packed into ``stored``."""

    first: int
    records: int
    raw: int
    sha: bytes
    stored: int


def part_name(raw: bytes | None) -> str:
    """The name of a file of a session: ``""`` for its transcript, else a place in its folder.

    ValueError.
    """
    name = (raw or b"").decode()
    if raw is None or (name and not is_place(name)):
        raise ValueError
    return name


PIECE = Form(
    StoredPiece,
    (
        rows.count,
        rows.parse_whole_number(1),
        rows.parse_whole_number(1, MOST_RAW + MOST_LINE),
        rows.digest,
        rows.parse_whole_number(1, MOST_STORED),
    ),
)


class _Stored(Protocol):
    """What takes room on the server."""

    @property
    def stored(self) -> int:
        """The bytes that it takes there."""


SomePacked = TypeVar("SomePacked", bound=_Stored)


def batches(pieces: Iterable[SomePacked]) -> Iterator[list[SomePacked]]:
    """Pieces in their order, as many at a time as have a ``SLICE`` together, or one that is larger."""
    batch: list[SomePacked] = []
    size = 0
    for piece in pieces:
        if batch and size + piece.stored > SLICE:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += piece.stored
    if batch:
        yield batch


def packed_pieces(places: list[tuple[int, int]], db: Database) -> dict[tuple[int, int], bytes]:
    """The packed bytes of pieces of a ``SLICE`` at most, each named by its part and its first record."""
    query = (
        "select c.part::text, c.first::text, substring(c.data for %s)"
        " from unnest(%s::bigint[], %s::int[]) q(part, first)"
        " join team.chunk c on c.part = q.part and c.first = q.first"
    )
    values = (SLICE, [part for part, _ in places], [first for _, first in places])
    found = db.rows(query, values, Form(_Data, (rows.row_number, rows.count, rows.blob(SLICE))))
    return {(part, first): data for part, first, data in found}


class _Data(NamedTuple):
    part: int
    first: int
    data: bytes


def slices_of(part: int, first: int, stored: int, db: Database) -> Iterator[bytes]:
    """So many packed bytes of a piece of any size, a ``SLICE`` at a time.

    ImportFailed where they end early.
    """
    query = "select substring(data from %s for %s) from team.chunk where part = %s and first = %s"
    for start in range(0, stored, SLICE):
        data = db.value(query, (start + 1, SLICE, part, first), rows.blob(SLICE, 1))
        if data is None:
            raise damaged_piece()
        yield data


def unpack_lines(slices: Iterable[bytes], raw: int, sha: bytes) -> Iterator[bytes]:
    """The lines of a piece of ``raw`` bytes, as its packed bytes come.

    ImportFailed where they are not what was sent.

    That may be known only after the last of them was given.
    """
    unpacking, digest, size = zlib.decompressobj(), hashlib.sha256(), 0
    for packed in slices:
        left = packed
        while left:
            try:
                body = unpacking.decompress(left, SLICE)
            except zlib.error as error:
                raise damaged_piece() from error
            size += len(body)
            if size > raw:
                raise damaged_piece()
            digest.update(body)
            yield body
            left = unpacking.unconsumed_tail
    if size != raw or not unpacking.eof or digest.digest() != sha:
        raise damaged_piece()


def damaged_piece() -> ImportFailed:
    """What to say where a piece, or all of them, is not what was sent."""
    return ImportFailed(
        "What the server has of this session is damaged, or not complete",
        "Push it again, with --rescan.",
    )
