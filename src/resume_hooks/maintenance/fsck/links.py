"""Check the links between records: missing, later or circular parents, duplicate uuids, and branches.

A rewind also creates a branch that clients do not show. Therefore a branch is a defect only if it
is longer or newer than the branch that clients show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.maintenance.fsck.findings import Defect, DefectKind
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.chain import RecordGraph
from resume_hooks.transcripts.nodes import KeptSegment, Node, iterate_ancestors
from resume_hooks.transcripts.records import PROGRESS
from resume_hooks.transcripts.transcript import Transcript

HISTORY_CUT_DEFECT = DefectKind(
    "history-cut",
    "error",
    "Every client loads the conversation only from this record; earlier records are not sent.",
)
BRIDGED_PARENT_DEFECT = DefectKind(
    "parent-bridged",
    "warning",
    (
        "Clients up to 2.1.42 lose everything before this record; later clients continue at the "
        "record nearest in time."
    ),
)
MISSING_PARENT_DEFECT = DefectKind(
    "parent-missing",
    "warning",
    "Clients start the conversation at this record. The file contains no turns before it.",
)
MISSING_PARENT_OFF_BRANCH_DEFECT = DefectKind(
    "parent-missing-aside", "note", "The record is on no branch that a client would load."
)
PARENT_CYCLE_DEFECT = DefectKind(
    "parent-cycle",
    "error",
    (
        "Client 2.1.112 refuses the whole session; other clients end the conversation where the "
        "parent links form a circle."
    ),
)
LATER_PARENT_DEFECT = DefectKind(
    "parent-after-child", "note", "Harmless; Claude Code writes and loads such records."
)
REPEATED_UUID_DEFECT = DefectKind(
    "uuid-repeated",
    "error",
    "Clients use the last record with the uuid: the earlier record is not sent.",
    is_repairable=False,
)
REPEATED_RECORD_DEFECT = DefectKind(
    "record-repeated", "note", "The records have the same content; clients use the last one."
)


def defects_of_links(transcript: Transcript) -> Iterator[Defect]:
    """Yield a defect for every broken link of a transcript."""
    yield from _defects_of_chain(transcript)
    chain_ids = {node.uuid for node in transcript.chain}
    for node in transcript.nodes:
        parent = transcript.find_parent(node)
        if parent is not None and parent.line_number > node.line_number:
            yield LATER_PARENT_DEFECT.defect_in_node(
                node, f"Its parent is in record {parent.line_number}"
            )
        elif (
            node.parent_uuid
            and parent is None
            and node.uuid not in chain_ids
            and node.kind != PROGRESS
        ):
            yield MISSING_PARENT_OFF_BRANCH_DEFECT.defect_in_node(
                node, f"Its parent {node.parent_uuid} is not in the file"
            )
    yield from _find_parent_cycles(transcript)
    yield from _defects_of_repetitions(transcript)


def _defects_of_chain(transcript: Transcript) -> Iterator[Defect]:
    """Yield a defect for each gap in the live chain.

    Clients bridge a gap inside the chain. If the gap is at the start of the chain, everything
    before it is cut off from the conversation.
    """
    graph = RecordGraph(transcript.nodes, transcript.size)
    previous_node: Node | None = None
    for node in transcript.chain:
        if previous_node is None and not node.is_boundary and not graph.is_root(node):
            yield _defect_of_conversation_start(transcript, node)
        elif (
            previous_node is not None
            and node.parent_uuid is not None
            and transcript.find_parent(node) is None
        ):
            message = f"Its parent {node.parent_uuid} is not in the file; bridged to record {previous_node.line_number}"
            yield BRIDGED_PARENT_DEFECT.defect_in_node(node, message)
        previous_node = node


def _defect_of_conversation_start(transcript: Transcript, first_node: Node) -> Defect:
    chain_ids = {node.uuid for node in transcript.chain}
    lost_turns = sum(
        node.is_prompt and not node.is_sidechain and node.uuid not in chain_ids
        for node in transcript.nodes
        if node.line_number < first_node.line_number
    )
    lost_text = f"; {lost_turns} earlier turns are lost" if lost_turns else ""
    message = f"Its parent {first_node.parent_uuid} leads nowhere{lost_text}"
    return (HISTORY_CUT_DEFECT if lost_turns else MISSING_PARENT_DEFECT).defect_in_node(
        first_node, message
    )


def _find_parent_cycles(transcript: Transcript) -> Iterator[Defect]:
    """Yield a defect for each cycle of parents, at the cycle's first record in the file."""
    checked_ids: set[str] = set()
    for start in transcript.nodes:
        path: dict[str, None] = {}
        node: Node | None = start
        while node is not None and node.uuid not in checked_ids and node.uuid not in path:
            path[node.uuid] = None
            node = transcript.find_parent(node)
        if node is not None and node.uuid in path:
            circle = list(path)[list(path).index(node.uuid) :]
            first_node = min(
                (transcript.nodes_by_uuid[uuid] for uuid in circle),
                key=lambda circle_node: circle_node.line_number,
            )
            yield PARENT_CYCLE_DEFECT.defect_in_node(
                first_node, f"Its parents lead back to it through {len(circle)} records"
            )
        checked_ids.update(path)


