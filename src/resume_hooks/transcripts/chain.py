"""The live chain: the records a client would send on resume, rebuilt by the client's own rules.

Measured on clients up to 2.1.329 (docs/transcripts.md); where their versions differ, the newest is followed.
Pure functions over nodes; no file is touched here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from resume_hooks.transcripts.graph import Graph
from resume_hooks.transcripts.leaf import find_leaf
from resume_hooks.transcripts.nodes import Checkpoint, Node
from resume_hooks.transcripts.parallel_calls import recover

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
        chain = recover(graph, chain, off)
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
    return _from_last_boundary(recover(graph, chain, _off(graph, chain)))


def _off(graph: Graph, chain: Sequence[Node]) -> list[Node]:
    """The records that are not on a chain."""
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
    return sorted(found, key=lambda node: node.time_ms or 0)


def _from_last_boundary(chain: list[Node]) -> list[Node]:
    for index in range(len(chain) - 1, -1, -1):
        if chain[index].boundary:
            return chain[index:]
    return chain
