"""Fetch the chunks of session files from the server, decompress them and verify their digests.

A chunk is fetched in slices, so that at most ``MAX_SLICE_BYTES`` of its bytes are in memory at a
time, whatever size the server reports.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from resume_hooks.derive.imports.read_bundle import is_valid_file_name
from resume_hooks.errors import ImportFailed
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.chunks import MAX_CHUNK_BYTES, MAX_LINE_BYTES
from resume_hooks.parts.team.rows import Database, RowFormat

MAX_SLICE_BYTES = 1024 * 1024
"""The maximum number of bytes to fetch or decompress in one step."""

MAX_STORED_BYTES = MAX_LINE_BYTES + MAX_LINE_BYTES // 1000 + MAX_CHUNK_BYTES
"""The maximum size of a compressed chunk in bytes. It is larger than the maximum size of an
uncompressed chunk, because compression makes some data slightly larger."""


class StoredChunk(NamedTuple):
    """A chunk on the server. It consists of complete lines of a file.

    ``raw_byte_count`` is the size of the lines, and ``stored_byte_count`` their size after
    compression. ``sha256`` is the digest of the lines.
    """

    first_record_number: int
    record_count: int
    raw_byte_count: int
    sha256: bytes
    stored_byte_count: int


def parse_file_name(raw: bytes | None) -> str:
    """Parse the name of a session's file. Raise ValueError if it is invalid.

    The name is ``""`` for the transcript, and a path in the session's folder for other files.
    """
    name = (raw or b"").decode()
    if raw is None or (name and not is_valid_file_name(name)):
        raise ValueError
    return name


STORED_CHUNK_ROW_FORMAT = RowFormat(
    StoredChunk,
    (
        rows.parse_count,
        rows.make_whole_number_parser(1),
        rows.make_whole_number_parser(1, MAX_CHUNK_BYTES + MAX_LINE_BYTES),
        rows.parse_digest,
        rows.make_whole_number_parser(1, MAX_STORED_BYTES),
    ),
)


class _HasStoredByteCount(Protocol):
    """An object whose compressed size on the server is known, such as a chunk."""

    @property
    def stored_byte_count(self) -> int:
        """The object's compressed size in bytes."""


SizedChunkType = TypeVar("SizedChunkType", bound=_HasStoredByteCount)


def batch_chunks(chunks: Iterable[SizedChunkType]) -> Iterator[list[SizedChunkType]]:
    """Yield the chunks in order, in batches of at most ``MAX_SLICE_BYTES`` compressed bytes.

    A larger chunk is a batch of its own.
    """
    batch: list[SizedChunkType] = []
    batch_bytes = 0
    for chunk in chunks:
        if batch and batch_bytes + chunk.stored_byte_count > MAX_SLICE_BYTES:
            yield batch
            batch, batch_bytes = [], 0
        batch.append(chunk)
        batch_bytes += chunk.stored_byte_count
    if batch:
        yield batch


def fetch_small_chunks(
    chunk_addresses: list[tuple[int, int]], db: Database
) -> dict[tuple[int, int], bytes]:
    """Return the compressed bytes of small chunks by address. Each has at most ``MAX_SLICE_BYTES`` bytes.

    A chunk's address consists of the row id of its file and the number of its first record.
    """
    query = (
        "select c.part::text, c.first::text, substring(c.data for %s)"
        " from unnest(%s::bigint[], %s::int[]) q(part, first)"
        " join team.chunk c on c.part = q.part and c.first = q.first"
    )
    values = (
        MAX_SLICE_BYTES,
        [file_row_id for file_row_id, _ in chunk_addresses],
        [first_record_number for _, first_record_number in chunk_addresses],
    )
    rows_of_pieces = db.fetch_rows(
        query,
        values,
        RowFormat(
            _PackedChunk,
            (rows.parse_row_id, rows.parse_count, rows.make_bytes_parser(MAX_SLICE_BYTES)),
        ),
    )
    return {
        (file_row_id, first_record_number): data
        for file_row_id, first_record_number, data in rows_of_pieces
    }


class _PackedChunk(NamedTuple):
    file_row_id: int
    first_record_number: int
    data: bytes


def fetch_slices(
    file_row_id: int, first_record_number: int, stored_byte_count: int, db: Database
) -> Iterator[bytes]:
    """Yield the compressed bytes of a chunk of any size, ``MAX_SLICE_BYTES`` bytes at a time.

    Raise ImportFailed if the server sends fewer than ``stored_byte_count`` bytes.
    """
    query = "select substring(data from %s for %s) from team.chunk where part = %s and first = %s"
    for start in range(0, stored_byte_count, MAX_SLICE_BYTES):
        data = db.fetch_value(
            query,
            (start + 1, MAX_SLICE_BYTES, file_row_id, first_record_number),
            rows.make_bytes_parser(MAX_SLICE_BYTES, 1),
        )
        if data is None:
            raise build_damaged_chunk_error()
        yield data


def unpack_lines(slices: Iterable[bytes], raw_byte_count: int, sha256: bytes) -> Iterator[bytes]:
    """Yield the decompressed lines of a chunk while its compressed bytes are fetched.

    Raise ImportFailed if the total size of the lines is not ``raw_byte_count`` or if their digest
    is not ``sha256``. The digest can be checked only at the end, so the caller must expect this
    error even after the last line.
    """
    decompressor, file_hash, byte_count = zlib.decompressobj(), hashlib.sha256(), 0
    for packed_slice in slices:
        remaining_bytes = packed_slice
        while remaining_bytes:
            try:
                body = decompressor.decompress(remaining_bytes, MAX_SLICE_BYTES)
            except zlib.error as error:
                raise build_damaged_chunk_error() from error
            byte_count += len(body)
            if byte_count > raw_byte_count:
                raise build_damaged_chunk_error()
            file_hash.update(body)
            yield body
            remaining_bytes = decompressor.unconsumed_tail
    if byte_count != raw_byte_count or not decompressor.eof or file_hash.digest() != sha256:
        raise build_damaged_chunk_error()


def build_damaged_chunk_error() -> ImportFailed:
    """Return the error for a chunk that is damaged or missing."""
    return ImportFailed(
        "The server's copy of this session is damaged or incomplete",
        "Push it again, with --rescan.",
    )