def _defects_of_repetitions(transcript: Transcript) -> Iterator[Defect]:
    first_by_uuid: dict[str, Node] = {}
    for node in transcript.nodes:
        first_node = first_by_uuid.setdefault(node.uuid, node)
        if first_node is not node:
            is_same_message = transcript.read_record(first_node).get(
                "message"
            ) == transcript.read_record(node).get("message")
            kind = REPEATED_RECORD_DEFECT if is_same_message else REPEATED_UUID_DEFECT
            yield kind.defect_in_node(node, f"Record {first_node.line_number} has the same uuid")


INEFFECTIVE_COMPACTION_DEFECT = DefectKind(
    "compaction-undone",
    "warning",
    (
        "Clients send the compacted messages again, without the summary; in files over 5 MiB "
        "they lose these messages instead."
    ),
    is_repairable=False,
)
LOST_SEGMENT_DEFECT = DefectKind(
    "segment-lost",
    "error",
    ("Clients continue without the messages that the compaction kept: only the summary remains."),
)


def defects_of_compactions(transcript: Transcript) -> Iterator[Defect]:
    """Yield the defects of the main conversation's last compaction.

    Earlier compactions are not checked, because the last compaction cuts them off.
    """
    last_boundary = next(
        (node for node in reversed(transcript.nodes) if node.is_boundary and not node.is_sidechain),
        None,
    )
    if last_boundary is None:
        return
    if all(node.uuid != last_boundary.uuid for node in transcript.chain):
        yield from _defects_of_undone_compaction(transcript, last_boundary)
    elif last_boundary.kept_segment is not None:
        missing = describe_missing_messages(last_boundary.kept_segment, transcript.nodes_by_uuid)
        if missing:
            yield LOST_SEGMENT_DEFECT.defect_in_node(
                last_boundary,
                f"Of the messages that the compaction kept, these can't be found: {', '.join(missing)}",
            )


def describe_missing_messages(segment: KeptSegment, nodes: Mapping[str, Node]) -> list[str]:
    """Describe the messages that a compaction kept but that are not in the file.

    A missing record can also be one on the way to the first kept message, or the one to which the
    kept messages were attached.
    """
    if segment.anchor_uuid in nodes:
        missing = []
    else:
        missing = [f"the anchor {segment.anchor_uuid}"]
    if segment.uuids is not None:
        return missing + [uuid for uuid in segment.uuids if uuid not in nodes]
    if segment.head_uuid in list_ids_in_segment(segment, nodes):
        return missing
    return [*missing, f"the way to {segment.head_uuid}"]


def list_ids_in_segment(segment: KeptSegment, nodes: Mapping[str, Node]) -> list[str]:
    """Return the uuids of the records from a segment's head to its tail, oldest first.

    If the chain of parents from the tail does not lead to the head, return the uuids of the records
    in that chain.
    """
    uuids: list[str] = []
    for node in iterate_ancestors(
        nodes.get(segment.tail_uuid),
        lambda node: nodes.get(node.parent_uuid) if node.parent_uuid else None,
    ):
        uuids.append(node.uuid)
        if node.uuid == segment.head_uuid:
            break
    return uuids[::-1]


def _defects_of_undone_compaction(transcript: Transcript, last_boundary: Node) -> Iterator[Defect]:
    """Yield a defect if the conversation bypasses the last compaction.

    This is the case if a record after the compaction has a parent before it. If the user rewound
    the conversation to a point before the compaction, yield nothing.
    """
    for node in transcript.chain:
        parent = transcript.find_parent(node)
        if parent is not None and node.line_number > last_boundary.line_number > parent.line_number:
            message = (
                f"Its parent is record {parent.line_number}, "
                f"before the compaction in record {last_boundary.line_number}"
            )
            yield INEFFECTIVE_COMPACTION_DEFECT.defect_in_node(node, message)


