"""A transcript as a value: its lines scanned once, its live chain, turns, calls and results.

Reading never changes a file. Records stay on disk; ``read`` loads one by its node. The end of a
large file may suffice to determine the records that a client would load. The functions that check
this return False if the rest of the file might change the result.
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
from resume_hooks.transcripts.chain import MIN_SKIPPED_FILE_BYTES, RecordGraph, build_live_chain
from resume_hooks.transcripts.lines import (
    SEARCH_CHUNK_BYTES,
    Line,
    LineNumbers,
    SharedFile,
    find_last_line_with,
    open_transcript,
    read_exactly,
    read_lines,
    read_tail,
    transcript_path,
)
from resume_hooks.transcripts.metadata_records import LAST_PROMPT
from resume_hooks.transcripts.nodes import Checkpoint, Node, make_node
from resume_hooks.transcripts.records import COMPACTION, PROGRESS, SYSTEM, Record, parse_record

MAX_QUICK_BYTES = 8 * 1024 * 1024
"""The number of bytes of a live conversation that are scanned while a prompt waits, which takes 0.1 seconds."""

Observer = Callable[[Line, records.Record, "Node | None"], None]
"""A callback for each readable line, with its record, and the node of a linked record."""


class CopyDetector:
    """Recognises copied records; it processes the records of a file in order.

    Records up to the time ``until`` are copies. ``latest`` is the time of the last message before
    them: a copied summary is older than it, a fresh summary is newer.
    """

    def __init__(self, until: str = "", latest: str = "") -> None:
        self.until, self.latest = until, latest

    def is_copy(self, record: Record) -> bool:
        """Check whether the next record is a copy of a record before the last boundary."""
        kind = records.get_string(record, "type")
        if record.get("isSidechain") or kind not in records.CHAIN_KINDS:
            return False
        at = record.get("timestamp")
        if kind == records.SYSTEM and record.get("subtype") == records.COMPACTION:
            has_kept_messages = any(
                key.startswith("preserved")
                for key in records.get_mapping(record, "compactMetadata")
            )
            self.until = "" if has_kept_messages else clock.normalize_timestamp(at)
            return False
        if not self.until:
            if kind in records.MESSAGE_KINDS and isinstance(at, str):
                self.latest = at
            return False
        if record.get("isCompactSummary") and not self.latest:
            return False  # the boundary is first in its file, so the next records decide
        instant = clock.normalize_timestamp(at)
        is_new_summary = record.get("isCompactSummary") and instant > clock.normalize_timestamp(
            self.latest
        )
        if is_new_summary or (instant > self.until and kind in records.MESSAGE_KINDS):
            self.until, self.latest = (
                "",
                instant,
            )  # the client's own compaction, or the conversation continues
        return bool(self.until) and instant <= self.until


class ChainTurn(NamedTuple):
    """A prompt and everything up to the next one; ``number`` counts from 1 within the live chain."""

    number: int
    nodes: tuple[Node, ...]


class Transcript:
    """A scanned file, or its end if not ``whole``; ``size`` is the file's size in bytes.

    ``bad_lines`` are the 0-based numbers of non-blank lines without a JSON object.
    ``lenient_lines`` are the numbers of lines that need a tolerant parser: lone surrogates, invalid
    UTF-8.
    """

    def __init__(self, file: str | SharedFile) -> None:
        self.path = transcript_path(file)
        self.file = file
        self.nodes: list[Node] = []
        self.checkpoint = Checkpoint()
        self.copies = CopyDetector()
        self.bad_lines: list[int] = []
        self.lenient_lines: set[int] = set()
        self.metadata_counts: dict[str, int] = {}
        self.models: dict[str, int] = {}
        self.line_count = 0
        self.torn = False
        self.size = 0
        self.whole = True
        self._ids: set[str] = set()
        self._counted = 0

    def contains_record(self, uuid: str) -> bool:
        """Check whether a record with this id was already read.

        Only files with queued prompts build the set.
        """
        self._ids.update(node.uuid for node in self.nodes[self._counted :])
        self._counted = len(self.nodes)
        return uuid in self._ids

    @cached_property
    def chain(self) -> list[Node]:
        """The records that the client would load on resume, oldest first."""
        return build_live_chain(self.nodes, self.checkpoint, self.size)

    @cached_property
    def by_uuid(self) -> dict[str, Node]:
        """The linked records by id, in order of first appearance; for a duplicate id the last record."""
        return {node.uuid: node for node in self.nodes}

    def parent(self, node: Node) -> Node | None:
        """Return the parent of ``node``, or None at a root or a gap."""
        if node.parent:
            return self.by_uuid.get(node.parent)
        return None

    def node_before_boundary(self, node: Node) -> Node | None:
        """Return the record that a compaction's boundary or summary follows: the named one, or the previous one."""
        index = bisect_left(self.nodes, node.number, key=lambda candidate: candidate.number)
        return self.by_uuid.get(node.logical_parent) or (self.nodes[index - 1] if index else None)

    @cached_property
    def turns(self) -> list[ChainTurn]:
        """The live chain, split at its prompts.

        Records before the first prompt belong to no turn.
        """
        start_indexes = []
        for index, node in enumerate(self.chain):
            if node.prompt:
                start_indexes.append(index)
        end_indexes = [*start_indexes[1:], len(self.chain)]
        turns = []
        for number, (start, end) in enumerate(zip(start_indexes, end_indexes, strict=False), 1):
            turns.append(ChainTurn(number, tuple(self.chain[start:end])))
        return turns

    @cached_property
    def call_results(self) -> dict[str, tuple[Node, Node | None]]:
        """The live chain's tool calls by id: the record with the call, and the one with the result, if any."""
        nodes_by_result = {}
        for node in self.chain:
            for call in node.results:
                nodes_by_result[call] = node
        pairs = {}
        for node in self.chain:
            for call in node.calls:
                pairs[call] = (node, nodes_by_result.get(call))
        return pairs

    def with_chain(self, chain: Sequence[Node]) -> Transcript:
        """Return the same transcript, but with ``chain``, a beginning of its live chain, as the live chain."""
        shortened = copy.copy(self)
        for property_name in ("turns", "call_results"):
            shortened.__dict__.pop(property_name, None)
        shortened.chain = list(chain)
        return shortened

    def read_record(self, node: Node) -> records.Record:
        """Read a node's record from disk.

        Raise SessionNotFound if the file changed or is gone.
        """
        with open_transcript(self.file) as stream:
            return read_record(stream, node)


