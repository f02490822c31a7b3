"""The live chain: the records a client would send on resume, rebuilt by the client's own rules.

Measured on clients up to 2.1.329 (docs/transcripts.md); where their versions differ, the newest is followed.
Pure functions over nodes; no file is touched here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.transcripts.graph import Graph, find_leaf
from resume_hooks.transcripts.nodes import Checkpoint, Node, ancestors
from resume_hooks.transcripts.records import ASSISTANT

BRIDGE_MS = 5_000  # how far back the client looks for a stand-in of a parent that is not in the file, in milliseconds


def live_chain(nodes: Iterable[Node], checkpoint: Checkpoint, size: int = 0, *, bridging: bool = True) -> list[Node]:
    """The records that the client would load on resume, oldest first, from the last compaction on.

    ``size`` is the whole file's, in bytes: clients skip more of big ones. Without ``bridging`` the chain ends at
    the first parent that is not among ``nodes``: the certain part where only the end of a file is known.
    """
    graph = Graph(nodes, size)
    leaf = find_leaf(graph, checkpoint)
    if leaf is None:
        return []
    chain = _walk(graph, leaf, bridging=bridging)
    if off := _off(graph, chain):
        chain = Recovery(graph, chain, off).whole()
        chain += _remarks_below(graph, leaf, off, {node.uuid for node in chain})
    return _from_last_boundary(chain)


def chain_to(nodes: Sequence[Node], last: Node, size: int = 0) -> list[Node]:
    """The records that the client would load had the conversation ended at ``last``, oldest first.

    ``nodes`` are those of a whole file. What a compaction after ``last`` dropped is there still. The results of a
    parallel call that ``last`` is part of come along, behind it.
    """
    later = (node for node in nodes if node.boundary and not node.sidechain and node.number > last.number)
    compaction = next(later, None)
    if compaction is not None:
        size = min(size, compaction.offset)
        nodes = [node for node in nodes if node.number < compaction.number]
    graph = Graph(nodes, size)
    leaf = graph.nodes.get(last.uuid)
    if leaf is None:
        return []
    chain = _walk(graph, leaf, bridging=True)
    return _from_last_boundary(Recovery(graph, chain, _off(graph, chain)).whole())


def _off(graph: Graph, chain: Sequence[Node]) -> list[Node]:
    on_chain = {node.uuid for node in chain}
    return [node for node in graph.nodes.values() if node.uuid not in on_chain]


def _walk(graph: Graph, leaf: Node, *, bridging: bool) -> list[Node]:
    """From the root to the leaf; a missing parent, and one that would close a cycle, is bridged."""
    walked: dict[str, Node] = {}
    node: Node | None = leaf
    while node is not None:
        walked[node.uuid] = node
        if graph.is_root(node):
            break
        parent = graph.parent(node)
        if parent is None or parent.uuid in walked:
            parent = _bridge(graph, node, walked) if bridging else None
        node = parent
    return list(walked.values())[::-1]


def _bridge(graph: Graph, node: Node, walked: dict[str, Node]) -> Node | None:
    """The record nearest in time before ``node``, within the client's window; the first of several."""
    if node.time_ms is None:
        return None
    earlier = graph.by_time[node.sidechain]
    for place in range(bisect_right(earlier, node.time_ms, key=_time) - 1, -1, -1):
        other = earlier[place]
        if node.time_ms - _time(other) > BRIDGE_MS:
            return None
        if other.uuid not in walked:
            return other
    return None


def _time(node: Node) -> int:
    return node.time_ms or 0


def _remarks_below(graph: Graph, leaf: Node, off: list[Node], seen: set[str]) -> list[Node]:
    """What hangs below the leaf without being a message: attachments and system notes, by time."""
    children = graph.children(node for node in off if not node.spoken and node.uuid not in seen)
    found: list[Node] = []
    queue = [leaf]
    while queue:
        below = [node for node in children.pop(queue.pop(0).uuid, ()) if node is not leaf]
        found += below
        queue += below
    return sorted(found, key=_time)


def _from_last_boundary(chain: list[Node]) -> list[Node]:
    return chain[max((place for place, node in enumerate(chain) if node.boundary), default=0) :]


