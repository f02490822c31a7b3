"""Search a file or an archived session for secrets.

The result contains only the kind, the position and the length of each secret. If lines were
appended to a transcript since the last search, only these lines are read. After any other change to
the transcript, the whole file is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import BinaryIO, NamedTuple

from resume_hooks.archive.vault.rewrite import BINARY_CHECK_BYTES, MAX_WHOLE_TEXT_BYTES
from resume_hooks.parts.secrets.locations import LINE_FORMAT, TEXT_FORMAT, FileChunk
from resume_hooks.paths import open_regular
from resume_hooks.reading.session_secrets import PrintedOutputs
from resume_hooks.redaction.json_lines import find_secrets_in_line, folder_of_record
from resume_hooks.redaction.texts import find_secrets, positions_of_possible_secrets, spans_in_bytes
from resume_hooks.transcripts.records import get_string, parse_record

SCAN_BLOCK_BYTES = 256 * 1024
"""The number of bytes to search at a time. A block of this size fits into the processor's cache.
Each block is extended to the end of its last line."""

_DIGESTED_BYTES_PER_END = 4096
"""The number of bytes at the start and at the end of the searched part of a file from which a
digest is computed. If the digest has not changed since the last search, the searched part was not
rewritten."""


PLACE_FOR_SECRETS_IN_FOLDER_NAMES = "folder name"
"""The value of ``place`` for a secret in a folder name. Such a secret cannot be removed, because
the client uses the name of the folder to find the session."""


class FoundSecret(NamedTuple):
    """The location of a secret in a file, without the secret itself.

    ``line_number`` counts from 0. ``offset`` and ``length`` are given in bytes. ``record_uuid`` and
    ``time`` come from the record, and are ``""`` if the record has none. In an archived session,
    which consists of several files, ``archived_file_path`` is the path of the file with the secret,
    relative to the client's folder.
    """

    kind: str
    line_number: int
    offset: int
    length: int
    record_uuid: str
    time: str
    archived_file_path: str = ""


class FileScan(NamedTuple):
    """The result of searching a file.

    ``inode``, ``file_bytes`` and ``mtime_ns`` identify the state of the file. ``line_count`` is the
    number of the file's complete lines, and ``scanned_byte_count`` is their total size.
    ``edge_digest`` is a digest of the first and last bytes of these lines.
    """

    inode: int
    file_bytes: int
    mtime_ns: int
    scanned_byte_count: int
    line_count: int
    edge_digest: str
    found_secrets: tuple[FoundSecret, ...]


def scan_file(
    path: str,
    last_scan: FileScan | None,
    *,
    is_read_by_line: bool,
    count_read_bytes: Callable[[int], None],
) -> FileScan:
    """Search a file for secrets, and return the result. Raise OSError if the file cannot be read.

    ``last_scan`` is the result of the last search in this file, or None. If ``is_read_by_line`` is
    true, the file is a transcript and is searched line by line. After each read,
    ``count_read_bytes`` is called with the number of bytes that were read.
    """
    with open_regular(path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        file_bytes = status.st_size
        identity = status.st_ino, file_bytes, status.st_mtime_ns
        if last_scan and last_scan[:3] == identity:
            return last_scan
        if not is_read_by_line and file_bytes <= MAX_WHOLE_TEXT_BYTES:
            findings = list(scan_chunks([FileChunk(stream.read(), TEXT_FORMAT)]))
            count_read_bytes(file_bytes)
            return FileScan(*identity, 0, 0, "", tuple(findings))
        offset, line_number, findings = 0, 0, []
        scanner = _BlockScanner()
        is_appended = (
            last_scan
            and last_scan.inode == status.st_ino
            and file_bytes >= last_scan.scanned_byte_count > 0
        )
        if (
            last_scan
            and is_appended
            and _compute_digest_of_both_ends(stream, last_scan.scanned_byte_count)
            == last_scan.edge_digest
        ):
            offset, line_number = last_scan.scanned_byte_count, last_scan.line_count
            findings = [
                finding for finding in last_scan.found_secrets if finding.line_number < line_number
            ]
            scanner.load_commands_before_offset(stream, offset)
        stream.seek(offset)
        remaining_bytes = file_bytes - offset
        while remaining_bytes > 0 and (
            block := stream.read(min(SCAN_BLOCK_BYTES, remaining_bytes))
        ):
            if not block.endswith(b"\n") and remaining_bytes > len(block):
                block += stream.readline(remaining_bytes - len(block))
            findings += scanner.scan_block(block, line_number, offset)
            count_read_bytes(len(block))
            remaining_bytes -= len(block)
            line_number += block.count(b"\n")
            offset += block.rfind(b"\n") + 1
        return FileScan(
            *identity,
            offset,
            line_number,
            _compute_digest_of_both_ends(stream, offset),
            tuple(findings),
        )


def scan_chunks(chunks: Iterable[FileChunk]) -> Iterator[FoundSecret]:
    """Yield the secrets in chunks of files. Chunks of binary data are skipped.

    The chunks must contain the lines of each file in their original order.
    """
    outputs: dict[str, PrintedOutputs] = {}
    for chunk in chunks:
        if chunk.format == LINE_FORMAT:
            yield from _scan_line_chunk(
                chunk, outputs.setdefault(chunk.archived_file_path, PrintedOutputs())
            )
        else:
            yield from _scan_text(chunk)


def _scan_line_chunk(chunk: FileChunk, outputs: PrintedOutputs) -> Iterator[FoundSecret]:
    """Yield the secrets in a line of a transcript.

    If the line contains the output of a command that an earlier line called, search that output
    too.
    """
    line = chunk.raw_bytes
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
            kind,
            chunk.line_number,
            chunk.offset + start,
            end - start,
            uuid,
            time,
            chunk.archived_file_path,
        )


def _find_output_secrets(line: bytes, outputs: PrintedOutputs) -> Iterator[tuple[str, bytes]]:
    """Yield the kind and the text of each secret in the output of a command.

    Some of these secrets can only be recognised if the command is known, for example because it
    contains the name of the printed file.
    """
    for text in outputs.list_outputs_with_commands(line):
        for secret in find_secrets(text):
            value = text[secret.start : secret.end]
            yield secret.kind, value.encode("utf-8", "surrogatepass")


def _scan_text(chunk: FileChunk) -> Iterator[FoundSecret]:
    raw = chunk.raw_bytes
    is_binary = b"\0" in raw[:BINARY_CHECK_BYTES]
    if is_binary or next(positions_of_possible_secrets(raw), None) is None:
        return
    line_number = counted_bytes = 0
    for span in spans_in_bytes(raw):
        line_number += raw.count(b"\n", counted_bytes, span.start)
        counted_bytes = span.start
        length = span.end - span.start
        yield FoundSecret(
            span.kind, line_number, span.start, length, "", "", chunk.archived_file_path
        )


class _BlockScanner:
    """Searches the blocks of one transcript in the order of the file.

    Each record contains the name of the session's folder. A secret in this name is reported only
    once.
    """

    def __init__(self) -> None:
        self._folders: set[bytes] = set()
        self._outputs = PrintedOutputs()

    def load_commands_before_offset(self, stream: BinaryIO, offset: int) -> None:
        """Read the block before ``offset``. It may contain commands whose output is in the following lines."""
        stream.seek(max(0, offset - SCAN_BLOCK_BYTES))
        for line in stream.read(min(SCAN_BLOCK_BYTES, offset)).splitlines():
            for _ in self._outputs.list_outputs_with_commands(line):
                continue

    def scan_block(self, block: bytes, line_number: int, offset: int) -> Iterator[FoundSecret]:
        """Yield the secrets in a block of complete lines.

        ``line_number`` is the number of the first line in the block, and ``offset`` the offset of
        the block in its file.
        """
        counted_bytes = 0
        for start, end in self._find_ranges_of_suspect_lines(block):
            line_number += block.count(b"\n", counted_bytes, start)
            counted_bytes = start
            line = block[start:end]
            chunk = FileChunk(line, LINE_FORMAT, line_number=line_number, offset=offset + start)
            yield from _scan_line_chunk(chunk, self._outputs)
            yield from self._find_secrets_in_folder_name_of_line(line, line_number, offset + start)

    def _find_ranges_of_suspect_lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each line that may contain a secret, in the order of the lines."""
        suspect_offsets = sorted(
            [*positions_of_possible_secrets(block), *self._outputs.find_output_offsets(block)]
        )
        end = 0
        for suspect_offset in suspect_offsets:
            if suspect_offset >= end:
                start = block.rfind(b"\n", 0, suspect_offset) + 1
                end = block.find(b"\n", suspect_offset) + 1 or len(block)
                yield start, end

    def _find_secrets_in_folder_name_of_line(
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
                secret.kind,
                line_number,
                folder_offset + secret.start,
                length,
                "",
                "",
                PLACE_FOR_SECRETS_IN_FOLDER_NAMES,
            )


def _compute_digest_of_both_ends(stream: BinaryIO, offset: int) -> str:
    """Return a digest of the first bytes of a file and of the last bytes before ``offset``.

    A secret in these bytes cannot be recovered from the digest.
    """
    stream.seek(0)
    head = stream.read(min(_DIGESTED_BYTES_PER_END, offset))
    stream.seek(max(0, offset - _DIGESTED_BYTES_PER_END))
    return blake2b(
        head + stream.read(min(_DIGESTED_BYTES_PER_END, offset)), digest_size=16
    ).hexdigest()
