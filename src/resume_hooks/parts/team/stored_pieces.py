"""Fetch pieces of session files from the server in slices, decompress them and verify their digests.

At most ``SLICE_BYTES`` bytes of a piece are in memory at a time, whatever size the server states.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from resume_hooks.derive.imports.read_bundle import is_valid_name
from resume_hooks.errors import ImportFailed
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.pieces import MOST_LINE, MOST_RAW
from resume_hooks.parts.team.rows import Database, RowFormat

SLICE_BYTES = 1024 * 1024
"""The maximum number of bytes that are fetched or decompressed at a time."""

MOST_STORED_BYTES = MOST_LINE + MOST_LINE // 1000 + MOST_RAW
"""The maximum size of a piece on the server. Compression slightly enlarges incompressible data."""


class StoredPiece(NamedTuple):
    """Complete lines of a file on the server: ``raw`` bytes, compressed to ``stored`` bytes."""

    first: int
    records: int
    raw: int
    sha: bytes
    stored: int


def parse_part_name(raw: bytes | None) -> str:
    """Parse the name of a session's file: ``""`` for the transcript, or a path in the session's folder.

    Raise ValueError.
    """
    name = (raw or b"").decode()
    if raw is None or (name and not is_valid_name(name)):
        raise ValueError
    return name


PIECE_FORMAT = RowFormat(
    StoredPiece,
    (
        rows.parse_count,
        rows.parse_whole_number(1),
        rows.parse_whole_number(1, MOST_RAW + MOST_LINE),
        rows.parse_digest,
        rows.parse_whole_number(1, MOST_STORED_BYTES),
    ),
)


class _Sized(Protocol):
    """An object that is stored on the server."""

    @property
    def stored(self) -> int:
        """The object's compressed size in bytes."""


SomePacked = TypeVar("SomePacked", bound=_Sized)


def batch_pieces(pieces: Iterable[SomePacked]) -> Iterator[list[SomePacked]]:
    """Yield pieces in order, in batches of at most ``SLICE_BYTES`` bytes. A larger piece gets its own batch."""
    batch: list[SomePacked] = []
    size = 0
    for piece in pieces:
        if batch and size + piece.stored > SLICE_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += piece.stored
    if batch:
        yield batch


def fetch_packed(addresses: list[tuple[int, int]], db: Database) -> dict[tuple[int, int], bytes]:
    """Return the compressed bytes of pieces of up to ``SLICE_BYTES`` bytes, by part and first record."""
    query = (
        "select c.part::text, c.first::text, substring(c.data for %s)"
        " from unnest(%s::bigint[], %s::int[]) q(part, first)"
        " join team.chunk c on c.part = q.part and c.first = q.first"
    )
    values = (SLICE_BYTES, [part for part, _ in addresses], [first for _, first in addresses])
    rows_of_pieces = db.rows(
        query,
        values,
        RowFormat(
            _PackedPiece, (rows.parse_row_number, rows.parse_count, rows.parse_bytes(SLICE_BYTES))
        ),
    )
    return {(part, first): data for part, first, data in rows_of_pieces}


class _PackedPiece(NamedTuple):
    part: int
    first: int
    data: bytes


def fetch_slices(part: int, first: int, stored: int, db: Database) -> Iterator[bytes]:
    """Yield the compressed bytes of a piece of any size, ``SLICE_BYTES`` bytes at a time.

    Raise ImportFailed if they end early.
    """
    query = "select substring(data from %s for %s) from team.chunk where part = %s and first = %s"
    for start in range(0, stored, SLICE_BYTES):
        data = db.value(
            query, (start + 1, SLICE_BYTES, part, first), rows.parse_bytes(SLICE_BYTES, 1)
        )
        if data is None:
            raise damaged_piece_error()
        yield data


def unpack_lines(slices: Iterable[bytes], raw: int, sha: bytes) -> Iterator[bytes]:
    """Yield the lines of a piece of ``raw`` bytes while its compressed bytes are fetched.

    Raise ImportFailed if the lines do not match the digest.

    Consumers must expect this error even after the last line, because the digest is only known
    then.
    """
    unpacking, digest, size = zlib.decompressobj(), hashlib.sha256(), 0
    for packed in slices:
        remaining = packed
        while remaining:
            try:
                body = unpacking.decompress(remaining, SLICE_BYTES)
            except zlib.error as error:
                raise damaged_piece_error() from error
            size += len(body)
            if size > raw:
                raise damaged_piece_error()
            digest.update(body)
            yield body
            remaining = unpacking.unconsumed_tail
    if size != raw or not unpacking.eof or digest.digest() != sha:
        raise damaged_piece_error()


def damaged_piece_error() -> ImportFailed:
    """Return an error that reports a damaged piece or an incomplete chain."""
    return ImportFailed(
        "The server's copy of this session is damaged or incomplete",
        "Push it again, with --rescan.",
    )
