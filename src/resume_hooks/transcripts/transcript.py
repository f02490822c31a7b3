"""A transcript as a value: its lines scanned once, its live chain, turns, calls and results.

Reading never changes a file. Records stay on disk; ``read`` fetches one by its node. Of a large
file its end may tell for certain which records a client would load: what looks there answers no
where the rest might tell otherwise.
"""

from __future__ import annotations

import copy
import gc
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import BinaryIO, NamedTuple, TypeVar

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.transcripts import records
from resume_hooks.transcripts.bookkeeping import LAST_PROMPT
from resume_hooks.transcripts.chain import SKIPPED_BYTES, Graph, live_chain
from resume_hooks.transcripts.lines import (
    SEARCHED_BYTES,
    Line,
    Numbers,
    OneOpen,
    line_with,
    open_transcript,
    path_of,
    read_at,
    read_lines,
    read_tail,
)
from resume_hooks.transcripts.nodes import Checkpoint, Node, node_of
from resume_hooks.transcripts.records import COMPACTION, PROGRESS, SYSTEM, Record, parse

QUICK_LIMIT = 8 * 1024 * 1024
"""Bytes of a live conversation that is looked through while a prompt waits: 0.1 seconds."""

Observer = Callable[[Line, records.Record, "Node | None"], None]
"""Called with each readable line, its record, and the node of a linked one."""


class Copies:
    """Takes in the records of one file in order.

    ``until`` is the instant up to which what follows is a copy; ``latest`` that of the last message
    before it. By the latter a summary that was copied, too, is told from a fresh one, which is made
    after all that it sums up.
    """

    def __init__(self, until: str = "", latest: str = "") -> None:
        self.until, self.latest = until, latest

    def holds(self, record: Record) -> bool:
        """Whether the next record is a copy of what stands before the last boundary."""
        kind = records.kind(record)
        if record.get("isSidechain") or kind not in records.CHAIN_KINDS:
            return False
        at = record.get("timestamp")
        if kind == records.SYSTEM and record.get("subtype") == records.COMPACTION:
            kept = any(
                key.startswith("preserved") for key in records.mapping(record, "compactMetadata")
            )
            self.until = "" if kept else clock.normalize_timestamp(at)
            return False
        if not self.until:
            if kind in records.MESSAGES and isinstance(at, str):
                self.latest = at
            return False
        if record.get("isCompactSummary") and not self.latest:
            return False  # first in its file: what follows it tells
        instant = clock.normalize_timestamp(at)
        summed_up = record.get("isCompactSummary") and instant > clock.normalize_timestamp(
            self.latest
        )
        if summed_up or (instant > self.until and kind in records.MESSAGES):
            self.until, self.latest = (
                "",
                instant,
            )  # the client's own compaction, or the conversation goes on
        return bool(self.until) and instant <= self.until


class ChainTurn(NamedTuple):
    """A prompt and everything up to the next one; ``number`` counts from 1 within the live chain."""

    number: int
    nodes: tuple[Node, ...]


class Transcript:
    """One scanned file, or its end where not ``whole``; ``size`` is the file's own, in bytes.

    ``bad_lines`` are 0-based numbers of lines that hold no JSON object (blank ones aside),
    ``lenient_lines`` of those that only a tolerant parser takes: lone surrogates, bytes that are no
    UTF-8.
    """

    def __init__(self, file: str | OneOpen) -> None:
        self.path = path_of(file)
        self.file = file
        self.nodes: list[Node] = []
        self.checkpoint = Checkpoint()
        self.copies = Copies()
        self.bad_lines: list[int] = []
        self.lenient_lines: set[int] = set()
        self.bookkeeping: dict[str, int] = {}
        self.models: dict[str, int] = {}
        self.line_count = 0
        self.torn = False
        self.size = 0
        self.whole = True
        self._ids: set[str] = set()
        self._counted = 0

    def holds(self, uuid: str) -> bool:
        """Whether a record that was read so far has this id.

        Only files with queued prompts pay for the set.
        """
        self._ids.update(node.uuid for node in self.nodes[self._counted :])
        self._counted = len(self.nodes)
        return uuid in self._ids

    @cached_property
    def chain(self) -> list[Node]:
        """What the client would load on resume, oldest first."""
        return live_chain(self.nodes, self.checkpoint, self.size)

    @cached_property
    def by_uuid(self) -> dict[str, Node]:
        """The linked records by their ids, of several the last, in the order of their first appearance."""
        return {node.uuid: node for node in self.nodes}

    def parent(self, node: Node) -> Node | None:
        """The record that ``node`` names as its parent; None at a root and at a gap."""
        if node.parent:
            return self.by_uuid.get(node.parent)
        return None

    def before(self, node: Node) -> Node | None:
        """The record that a compaction's boundary or summary follows: the one that it names, else that before it."""
        place = bisect_left(self.nodes, node.number, key=lambda one: one.number)
        return self.by_uuid.get(node.logical) or (self.nodes[place - 1] if place else None)

    @cached_property
    def turns(self) -> list[ChainTurn]:
        """The live chain cut at its prompts.

        What stands before the first prompt belongs to no turn.
        """
        starts = []
        for index, node in enumerate(self.chain):
            if node.prompt:
                starts.append(index)
        ends = [*starts[1:], len(self.chain)]
        turns = []
        for n, (a, b) in enumerate(zip(starts, ends, strict=False), 1):
            turns.append(ChainTurn(n, tuple(self.chain[a:b])))
        return turns

    @cached_property
    def pairs(self) -> dict[str, tuple[Node, Node | None]]:
        """Tool calls of the live chain by id: the record that calls and the one that answers, if any."""
        answers = {}
        for node in self.chain:
            for call in node.results:
                answers[call] = node
        pairs = {}
        for node in self.chain:
            for call in node.calls:
                pairs[call] = (node, answers.get(call))
        return pairs

    def ending(self, chain: Sequence[Node]) -> Transcript:
        """The same file with ``chain``, the beginning of its live one, as the whole of it."""
        part = copy.copy(self)
        for derived in ("turns", "pairs"):
            part.__dict__.pop(derived, None)
        part.chain = list(chain)
        return part

    def read(self, node: Node) -> records.Record:
        """The record behind a node, read from disk.

        SessionNotFound if the file changed or is gone.
        """
        with open_transcript(self.file) as stream:
            return read_record(stream, node)


