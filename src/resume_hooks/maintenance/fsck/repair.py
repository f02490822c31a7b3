"""Make a repaired child: all reachable messages, in a form that clients and the API accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, NamedTuple

from resume_hooks import questions
from resume_hooks.derive import agents
from resume_hooks.derive.child.draft import make_draft
from resume_hooks.derive.child.inherited_metadata import copy_lines_after_chain
from resume_hooks.derive.child.rewrite_chain import ChainRewrite, plan_chain_rewrite
from resume_hooks.derive.child.write_child import ChildPlan, Sizes, Watcher
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.maintenance.fsck.damaged_bytes import (
    BAD_UTF8_DEFECT,
    LINE_FRAGMENT_DEFECT,
    TORN_LINE_DEFECT,
    UNREADABLE_LINE_DEFECT,
    salvage_nodes,
)
from resume_hooks.maintenance.fsck.diagnose import diagnose_session, examine_session
from resume_hooks.maintenance.fsck.findings import Defect, DefectReport
from resume_hooks.maintenance.fsck.links import (
    LONGER_BRANCH_DEFECT,
    LOST_SEGMENT_DEFECT,
    NEWER_BRANCH_DEFECT,
    REPEATED_UUID_DEFECT,
    list_ids_in_segment,
)
from resume_hooks.maintenance.fsck.messages import ALTERED_THINKING_DEFECT, remove_thinking
from resume_hooks.maintenance.fsck.sidecars import MISSING_OUTPUT_DEFECT
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_of_session, row_of_agent
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.chain import RecordGraph, build_live_chain, find_last_message
from resume_hooks.transcripts.context_size import measure_chain
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line, read_exactly
from resume_hooks.transcripts.nodes import Checkpoint, KeptSegment, Node
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import ASSISTANT, PROGRESS, Record, parse_record_strictly
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import CopyPreparationObserver

REPAIRED_CHILD_KIND: Final = "repair"

_LOSSY_DEFECT_KINDS = frozenset(
    {
        UNREADABLE_LINE_DEFECT,
        LINE_FRAGMENT_DEFECT,
        TORN_LINE_DEFECT,
        BAD_UTF8_DEFECT,
        REPEATED_UUID_DEFECT,
        LOST_SEGMENT_DEFECT,
        MISSING_OUTPUT_DEFECT,
    }
)
"""Kinds of defects that mean a loss of content, which a repair cannot restore."""


def build_repaired_chain(
    transcript: Transcript, nodes: Sequence[Node], branch: str | None = None
) -> list[Node]:
    """Return the chain to keep, oldest first, or an empty chain if no message can be reached.

    ``nodes`` are the transcript's nodes, including those found inside bad lines. The chain ends
    with the last message of the live chain. If ``branch`` is given, the chain ends with that
    record, or with the nearest message above it. Gaps are bridged as clients bridge them. A gap
    that clients do not bridge is bridged to the nearest earlier message of the main conversation.
    Raise UsageError if the file does not contain the record ``branch``.
    """
    parents = {node.uuid: node.parent_uuid for node in nodes}
    originals = []
    for node in nodes:
        if node.kind != PROGRESS and not node.is_broken:
            originals.append(node)
    copied_nodes = _link_usable_nodes([copy(node) for node in originals], parents)
    end = _find_end_of_branch(transcript, copied_nodes, branch)
    if end is None:
        return []
    remaining = list(copied_nodes)
    # A compaction on another branch can cut off the end of the chain. Then boundaries of
    # compactions are removed, the last one first, until a path of links leads to the end.
    while end.uuid not in RecordGraph(remaining, transcript.size).nodes:
        del remaining[
            next(
                position
                for position in range(len(remaining) - 1, -1, -1)
                if remaining[position].is_boundary
            )
        ]
    positions = {id(node): position for position, node in enumerate(copied_nodes)}
    chain = []
    for node in _build_chain_over_gaps(remaining, end, transcript.size):
        chain.append(originals[positions[id(node)]])
    return _make_line_numbers_unique(_move_late_results(chain), transcript.line_count)


def _link_usable_nodes(copied_nodes: list[Node], parents: Mapping[str, str | None]) -> list[Node]:
    """Link each node to its nearest usable ancestor, and skip progress records and broken records.

    Messages that a compaction kept but that are not in the file are removed from the compaction's
    list.
    """
    usable_nodes = {node.uuid: node for node in copied_nodes}
    for node in copied_nodes:
        visited: set[str] = set()
        parent = node.parent_uuid
        while (
            parent is not None
            and parent in parents
            and parent not in usable_nodes
            and parent not in visited
        ):
            visited.add(parent)
            parent = parents[parent]
        node.parent_uuid = parent
    for node in copied_nodes:
        if node.is_boundary and node.kept_segment is not None:
            node.kept_segment = _keep_existing_messages(node.kept_segment, usable_nodes, node)
    return copied_nodes


def _find_end_of_branch(
    transcript: Transcript, copied_nodes: Sequence[Node], branch: str | None
) -> Node | None:
    if branch is None:
        return find_last_message(RecordGraph(copied_nodes, transcript.size), transcript.checkpoint)
    nodes_by_uuid = {node.uuid: node for node in copied_nodes}
    node = nodes_by_uuid.get(branch)
    if node is None:
        raise UsageError(f"This session has no record {branch}", "Use a uuid that fsck names.")
    visited: set[str] = set()
    while node is not None and not node.is_message and node.uuid not in visited:
        visited.add(node.uuid)
        node = nodes_by_uuid.get(node.parent_uuid or "")
    return node


def _build_chain_over_gaps(nodes: Sequence[Node], end: Node, file_size: int) -> list[Node]:
    """Return the chain up to ``end``, with a bridge over each gap that clients would not bridge."""
    checkpoint = Checkpoint()
    checkpoint.process_last_prompt(end.uuid, is_rewind=True)
    chain: list[Node] = []
    while True:
        longer_chain = build_live_chain(nodes, checkpoint, file_size)
        if len(longer_chain) <= len(chain):
            return chain or longer_chain
        chain = longer_chain
        graph, first_node = RecordGraph(nodes, file_size), chain[0]
        previous_node = _find_nearest_message_before(graph, first_node, chain)
        if first_node.is_boundary or graph.is_root(first_node) or previous_node is None:
            return chain
        first_node.parent_uuid = previous_node.uuid


def _find_nearest_message_before(
    graph: RecordGraph, first_node: Node, chain: Sequence[Node]
) -> Node | None:
    """Return the main conversation's last message before ``first_node`` in the file, or None.

    Messages that are already on the chain are skipped.
    """
    chain_ids = {node.uuid for node in chain}
    earlier_nodes = (
        node
        for node in graph.nodes.values()
        if node.line_number < first_node.line_number
        and (node.is_message or node.is_boundary)
        and not node.is_sidechain
    )
    return max(
        (node for node in earlier_nodes if node.uuid not in chain_ids),
        key=lambda node: node.line_number,
        default=None,
    )


def _keep_existing_messages(
    segment: KeptSegment, nodes_by_uuid: Mapping[str, Node], boundary: Node
) -> KeptSegment:
    """Return the segment of messages that a compaction kept, without messages missing in the file.

    If the segment's anchor is missing, the summary after the compaction becomes the anchor.
    """
    uuids = (
        segment.uuids if segment.uuids is not None else list_ids_in_segment(segment, nodes_by_uuid)
    )
    anchor = segment.anchor_uuid
    if anchor not in nodes_by_uuid:
        anchor = next(
            (node.uuid for node in nodes_by_uuid.values() if node.parent_uuid == boundary.uuid),
            boundary.uuid,
        )
    return KeptSegment(anchor, "", "", tuple(uuid for uuid in uuids if uuid in nodes_by_uuid))


def _move_late_results(chain: Sequence[Node]) -> list[Node]:
    """Move each result that comes after a later answer up to its call. Clients do not send late results."""
    moved_chain: list[Node] = []
    callers: dict[str, Node] = {}
    answer: Node | None = None
    for node in chain:
        caller = next((callers[call] for call in node.answered_call_ids if call in callers), None)
        if caller is not None and answer is not None and answer.message_id != caller.message_id:
            position = moved_chain.index(caller) + 1
            while position < len(moved_chain) and (
                moved_chain[position].answered_call_ids
                or moved_chain[position].message_id == caller.message_id
            ):
                position += 1
            moved_chain.insert(position, node)
            continue
        moved_chain.append(node)
        if node.kind == ASSISTANT:
            answer = node
        callers.update(dict.fromkeys(node.call_ids, node))
    return moved_chain


def _make_line_numbers_unique(chain: list[Node], line_count: int) -> list[Node]:
    """Give records from the same line different numbers. New numbers are higher than all line numbers.

    An edit refers to a record by its line number, so each record needs its own number.
    """
    used_numbers: set[int] = set()
    for node in chain:
        if node.line_number in used_numbers:
            node.line_number = line_count + len(used_numbers)
        used_numbers.add(node.line_number)
    return chain


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan(ChildPlan):
    """The plan for a repaired child. ``losses`` describes the content that the child cannot keep."""

    body: ChainRewrite
    report: DefectReport
    losses: tuple[str, ...]

    def watchers(self) -> Sequence[Watcher]:
        """Return a watcher for the new file, which checks that it contains all records that must be kept."""
        return [_RecordsWatcher(self.body)]


class SessionRepair(NamedTuple):
    """A repaired child, its parent's defects, and descriptions of the content that the child cannot keep."""

    child: ChildPlan
    report: DefectReport
    losses: tuple[str, ...]