def read_record(stream: BinaryIO, node: Node) -> records.Record:
    """Read a node's record from an open file. Raise SessionNotFound if the file changed.

    A node without an id matches any record.
    """
    record = records.parse_record(
        Line(node.number, node.offset, read_exactly(stream, node.offset, node.length)).body
    )
    if record is None or (node.uuid and not node.is_node_of(record)):
        raise SessionNotFound(f"{stream.name} changed while it was read", "Run the command again.")
    return record


class ScanStart(NamedTuple):
    """The line at which reading starts: its byte offset and 0-based number."""

    offset: int
    number: int


def scan_transcript(
    file: str | SharedFile,
    tail_bytes: int = 0,
    observers: Sequence[Observer] = (),
    start: ScanStart | None = None,
) -> Transcript:
    """Read a transcript's lines once: all, those from ``start``, or the whole ones in the last ``tail_bytes``.

    ``observers`` receive each record, so that no line is parsed twice. Raise SessionNotFound if the
    file can't be read, NotATranscript for another program's file.
    """
    transcript = Transcript(file)
    with open_transcript(file, SEARCH_CHUNK_BYTES) as stream, pause_garbage_collection():
        transcript.whole = start is None and not 0 < tail_bytes < os.fstat(stream.fileno()).st_size
        line = None
        if start is None:
            if transcript.whole:
                lines = read_lines(stream)
            else:
                lines = read_tail(stream, tail_bytes)
        else:
            stream.seek(start.offset)
            lines = read_lines(stream, start.offset, start.number)
        for line in lines:
            _process_line(transcript, line, observers)
        if line is not None:
            transcript.line_count, transcript.torn = line.number + 1, line.is_torn
            transcript.size = line.offset + len(line.raw)
    return transcript


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection: thousands of short-lived trees without cycles would cost a third of a scan."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _process_line(transcript: Transcript, line: Line, observers: Sequence[Observer]) -> None:
    raw = line.raw if line.offset else line.body  # copying each line would cost a tenth of the scan
    if raw.isspace():
        return
    record = records.parse_strict(raw)
    if record is None and (record := records.parse_record(raw)) is not None:
        transcript.lenient_lines.add(line.number)
    if record is None:
        if line.raw.strip():
            transcript.bad_lines.append(line.number)
        return
    kind = records.get_kind(record)
    node = None
    if kind in records.CHAIN_KINDS and isinstance(record.get("uuid"), str):
        node = make_node(record, line)
        node.copied = transcript.copies.is_copy(record)
        _link_node(transcript, node, record)
    else:
        records.reject_codex_rollout(record, transcript.path)
        transcript.metadata_counts[kind] = transcript.metadata_counts.get(kind, 0) + 1
        if kind == LAST_PROMPT and "leafUuid" in record:
            leaf = records.get_string(record, "leafUuid") or None
            transcript.checkpoint.process_last_prompt(leaf, explicit=record.get("explicit") is True)
    for observe in observers:
        observe(line, record, node)


