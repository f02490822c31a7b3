"""Scan a file or an archived session for secrets. Only their kind, position and length are recorded.

If a transcript was only appended to, only the bytes since the last scan are read, otherwise the
whole file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import BinaryIO, NamedTuple

from resume_hooks.archive.vault.rewrite import MAX_WHOLE_TEXT_BYTES, TEXT_CHECK_BYTES
from resume_hooks.parts.secrets.locations import LINE, TEXT, FileChunk
from resume_hooks.paths import open_regular
from resume_hooks.reading.session_secrets import PrintedOutputs
from resume_hooks.redaction.json_lines import find_secrets_in_line, folder_of_record
from resume_hooks.redaction.texts import find_secrets, spans_in_bytes, suspect_positions
from resume_hooks.transcripts.records import get_string, parse_record

BLOCK_BYTES = 256 * 1024
"""The size in bytes of a block in the first pass. It fits into a processor's cache, and ends after a line."""

_DIGEST_EDGE_BYTES = 4096
"""The number of bytes at both ends of the scanned part that show whether the file was only appended to."""


FOLDER_NAME = "folder name"
"""The place of a secret in a folder's name, which cannot be changed, because the client uses it to find sessions."""


class FoundSecret(NamedTuple):
    """A secret: its ``kind``, 0-based ``line``, byte offset in the file, and length in bytes.

    ``uuid`` and ``time`` come from the record, or are ``""`` if it has none. If several files are
    archived together, ``part`` is the file's path relative to the config home.
    """

    kind: str
    line: int
    offset: int
    length: int
    uuid: str
    time: str
    part: str = ""


class FileScan(NamedTuple):
    """The scan of a file: its identity, the number of complete lines, and the findings."""

    inode: int
    size: int
    mtime_ns: int
    scanned_bytes: int
    line_count: int
    edge_digest: str
    findings: tuple[FoundSecret, ...]


