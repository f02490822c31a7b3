"""Find damaged bytes: lines that are not valid records, incomplete last lines, and encoding errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import orjson

from resume_hooks.maintenance.fsck.findings import Defect, DefectKind
from resume_hooks.system.text import format_count
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import BOM, Line, read_lines
from resume_hooks.transcripts.nodes import Node, make_node
from resume_hooks.transcripts.transcript import Transcript

UNREADABLE_LINE_DEFECT = DefectKind(
    "line-unreadable",
    "error",
    "Every client skips the line; the records after it are cut off or bridged.",
    is_repairable=False,
)
GLUED_LINES_DEFECT = DefectKind(
    "line-glued",
    "error",
    "Every client skips the line and the message on it; a repair extracts the message.",
)
GLUED_COPIES_DEFECT = DefectKind(
    "line-glued-aside",
    "warning",
    "Every client skips the line; every message on the line is elsewhere in the file, too.",
)
LINE_FRAGMENT_DEFECT = DefectKind(
    "line-fragment",
    "warning",
    "A part of a record is on the line of another record; the first record is lost.",
    is_repairable=False,
)
TORN_LINE_DEFECT = DefectKind(
    "line-torn",
    "error",
    (
        "The record is lost. Clients up to 2.1.112 write the next record onto the same line, "
        "so the next record is lost too."
    ),
    is_repairable=False,
)
NUL_LINE_DEFECT = DefectKind(
    "line-nul",
    "warning",
    "Every client skips the line. Because of a crash, a part of the file was not written.",
    is_repairable=False,
)
LINE_WITHOUT_END_DEFECT = DefectKind(
    "line-unended",
    "warning",
    (
        "Clients up to 2.1.112 write the next record onto the same line, so both records are lost; "
        "client 2.1.329 ends the line first."
    ),
)
LONE_SURROGATE_DEFECT = DefectKind(
    "surrogate-lone",
    "error",
    (
        "Clients up to 2.1.112 send the surrogate, and the API refuses the request as invalid JSON; "
        "client 2.1.329 sends U+FFFD."
    ),
)
BAD_UTF8_DEFECT = DefectKind(
    "utf8-bad",
    "warning",
    "Every client reads U+FFFD in its place; the character is lost.",
    is_repairable=False,
)
BYTE_ORDER_MARK_DEFECT = DefectKind("byte-order-mark", "note", "Every client skips the mark.")
CRLF_ENDING_DEFECT = DefectKind(
    "line-crlf", "note", "Every client reads the line end as white space."
)

_BLANK_BYTES = b"\0\r\n\t "
_ESCAPED_SURROGATE_PATTERN = re.compile(rb"\\u[dD][89a-fA-F]")


def defects_of_line(line: Line, node: Node | None) -> Iterator[Defect]:
    """Yield the defects in the bytes of a line that contains a record."""
    raw = line.raw
    uuid = node.uuid if node else ""
    if line.offset == 0 and raw.startswith(BOM):
        yield Defect(
            BYTE_ORDER_MARK_DEFECT, "The file begins with a byte order mark", line.number, uuid
        )
    if raw.endswith(b"\r\n"):
        yield Defect(CRLF_ENDING_DEFECT, "The line ends with CR LF", line.number, uuid)
    if line.is_torn:
        yield Defect(LINE_WITHOUT_END_DEFECT, "The last line has no line feed", line.number, uuid)
    if not raw.isascii() and raw.decode(errors="replace").encode() != raw:
        yield Defect(
            BAD_UTF8_DEFECT, "The line contains bytes that are not UTF-8", line.number, uuid
        )


def defects_of_surrogates(line: Line, node: Node) -> Iterator[Defect]:
    """Yield a defect for each unpaired surrogate in a record that the client sends to the API."""
    if _ESCAPED_SURROGATE_PATTERN.search(line.raw):
        try:
            orjson.loads(line.body.decode("utf-8", "replace"))
        except orjson.JSONDecodeError:
            yield Defect(
                LONE_SURROGATE_DEFECT,
                "The record contains half of a surrogate pair",
                line.number,
                node.uuid,
            )


def defects_of_bad_lines(transcript: Transcript) -> Iterator[Defect]:
    """Yield the defects of lines that do not contain exactly one record."""
    known_ids = {node.uuid for node in transcript.nodes}
    for line, nodes in _read_bad_lines(transcript):
        yield _defect_of_bad_line(line, nodes, known_ids)
        if nodes and (fragment_size := _count_fragment_bytes(line)):
            message = f"{fragment_size:,} bytes of the line are part of another record"
            yield Defect(LINE_FRAGMENT_DEFECT, message, line.number)


def _read_bad_lines(transcript: Transcript) -> Iterator[tuple[Line, list[Node]]]:
    """Yield the lines that are not valid records, each with the complete records inside the line."""
    bad_numbers = set(transcript.damaged_lines)
    if bad_numbers:
        with open(transcript.path, "rb") as stream:
            for line in read_lines(stream):
                if line.number in bad_numbers:
                    yield (
                        line,
                        [
                            make_node(records.parse_record(inner_line.raw) or {}, inner_line)
                            for inner_line in extract_record_lines(line)
                        ],
                    )


def _defect_of_bad_line(line: Line, nodes: list[Node], known_ids: set[str]) -> Defect:
    size_text = f"{len(line.body):,} bytes"
    if nodes:
        if any(node.is_message and node.uuid not in known_ids for node in nodes):
            kind = GLUED_LINES_DEFECT
        else:
            kind = GLUED_COPIES_DEFECT
        return Defect(
            kind,
            f"A line of {size_text} is not a record but contains {format_count(len(nodes), 'record')}",
            line.number,
            nodes[0].uuid,
        )
    if not line.raw.strip(_BLANK_BYTES):
        return Defect(NUL_LINE_DEFECT, f"{size_text} of NULs", line.number)
    if line.is_torn:
        return Defect(TORN_LINE_DEFECT, f"The last line is cut off after {size_text}", line.number)
    return Defect(UNREADABLE_LINE_DEFECT, f"{size_text} that are not a JSON object", line.number)


_RECORD_START_PATTERN = re.compile(r'\{"(?:parentUuid|type|uuid|isSidechain|sessionId|leafUuid)":')
_JSON_DECODER = json.JSONDecoder()


def extract_record_lines(line: Line) -> list[Line]:
    """Return the complete records of a conversation inside a line that is not itself a record."""
    lines: list[Line] = []
    for start, end in _find_json_objects(line):
        inner_line = Line(line.number, line.offset + start, line.raw[start:end])
        record = records.parse_record(inner_line.raw)
        if (
            record is not None
            and records.get_kind(record) in records.CHAIN_RECORD_KINDS
            and isinstance(record.get("uuid"), str)
        ):
            lines.append(inner_line)
    return lines


def _find_json_objects(line: Line) -> Iterator[tuple[int, int]]:
    """Yield the start and the end, in bytes, of each complete JSON object inside a line."""
    # Latin-1 has one character for each byte, so positions in the text are positions in the line.
    text = line.raw.decode("latin-1")
    position = 0
    while match := _RECORD_START_PATTERN.search(text, position):
        try:
            _, end = _JSON_DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.end()
            continue
        yield match.start(), end
        position = end


def _count_fragment_bytes(line: Line) -> int:
    """Count the bytes of a line outside complete JSON objects, without NULs and white space."""
    size, position = 0, 0
    for start, end in _find_json_objects(line):
        size += len(line.raw[position:start].strip(_BLANK_BYTES))
        position = end
    return size + len(line.raw[position:].strip(_BLANK_BYTES))


def salvage_nodes(transcript: Transcript) -> list[Node]:
    """Return the transcript's nodes and the nodes found inside bad lines, in file order.

    If the transcript also contains a node of a bad line elsewhere, that node is returned only once.
    All nodes from the same bad line have the same line number.
    """
    known_ids = {node.uuid for node in transcript.nodes}
    salvaged_nodes = [
        node
        for _, nodes in _read_bad_lines(transcript)
        for node in nodes
        if node.uuid not in known_ids
    ]
    if salvaged_nodes:
        return sorted([*transcript.nodes, *salvaged_nodes], key=lambda node: node.offset)
    return transcript.nodes