def _link_node(transcript: Transcript, node: Node, record: records.Record) -> None:
    sent_as = record.get("sentAsUuid")
    if sent_as and isinstance(sent_as, str) and not transcript.contains_record(sent_as):
        node.uuid, node.has_sent_uuid = (
            sent_as,
            True,
        )  # a queued prompt: its answer refers to the id that it was sent under
    transcript.nodes.append(node)
    if not node.broken and node.kind != records.PROGRESS:
        transcript.checkpoint.process_record(node)
    if node.context_tokens and (model := records.answering_model(record)):
        transcript.models[model] = transcript.models.get(model, 0) + 1


_BRANCH_HINT = f'"{LAST_PROMPT}"'.encode()
_BOUNDARY_SUBTYPE = f'"{COMPACTION}"'.encode()

Observers = TypeVar("Observers", bound=Sequence[Observer])


def scan_live_part(
    file: str | SharedFile, observers: Callable[[], Observers]
) -> tuple[Transcript, Observers]:
    """Scan the part of a file that the live chain needs; return the transcript and its observers.

    For a large compacted file read only the part since the compaction if that is sufficient, else
    the whole file. Numbers and offsets always refer to the whole file. Raise SessionNotFound or
    NotATranscript as ``scan_transcript`` does.
    """
    with open_transcript(file) as stream:
        offset = _find_live_offset(stream)
        start = ScanStart(offset, LineNumbers(offset).number_at(stream, offset))
    live_observers = observers()
    if start.offset:
        live_part = scan_transcript(file, observers=live_observers, start=start)
        if selects_same_branch(live_part) and has_complete_beginning(live_part.chain, live_part):
            return live_part, live_observers
        live_observers = observers()
    return scan_transcript(file, observers=live_observers), live_observers


