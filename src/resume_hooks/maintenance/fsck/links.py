"""The links between records: missing, later or circular parents, repeated ids, and branches.

A rewind also creates a branch that clients do not show. Therefore only a branch that is longer or
newer than the shown branch is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.maintenance.fsck.findings import Defect, Kind
from resume_hooks.transcripts.chain import RecordGraph
from resume_hooks.transcripts.nodes import KeptSegment, Node, walk_up
from resume_hooks.transcripts.records import PROGRESS
from resume_hooks.transcripts.transcript import Transcript

HISTORY_CUT = Kind(
    "history-cut",
    "error",
    "Every client loads the conversation only from this record; earlier records are not sent.",
)
BRIDGED_PARENT = Kind(
    "parent-bridged",
    "warning",
    (
        "Clients up to 2.1.42 lose everything before it; later ones continue at the record "
        "nearest in time."
    ),
)
MISSING_PARENT = Kind(
    "parent-missing",
    "warning",
    "Clients start the conversation here. Nothing before it is in this file.",
)
MISSING_PARENT_ASIDE = Kind(
    "parent-missing-aside", "note", "The record is on no branch that a client would load."
)
PARENT_CYCLE = Kind(
    "parent-cycle",
    "error",
    (
        "Client 2.1.112 refuses the whole session; others end the conversation where the "
        "circle closes."
    ),
)
LATER_PARENT = Kind(
    "parent-after-child", "note", "Harmless; Claude Code writes and loads such records."
)
REPEATED_UUID = Kind(
    "uuid-repeated", "error", "The last one wins: the earlier record is not sent.", repairable=False
)
REPEATED_RECORD = Kind("record-repeated", "note", "The last one wins; both have the same content.")


def defects_of_links(transcript: Transcript) -> Iterator[Defect]:
    """Yield every broken link of a transcript."""
    yield from _defects_of_chain(transcript)
    on_chain = {node.uuid for node in transcript.chain}
    for node in transcript.nodes:
        parent = transcript.parent(node)
        if parent is not None and parent.number > node.number:
            yield LATER_PARENT.in_node(node, f"Its parent is in record {parent.number}")
        elif node.parent and parent is None and node.uuid not in on_chain and node.kind != PROGRESS:
            yield MISSING_PARENT_ASIDE.in_node(node, f"Its parent {node.parent} is not in the file")
    yield from _defects_of_circles(transcript)
    yield from _defects_of_repetitions(transcript)


def _defects_of_chain(transcript: Transcript) -> Iterator[Defect]:
    """Yield the gaps of the live chain. Clients bridge gaps inside it; a gap at its start is a cut."""
    graph = RecordGraph(transcript.nodes, transcript.size)
    previous: Node | None = None
    for node in transcript.chain:
        if previous is None and not node.boundary and not graph.is_root(node):
            yield _defect_of_start(transcript, node)
        elif previous is not None and node.parent is not None and transcript.parent(node) is None:
            message = (
                f"Its parent {node.parent} is not in the file; bridged to record {previous.number}"
            )
            yield BRIDGED_PARENT.in_node(node, message)
        previous = node


def _defect_of_start(transcript: Transcript, first: Node) -> Defect:
    on_chain = {node.uuid for node in transcript.chain}
    lost = sum(
        node.prompt and not node.sidechain and node.uuid not in on_chain
        for node in transcript.nodes
        if node.number < first.number
    )
    tail = f"; {lost} earlier turns are lost" if lost else ""
    message = f"Its parent {first.parent} leads nowhere{tail}"
    return (HISTORY_CUT if lost else MISSING_PARENT).in_node(first, message)


def _defects_of_circles(transcript: Transcript) -> Iterator[Defect]:
    """Yield a finding for each circle, at its first record in the file."""
    checked: set[str] = set()
    for start in transcript.nodes:
        path: dict[str, None] = {}
        node: Node | None = start
        while node is not None and node.uuid not in checked and node.uuid not in path:
            path[node.uuid] = None
            node = transcript.parent(node)
        if node is not None and node.uuid in path:
            circle = list(path)[list(path).index(node.uuid) :]
            first = min(
                (transcript.by_uuid[uuid] for uuid in circle), key=lambda found: found.number
            )
            yield PARENT_CYCLE.in_node(
                first, f"Its parents lead back to it through {len(circle)} records"
            )
        checked.update(path)


def _defects_of_repetitions(transcript: Transcript) -> Iterator[Defect]:
    first_by_uuid: dict[str, Node] = {}
    for node in transcript.nodes:
        first_node = first_by_uuid.setdefault(node.uuid, node)
        if first_node is not node:
            same = transcript.read(first_node).get("message") == transcript.read(node).get(
                "message"
            )
            kind = REPEATED_RECORD if same else REPEATED_UUID
            yield kind.in_node(node, f"Record {first_node.number} has the same uuid")


UNDONE_COMPACTION = Kind(
    "compaction-undone",
    "warning",
    (
        "Clients send what it dropped again, without its summary; in files over 5 MiB they "
        "lose that instead."
    ),
    repairable=False,
)
LOST_SEGMENT = Kind(
    "segment-lost",
    "error",
    (
        "Clients go on without the messages that the compaction kept: the summary alone is "
        "left of them."
    ),
)


def defects_of_compactions(transcript: Transcript) -> Iterator[Defect]:
    """Yield the defects of the main conversation's last compaction, which cuts off the earlier compactions."""
    last = next(
        (node for node in reversed(transcript.nodes) if node.boundary and not node.sidechain), None
    )
    if last is None:
        return
    if all(node.uuid != last.uuid for node in transcript.chain):
        yield from _defects_of_undone(transcript, last)
    elif last.segment is not None:
        missing = missing_marks(last.segment, transcript.by_uuid)
        if missing:
            yield LOST_SEGMENT.in_node(
                last, f"{', '.join(missing)} of the messages that it kept can't be found"
            )


