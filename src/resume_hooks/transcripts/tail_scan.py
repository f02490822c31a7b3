"""What the end of a file tells for certain of the whole: which records a client would load, from as few as possible.

Everything here answers no where the rest of the file might tell otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import BinaryIO, TypeVar

from resume_hooks.transcripts.bookkeeping import LAST_PROMPT
from resume_hooks.transcripts.chain import live_chain
from resume_hooks.transcripts.graph import SKIPPED_BYTES, Graph
from resume_hooks.transcripts.lines import Line, Numbers, line_with, open_transcript
from resume_hooks.transcripts.nodes import Node, node_of
from resume_hooks.transcripts.records import COMPACTION, PROGRESS, SYSTEM, parse
from resume_hooks.transcripts.transcript import Observer, ScanStart, Transcript, scan

_HINT = f'"{LAST_PROMPT}"'.encode()
_BOUNDARY = f'"{COMPACTION}"'.encode()

Observers = TypeVar("Observers", bound=Sequence[Observer])


def scan_live(path: str, observers: Callable[[], Observers]) -> tuple[Transcript, Observers]:
    """Scan what the live chain of a session needs, and the observers that saw it.

    Of a large file that was compacted only the part since then, where that alone decides; else the whole. Numbers and
    offsets are those of the whole file either way. SessionNotFound, NotATranscript as ``scan``.
    """
    with open_transcript(path) as stream:
        offset = _offset_of_live(stream)
        start = ScanStart(offset, Numbers(offset).of(stream, offset))
    seeing = observers()
    if start.offset:
        part = scan(path, observers=seeing, start=start)
        if chooses_alike(part) and is_complete(part.chain, part):
            return part, seeing
        seeing = observers()
    return scan(path, observers=seeing), seeing


def is_live_part_within(path: str, limit: int) -> bool:
    """Whether a session has no more than ``limit`` bytes since its last compaction, told by that many of its end."""
    with open_transcript(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        return size <= limit or size - _offset_of_live(stream, size - limit) <= limit


def was_compacted(path: str) -> bool:
    """Whether there is a compaction in a session, with something before it. SessionNotFound as ``scan``."""
    with open_transcript(path) as stream:
        return _last_compaction(stream, os.fstat(stream.fileno()).st_size, 0)[1] > 0


def _offset_of_live(stream: BinaryIO, floor: int = 0) -> int:
    """Where the live part's first record, kept ones included, begins behind ``floor``; 0 if nothing tells."""
    size = os.fstat(stream.fileno()).st_size
    boundary, offset = _last_compaction(stream, size, floor) if size > SKIPPED_BYTES else (None, 0)
    if boundary is None:
        return 0
    if boundary.segment is not None:
        head = boundary.segment.uuids[0] if boundary.segment.uuids else boundary.segment.head
        offset = line_with(stream, b'"uuid":"%s"' % head.encode("utf-8", "replace"), offset, floor)
    return max(offset, 0)


def _last_compaction(stream: BinaryIO, size: int, floor: int) -> tuple[Node | None, int]:
    """The last boundary and its offset; text that only speaks of one is passed over."""
    offset = size
    while (offset := line_with(stream, _BOUNDARY, offset, floor)) >= 0:
        stream.seek(offset)
        line = Line(0, offset, stream.readline())
        record = parse(line.body)
        if record and record.get("type") == SYSTEM and isinstance(record.get("uuid"), str):
            node = node_of(record, line)
            if node.boundary and not node.sidechain:
                return node, offset
    return None, -1


def chooses_alike(tail: Transcript) -> bool:
    """Whether the records of a file's end point at the same branch as those of the whole file."""
    known = tail.by_uuid
    for node in tail.nodes:
        if node.segment and not known.keys() >= set(node.segment.uuids or (node.segment.head, node.segment.tail)):
            return False  # kept messages lie farther up
    if tail.checkpoint.uuid:
        pointed = known.get(tail.checkpoint.uuid)
        return pointed is not None and pointed.number > _last_boundary(tail)
    if tail.checkpoint.hinted:
        return True
    rows = [node for node in tail.nodes if not node.sidechain and node.time_ms is not None]
    if rows and max(rows, key=lambda node: node.time_ms or 0) is not rows[-1]:
        return False  # written out of order, where without a hint time decides
    return _last_boundary(tail) >= 0 or not _hinted(tail.path)


def certain_chain(tail: Transcript) -> list[Node]:
    """The end of the live chain, as far as the end of the file tells it; empty if it doesn't."""
    chain = live_chain(tail.nodes, tail.checkpoint, tail.size, bridging=False)
    rows = [node for node in tail.nodes if not node.sidechain and not node.broken and node.kind != PROGRESS]
    # A branch that is not the last one may stand back where a compaction farther up kept messages.
    certain = tail.checkpoint.explicit or _last_boundary(tail) >= 0 or (rows and rows[-1] in chain)
    # What came back to a record without a parent, by the answer that both are of, hangs on what kept messages hang on.
    begun_anew = any(node.parent is None for node in chain[1:])
    return chain if certain and not begun_anew else []


def is_complete(chain: list[Node], tail: Transcript) -> bool:
    """Whether nothing before the last boundary can belong to the chain: clients drop that for good in these cases."""
    if not chain or chain[0].number != _last_boundary(tail) or chain[0].parent is not None:
        return False
    return tail.size > SKIPPED_BYTES if chain[0].segment is None else Graph(tail.nodes, tail.size).spliced


def stays_after_boundary(chain: list[Node], tail: Transcript) -> bool:
    """Whether no record is from before the last boundary: which of those count, the whole file decides."""
    last = _last_boundary(tail)
    return all(node.number >= last for node in chain)


def _last_boundary(tail: Transcript) -> int:
    return max((node.number for node in tail.nodes if node.boundary), default=-1)


def _hinted(path: str) -> bool:
    """Whether any line of the file may choose the branch; a search for bytes, far cheaper than a scan."""
    with open_transcript(path) as stream:
        return line_with(stream, _HINT, os.fstat(stream.fileno()).st_size) >= 0