LONGER_BRANCH_DEFECT = DefectKind(
    "branch-longer",
    "warning",
    "Clients show the shorter branch; with --branch UUID the repair keeps the longer branch.",
)
NEWER_BRANCH_DEFECT = DefectKind(
    "branch-newer",
    "error",
    (
        "Clients resume an older branch: the newest turns are not shown; with --branch UUID "
        "the repair keeps the newest turns."
    ),
)
DANGLING_LEAF_HINT_DEFECT = DefectKind(
    "leaf-hint-dangling",
    "warning",
    "Clients ignore the hint and continue from the file's last record.",
)
OUTDATED_LEAF_HINT_DEFECT = DefectKind(
    "leaf-hint-old",
    "warning",
    "Clients since 2.1.220 follow the hint and do not load the newest branch.",
)


class LeafHint(NamedTuple):
    """A ``last-prompt`` record, which is in the line ``line_number``.

    It names the record ``leaf_uuid`` as the last record of the conversation.
    """

    line_number: int
    leaf_uuid: str


class Branch(NamedTuple):
    """A branch that is not part of the live history.

    ``fork_node`` is the record of the live history at which the branch starts, or None if the branch
    does not start at such a record. ``leaf`` is the last record of the branch, and ``turn_count``
    is the number of its turns. ``live_turn_count`` is the number of turns of the live history after
    the fork.
    """

    leaf: Node
    fork_node: Node | None
    turn_count: int
    live_turn_count: int


class LiveHistory(NamedTuple):
    """The live conversation, including compacted records.

    ``nodes`` are its records on one path, oldest first. ``turn_counts_by_uuid`` maps the uuid of
    each of these records to the number of prompts up to it. ``live_uuids`` also contains the uuids
    of live records that are not on this path, for example of parallel calls.
    """

    nodes: Sequence[Node]
    turn_counts_by_uuid: Mapping[str, int]
    live_uuids: frozenset[str]

    @property
    def turn_count(self) -> int:
        """The number of turns in the whole history."""
        if self.nodes:
            return self.turn_counts_by_uuid[self.nodes[-1].uuid]
        return 0


def records_before_compactions(transcript: Transcript) -> dict[str, str]:
    """Map the uuid of each compaction's boundary to the uuid of the record before the compaction.

    The boundary usually names that record. Otherwise, the preceding message in the file is used.
    """
    records_before: dict[str, str] = {}
    last_message = ""
    for node in transcript.nodes:
        if node.is_boundary:
            records_before[node.uuid] = (
                node.logical_parent_uuid
                if node.logical_parent_uuid in transcript.nodes_by_uuid
                else last_message
            )
        elif node.is_message and not node.is_sidechain:
            last_message = node.uuid
    return records_before


def find_live_history(transcript: Transcript, records_before: Mapping[str, str]) -> LiveHistory:
    """Return the live history, by following it from its last record back through all compactions.

    ``records_before`` maps the uuid of each boundary to that of the record before the compaction.
    """
    chain = transcript.chain
    positions = {node.uuid: position for position, node in enumerate(chain)}

    def preceding_node(node: Node) -> Node | None:
        parent_id = node.parent_uuid or records_before.get(node.uuid)
        parent = transcript.nodes_by_uuid.get(parent_id) if parent_id else None
        return parent or (chain[positions[node.uuid] - 1] if positions.get(node.uuid) else None)

    path = list(iterate_ancestors(chain[-1] if chain else None, preceding_node))[::-1]
    turn_counts_by_uuid: dict[str, int] = {}
    count = 0
    for path_node in path:
        count += path_node.is_prompt
        turn_counts_by_uuid[path_node.uuid] = count
    return LiveHistory(
        path, turn_counts_by_uuid, frozenset(turn_counts_by_uuid) | frozenset(positions)
    )


def find_branches_off_live_chain(
    transcript: Transcript, records_before: Mapping[str, str]
) -> list[Branch]:
    """Return the branches that leave the live history and have at least one turn, in file order.

    If a branch divides into several branches, only the longest of these is returned.
    """
    live = find_live_history(transcript, records_before)
    depths = _BranchDepths(transcript.nodes_by_uuid, live, records_before)
    best_branches: dict[str, Branch] = {}
    for node in transcript.nodes:
        if not node.is_message or node.is_sidechain or node.uuid in live.live_uuids:
            continue
        first_id, fork_node, turns = depths.measure_depth(node)
        shared_turns = live.turn_counts_by_uuid.get(fork_node.uuid, 0) if fork_node else 0
        best_branch = best_branches.get(first_id)
        if turns and (
            best_branch is None
            or (turns, node.line_number) >= (best_branch.turn_count, best_branch.leaf.line_number)
        ):
            best_branches[first_id] = Branch(node, fork_node, turns, live.turn_count - shared_turns)
    return list(best_branches.values())


