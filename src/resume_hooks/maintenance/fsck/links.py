"""The links between records: missing, later or circular parents, repeated ids, and branches.

A rewind also leaves a branch that clients do not show, so only a branch that is longer or newer
than the shown one is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.maintenance.fsck.findings import Defect, Kind
from resume_hooks.transcripts.chain import Graph
from resume_hooks.transcripts.nodes import KeptSegment, Node, ancestors
from resume_hooks.transcripts.records import PROGRESS
from resume_hooks.transcripts.transcript import Transcript

CUT = Kind(
    "history-cut",
    "error",
    "Every client loads the conversation only from this record; earlier records are not sent.",
)
BRIDGED = Kind(
    "parent-bridged",
    "warning",
    (
        "Clients up to 2.1.42 lose everything before it; later ones continue at the record "
        "nearest in time."
    ),
)
DANGLING = Kind(
    "parent-missing",
    "warning",
    "Clients start the conversation here. Nothing before it is in this file.",
)
ASIDE = Kind("parent-missing-aside", "note", "The record is on no branch that a client would load.")
CYCLE = Kind(
    "parent-cycle",
    "error",
    (
        "Client 2.1.112 refuses the whole session; others end the conversation where the "
        "circle closes."
    ),
)
LATER = Kind("parent-after-child", "note", "Harmless; Claude Code writes and loads such records.")
TWICE = Kind(
    "uuid-repeated", "error", "The last one wins: the earlier record is not sent.", repairable=False
)
COPY = Kind("record-repeated", "note", "The last one wins; both have the same content.")


def defects_of_links(transcript: Transcript) -> Iterator[Defect]:
    """Yield every broken link of a transcript."""
    yield from _defects_of_chain(transcript)
    on_chain = {node.uuid for node in transcript.chain}
    for node in transcript.nodes:
        above = transcript.parent(node)
        if above is not None and above.number > node.number:
            yield LATER.in_node(node, f"Its parent is in record {above.number}")
        elif node.parent and above is None and node.uuid not in on_chain and node.kind != PROGRESS:
            yield ASIDE.in_node(node, f"Its parent {node.parent} is not in the file")
    yield from _defects_of_circles(transcript)
    yield from _defects_of_repetitions(transcript)


def _defects_of_chain(transcript: Transcript) -> Iterator[Defect]:
    """Yield the gaps of the live chain: those inside it are bridged, one at its start is a cut."""
    graph = Graph(transcript.nodes, transcript.size)
    before: Node | None = None
    for node in transcript.chain:
        if before is None and not node.boundary and not graph.is_root(node):
            yield _defect_of_start(transcript, node)
        elif before is not None and node.parent is not None and transcript.parent(node) is None:
            message = (
                f"Its parent {node.parent} is not in the file; bridged to record {before.number}"
            )
            yield BRIDGED.in_node(node, message)
        before = node


def _defect_of_start(transcript: Transcript, first: Node) -> Defect:
    on_chain = {node.uuid for node in transcript.chain}
    lost = sum(
        node.prompt and not node.sidechain and node.uuid not in on_chain
        for node in transcript.nodes
        if node.number < first.number
    )
    tail = f"; {lost} earlier turns are lost" if lost else ""
    message = f"Its parent {first.parent} leads nowhere{tail}"
    return (CUT if lost else DANGLING).in_node(first, message)


def _defects_of_circles(transcript: Transcript) -> Iterator[Defect]:
    """Yield a finding for each circle, at its first record in the file."""
    settled: set[str] = set()
    for start in transcript.nodes:
        path: dict[str, None] = {}
        node: Node | None = start
        while node is not None and node.uuid not in settled and node.uuid not in path:
            path[node.uuid] = None
            node = transcript.parent(node)
        if node is not None and node.uuid in path:
            round_trip = list(path)[list(path).index(node.uuid) :]
            first = min(
                (transcript.by_uuid[uuid] for uuid in round_trip), key=lambda found: found.number
            )
            yield CYCLE.in_node(
                first, f"Its parents lead back to it through {len(round_trip)} records"
            )
        settled.update(path)


def _defects_of_repetitions(transcript: Transcript) -> Iterator[Defect]:
    seen: dict[str, Node] = {}
    for node in transcript.nodes:
        first = seen.setdefault(node.uuid, node)
        if first is not node:
            same = transcript.read(first).get("message") == transcript.read(node).get("message")
            kind = COPY if same else TWICE
            yield kind.in_node(node, f"Record {first.number} has the same uuid")


UNDONE = Kind(
    "compaction-undone",
    "warning",
    (
        "Clients send what it dropped again, without its summary; in files over 5 MiB they "
        "lose that instead."
    ),
    repairable=False,
)
MARKS_LOST = Kind(
    "segment-lost",
    "error",
    (
        "Clients go on without the messages that the compaction kept: the summary alone is "
        "left of them."
    ),
)


def defects_of_compactions(transcript: Transcript) -> Iterator[Defect]:
    """Yield the defects of the main conversation's last compaction, which cuts off the earlier ones."""
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
            yield MARKS_LOST.in_node(
                last, f"{', '.join(missing)} of the messages that it kept can't be found"
            )


