"""Records inside lines that are none: glued by a client that wrote on after a crash, or behind blocks of NULs.

A piece is given as a line of its own, with its true offset, so that it can be read and copied like any other.
"""

from __future__ import annotations

import json
import re

from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line, read_lines
from resume_hooks.transcripts.nodes import Node, node_of
from resume_hooks.transcripts.transcript import Transcript

_START = re.compile(r'\{"(?:parentUuid|type|uuid|isSidechain|sessionId|leafUuid)":')
_DECODER = json.JSONDecoder()


def pieces(line: Line) -> list[Line]:
    """The whole linked records within a line that is none as a whole."""
    found: list[Line] = []
    text = line.raw.decode("latin-1")  # a character a byte: places in the text are places in the file
    place = 0
    while start := _START.search(text, place):
        try:
            _, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            place = start.end()
            continue
        piece = Line(line.number, line.offset + start.start(), line.raw[start.start() : end])
        record = records.parse(piece.raw)
        if record is not None and records.kind(record) in records.CHAIN_KINDS and isinstance(record.get("uuid"), str):
            found.append(piece)
        place = end
    return found


def salvaged(transcript: Transcript) -> list[Node]:
    """The transcript's nodes and, of those within its bad lines, the ones that it has nowhere else; in file order.

    Pieces of one line share its number.
    """
    if not transcript.bad_lines:
        return transcript.nodes
    bad = set(transcript.bad_lines)
    nodes = list(transcript.nodes)
    known = {node.uuid for node in nodes}
    with open(transcript.path, "rb") as stream:
        for line in read_lines(stream):
            if line.number in bad:
                nodes += [node for node in map(_node, pieces(line)) if node.uuid not in known]
    return sorted(nodes, key=lambda node: node.offset)


def _node(piece: Line) -> Node:
    return node_of(records.parse(piece.raw) or {}, piece)
