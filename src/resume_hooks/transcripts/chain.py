"""The live chain: the records that a client would send on resume, computed by the client's own rules.

Measured with clients up to 2.1.329 (docs/transcripts.md). If versions differ, the newest one
counts. These are pure functions over nodes without file access.

Records are found by uuid, with the parents that the client would use. Progress and broken records
are skipped. Messages kept by the last compaction are inserted between its summary and the following
records; messages that it dropped are gone. Among the ends of all branches the checkpoint wins, or
the file's last record if that continues the checkpoint. Without a checkpoint the last record
decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import NamedTuple

from resume_hooks.transcripts.nodes import Checkpoint, Node, walk_up
from resume_hooks.transcripts.records import ASSISTANT, PROGRESS

SKIPPED_BYTES = 5 * 1024 * 1024
"""The file size in bytes above which clients (2.1.112 and later) skip the part before a compaction while reading."""


class RecordGraph:
    """``nodes`` by uuid, in order of first appearance; ``spliced`` if kept messages were inserted."""

    def __init__(self, nodes: Iterable[Node], size: int = 0) -> None:
        self.nodes: dict[str, Node] = {}
        self._parents: dict[str, str | None] = {}
        progress: dict[str, str | None] = {}
        broken: dict[str, str | None] = {}
        for node in nodes:
            if node.kind == PROGRESS:
                progress[node.uuid] = _skip_progress(node.parent, progress)
            elif node.broken:
                broken[node.uuid] = _skip_progress(node.parent, progress)
            else:
                if size > SKIPPED_BYTES and node.boundary and node.segment is None:
                    self.nodes.clear()
                    self._parents.clear()
                    progress.clear()
                # for a duplicate uuid the last record wins, at the position of the first
                self.nodes[node.uuid] = node
                self._parents[node.uuid] = _skip_progress(node.parent, progress)
        for uuid, parent in self._parents.items() if broken else ():
            self._parents[uuid] = self._past_broken(parent, broken)
        self.spliced = self._splice()

    def parent(self, node: Node) -> Node | None:
        """Return the parent of ``node``, or None for a root or if the parent is not in the file."""
        uuid = self._parents[node.uuid]
        if uuid is None:
            return None
        return self.nodes.get(uuid)

    def is_root(self, node: Node) -> bool:
        """Check whether the record never had a parent, so that nothing is missing above it."""
        return self._parents[node.uuid] is None

    def children(self, among: Iterable[Node]) -> dict[str, list[Node]]:
        """Return the children of each uuid in ``among``, in their order."""
        found: dict[str, list[Node]] = {}
        for node in among:
            parent = self._parents[node.uuid]
            if parent is not None:
                found.setdefault(parent, []).append(node)
        return found

    @cached_property
    def positions(self) -> dict[str, int]:
        """The index of each record in ``nodes``."""
        return {uuid: place for place, uuid in enumerate(self.nodes)}

    @cached_property
    def by_time(self) -> dict[bool, list[Node]]:
        """The dated records of the main conversation and of sidechains, by time.

        Of records with equal times, the first one comes last.
        """
        dated = [node for node in reversed(self.nodes.values()) if node.time_ms is not None]
        dated.sort(key=lambda node: node.time_ms or 0)
        return {side: [node for node in dated if node.sidechain is side] for side in (False, True)}

    def _past_broken(self, parent: str | None, broken: dict[str, str | None]) -> str | None:
        seen: set[str] = set()
        while parent is not None and parent not in self.nodes and parent in broken:
            if parent in seen:
                return None
            seen.add(parent)
            parent = broken[parent]
        return parent

    def _splice(self) -> bool:
        """Insert the messages that the last compaction kept, and drop the others before it.

        Do nothing if the kept messages can't be determined.
        """
        boundaries = []
        for node in self.nodes.values():
            if node.boundary:
                boundaries.append(node)
        if not any(node.segment for node in boundaries):
            return False
        last = boundaries[-1]
        kept = self._uuids_kept_by(last)
        if kept is None:
            return False
        if kept and last.segment is not None:
            before = anchor = last.segment.anchor
            for uuid in kept:
                self._parents[uuid] = before
                before = uuid
            for uuid, parent in self._parents.items():
                if parent == anchor and uuid != kept[0]:
                    self._parents[uuid] = kept[-1]
        self._drop_before(last, kept)
        return bool(kept)

    def _uuids_kept_by(self, boundary: Node) -> list[str] | None:
        """Return the uuids that a boundary kept, in order, or None if its references are invalid."""
        segment = boundary.segment
        if segment is None:
            return []
        if segment.uuids is not None:
            if all(uuid in self.nodes for uuid in segment.uuids):
                return list(segment.uuids)
            return None
        walked: dict[str, None] = {}
        uuid: str | None = segment.tail
        while uuid is not None and uuid in self.nodes and uuid not in walked:
            walked[uuid] = None
            if uuid == segment.head:
                return list(walked)[::-1]
            uuid = self._parents[uuid]
        return None

    def _drop_before(self, boundary: Node, kept: list[str]) -> None:
        """Drop the records before ``boundary``.

        Their remaining child messages become children of the last kept message.
        """
        dropped = set(takewhile(lambda uuid: uuid != boundary.uuid, self.nodes)) - set(kept)
        for uuid in dropped:
            del self.nodes[uuid], self._parents[uuid]
        for uuid, parent in self._parents.items() if kept else ():
            if parent in dropped and self.nodes[uuid].spoken:
                self._parents[uuid] = kept[-1]


def _skip_progress(parent: str | None, progress: dict[str, str | None]) -> str | None:
    """Return the effective parent for children of a progress record.

    Only earlier records are considered.
    """
    if parent is not None:
        return progress.get(parent, parent)
    return None


def find_leaf(graph: RecordGraph, checkpoint: Checkpoint) -> Node | None:
    """Return the last message of a resumed conversation, or None if no message remains."""
    rows = [node for node in graph.nodes.values() if not node.sidechain]
    if checkpoint.emptied or not rows:
        return None
    last = max(rows, key=lambda node: node.number)
    pointed = graph.nodes.get(checkpoint.uuid)
    if (
        pointed is not None and pointed.sidechain
    ):  # 2.1.112 and later reject such a checkpoint; ignore it, so that a child is valid
        pointed = None
    if not graph.spliced or (checkpoint.explicit and pointed):
        chosen = _effective_checkpoint(graph, checkpoint, pointed, last)
        if chosen is None and not graph.spliced:
            if checkpoint.hinted:
                chosen = last
            else:
                chosen = _newest_below(graph, last, rows)
        leaf = _nearest_message(graph, chosen) if chosen else None
        if leaf is not None:
            return leaf
    return _chosen_leaf(graph, checkpoint, pointed, last) or max(rows, key=_node_time)


def _effective_checkpoint(
    graph: RecordGraph, checkpoint: Checkpoint, pointed: Node | None, last: Node
) -> Node | None:
    """Return the checkpoint's record, or the file's last record if it continues the conversation from there."""
    if pointed is None or checkpoint.explicit:
        return pointed
    if _continues_checkpoint(graph, last, pointed, checkpoint, through_itself=True):
        return last
    return pointed


def _chosen_leaf(
    graph: RecordGraph, checkpoint: Checkpoint, pointed: Node | None, last: Node
) -> Node | None:
    answered = {
        parent.uuid
        for node in graph.nodes.values()
        if node.spoken and (parent := graph.parent(node))
    }
    parents = graph.children(graph.nodes.values())
    ends = (
        _nearest_message(graph, node) for node in graph.nodes.values() if node.uuid not in parents
    )
    leaves = {}
    for end in ends:
        if end is not None and end.uuid not in answered:
            leaves[end.uuid] = end
    if len(leaves) > 1:
        stays = pointed is not None and pointed.uuid in leaves
        if pointed is not None and stays and not checkpoint.explicit:
            stays = not _continues_checkpoint(
                graph, last, pointed, checkpoint, through_itself=False
            )
        chosen = _nearest_message(graph, pointed if pointed is not None and stays else last)
        if chosen is not None:
            return chosen
    return max(
        (leaf for leaf in leaves.values() if not leaf.sidechain), key=_node_time, default=None
    )


def _newest_below(graph: RecordGraph, last: Node, rows: list[Node]) -> Node:
    """Return the newest descendant of the file's last record, for files with parents written after their children."""
    if max(rows, key=_node_time) is last:
        return last
    children = graph.children(rows)
    below: list[Node] = []
    seen = {last.uuid}
    queue = [last]
    while queue:
        more = []
        for child in children.get(queue.pop().uuid, ()):
            if child.uuid not in seen:
                more.append(child)
        for child in more:
            seen.add(child.uuid)
        below += more
        queue += more
    timed = [node for node in below if node.time_ms is not None]
    return max(timed, key=lambda node: (_node_time(node), graph.positions[node.uuid]), default=last)


