"""Scan a transcript once, and keep its lines, its live chain, its turns, and its calls and results.

Reading never changes a file. The records stay on disk, and ``read_record`` reads one of them. To
find the records that a client would load, the end of a large file may be enough. Some functions
check this: they return false if the start of the file might change the result.
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
    find_offset_of_last_line_containing,
    open_transcript,
    read_exactly,
    read_lines,
    read_tail,
    transcript_path,
)
from resume_hooks.transcripts.metadata_records import LAST_PROMPT
from resume_hooks.transcripts.nodes import Checkpoint, Node, make_node
from resume_hooks.transcripts.records import COMPACTION, PROGRESS, SYSTEM, Record, parse_record

MAX_QUICK_SCAN_BYTES = 8 * 1024 * 1024
"""A live conversation of at most this number of bytes may be scanned while the user's prompt waits.

Such a scan takes 0.1 seconds.
"""

RecordObserver = Callable[[Line, records.Record, "Node | None"], None]
"""A function that a scan calls for each readable line, with the line's record and node.

The node is None if the record does not belong to the chain.
"""


class CopyDetector:
    """Recognizes records that a client copied after a compaction boundary.

    The detector must be given all records of a file in order. Records up to the time ``until`` are
    copies. ``latest`` is the time of the last message before the copies. A copied summary is older
    than this message, while a new summary is newer.
    """

    def __init__(self, until: str = "", latest: str = "") -> None:
        self.until, self.latest = until, latest

    def is_copy_of_earlier_record(self, record: Record) -> bool:
        """Check whether a record is a copy of a record before the last boundary.

        The records must be passed in the order of the file.
        """
        kind = records.get_string(record, "type")
        if record.get("isSidechain") or kind not in records.CHAIN_RECORD_KINDS:
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
            # The boundary is the first record of the file, so nothing shows yet whether the summary
            # and the records after it are copies.
            return False
        instant = clock.normalize_timestamp(at)
        is_new_summary = record.get("isCompactSummary") and instant > clock.normalize_timestamp(
            self.latest
        )
        if is_new_summary or (instant > self.until and kind in records.MESSAGE_KINDS):
            self.until, self.latest = (
                "",
                instant,
                # The record is a summary from the client's own compaction, or a message that continues
                # the conversation.
            )
        return bool(self.until) and instant <= self.until


class ChainTurn(NamedTuple):
    """A prompt with all records up to the next prompt.

    ``number`` is the number of the turn in the live chain, counted from 1.
    """

    number: int
    nodes: tuple[Node, ...]


class Transcript:
    """A scanned transcript, or only its end if ``is_whole`` is false.

    ``size`` is the size of the file in bytes. ``damaged_lines`` are the numbers of lines that are
    neither blank nor a JSON object. ``lenient_lines`` are the numbers of lines with lone surrogates
    or invalid UTF-8. Line numbers are counted from 0.
    """

    def __init__(self, file: str | SharedFile) -> None:
        self.path = transcript_path(file)
        self.file = file
        self.nodes: list[Node] = []
        self.checkpoint = Checkpoint()
        self.copies = CopyDetector()
        self.damaged_lines: list[int] = []
        self.lenient_lines: set[int] = set()
        self.metadata_counts: dict[str, int] = {}
        self.models: dict[str, int] = {}
        self.line_count = 0
        self.is_torn = False
        self.size = 0
        self.is_whole = True
        self._ids: set[str] = set()
        self._indexed_node_count = 0

    def contains_record(self, uuid: str) -> bool:
        """Check whether a record with this id was already read.

        The set of ids is not built before the first call, because only files with queued prompts
        need it.
        """
        self._ids.update(node.uuid for node in self.nodes[self._indexed_node_count :])
        self._indexed_node_count = len(self.nodes)
        return uuid in self._ids

    @cached_property
    def chain(self) -> list[Node]:
        """The records that the client would load on resume, oldest first."""
        return build_live_chain(self.nodes, self.checkpoint, self.size)

    @cached_property
    def nodes_by_uuid(self) -> dict[str, Node]:
        """The nodes by uuid, in the order in which the uuids first appear.

        If several nodes have the same uuid, the last one is used.
        """
        return {node.uuid: node for node in self.nodes}

    def find_parent(self, node: Node) -> Node | None:
        """Return the parent of ``node``, or None if it has no parent or if its parent was not read."""
        if node.parent_uuid:
            return self.nodes_by_uuid.get(node.parent_uuid)
        return None

    def node_before_boundary(self, node: Node) -> Node | None:
        """Return the record directly before the compaction whose boundary record is ``node``, or None.

        ``node`` contains the uuid of that record. If it was not read, return the record that
        precedes ``node`` in the file.
        """
        index = bisect_left(
            self.nodes, node.line_number, key=lambda candidate: candidate.line_number
        )
        return self.nodes_by_uuid.get(node.logical_parent_uuid) or (
            self.nodes[index - 1] if index else None
        )

    @cached_property
    def turns(self) -> list[ChainTurn]:
        """The turns of the live chain.

        Records before the first prompt belong to no turn.
        """
        start_indexes = []
        for index, node in enumerate(self.chain):
            if node.is_prompt:
                start_indexes.append(index)
        end_indexes = [*start_indexes[1:], len(self.chain)]
        turns = []
        for number, (start, end) in enumerate(zip(start_indexes, end_indexes, strict=False), 1):
            turns.append(ChainTurn(number, tuple(self.chain[start:end])))
        return turns

    @cached_property
    def nodes_by_call_id(self) -> dict[str, tuple[Node, Node | None]]:
        """The nodes of each call in the live chain and of its result, by the call's id.

        The second node is None if the call has no result.
        """
        nodes_by_result = {}
        for node in self.chain:
            for call in node.answered_call_ids:
                nodes_by_result[call] = node
        pairs = {}
        for node in self.chain:
            for call in node.call_ids:
                pairs[call] = (node, nodes_by_result.get(call))
        return pairs

    def with_chain(self, chain: Sequence[Node]) -> Transcript:
        """Return a copy of this transcript with ``chain`` as its live chain.

        ``chain`` must be the beginning of the present live chain.
        """
        shortened_copy = copy.copy(self)
        for property_name in ("turns", "nodes_by_call_id"):
            shortened_copy.__dict__.pop(property_name, None)
        shortened_copy.chain = list(chain)
        return shortened_copy

    def read_record(self, node: Node) -> records.Record:
        """Return the record of a node, read from disk.

        Raises SessionNotFound if the file has changed or no longer exists.
        """
        with open_transcript(self.file) as stream:
            return read_record(stream, node)


def read_record(stream: BinaryIO, node: Node) -> records.Record:
    """Return the record of a node, read from an open file.

    Raises SessionNotFound if the file has changed. For a node without a uuid, the function cannot
    detect this.
    """
    record = records.parse_record(
        Line(
            node.line_number, node.offset, read_exactly(stream, node.offset, node.line_length)
        ).body
    )
    if record is None or (node.uuid and not node.was_made_from(record)):
        raise SessionNotFound(f"{stream.name} changed while it was read", "Run the command again.")
    return record


class ScanStart(NamedTuple):
    """The line at which a scan starts. ``line_number`` is counted from 0."""

    offset: int
    line_number: int


def scan_transcript(
    file: str | SharedFile,
    tail_bytes: int = 0,
    observers: Sequence[RecordObserver] = (),
    start: ScanStart | None = None,
) -> Transcript:
    """Scan the lines of a transcript once.

    All lines are scanned, or the lines from ``start`` on, or the complete lines in the last
    ``tail_bytes`` bytes. ``observers`` are called for each record, so that no line is parsed twice.
    Raises SessionNotFound if the file cannot be read, and NotATranscript for a file of Codex.
    """
    transcript = Transcript(file)
    with open_transcript(file, SEARCH_CHUNK_BYTES) as stream, pause_garbage_collection():
        transcript.is_whole = (
            start is None and not 0 < tail_bytes < os.fstat(stream.fileno()).st_size
        )
        line = None
        if start is None:
            if transcript.is_whole:
                lines = read_lines(stream)
            else:
                lines = read_tail(stream, tail_bytes)
        else:
            stream.seek(start.offset)
            lines = read_lines(stream, start.offset, start.line_number)
        for line in lines:
            _process_line(transcript, line, observers)
        if line is not None:
            transcript.line_count, transcript.is_torn = line.number + 1, line.is_torn
            transcript.size = line.offset + len(line.raw)
    return transcript


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection, which would take a third of the time of a scan.

    A scan creates thousands of objects that are needed only briefly and contain no cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _process_line(transcript: Transcript, line: Line, observers: Sequence[RecordObserver]) -> None:
    # Copying every line would take about a tenth of a scan's time.
    raw = line.raw if line.offset else line.body
    if raw.isspace():
        return
    record = records.parse_record_strictly(raw)
    if record is None and (record := records.parse_record(raw)) is not None:
        transcript.lenient_lines.add(line.number)
    if record is None:
        if line.raw.strip():
            transcript.damaged_lines.append(line.number)
        return
    kind = records.get_kind(record)
    node = None
    if kind in records.CHAIN_RECORD_KINDS and isinstance(record.get("uuid"), str):
        node = make_node(record, line)
        node.is_copied = transcript.copies.is_copy_of_earlier_record(record)
        _link_node(transcript, node, record)
    else:
        records.reject_codex_rollout(record, transcript.path)
        transcript.metadata_counts[kind] = transcript.metadata_counts.get(kind, 0) + 1
        if kind == LAST_PROMPT and "leafUuid" in record:
            leaf = records.get_string(record, "leafUuid") or None
            transcript.checkpoint.process_last_prompt(
                leaf, is_rewind=record.get("explicit") is True
            )
    for observe in observers:
        observe(line, record, node)


def _link_node(transcript: Transcript, node: Node, record: records.Record) -> None:
    sent_uuid = record.get("sentAsUuid")
    if sent_uuid and isinstance(sent_uuid, str) and not transcript.contains_record(sent_uuid):
        # The answer to a queued prompt refers to the id under which the prompt was sent, so this id
        # is used.
        node.uuid, node.has_uuid_sent_to_api = (
            sent_uuid,
            True,
        )
    transcript.nodes.append(node)
    if not node.is_broken and node.kind != records.PROGRESS:
        transcript.checkpoint.process_node(node)
    if node.context_tokens and (model := records.answering_model(record)):
        transcript.models[model] = transcript.models.get(model, 0) + 1


_BRANCH_HINT_MARKER = f'"{LAST_PROMPT}"'.encode()
_BOUNDARY_SUBTYPE_MARKER = f'"{COMPACTION}"'.encode()

Observers = TypeVar("Observers", bound=Sequence[RecordObserver])


def scan_live_records(
    file: str | SharedFile, observers: Callable[[], Observers]
) -> tuple[Transcript, Observers]:
    """Scan the part of a file that the live chain needs. Return the transcript and its observers.

    In a large file, only the part since the last compaction is scanned, if this part is enough.
    Otherwise the whole file is scanned. Line numbers and offsets always refer to the whole file.
    Raises the errors of ``scan_transcript``.
    """
    with open_transcript(file) as stream:
        offset = _find_offset_of_live_part(stream)
        start = ScanStart(offset, LineNumbers(offset).find_line_number(stream, offset))
    live_observers = observers()
    if start.offset:
        live_part = scan_transcript(file, observers=live_observers, start=start)
        if can_find_branch_in_tail(live_part) and has_complete_beginning(
            live_part.chain, live_part
        ):
            return live_part, live_observers
        live_observers = observers()
    return scan_transcript(file, observers=live_observers), live_observers


def is_live_part_within_bytes(file: str | SharedFile, max_bytes: int) -> bool:
    """Check whether a session has at most ``max_bytes`` bytes since its last compaction.

    Only the end of the file is read.
    """
    with open_transcript(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        return (
            size <= max_bytes
            or size - _find_offset_of_live_part(stream, size - max_bytes) <= max_bytes
        )


def was_compacted(path: str) -> bool:
    """Check whether a session was compacted and its file contains earlier records.

    Raises SessionNotFound if the file cannot be read.
    """
    with open_transcript(path) as stream:
        return _find_last_compaction_and_offset(stream, os.fstat(stream.fileno()).st_size, 0)[1] > 0


def _find_offset_of_live_part(stream: BinaryIO, min_offset: int = 0) -> int:
    """Return the offset of the first record of the live part, or 0 if it is unknown.

    The live part includes the messages that the last compaction kept. Bytes before ``min_offset``
    are not searched.
    """
    size = os.fstat(stream.fileno()).st_size
    if size > MIN_SKIPPED_FILE_BYTES:
        boundary, offset = _find_last_compaction_and_offset(stream, size, min_offset)
    else:
        boundary, offset = (None, 0)
    if boundary is None:
        return 0
    if boundary.kept_segment is not None:
        if boundary.kept_segment.uuids:
            head = boundary.kept_segment.uuids[0]
        else:
            head = boundary.kept_segment.head_uuid
        offset = find_offset_of_last_line_containing(
            stream, b'"uuid":"%s"' % head.encode("utf-8", "replace"), offset, min_offset
        )
    return max(offset, 0)


def _find_last_compaction_and_offset(
    stream: BinaryIO, size: int, min_offset: int
) -> tuple[Node | None, int]:
    """Return the last boundary record and its offset, or None and -1.

    Records that only mention a boundary in a text are skipped.
    """
    offset = size
    while (
        offset := find_offset_of_last_line_containing(
            stream, _BOUNDARY_SUBTYPE_MARKER, offset, min_offset
        )
    ) >= 0:
        stream.seek(offset)
        line = Line(0, offset, stream.readline())
        record = parse_record(line.body)
        if record and record.get("type") == SYSTEM and isinstance(record.get("uuid"), str):
            node = make_node(record, line)
            if node.is_boundary and not node.is_sidechain:
                return node, offset
    return None, -1


def can_find_branch_in_tail(tail: Transcript) -> bool:
    """Check whether the end of a file is enough to find the branch that the client would choose."""
    nodes_by_id = tail.nodes_by_uuid
    for node in tail.nodes:
        if node.kept_segment and not nodes_by_id.keys() >= set(
            node.kept_segment.uuids or (node.kept_segment.head_uuid, node.kept_segment.tail_uuid)
        ):
            return False  # Messages that a compaction kept are in the part of the file that was not read.
    if tail.checkpoint.uuid:
        checkpoint_node = nodes_by_id.get(tail.checkpoint.uuid)
        return (
            checkpoint_node is not None
            and checkpoint_node.line_number > _find_last_boundary_line(tail)
        )
    if tail.checkpoint.has_branch_hint:
        return True
    dated_nodes = [
        node for node in tail.nodes if not node.is_sidechain and node.time_ms is not None
    ]
    if dated_nodes and max(dated_nodes, key=lambda node: node.time_ms or 0) is not dated_nodes[-1]:
        # The records are not in chronological order. Without a ``last-prompt`` record, the client
        # chooses the branch by the times of the records.
        return False
    return _find_last_boundary_line(tail) >= 0 or not _mentions_branches(tail.file)


def build_chain_if_tail_suffices(tail: Transcript) -> list[Node]:
    """Return the part of the live chain that is in the end of the file.

    Return an empty list if the end of the file is not enough to determine the chain.
    """
    chain = build_live_chain(tail.nodes, tail.checkpoint, tail.size, bridge_gaps=False)
    main_nodes = []
    for node in tail.nodes:
        if not node.is_sidechain and not node.is_broken and node.kind != PROGRESS:
            main_nodes.append(node)
    # If an earlier compaction kept messages, the client may choose a branch other than the last
    # one.
    is_certain = (
        tail.checkpoint.has_unfollowed_rewind
        or _find_last_boundary_line(tail) >= 0
        or (main_nodes and main_nodes[-1] in chain)
    )
    # A restored record without a parent would become a child of the kept messages.
    has_second_root = any(node.parent_uuid is None for node in chain[1:])
    if is_certain and not has_second_root:
        return chain
    return []


def has_complete_beginning(chain: list[Node], tail: Transcript) -> bool:
    """Check whether the chain starts at the last boundary, so that no earlier record belongs to it.

    Clients drop all records before this boundary.
    """
    if (
        not chain
        or chain[0].line_number != _find_last_boundary_line(tail)
        or chain[0].parent_uuid is not None
    ):
        return False
    if chain[0].kept_segment is None:
        return tail.size > MIN_SKIPPED_FILE_BYTES
    return RecordGraph(tail.nodes, tail.size).has_inserted_messages


def is_chain_after_boundary(chain: list[Node], tail: Transcript) -> bool:
    """Check whether all records of the chain follow the last boundary.

    If they do not, the whole file must be scanned.
    """
    boundary_line = _find_last_boundary_line(tail)
    return all(node.line_number >= boundary_line for node in chain)


def _find_last_boundary_line(tail: Transcript) -> int:
    return max((node.line_number for node in tail.nodes if node.is_boundary), default=-1)


def _mentions_branches(file: str | SharedFile) -> bool:
    """Check whether the file contains a ``last-prompt`` record, which may select the branch.

    Searching the bytes takes much less time than a scan.
    """
    with open_transcript(file) as stream:
        return (
            find_offset_of_last_line_containing(
                stream, _BRANCH_HINT_MARKER, os.fstat(stream.fileno()).st_size
            )
            >= 0
        )
