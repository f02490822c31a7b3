"""Branches that a client won't show: history that is in the file and not in the conversation.

A rewind leaves a branch too; only one that is longer or newer than what the client shows is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.maintenance.fsck.findings import Defect, Kind
from resume_hooks.transcripts.nodes import Node, ancestors
from resume_hooks.transcripts.transcript import Transcript

LONGER = Kind(
    "branch-longer",
    "warning",
    "Clients show the shorter branch. 'fsck --repair --branch UUID' makes a child of the longer one.",
)
NEWER = Kind(
    "branch-newer",
    "error",
    "Clients resume an older branch: the newest turns are not shown. 'fsck --repair --branch UUID' goes on from them.",
)
HINT_LOST = Kind("leaf-hint-dangling", "warning", "Clients ignore the hint and go on at the last record of the file.")
HINT_OLD = Kind("leaf-hint-old", "warning", "Clients since 2.1.220 follow the hint, away from the newest branch.")


class LeafHint(NamedTuple):
    """A ``last-prompt`` that names the end of the conversation, in the line ``record``."""

    record: int
    leaf: str


class Branch(NamedTuple):
    """A branch off the live history: its last message, its turns, and the turns of the live one since the fork."""

    leaf: Node
    fork: Node | None
    turns: int
    live_turns: int


class LiveHistory(NamedTuple):
    """The live conversation with what its compactions dropped, oldest first; ``turns`` counts prompts up to each."""

    path: Sequence[Node]
    turns: Mapping[str, int]
    live: frozenset[str]

    @property
    def whole(self) -> int:
        """Turns in all."""
        return self.turns[self.path[-1].uuid] if self.path else 0


def earlier(transcript: Transcript) -> dict[str, str]:
    """The record before each compaction: the one that its boundary names, else the message before it in the file."""
    found: dict[str, str] = {}
    last = ""
    for node in transcript.nodes:
        if node.boundary:
            found[node.uuid] = node.logical if node.logical in transcript.by_uuid else last
        elif node.spoken and not node.sidechain:
            last = node.uuid
    return found


def history(transcript: Transcript, before: Mapping[str, str]) -> LiveHistory:
    """Walk back from the live end through compactions; ``before`` tells what stands before each boundary."""
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


def branches(transcript: Transcript, before: Mapping[str, str]) -> list[Branch]:
    """The branches off the live history that hold a turn, the longest end of each, in the order of the file."""
    live = history(transcript, before)
    depth = _Depth(transcript.by_uuid, live, before)
    best: dict[str, Branch] = {}
    for node in transcript.nodes:
        if not node.spoken or node.sidechain or node.uuid in live.live:
            continue
        top, fork, turns = depth.of(node)
        shared = live.turns.get(fork.uuid, 0) if fork else 0
        known = best.get(top)
        if turns and (known is None or (turns, node.number) >= (known.turns, known.leaf.number)):
            best[top] = Branch(node, fork, turns, live.whole - shared)
    return list(best.values())


class _Depth:
    """How deep each record stands in its branch: the branch's first record, its fork, turns up to the record."""

    def __init__(self, nodes: Mapping[str, Node], live: LiveHistory, before: Mapping[str, str]) -> None:
        self._nodes = nodes
        self._live = live
        self._before = before
        self._known: dict[str, tuple[str, Node | None, int]] = {}

    def of(self, node: Node) -> tuple[str, Node | None, int]:
        """Walk up to what is known, then count down again; no recursion, since branches are long."""
        pending: dict[str, Node] = {}
        above: Node | None = node
        while above is not None and above.uuid not in self._known and above.uuid not in self._live.live:
            if above.uuid in pending:
                above = None
                break
            pending[above.uuid] = above
            above = self._above(above)
        if above is not None and above.uuid in self._known:
            top, fork, turns = self._known[above.uuid]
        else:
            top, fork, turns = "", self._on_path(above), 0
        for each in reversed(pending.values()):
            top = top or each.uuid
            turns += each.prompt
            self._known[each.uuid] = (top, fork, turns)
        return self._known[node.uuid]

    def _above(self, node: Node) -> Node | None:
        named = node.parent or self._before.get(node.uuid)
        return self._nodes.get(named) if named else None

    def _on_path(self, node: Node | None) -> Node | None:
        """The nearest record of the walked history: a parallel call stands beside it."""
        return next((above for above in ancestors(node, self._above) if above.uuid in self._live.turns), None)


def of_branches(transcript: Transcript, hints: Sequence[LeafHint]) -> Iterator[Defect]:
    """Branches that are longer or newer than the live one, and hints that lead elsewhere."""
    spoken = [node for node in transcript.chain if node.spoken]
    if not spoken:
        return
    end = spoken[-1]
    newer = False
    for branch in branches(transcript, earlier(transcript)):
        start = f"forks at record {branch.fork.number}" if branch.fork else "hangs on nothing"
        told = f"{branch.turns} turns end here; the branch {start}, the live one has {branch.live_turns} since"
        if branch.leaf.number > end.number and (branch.leaf.time_ms or 0) > (end.time_ms or 0):
            newer = True
            yield NEWER.at(branch.leaf, told)
        elif branch.turns > branch.live_turns:
            yield LONGER.at(branch.leaf, told)
    yield from _of_hint(transcript, hints, newer=newer)


def _of_hint(transcript: Transcript, hints: Sequence[LeafHint], *, newer: bool) -> Iterator[Defect]:
    if not hints:
        return
    last = hints[-1]
    if last.leaf not in transcript.by_uuid:
        yield Defect(HINT_LOST, f"It names {last.leaf}, which is not in the file", last.record)
    elif newer and any(node.uuid == last.leaf for node in transcript.chain):
        yield Defect(HINT_OLD, f"It names {last.leaf}, off the newest branch", last.record)