def missing_marks(segment: KeptSegment, nodes: Mapping[str, Node]) -> list[str]:
    """Return a description of the lost marks of kept messages."""
    if segment.anchor in nodes:
        missing = []
    else:
        missing = [f"the anchor {segment.anchor}"]
    if segment.uuids is not None:
        return missing + [uuid for uuid in segment.uuids if uuid not in nodes]
    if segment.head in walk_segment(segment, nodes):
        return missing
    return [*missing, f"the way to {segment.head}"]


def walk_segment(segment: KeptSegment, nodes: Mapping[str, Node]) -> list[str]:
    """Return the records from a segment's head to its tail, or as many as can be reached from the tail.

    The oldest comes first.
    """
    uuids: list[str] = []
    for node in walk_up(
        nodes.get(segment.tail), lambda node: nodes.get(node.parent) if node.parent else None
    ):
        uuids.append(node.uuid)
        if node.uuid == segment.head:
            break
    return uuids[::-1]


def _defects_of_undone(transcript: Transcript, last: Node) -> Iterator[Defect]:
    """Yield the record that bypasses the compaction.

    Yield nothing if the user rewound the conversation to a point before the compaction.
    """
    for node in transcript.chain:
        parent = transcript.parent(node)
        if parent is not None and node.number > last.number > parent.number:
            message = f"Its parent is record {parent.number}, before the compaction in record {last.number}"
            yield UNDONE_COMPACTION.in_node(node, message)


LONGER_BRANCH = Kind(
    "branch-longer",
    "warning",
    "Clients show the shorter branch; with --branch UUID the repair keeps the longer one.",
)
NEWER_BRANCH = Kind(
    "branch-newer",
    "error",
    (
        "Clients resume an older branch: the newest turns are not shown; with --branch UUID "
        "the repair keeps them."
    ),
)
DANGLING_HINT = Kind(
    "leaf-hint-dangling",
    "warning",
    "Clients ignore the hint and continue from the file's last record.",
)
OLD_HINT = Kind(
    "leaf-hint-old",
    "warning",
    "Clients since 2.1.220 follow the hint, away from the newest branch.",
)


class LeafHint(NamedTuple):
    """A ``last-prompt`` record, in line ``record``, that names the conversation's end."""

    record: int
    leaf: str


class Branch(NamedTuple):
    """A branch off the live history: its last message, its turns, and the live turns after the fork."""

    leaf: Node
    fork: Node | None
    turns: int
    live_turns: int


class LiveHistory(NamedTuple):
    """The live conversation with compacted records, oldest first; ``turns`` counts the prompts up to each record."""

    path: Sequence[Node]
    turns: Mapping[str, int]
    live: frozenset[str]

    @property
    def whole(self) -> int:
        """The number of all turns."""
        if self.path:
            return self.turns[self.path[-1].uuid]
        return 0


def records_before_compactions(transcript: Transcript) -> dict[str, str]:
    """Return the record before each compaction: the one that its boundary names, else the previous message."""
    records_before: dict[str, str] = {}
    last_message = ""
    for node in transcript.nodes:
        if node.boundary:
            records_before[node.uuid] = (
                node.logical if node.logical in transcript.by_uuid else last_message
            )
        elif node.spoken and not node.sidechain:
            last_message = node.uuid
    return records_before