def plan_repair_of_any_agent(
    session: SessionFile, where: Where, branch: str | None = None
) -> SessionRepair:
    """Plan a repaired child of a session of any agent. Raise the same errors as ``plan_repair``."""
    agent = agent_of_session(session, where)
    if agent.name == CLAUDE_NAME:
        repair_plan = plan_repair(session, where, branch=branch)
        return SessionRepair(repair_plan, repair_plan.report, repair_plan.losses)
    if branch is not None:
        raise UsageError(f"A {agent.label} session has no other branch", "Leave --branch out.")
    report, agent_row = examine_session(session, where), row_of_agent(agent.name)
    lost_defects: list[Defect] = []
    if agent_row.loss_checker_entry_point:
        is_loss = questions.is_content_loss.load_function(
            agent_row.part, agent_row.loss_checker_entry_point
        )
        for group in report.groups:
            if is_loss(group.kind):
                lost_defects += group.defects
    return SessionRepair(
        agents.load_foreign_writer(session.agent, where).plan_repair(session),
        report,
        tuple(map(describe_defect, lost_defects)),
    )


def plan_repair(
    session: SessionFile, where: Where, *, branch: str | None = None, output_dir: str | None = None
) -> RepairPlan:
    """Plan a repaired child of a Claude Code session.

    Raise UsageError for an unknown branch, or ResumeHooksError if no message can be reached.
    """
    write_scan = CopyPreparationObserver()
    transcript, report = diagnose_session(session, where, [write_scan])
    chain = build_repaired_chain(transcript, salvage_nodes(transcript), branch)
    if not any(node.is_message for node in chain):
        raise ResumeHooksError(
            "There is nothing to repair: no message of this session can be reached"
        )
    # This transcript reads the same file, but it contains the repaired conversation.
    repaired_transcript = Transcript(transcript.path)
    repaired_transcript.nodes, repaired_transcript.size, repaired_transcript.line_count = (
        chain,
        transcript.size,
        transcript.line_count,
    )
    repaired_transcript.chain, repaired_transcript.lenient_lines = (
        chain,
        set(transcript.lenient_lines),
    )
    _scan_salvaged_records(repaired_transcript, write_scan)
    ends = HeadTail(session.path)
    child = make_draft(session, ends, REPAIRED_CHILD_KIND, where, output_dir)
    tokens_before, tokens_after = _count_tokens(session.path, transcript.chain, chain)
    stated_size = tokens.read_size_stated_in_first_line(session.path)
    rewrite = plan_chain_rewrite(
        child,
        repaired_transcript,
        write_scan,
        first_line=child.make_first_line(
            ChildSize(
                tokens_after,
                stated_size.characters_per_token,
                tokens.detect_large_window(session.path, tokens_before),
            )
            if stated_size
            else None
        ),
        lineage=child.lineage_text,
        edits=dict.fromkeys(_find_records_with_altered_thinking(report), remove_thinking),
        metadata_lines=copy_lines_after_chain(
            repaired_transcript, write_scan, ends, child.session_id
        ),
        clears_token_counts=False,
    )
    losses = tuple(_describe_losses(report, rewrite, chain))
    return RepairPlan(
        draft=child,
        body=rewrite,
        sizes=Sizes(tokens_before, tokens_after),
        report=report,
        losses=losses,
    )