def read_record(stream: BinaryIO, node: Node) -> records.Record:
    """The record behind a node of an open file; SessionNotFound if the file changed.

    A node without an id is any.
    """
    record = records.parse(
        Line(node.number, node.offset, read_at(stream, node.offset, node.length)).body
    )
    if record is None or (node.uuid and not node.is_of(record)):
        raise SessionNotFound(f"{stream.name} changed while it was read", "Run the command again.")
    return record


class ScanStart(NamedTuple):
    """A line of a file that it is read from: its byte offset and its 0-based number."""

    offset: int
    number: int


def scan(
    file: str | OneOpen,
    reach: int = 0,
    observers: Sequence[Observer] = (),
    start: ScanStart | None = None,
) -> Transcript:
    """Read a transcript's lines once: all, those from ``start`` on, or the whole ones in the last ``reach`` bytes.

    ``observers`` see each record as it is read, so that whoever needs more of it parses no line
    again. SessionNotFound if the file can't be read, NotATranscript for a file of another program.
    """
    transcript = Transcript(file)
    with open_transcript(file, SEARCHED_BYTES) as stream, without_gc():
        transcript.whole = start is None and not 0 < reach < os.fstat(stream.fileno()).st_size
        line = None
        if start is None:
            if transcript.whole:
                lines = read_lines(stream)
            else:
                lines = read_tail(stream, reach)
        else:
            stream.seek(start.offset)
            lines = read_lines(stream, start.offset, start.number)
        for line in lines:
            _take_line(transcript, line, observers)
        if line is not None:
            transcript.line_count, transcript.torn = line.number + 1, line.torn
            transcript.size = line.offset + len(line.raw)
    return transcript