def live_history(transcript: Transcript, records_before: Mapping[str, str]) -> LiveHistory:
    """Walk back from the live end through compactions; ``records_before`` maps boundaries to the record before them."""
    chain = transcript.chain
    positions = {node.uuid: place for place, node in enumerate(chain)}

    def node_above(node: Node) -> Node | None:
        parent_id = node.parent or records_before.get(node.uuid)
        parent = transcript.by_uuid.get(parent_id) if parent_id else None
        return parent or (chain[positions[node.uuid] - 1] if positions.get(node.uuid) else None)

    path = list(walk_up(chain[-1] if chain else None, node_above))[::-1]
    turns: dict[str, int] = {}
    count = 0
    for each in path:
        count += each.prompt
        turns[each.uuid] = count
    return LiveHistory(path, turns, frozenset(turns) | frozenset(positions))


def branches_off_live(transcript: Transcript, records_before: Mapping[str, str]) -> list[Branch]:
    """Return the branches off the live history that have a turn, each with its longest end, in file order."""
    live = live_history(transcript, records_before)
    depth = _Depth(transcript.by_uuid, live, records_before)
    best: dict[str, Branch] = {}
    for node in transcript.nodes:
        if not node.spoken or node.sidechain or node.uuid in live.live:
            continue
        top, fork, turns = depth.measure_depth(node)
        shared_turns = live.turns.get(fork.uuid, 0) if fork else 0
        best_known = best.get(top)
        if turns and (
            best_known is None or (turns, node.number) >= (best_known.turns, best_known.leaf.number)
        ):
            best[top] = Branch(node, fork, turns, live.whole - shared_turns)
    return list(best.values())


class _Depth:
    """The depth of each record in its branch: the branch's first record, its fork, and its turns so far."""

    def __init__(
        self, nodes: Mapping[str, Node], live: LiveHistory, before: Mapping[str, str]
    ) -> None:
        self._nodes = nodes
        self._live = live
        self._before = before
        self._known: dict[str, tuple[str, Node | None, int]] = {}

    def measure_depth(self, node: Node) -> tuple[str, Node | None, int]:
        """Walk up to a record with a known depth, then count down again.

        It does not recurse, because branches are long.
        """
        pending: dict[str, Node] = {}
        above: Node | None = node
        while (
            above is not None
            and above.uuid not in self._known
            and above.uuid not in self._live.live
        ):
            if above.uuid in pending:
                above = None
                break
            pending[above.uuid] = above
            above = self._above(above)
        if above is not None and above.uuid in self._known:
            top, fork, turns = self._known[above.uuid]
        # use the nearest record of the live history, because a parallel call is not on the live
        # path
        else:
            on_path = (
                each for each in walk_up(above, self._above) if each.uuid in self._live.turns
            )
            top, fork, turns = "", next(on_path, None), 0
        for each in reversed(pending.values()):
            top = top or each.uuid
            turns += each.prompt
            self._known[each.uuid] = (top, fork, turns)
        return self._known[node.uuid]

    def _above(self, node: Node) -> Node | None:
        parent_id = node.parent or self._before.get(node.uuid)
        if parent_id:
            return self._nodes.get(parent_id)
        return None


def defects_of_branches(transcript: Transcript, hints: Sequence[LeafHint]) -> Iterator[Defect]:
    """Yield branches that are longer or newer than the live branch, and hints that point to another branch."""
    spoken = [node for node in transcript.chain if node.spoken]
    if not spoken:
        return
    end = spoken[-1]
    has_newer = False
    for branch in branches_off_live(transcript, records_before_compactions(transcript)):
        if branch.fork:
            start = f"forks at record {branch.fork.number}"
        else:
            start = "has no parent"
        message = (
            f"{branch.turns} turns end here; the branch {start}, the live one has "
            f"{branch.live_turns} since"
        )
        if branch.leaf.number > end.number and (branch.leaf.time_ms or 0) > (end.time_ms or 0):
            has_newer = True
            yield NEWER_BRANCH.in_node(branch.leaf, message)
        elif branch.turns > branch.live_turns:
            yield LONGER_BRANCH.in_node(branch.leaf, message)
    last = hints[-1] if hints else None
    if last and last.leaf not in transcript.by_uuid:
        yield Defect(DANGLING_HINT, f"It names {last.leaf}, which is not in the file", last.record)
    elif last and has_newer and any(node.uuid == last.leaf for node in transcript.chain):
        yield Defect(
            OLD_HINT, f"It names {last.leaf}, which is not on the newest branch", last.record
        )