def _find_records_with_altered_thinking(report: DefectReport) -> Iterator[int]:
    for group in report.groups:
        if group.kind == ALTERED_THINKING_DEFECT:
            for finding in group.defects:
                if finding.record_number is not None:
                    yield finding.record_number


class _RecordsWatcher:
    """Checks that every record that the repair does not edit was written."""

    def __init__(self, rewrite: ChainRewrite) -> None:
        self._missing_uuids = {
            node.uuid
            for node in rewrite.linear_chain.nodes
            if node.line_number not in rewrite.edits
        }

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        if node is not None:
            self._missing_uuids.discard(node.uuid)

    def run_checks(self) -> list[Check]:
        """Return the check that no record is missing."""
        return [Check("all records that had to be kept were written", not self._missing_uuids)]


def _count_tokens(path: str, live_chain_nodes: list[Node], chain: list[Node]) -> tuple[int, int]:
    """Return the token counts of a session and of its repaired child.

    If the API's counts cannot be used, for example for a trimmed session, the difference is
    estimated from the numbers of characters.
    """
    counted_tokens, spoken_tokens = tokens.count_and_estimate_tokens(chain)
    if not live_chain_nodes:
        return 0, counted_tokens or spoken_tokens
    tokens_before = measure_chain(path, live_chain_nodes)[0].tokens
    if counted_tokens:
        return tokens_before, counted_tokens + spoken_tokens
    return tokens_before, max(
        0, tokens_before + spoken_tokens - sum(tokens.count_and_estimate_tokens(live_chain_nodes))
    )


