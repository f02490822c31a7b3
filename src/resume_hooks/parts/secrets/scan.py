"""One file looked through for secrets: what was appended since the last look, or all of it where it was rewritten.

Of a secret only its kind, its place and its length are kept; neither it nor any digest of it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import BinaryIO, NamedTuple

from resume_hooks.archive.vault.rewrite import HEAD, LARGEST_TEXT
from resume_hooks.parts.secrets.contents import LINE, TEXT, Piece
from resume_hooks.paths import open_regular
from resume_hooks.redaction.json_lines import find_in_line
from resume_hooks.redaction.texts import seen, suspects
from resume_hooks.transcripts.records import parse, string

BLOCK = 256 * 1024
"""Bytes that the first pass looks at in one go, up to the end of a line: what fits a core's own memory."""

_EDGE = 4096
"""Bytes at the start and before where a look ended that tell whether a file was only appended to."""


class FoundSecret(NamedTuple):
    """A secret: its ``kind``, the 0-based ``line``, its first byte in the file, its length in bytes.

    ``uuid`` and ``time`` are the record's, "" where the line is none that has them; ``part`` is the place of the file
    that holds it, from the config home on, where several are kept as one.
    """

    kind: str
    line: int
    offset: int
    length: int
    uuid: str
    time: str
    part: str = ""


class FileScan(NamedTuple):
    """Result of scanning one file: its identity, how many whole lines were read, and the findings."""

    inode: int
    size: int
    mtime_ns: int
    offset: int
    lines: int
    edge: str
    findings: tuple[FoundSecret, ...]


def scan(path: str, known: FileScan | None, *, lines: bool, told: Callable[[int], None]) -> FileScan:
    """Look through a file, of which ``known`` is the last look; ``told`` is given the bytes read. OSError.

    ``lines`` is for transcripts, which grow by lines; any other file is looked at as a whole text.
    """
    with open_regular(path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        size = status.st_size
        stamp = status.st_ino, size, status.st_mtime_ns
        if known and known[:3] == stamp:
            return known
        if not lines and size <= LARGEST_TEXT:
            findings = list(secrets_in(Piece(stream.read(), TEXT)))
            told(size)
            return FileScan(*stamp, 0, 0, "", tuple(findings))
        offset, number, findings = 0, 0, []
        appended = known and known.inode == status.st_ino and size >= known.offset > 0
        if known and appended and _edge(stream, known.offset) == known.edge:
            offset, number = known.offset, known.lines
            findings = [found for found in known.findings if found.line < number]
        stream.seek(offset)
        left = size - offset
        while left > 0 and (block := stream.read(min(BLOCK, left))):
            if not block.endswith(b"\n"):
                block += stream.readline(left - len(block)) if left > len(block) else b""
            findings += _in_block(block, number, offset)
            told(len(block))
            left -= len(block)
            number += block.count(b"\n")
            offset += block.rfind(b"\n") + 1
        return FileScan(*stamp, offset, number, _edge(stream, offset), tuple(findings))


def secrets_in(piece: Piece) -> Iterator[FoundSecret]:
    """The secrets in a line or a text; none in what is no text."""
    raw = piece.raw
    if piece.form == LINE:
        found = find_in_line(raw)
        record = (parse(raw) or {}) if found else {}
        said_by = string(record, "uuid"), string(record, "timestamp"), piece.part
        for secret in found:
            length = secret.end - secret.start
            yield FoundSecret(secret.kind, piece.number, piece.offset + secret.start, length, *said_by)
    elif b"\0" not in raw[:HEAD] and next(suspects(raw), None) is not None:  # else a picture, a program
        number = counted = 0
        for span in seen(raw):
            number += raw.count(b"\n", counted, span.start)
            counted = span.start
            yield FoundSecret(span.kind, number, span.start, span.end - span.start, "", "", piece.part)


def _in_block(block: bytes, number: int, offset: int) -> Iterator[FoundSecret]:
    """The secrets in whole lines, of which the first has a ``number`` and begins at ``offset`` of its file."""
    end = counted = 0
    for place in sorted(suspects(block)):
        if place < end:
            continue
        start = block.rfind(b"\n", 0, place) + 1
        end = block.find(b"\n", place) + 1 or len(block)
        number += block.count(b"\n", counted, start)
        counted = start
        yield from secrets_in(Piece(block[start:end], LINE, number=number, offset=offset + start))


def _edge(stream: BinaryIO, offset: int) -> str:
    """A digest of the bytes at a file's start and before ``offset``; far from enough to tell what is in them."""
    stream.seek(0)
    head = stream.read(min(_EDGE, offset))
    stream.seek(max(0, offset - _EDGE))
    return blake2b(head + stream.read(min(_EDGE, offset)), digest_size=16).hexdigest()