@contextmanager
def without_gc() -> Iterator[None]:
    """Thousands of short-lived trees without cycles: collecting them would cost a third of a scan."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _take_line(transcript: Transcript, line: Line, observers: Sequence[Observer]) -> None:
    raw = (
        line.raw if line.offset else line.body
    )  # a copy of each line would cost a tenth of the scan
    if raw.isspace():
        return
    record = records.parse_strict(raw)
    if record is None and (record := records.parse(raw)) is not None:
        transcript.lenient_lines.add(line.number)
    if record is None:
        if line.raw.strip():
            transcript.bad_lines.append(line.number)
        return
    kind = records.kind(record)
    node = None
    if kind in records.CHAIN_KINDS and isinstance(record.get("uuid"), str):
        node = node_of(record, line)
        node.copied = transcript.copies.holds(record)
        _link_node(transcript, node, record)
    else:
        records.refuse_foreign(record, transcript.path)
        transcript.bookkeeping[kind] = transcript.bookkeeping.get(kind, 0) + 1
        if kind == LAST_PROMPT and "leafUuid" in record:
            leaf = records.string(record, "leafUuid") or None
            transcript.checkpoint.point(leaf, explicit=record.get("explicit") is True)
    for observe in observers:
        observe(line, record, node)


def _link_node(transcript: Transcript, node: Node, record: records.Record) -> None:
    sent_as = record.get("sentAsUuid")
    if sent_as and isinstance(sent_as, str) and not transcript.holds(sent_as):
        node.uuid, node.given_uuid = (
            sent_as,
            True,
        )  # a queued prompt: its answer hangs on the id that it was sent under
    transcript.nodes.append(node)
    if not node.broken and node.kind != records.PROGRESS:
        transcript.checkpoint.pass_record(node)
    if node.context_tokens and (model := records.model(record)):
        transcript.models[model] = transcript.models.get(model, 0) + 1


_HINT = f'"{LAST_PROMPT}"'.encode()
_BOUNDARY = f'"{COMPACTION}"'.encode()

Observers = TypeVar("Observers", bound=Sequence[Observer])


def scan_live(
    file: str | OneOpen, observers: Callable[[], Observers]
) -> tuple[Transcript, Observers]:
    """Scan what the live chain of a session needs, and the observers that saw it.

    Of a large file that was compacted only the part since then, where that alone decides; else the
    whole. Numbers and offsets are those of the whole file either way. SessionNotFound,
    NotATranscript as ``scan``.
    """
    with open_transcript(file) as stream:
        offset = _offset_of_live(stream)
        start = ScanStart(offset, Numbers(offset).of(stream, offset))
    seeing = observers()
    if start.offset:
        part = scan(file, observers=seeing, start=start)
        if chooses_alike(part) and is_complete(part.chain, part):
            return part, seeing
        seeing = observers()
    return scan(file, observers=seeing), seeing


def is_live_part_within(file: str | OneOpen, limit: int) -> bool:
    """Whether a session has no more than ``limit`` bytes since its last compaction, told by that many of its end."""
    with open_transcript(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        return size <= limit or size - _offset_of_live(stream, size - limit) <= limit


def was_compacted(path: str) -> bool:
    """Whether there is a compaction in a session, with something before it.

    SessionNotFound as ``scan``.
    """
    with open_transcript(path) as stream:
        return _last_compaction(stream, os.fstat(stream.fileno()).st_size, 0)[1] > 0


def _offset_of_live(stream: BinaryIO, floor: int = 0) -> int:
    """Where the live part's first record, kept ones included, begins behind ``floor``; 0 if nothing tells."""
    size = os.fstat(stream.fileno()).st_size
    if size > SKIPPED_BYTES:
        boundary, offset = _last_compaction(stream, size, floor)
    else:
        boundary, offset = (None, 0)
    if boundary is None:
        return 0
    if boundary.segment is not None:
        if boundary.segment.uuids:
            head = boundary.segment.uuids[0]
        else:
            head = boundary.segment.head
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
        if node.segment and not known.keys() >= set(
            node.segment.uuids or (node.segment.head, node.segment.tail)
        ):
            return False  # kept messages lie farther up
    if tail.checkpoint.uuid:
        pointed = known.get(tail.checkpoint.uuid)
        return pointed is not None and pointed.number > _last_boundary(tail)
    if tail.checkpoint.hinted:
        return True
    rows = [node for node in tail.nodes if not node.sidechain and node.time_ms is not None]
    if rows and max(rows, key=lambda node: node.time_ms or 0) is not rows[-1]:
        return False  # written out of order, where without a hint time decides
    return _last_boundary(tail) >= 0 or not _hinted(tail.file)


def certain_chain(tail: Transcript) -> list[Node]:
    """The end of the live chain, as far as the end of the file tells it; empty if it doesn't."""
    chain = live_chain(tail.nodes, tail.checkpoint, tail.size, bridging=False)
    rows = []
    for node in tail.nodes:
        if not node.sidechain and not node.broken and node.kind != PROGRESS:
            rows.append(node)
    # A branch that is not the last one may stand back where a compaction farther up kept messages.
    certain = tail.checkpoint.explicit or _last_boundary(tail) >= 0 or (rows and rows[-1] in chain)
    # What came back to a record without a parent, by the answer that both are of, hangs on what
    # kept messages hang on.
    begun_anew = any(node.parent is None for node in chain[1:])
    if certain and not begun_anew:
        return chain
    return []


def is_complete(chain: list[Node], tail: Transcript) -> bool:
    """Whether nothing before the last boundary can belong to the chain: clients drop that for good in these cases."""
    if not chain or chain[0].number != _last_boundary(tail) or chain[0].parent is not None:
        return False
    if chain[0].segment is None:
        return tail.size > SKIPPED_BYTES
    return Graph(tail.nodes, tail.size).spliced


def stays_after_boundary(chain: list[Node], tail: Transcript) -> bool:
    """Whether no record is from before the last boundary: which of those count, the whole file decides."""
    last = _last_boundary(tail)
    return all(node.number >= last for node in chain)


def _last_boundary(tail: Transcript) -> int:
    return max((node.number for node in tail.nodes if node.boundary), default=-1)


def _hinted(file: str | OneOpen) -> bool:
    """Whether any line of the file may choose the branch.

    A search for bytes, far cheaper than a scan.
    """
    with open_transcript(file) as stream:
        return line_with(stream, _HINT, os.fstat(stream.fileno()).st_size) >= 0