def is_live_part_within(file: str | SharedFile, max_bytes: int) -> bool:
    """Check whether a session has at most ``max_bytes`` since its last compaction, reading only its end."""
    with open_transcript(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        return size <= max_bytes or size - _find_live_offset(stream, size - max_bytes) <= max_bytes


def was_compacted(path: str) -> bool:
    """Check whether a session has a compaction with records before it.

    Raise SessionNotFound as ``scan_transcript`` does.
    """
    with open_transcript(path) as stream:
        return _find_last_compaction(stream, os.fstat(stream.fileno()).st_size, 0)[1] > 0


def _find_live_offset(stream: BinaryIO, start_limit: int = 0) -> int:
    """Return the offset of the live part's first record, including kept ones, from ``start_limit`` on; 0 if unknown."""
    size = os.fstat(stream.fileno()).st_size
    if size > MIN_SKIPPED_FILE_BYTES:
        boundary, offset = _find_last_compaction(stream, size, start_limit)
    else:
        boundary, offset = (None, 0)
    if boundary is None:
        return 0
    if boundary.kept_segment is not None:
        if boundary.kept_segment.uuids:
            head = boundary.kept_segment.uuids[0]
        else:
            head = boundary.kept_segment.head
        offset = find_last_line_with(
            stream, b'"uuid":"%s"' % head.encode("utf-8", "replace"), offset, start_limit
        )
    return max(offset, 0)


def _find_last_compaction(stream: BinaryIO, size: int, start_limit: int) -> tuple[Node | None, int]:
    """Return the last boundary and its offset; skip text that only mentions one."""
    offset = size
    while (offset := find_last_line_with(stream, _BOUNDARY_SUBTYPE, offset, start_limit)) >= 0:
        stream.seek(offset)
        line = Line(0, offset, stream.readline())
        record = parse_record(line.body)
        if record and record.get("type") == SYSTEM and isinstance(record.get("uuid"), str):
            node = make_node(record, line)
            if node.is_boundary and not node.sidechain:
                return node, offset
    return None, -1


def selects_same_branch(tail: Transcript) -> bool:
    """Check whether the records of a file's end select the same branch as the whole file."""
    nodes_by_id = tail.by_uuid
    for node in tail.nodes:
        if node.kept_segment and not nodes_by_id.keys() >= set(
            node.kept_segment.uuids or (node.kept_segment.head, node.kept_segment.tail)
        ):
            return False  # kept messages precede the end
    if tail.checkpoint.uuid:
        checkpoint_node = nodes_by_id.get(tail.checkpoint.uuid)
        return checkpoint_node is not None and checkpoint_node.number > _last_boundary_line(tail)
    if tail.checkpoint.hinted:
        return True
    dated_nodes = [node for node in tail.nodes if not node.sidechain and node.time_ms is not None]
    if dated_nodes and max(dated_nodes, key=lambda node: node.time_ms or 0) is not dated_nodes[-1]:
        # the records are out of order, and without a hint the client decides by their times
        return False
    return _last_boundary_line(tail) >= 0 or not _has_branch_hint(tail.file)


def build_certain_chain(tail: Transcript) -> list[Node]:
    """Return the end of the live chain as far as the file's end determines it, else an empty list."""
    chain = build_live_chain(tail.nodes, tail.checkpoint, tail.size, bridge_gaps=False)
    main_nodes = []
    for node in tail.nodes:
        if not node.sidechain and not node.broken and node.kind != PROGRESS:
            main_nodes.append(node)
    # If an earlier compaction kept messages, another branch than the last one may be live.
    is_certain = (
        tail.checkpoint.explicit
        or _last_boundary_line(tail) >= 0
        or (main_nodes and main_nodes[-1] in chain)
    )
    # A restored record without a parent would hang on the parents of kept messages.
    has_second_root = any(node.parent is None for node in chain[1:])
    if is_certain and not has_second_root:
        return chain
    return []


def has_complete_beginning(chain: list[Node], tail: Transcript) -> bool:
    """Check whether no record before the last boundary can belong to the chain, because clients drop them all."""
    if not chain or chain[0].number != _last_boundary_line(tail) or chain[0].parent is not None:
        return False
    if chain[0].kept_segment is None:
        return tail.size > MIN_SKIPPED_FILE_BYTES
    return RecordGraph(tail.nodes, tail.size).spliced


def is_after_boundary(chain: list[Node], tail: Transcript) -> bool:
    """Check whether all records follow the last boundary; for earlier ones the whole file must decide."""
    boundary_line = _last_boundary_line(tail)
    return all(node.number >= boundary_line for node in chain)


def _last_boundary_line(tail: Transcript) -> int:
    return max((node.number for node in tail.nodes if node.is_boundary), default=-1)


def _has_branch_hint(file: str | SharedFile) -> bool:
    """Check whether any line of the file may select the branch.

    Search for bytes, which is much cheaper than a scan.
    """
    with open_transcript(file) as stream:
        return find_last_line_with(stream, _BRANCH_HINT, os.fstat(stream.fileno()).st_size) >= 0
