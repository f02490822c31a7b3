"""One file looked through for secrets, where it is not as it was at the last look.

Of a secret only its kind, its place and its length are kept; neither it nor any digest of it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.archive.vault.rewrite import HEAD, LARGEST_TEXT
from resume_hooks.parts.secrets.contents import LINE, TEXT, Piece
from resume_hooks.paths import open_regular
from resume_hooks.redaction.json_lines import find_in_line
from resume_hooks.redaction.texts import seen, suspects
from resume_hooks.transcripts.records import parse, string

BLOCK = 256 * 1024
"""Bytes that the first pass looks at in one go, up to the end of a line: what fits a core's own memory."""


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
    """The result of a look at one file: its identity, and what was found."""

    inode: int
    size: int
    mtime_ns: int
    findings: tuple[FoundSecret, ...]


def scan(path: str, known: FileScan | None, *, lines: bool, told: Callable[[int], None]) -> FileScan:
    """Look through a file, of which ``known`` is the last look; ``told`` is given the bytes read. OSError.

    ``lines`` is for transcripts; any other file is looked at as a whole text.
    """
    with open_regular(path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        size = status.st_size
        stamp = status.st_ino, size, status.st_mtime_ns
        if known and known[:3] == stamp:
            return known
        if not lines and size <= LARGEST_TEXT:
            text = tuple(secrets_in(Piece(stream.read(), TEXT)))
            told(size)
            return FileScan(*stamp, text)
        findings, number, offset = list[FoundSecret](), 0, 0
        while block := stream.read(min(BLOCK, size - offset)):
            if not block.endswith(b"\n"):
                block += stream.readline(size - offset - len(block))
            findings += _in_block(block, number, offset)
            told(len(block))
            number += block.count(b"\n")
            offset += len(block)
        return FileScan(*stamp, tuple(findings))


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