class _BranchDepth(NamedTuple):
    """The place of a record in its branch.

    ``first_id`` is the uuid of the branch's first record. ``fork_node`` is the record of the live history
    at which the branch starts, or None. ``turn_count`` is the number of turns up to the record.
    """

    first_id: str
    fork_node: Node | None
    turn_count: int


class _BranchDepths:
    """Finds the first record and the fork of each branch, and counts the turns up to each of its records."""

    def __init__(
        self, nodes: Mapping[str, Node], live: LiveHistory, records_before: Mapping[str, str]
    ) -> None:
        self._nodes = nodes
        self._live_history = live
        self._records_before = records_before
        self._depths: dict[str, _BranchDepth] = {}

    def measure_depth(self, node: Node) -> _BranchDepth:
        """Return the place of a record in its branch.

        The method follows the parents up to a record whose place is known. Then it goes
        back down and counts the turns. It is not recursive, because branches can be long.
        """
        pending_nodes: dict[str, Node] = {}
        ancestor: Node | None = node
        while (
            ancestor is not None
            and ancestor.uuid not in self._depths
            and ancestor.uuid not in self._live_history.live_uuids
        ):
            if ancestor.uuid in pending_nodes:
                ancestor = None
                break
            pending_nodes[ancestor.uuid] = ancestor
            ancestor = self._find_preceding_node(ancestor)
        if ancestor is not None and ancestor.uuid in self._depths:
            first_id, fork_node, turns = self._depths[ancestor.uuid]
        # Use the nearest record of the live history, because a record with a parallel call is not
        # on the live path.
        else:
            live_ancestors = (
                pending_node
                for pending_node in iterate_ancestors(ancestor, self._find_preceding_node)
                if pending_node.uuid in self._live_history.turn_counts_by_uuid
            )
            first_id, fork_node, turns = "", next(live_ancestors, None), 0
        for pending_node in reversed(pending_nodes.values()):
            first_id = first_id or pending_node.uuid
            turns += pending_node.is_prompt
            self._depths[pending_node.uuid] = _BranchDepth(first_id, fork_node, turns)
        return self._depths[node.uuid]

    def _find_preceding_node(self, node: Node) -> Node | None:
        parent_id = node.parent_uuid or self._records_before.get(node.uuid)
        if parent_id:
            return self._nodes.get(parent_id)
        return None


def defects_of_branches(transcript: Transcript, hints: Sequence[LeafHint]) -> Iterator[Defect]:
    """Yield a defect for each longer or newer branch than the live one, and for each wrong hint."""
    messages = [node for node in transcript.chain if node.is_message]
    if not messages:
        return
    last_message = messages[-1]
    has_newer = False
    for branch in find_branches_off_live_chain(transcript, records_before_compactions(transcript)):
        if branch.fork_node:
            fork_text = f"forks at record {branch.fork_node.line_number}"
        else:
            fork_text = "has no parent"
        message = (
            f"A branch of {format_count(branch.turn_count, 'turn')} ends here; it {fork_text}, and the "
            f"live branch has {format_count(branch.live_turn_count, 'turn')} since then"
        )
        if branch.leaf.line_number > last_message.line_number and (branch.leaf.time_ms or 0) > (
            last_message.time_ms or 0
        ):
            has_newer = True
            yield NEWER_BRANCH_DEFECT.defect_in_node(branch.leaf, message)
        elif branch.turn_count > branch.live_turn_count:
            yield LONGER_BRANCH_DEFECT.defect_in_node(branch.leaf, message)
    last_hint = hints[-1] if hints else None
    if last_hint and last_hint.leaf_uuid not in transcript.nodes_by_uuid:
        yield Defect(
            DANGLING_LEAF_HINT_DEFECT,
            f"It names {last_hint.leaf_uuid}, which is not in the file",
            last_hint.line_number,
        )
    elif (
        last_hint
        and has_newer
        and any(node.uuid == last_hint.leaf_uuid for node in transcript.chain)
    ):
        yield Defect(
            OUTDATED_LEAF_HINT_DEFECT,
            f"It names {last_hint.leaf_uuid}, which is not on the newest branch",
            last_hint.line_number,
        )
