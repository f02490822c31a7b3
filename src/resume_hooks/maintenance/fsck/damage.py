"""Damaged bytes: lines that hold no record, torn ends, encodings that only some clients mend."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from resume_hooks.maintenance.fsck.findings import Finding, Kind
from resume_hooks.maintenance.fsck.salvage import pieces
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import BOM, Line, read_lines
from resume_hooks.transcripts.nodes import Node, node_of
from resume_hooks.transcripts.transcript import Transcript

GARBAGE = Kind(
    "line-unreadable",
    "error",
    "Every client skips the line; what hung on its record is cut off or bridged.",
    repairable=False,
)
GLUED = Kind("line-glued", "error", "Every client skips the line, and with it a message; a repair takes it out.")
GLUED_ASIDE = Kind(
    "line-glued-aside", "warning", "Every client skips the line; no message is in it that the file has nowhere else."
)
TORN = Kind(
    "line-torn",
    "error",
    "The record is lost. Clients up to 2.1.112 write the next record onto the same line, which loses that one too.",
    repairable=False,
)
NUL = Kind(
    "line-nul",
    "warning",
    "Every client skips the line: blocks that were never written before a crash.",
    repairable=False,
)
UNENDED = Kind(
    "line-unended",
    "warning",
    "Clients up to 2.1.112 write the next record onto the same line, which loses both; 2.1.329 ends it first.",
)
SURROGATE = Kind(
    "surrogate-lone",
    "error",
    "Clients up to 2.1.112 send it, and the API refuses the request as no valid JSON; 2.1.329 sends U+FFFD.",
)
UTF8 = Kind("utf8-bad", "warning", "Every client reads U+FFFD in its place; the character is lost.", repairable=False)
BYTE_MARK = Kind("byte-order-mark", "note", "Every client skips it.")
CRLF = Kind("line-crlf", "note", "Every client takes the line end as white space.")

_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F]")


def of_line(line: Line, node: Node | None) -> Iterator[Finding]:
    """What is odd about the bytes of a line that was read."""
    raw = line.raw
    uuid = node.uuid if node else ""
    if line.offset == 0 and raw.startswith(BOM):
        yield Finding(BYTE_MARK, "The file begins with a byte order mark", line.number, uuid)
    if raw.endswith(b"\r\n"):
        yield Finding(CRLF, "The line ends with CR LF", line.number, uuid)
    if line.torn:
        yield Finding(UNENDED, "The last line has no line feed", line.number, uuid)
    if not raw.isascii() and not _is_utf8(raw):
        yield Finding(UTF8, "The line holds bytes that are no UTF-8", line.number, uuid)


def of_text(line: Line, node: Node) -> Iterator[Finding]:
    """Half characters in a record that is sent."""
    if _ESCAPED.search(line.raw) and not _has_whole_pairs(line.body):
        yield Finding(SURROGATE, "The record holds half of a surrogate pair", line.number, node.uuid)


def of_bad_lines(transcript: Transcript) -> Iterator[Finding]:
    """The lines that hold no record, read once more."""
    if not transcript.bad_lines:
        return
    bad = set(transcript.bad_lines)
    known = {node.uuid for node in transcript.nodes}
    with open(transcript.path, "rb") as stream:
        for line in read_lines(stream):
            if line.number in bad:
                yield _bad(line, known)


def _bad(line: Line, known: set[str]) -> Finding:
    found = [node_of(records.parse(piece.raw) or {}, piece) for piece in pieces(line)]
    size = f"{len(line.body):,} bytes"
    if found:
        kind = GLUED if any(node.spoken and node.uuid not in known for node in found) else GLUED_ASIDE
        return Finding(kind, f"{size} that are no record hold {len(found)} within them", line.number, found[0].uuid)
    if not line.raw.strip(b"\0\r\n\t "):
        return Finding(NUL, f"{size} of NULs", line.number)
    if line.torn:
        return Finding(TORN, f"The last line breaks off after {size}", line.number)
    return Finding(GARBAGE, f"{size} that are no JSON object", line.number)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_whole_pairs(body: bytes) -> bool:
    try:
        orjson.loads(body.decode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return False
    return True