def _continues_checkpoint(
    graph: RecordGraph, last: Node, pointed: Node, checkpoint: Checkpoint, *, through_itself: bool
) -> bool:
    """Check whether the path up from ``last`` passes the checkpoint, or another call of the same parallel batch."""
    caller, answered = (None, ()) if checkpoint.ever_explicit else _find_batch(graph, pointed)
    answer = caller.message_id if caller is not None and caller.calls else ""
    # The records above a call that belong to the same answer of the model.
    above = islice(walk_up(caller if answer else None, graph.parent), 1, None)
    earlier = {node.uuid for node in takewhile(lambda node: _accompanies(node, answer), above)}
    within = False
    child: Node | None = None
    for node in walk_up(last, graph.parent):
        if through_itself and node is pointed:
            return True
        if answer:
            if within and node is caller:
                return True
            if node is not caller and node.message_id == answer and node.calls:
                if node.uuid in earlier:
                    return True
                within = True
            elif not _accompanies(node, answer):
                within = False
        if node is caller and child is not None:
            calls = set(node.calls)
            if calls.intersection(answered) and calls.intersection(child.results) - set(answered):
                return True
        child = node
    return False


def _find_batch(graph: RecordGraph, pointed: Node) -> tuple[Node | None, tuple[str, ...]]:
    """Return the call for a checkpoint on or below a tool result, and the answered call ids.

    Otherwise return the record itself.
    """
    node = next((above for above in walk_up(pointed, graph.parent) if not above.aside), None)
    if node is not None and node.results:
        return graph.parent(node), node.results
    return (node if node is pointed else None), ()