class _Region(NamedTuple):
    """What comes back between two places of the chain; ``asides`` follow the record of their key."""

    start: int
    end: int
    recovered: list[Node]
    asides: dict[str, list[Node]]


class Recovery:
    """Puts back what belongs to a chain's parallel calls from ``off``, the records that are not on it."""

    def __init__(self, graph: Graph, chain: list[Node], off: list[Node]) -> None:
        self._graph = graph
        self._chain = chain
        self._below = graph.children(off)
        self._taken: set[str] = set()
        self._places = {node.uuid: place for place, node in enumerate(chain)}
        wanted = {message_id for node in off if (message_id := self._answer_of(node))}
        self._answers: dict[str, list[Node]] = {}
        for node in [*chain, *off]:
            if node.message_id in wanted and (node.uuid in self._places or node.message_id in self._answers):
                self._answers.setdefault(node.message_id, []).append(node)

    def whole(self) -> list[Node]:
        """The chain with each region's records between its own, in file order."""
        regions = [region for message_id in self._answers if (region := self._region(message_id)) is not None]
        merged: list[_Region] = []
        for region in sorted(regions, key=lambda found: found.start):
            if merged and region.start < merged[-1].end:
                before = merged.pop()
                end, recovered = max(before.end, region.end), [*before.recovered, *region.recovered]
                region = _Region(before.start, end, recovered, before.asides | region.asides)  # noqa: PLW2901
            merged.append(region)
        positions = self._graph.positions
        whole: list[Node] = []
        done = 0
        for start, end, recovered, asides in merged:
            waiting = sorted(recovered, key=lambda node: positions[node.uuid], reverse=True)
            whole += self._chain[done : start + 1]
            for node in self._chain[start + 1 : end]:
                while waiting and positions[waiting[-1].uuid] < positions[node.uuid]:
                    whole.append(waiting.pop())
                whole.append(node)
                whole += asides.get(node.uuid, ())
            whole += waiting[::-1]
            done = end
        return whole + self._chain[done:]

    def _answer_of(self, node: Node) -> str:
        """The message id of the answer that a record is part of, answers, or stands beside."""
        above = next((above for above in ancestors(node, self._graph.parent) if not above.aside), None)
        if above is not None and above.results:
            above = self._graph.parent(above)
        return above.message_id if above is not None else ""

    def _region(self, message_id: str) -> _Region | None:
        group = self._answers[message_id]
        start = self._places[group[0].uuid]
        recovered = self._take([node for node in group if node.uuid not in self._places])
        results = self._take([node for caller in group for node in self._missing_below(caller) if node.results])
        end = self._end(group, message_id)
        asides: dict[str, list[Node]] = {}
        if any(node.calls for node in group):
            answered = [node for node in self._chain[start + 1 : end] if node.results]
            recovered += [remark for node in [*group, *results, *answered] for remark in self._remarks(node)]
            for node in self._chain[start + 1 : end]:
                if node.aside and (remarks := self._remarks(node)):
                    asides[node.uuid] = remarks
        recovered += results
        return _Region(start, end, recovered, asides) if recovered or asides else None

    def _end(self, group: list[Node], message_id: str) -> int:
        """Where the answer, its results and the remarks between them end on the chain."""
        end = max(self._places.get(node.uuid, -1) for node in group) + 1
        while end < len(self._chain):
            node = self._chain[end]
            own = node.message_id == message_id if node.kind == ASSISTANT else node.aside or node.results
            if not own:
                break
            end += 1
        return end

    def _remarks(self, node: Node) -> list[Node]:
        """Asides that hang on ``node`` in one line and end there; anything else below makes it another branch."""
        found: list[Node] = []
        for child in self._missing_below(node):
            line: list[Node] = []
            queue = [child]
            while len(queue) == 1 and queue[0].aside and queue[0] not in line:
                line.append(queue[0])
                queue = self._missing_below(queue[0])
            if line and not queue:
                found += self._take(line)
        return found

    def _missing_below(self, node: Node) -> list[Node]:
        return [child for child in self._below.get(node.uuid, ()) if child.uuid not in self._taken]

    def _take(self, nodes: list[Node]) -> list[Node]:
        """``nodes`` without repetitions, from now on in their place."""
        fresh = list({node.uuid: node for node in nodes}.values())
        self._taken.update(node.uuid for node in fresh)
        return fresh