def missing_marks(segment: KeptSegment, nodes: Mapping[str, Node]) -> list[str]:
    """Return the lost marks of kept messages in words."""
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
    found: list[str] = []
    for node in ancestors(
        nodes.get(segment.tail), lambda node: nodes.get(node.parent) if node.parent else None
    ):
        found.append(node.uuid)
        if node.uuid == segment.head:
            break
    return found[::-1]


def _defects_of_undone(transcript: Transcript, last: Node) -> Iterator[Defect]:
    """Yield the record that bypasses the compaction.

    There is none if the user rewound the conversation to before it.
    """
    for node in transcript.chain:
        before = transcript.parent(node)
        if before is not None and node.number > last.number > before.number:
            message = f"Its parent is record {before.number}, before the compaction in record {last.number}"
            yield UNDONE.in_node(node, message)


LONGER = Kind(
    "branch-longer",
    "warning",
    "Clients show the shorter branch; with --branch UUID the repair keeps the longer one.",
)
NEWER = Kind(
    "branch-newer",
    "error",
    (
        "Clients resume an older branch: the newest turns are not shown; with --branch UUID "
        "the repair keeps them."
    ),
)
HINT_LOST = Kind(
    "leaf-hint-dangling",
    "warning",
    "Clients ignore the hint and continue from the file's last record.",
)
HINT_OLD = Kind(
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
    """Return the record before each compaction: the one in its boundary, else the previous message in the file."""
    found: dict[str, str] = {}
    last = ""
    for node in transcript.nodes:
        if node.boundary:
            found[node.uuid] = node.logical if node.logical in transcript.by_uuid else last
        elif node.spoken and not node.sidechain:
            last = node.uuid
    return found


def live_history(transcript: Transcript, before: Mapping[str, str]) -> LiveHistory:
    """Walk from the live end back through compactions; ``before`` has the record before each boundary."""
    chain = transcript.chain
    places = {node.uuid: place for place, node in enumerate(chain)}

    def above(node: Node) -> Node | None:
        named = node.parent or before.get(node.uuid)
        found = transcript.by_uuid.get(named) if named else None
        return found or (chain[places[node.uuid] - 1] if places.get(node.uuid) else None)

    path = list(ancestors(chain[-1] if chain else None, above))[::-1]
    turns: dict[str, int] = {}
    count = 0
    for each in path:
        count += each.prompt
        turns[each.uuid] = count
    return LiveHistory(path, turns, frozenset(turns) | frozenset(places))


def branches_off_live(transcript: Transcript, before: Mapping[str, str]) -> list[Branch]:
    """Return the branches off the live history that have a turn, each with its longest end, in file order."""
    live = live_history(transcript, before)
    depth = _Depth(transcript.by_uuid, live, before)
    best: dict[str, Branch] = {}
    for node in transcript.nodes:
        if not node.spoken or node.sidechain or node.uuid in live.live:
            continue
        top, fork, turns = depth.measure_depth(node)
        shared = live.turns.get(fork.uuid, 0) if fork else 0
        known = best.get(top)
        if turns and (known is None or (turns, node.number) >= (known.turns, known.leaf.number)):
            best[top] = Branch(node, fork, turns, live.whole - shared)
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
        # else the nearest record of the walked history, because a parallel call is not on its path
        else:
            on_path = (
                each for each in ancestors(above, self._above) if each.uuid in self._live.turns
            )
            top, fork, turns = "", next(on_path, None), 0
        for each in reversed(pending.values()):
            top = top or each.uuid
            turns += each.prompt
            self._known[each.uuid] = (top, fork, turns)
        return self._known[node.uuid]

    def _above(self, node: Node) -> Node | None:
        named = node.parent or self._before.get(node.uuid)
        if named:
            return self._nodes.get(named)
        return None


def defects_of_branches(transcript: Transcript, hints: Sequence[LeafHint]) -> Iterator[Defect]:
    """Yield branches that are longer or newer than the live one, and hints that lead elsewhere."""
    spoken = [node for node in transcript.chain if node.spoken]
    if not spoken:
        return
    end = spoken[-1]
    newer = False
    for branch in branches_off_live(transcript, records_before_compactions(transcript)):
        if branch.fork:
            start = f"forks at record {branch.fork.number}"
        else:
            start = "has no parent"
        told = (
            f"{branch.turns} turns end here; the branch {start}, the live one has "
            f"{branch.live_turns} since"
        )
        if branch.leaf.number > end.number and (branch.leaf.time_ms or 0) > (end.time_ms or 0):
            newer = True
            yield NEWER.in_node(branch.leaf, told)
        elif branch.turns > branch.live_turns:
            yield LONGER.in_node(branch.leaf, told)
    last = hints[-1] if hints else None
    if last and last.leaf not in transcript.by_uuid:
        yield Defect(HINT_LOST, f"It names {last.leaf}, which is not in the file", last.record)
    elif last and newer and any(node.uuid == last.leaf for node in transcript.chain):
        yield Defect(
            HINT_OLD, f"It names {last.leaf}, which is not on the newest branch", last.record
        )