def _accompanies(node: Node, message_id: str) -> bool:
    """Check whether a record can occur inside an answer of several calls: its blocks, results or remarks."""
    if node.kind == ASSISTANT:
        return node.message_id == message_id
    return node.aside or bool(node.results)


def _nearest_message(graph: RecordGraph, node: Node) -> Node | None:
    return next((above for above in walk_up(node, graph.parent) if above.spoken), None)


def _node_time(node: Node) -> int:
    if node.time_ms is None:
        return -1
    return node.time_ms


BRIDGE_MS = 5_000  # milliseconds; the client's search window for a substitute of a missing parent


def live_chain(
    nodes: Iterable[Node], checkpoint: Checkpoint, size: int = 0, *, bridging: bool = True
) -> list[Node]:
    """Return the records that the client would load on resume, oldest first, from the last compaction.

    ``size`` is the whole file's size in bytes, because clients skip parts of big files. Without
    ``bridging`` the chain ends at the first parent missing from ``nodes``; use this if only the end
    of a file is known.
    """
    graph = RecordGraph(nodes, size)
    leaf = find_leaf(graph, checkpoint)
    if leaf is None:
        return []
    chain = _walk_to_root(graph, leaf, bridging=bridging)
    if off := _nodes_outside(graph, chain):
        chain = ParallelCallRecovery(graph, chain, off).whole()
        chain += _remarks_below(graph, leaf, off, {node.uuid for node in chain})
    return _from_last_boundary(chain)


def chain_ending_at(nodes: Sequence[Node], last: Node, size: int = 0) -> list[Node]:
    """Return the records that the client would load if the conversation ended at ``last``, oldest first.

    ``nodes`` must be those of the whole file. Messages that a compaction after ``last`` dropped are
    included. If ``last`` belongs to a parallel call, the call's results follow it.
    """
    later = (
        node for node in nodes if node.boundary and not node.sidechain and node.number > last.number
    )
    compaction = next(later, None)
    if compaction is not None:
        size = min(size, compaction.offset)
        nodes = [node for node in nodes if node.number < compaction.number]
    graph = RecordGraph(nodes, size)
    leaf = graph.nodes.get(last.uuid)
    if leaf is None:
        return []
    chain = _walk_to_root(graph, leaf, bridging=True)
    return _from_last_boundary(
        ParallelCallRecovery(graph, chain, _nodes_outside(graph, chain)).whole()
    )


def _nodes_outside(graph: RecordGraph, chain: Sequence[Node]) -> list[Node]:
    on_chain = {node.uuid for node in chain}
    return [node for node in graph.nodes.values() if node.uuid not in on_chain]


def _walk_to_root(graph: RecordGraph, leaf: Node, *, bridging: bool) -> list[Node]:
    """Walk from the leaf to the root and return the path. Bridge a missing parent, or one that would close a cycle."""
    walked: dict[str, Node] = {}
    node: Node | None = leaf
    while node is not None:
        walked[node.uuid] = node
        if graph.is_root(node):
            break
        parent = graph.parent(node)
        if parent is None or parent.uuid in walked:
            parent = _find_substitute_parent(graph, node, walked) if bridging else None
        node = parent
    return list(walked.values())[::-1]


def _find_substitute_parent(graph: RecordGraph, node: Node, walked: dict[str, Node]) -> Node | None:
    """Return the record closest in time before ``node``, within the client's window.

    Of several records return the first.
    """
    if node.time_ms is None:
        return None
    earlier = graph.by_time[node.sidechain]
    for place in range(bisect_right(earlier, node.time_ms, key=_node_time) - 1, -1, -1):
        other = earlier[place]
        if node.time_ms - _node_time(other) > BRIDGE_MS:
            return None
        if other.uuid not in walked:
            return other
    return None