def scan_file(
    path: str, last_scan: FileScan | None, *, by_line: bool, count_read: Callable[[int], None]
) -> FileScan:
    """Scan a file for secrets.

    :param last_scan: The last scan of the file, if there was one.
    :param by_line: Whether it is a transcript, which grows by lines; any other file is one text.
    :param count_read: Called with the number of bytes after each read.
    :raises OSError: The file can't be read.
    """
    with open_regular(path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        file_bytes = status.st_size
        identity = status.st_ino, file_bytes, status.st_mtime_ns
        if last_scan and last_scan[:3] == identity:
            return last_scan
        if not by_line and file_bytes <= MAX_WHOLE_TEXT_BYTES:
            findings = list(scan_chunks([FileChunk(stream.read(), TEXT)]))
            count_read(file_bytes)
            return FileScan(*identity, 0, 0, "", tuple(findings))
        offset, line_number, findings = 0, 0, []
        scanner = _BlockScanner()
        is_appended = (
            last_scan
            and last_scan.inode == status.st_ino
            and file_bytes >= last_scan.scanned_bytes > 0
        )
        if (
            last_scan
            and is_appended
            and _digest_edges(stream, last_scan.scanned_bytes) == last_scan.edge_digest
        ):
            offset, line_number = last_scan.scanned_bytes, last_scan.line_count
            findings = [finding for finding in last_scan.findings if finding.line < line_number]
            scanner.read_previous_commands(stream, offset)
        stream.seek(offset)
        remaining_bytes = file_bytes - offset
        while remaining_bytes > 0 and (block := stream.read(min(BLOCK_BYTES, remaining_bytes))):
            if not block.endswith(b"\n") and remaining_bytes > len(block):
                block += stream.readline(remaining_bytes - len(block))
            findings += scanner.scan_block(block, line_number, offset)
            count_read(len(block))
            remaining_bytes -= len(block)
            line_number += block.count(b"\n")
            offset += block.rfind(b"\n") + 1
        return FileScan(
            *identity, offset, line_number, _digest_edges(stream, offset), tuple(findings)
        )


def scan_chunks(chunks: Iterable[FileChunk]) -> Iterator[FoundSecret]:
    """Yield the secrets in lines and texts. Binary data is skipped.

    The lines of each file must be given in order.
    """
    outputs: dict[str, PrintedOutputs] = {}
    for chunk in chunks:
        if chunk.format == LINE:
            yield from _scan_line(chunk, outputs.setdefault(chunk.part_path, PrintedOutputs()))
        else:
            yield from _scan_text(chunk)


def _scan_line(chunk: FileChunk, outputs: PrintedOutputs) -> Iterator[FoundSecret]:
    """Yield the secrets in a transcript line, including secrets in the output of an earlier command."""
    line = chunk.raw
    secret_spans = [
        (secret.kind, secret.start, secret.end) for secret in find_secrets_in_line(line)
    ]
    for kind, value in _find_output_secrets(line, outputs):
        start = line.find(value)
        if not any(first_byte <= start < end for _, first_byte, end in secret_spans):
            secret_spans.append((kind, max(start, 0), max(start, 0) + len(value)))
    if not secret_spans:
        return
    record = parse_record(line) or {}
    uuid, time = get_string(record, "uuid"), get_string(record, "timestamp")
    for kind, start, end in secret_spans:
        yield FoundSecret(
            kind, chunk.line_number, chunk.offset + start, end - start, uuid, time, chunk.part_path
        )


def _find_output_secrets(line: bytes, outputs: PrintedOutputs) -> Iterator[tuple[str, bytes]]:
    """Yield the kind and value of each secret that is recognised only by the command that printed it."""
    for text in outputs.list_texts(line):
        for secret in find_secrets(text):
            value = text[secret.start : secret.end]
            yield secret.kind, value.encode("utf-8", "surrogatepass")


def _scan_text(chunk: FileChunk) -> Iterator[FoundSecret]:
    raw = chunk.raw
    is_binary = b"\0" in raw[:TEXT_CHECK_BYTES]
    if is_binary or next(suspect_positions(raw), None) is None:
        return
    line_number = counted_bytes = 0
    for span in spans_in_bytes(raw):
        line_number += raw.count(b"\n", counted_bytes, span.start)
        counted_bytes = span.start
        length = span.end - span.start
        yield FoundSecret(span.kind, line_number, span.start, length, "", "", chunk.part_path)


class _BlockScanner:
    """Scans the blocks of one transcript in order.

    Each record contains its folder's name. A secret in that name is only reported once.
    """

    def __init__(self) -> None:
        self._folders: set[bytes] = set()
        self._outputs = PrintedOutputs()

    def read_previous_commands(self, stream: BinaryIO, offset: int) -> None:
        """Read the block before ``offset`` again, because it may contain commands whose output follows."""
        stream.seek(max(0, offset - BLOCK_BYTES))
        for line in stream.read(min(BLOCK_BYTES, offset)).splitlines():
            for _ in self._outputs.list_texts(line):
                continue

    def scan_block(self, block: bytes, line_number: int, offset: int) -> Iterator[FoundSecret]:
        """Yield the secrets in complete lines.

        :param line_number: The number of the block's first line.
        :param offset: The block's first byte in its file.
        """
        counted_bytes = 0
        for start, end in self._find_suspect_lines(block):
            line_number += block.count(b"\n", counted_bytes, start)
            counted_bytes = start
            line = block[start:end]
            chunk = FileChunk(line, LINE, line_number=line_number, offset=offset + start)
            yield from _scan_line(chunk, self._outputs)
            yield from self._secrets_in_folder(line, line_number, offset + start)

    def _find_suspect_lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each line that may contain a secret, in order."""
        suspect_offsets = sorted([*suspect_positions(block), *self._outputs.find_offsets(block)])
        end = 0
        for suspect_offset in suspect_offsets:
            if suspect_offset >= end:
                start = block.rfind(b"\n", 0, suspect_offset) + 1
                end = block.find(b"\n", suspect_offset) + 1 or len(block)
                yield start, end

    def _secrets_in_folder(
        self, line: bytes, line_number: int, offset: int
    ) -> Iterator[FoundSecret]:
        folder = folder_of_record(line)
        if folder in self._folders:
            return
        self._folders.add(folder)
        folder_offset = offset + line.find(folder)
        for secret in spans_in_bytes(folder):
            length = secret.end - secret.start
            yield FoundSecret(
                secret.kind, line_number, folder_offset + secret.start, length, "", "", FOLDER_NAME
            )


def _digest_edges(stream: BinaryIO, offset: int) -> str:
    """Return a digest of the bytes at a file's start and before ``offset``. The digest reveals none of them."""
    stream.seek(0)
    head = stream.read(min(_DIGEST_EDGE_BYTES, offset))
    stream.seek(max(0, offset - _DIGEST_EDGE_BYTES))
    return blake2b(head + stream.read(min(_DIGEST_EDGE_BYTES, offset)), digest_size=16).hexdigest()