def _scan_salvaged_records(
    repaired_transcript: Transcript, write_scan: CopyPreparationObserver
) -> None:
    """Pass the records that were found inside bad lines to the scan's observer.

    Each record has the line number that it has in the repaired chain.
    """
    with open(repaired_transcript.path, "rb") as stream:
        for node in repaired_transcript.chain:
            raw = read_exactly(stream, node.offset, node.line_length)
            if not raw.endswith(b"\n"):
                if parse_record_strictly(raw) is None:
                    repaired_transcript.lenient_lines.add(node.line_number)
                write_scan(
                    Line(node.line_number, node.offset, raw),
                    repaired_transcript.read_record(node),
                    node,
                )


def _describe_losses(
    report: DefectReport, rewrite: ChainRewrite, chain: Sequence[Node]
) -> list[str]:
    kept_ids = {node.uuid for node in chain}
    texts = []
    for group in report.groups:
        for finding in group.defects:
            if group.kind in _LOSSY_DEFECT_KINDS or (
                group.kind in {LONGER_BRANCH_DEFECT, NEWER_BRANCH_DEFECT}
                and finding.uuid not in kept_ids
            ):
                texts.append(describe_defect(finding))
    for number, calls in rewrite.linear_chain.dropped_call_ids.items():
        texts.append(
            f"record {number}: omitted, because its counterpart is missing: "
            f"{', '.join(sorted(calls))}"
        )
    return texts


def describe_defect(finding: Defect) -> str:
    """Return a description of a defect, including its record."""
    if finding.record_number is None:
        return finding.message
    return f"record {finding.record_number}: {finding.message}"