def _remarks_below(graph: RecordGraph, leaf: Node, off: list[Node], seen: set[str]) -> list[Node]:
    """Return the attachments and system notes below the leaf, by time."""
    children = graph.children(node for node in off if not node.spoken and node.uuid not in seen)
    found: list[Node] = []
    queue = [leaf]
    while queue:
        below = []
        for node in children.pop(queue.pop(0).uuid, ()):
            if node is not leaf:
                below.append(node)
        found += below
        queue += below
    return sorted(found, key=_node_time)


def _from_last_boundary(chain: list[Node]) -> list[Node]:
    return chain[max((place for place, node in enumerate(chain) if node.boundary), default=0) :]


class _RestoredRegion(NamedTuple):
    """The records to restore between two positions of the chain; ``asides`` follow the record of their key."""

    start: int
    end: int
    recovered: list[Node]
    asides: dict[str, list[Node]]


class ParallelCallRecovery:
    """Restores the records of parallel calls from ``off``, the records outside the chain."""

    def __init__(self, graph: RecordGraph, chain: list[Node], off: list[Node]) -> None:
        self._graph = graph
        self._chain = chain
        self._below = graph.children(off)
        self._taken: set[str] = set()
        self._places = {node.uuid: place for place, node in enumerate(chain)}
        wanted = {message_id for node in off if (message_id := self._answer_of(node))}
        self._answers: dict[str, list[Node]] = {}
        for node in [*chain, *off]:
            if node.message_id in wanted and (
                node.uuid in self._places or node.message_id in self._answers
            ):
                self._answers.setdefault(node.message_id, []).append(node)

    def whole(self) -> list[Node]:
        """Return the chain with each region's restored records, in file order."""
        regions = []
        for message_id in self._answers:
            if (region := self._region(message_id)) is not None:
                regions.append(region)
        merged: list[_RestoredRegion] = []
        for region in sorted(regions, key=lambda found: found.start):
            if merged and region.start < merged[-1].end:
                before = merged.pop()
                end, recovered = max(before.end, region.end), [*before.recovered, *region.recovered]
                asides = before.asides | region.asides
                region = _RestoredRegion(before.start, end, recovered, asides)  # noqa: PLW2901
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
        """Return the message id of the answer that a record belongs to, answers, or accompanies."""
        above = next(
            (above for above in walk_up(node, self._graph.parent) if not above.aside), None
        )
        if above is not None and above.results:
            above = self._graph.parent(above)
        if above is not None:
            return above.message_id
        return ""

    def _region(self, message_id: str) -> _RestoredRegion | None:
        group = self._answers[message_id]
        start = self._places[group[0].uuid]
        recovered = self._copy_settings([node for node in group if node.uuid not in self._places])
        missing_results = []
        for caller in group:
            missing_results += [node for node in self._missing_below(caller) if node.results]
        results = self._copy_settings(missing_results)
        end = max(self._places.get(node.uuid, -1) for node in group) + 1
        while end < len(self._chain):  # include its results and the remarks between them
            node = self._chain[end]
            if not (
                node.message_id == message_id
                if node.kind == ASSISTANT
                else node.aside or node.results
            ):
                break
            end += 1
        asides: dict[str, list[Node]] = {}
        if any(node.calls for node in group):
            answered = [node for node in self._chain[start + 1 : end] if node.results]
            for node in [*group, *results, *answered]:
                recovered += self._remarks(node)
            for node in self._chain[start + 1 : end]:
                if node.aside and (remarks := self._remarks(node)):
                    asides[node.uuid] = remarks
        recovered += results
        if recovered or asides:
            return _RestoredRegion(start, end, recovered, asides)
        return None

    def _remarks(self, node: Node) -> list[Node]:
        """Return the remarks below ``node`` that form a single line.

        Any other record below makes it another branch.
        """
        found: list[Node] = []
        for child in self._missing_below(node):
            line: list[Node] = []
            queue = [child]
            while len(queue) == 1 and queue[0].aside and queue[0] not in line:
                line.append(queue[0])
                queue = self._missing_below(queue[0])
            if line and not queue:
                found += self._copy_settings(line)
        return found

    def _missing_below(self, node: Node) -> list[Node]:
        return [child for child in self._below.get(node.uuid, ()) if child.uuid not in self._taken]

    def _copy_settings(self, nodes: list[Node]) -> list[Node]:
        """Deduplicate ``nodes`` and mark them as restored."""
        fresh = list({node.uuid: node for node in nodes}.values())
        self._taken.update(node.uuid for node in fresh)
        return fresh
