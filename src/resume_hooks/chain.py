"""The live chain: the records a client would send on resume, rebuilt by the client's own rules.

Measured on clients up to 2.1.329 (docs/transcripts.md): the last ``last-prompt`` whose leaf exists chooses the
branch, compaction cuts, preserved segments are spliced back, parallel calls come back by their message id.
Pure functions over nodes; no file is touched here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

BRIDGE_MS = 5_000
"""How far back the client looks for a stand-in of a parent that is not in the file, in milliseconds."""


class Node:
    """What the chain needs of one record; the record itself stays on disk at ``offset``."""

    __slots__ = (
        "calls",
        "characters",
        "context_tokens",
        "kind",
        "length",
        "message_id",
        "number",
        "offset",
        "parent",
        "prompt",
        "results",
        "segment",
        "sidechain",
        "subtype",
        "summary",
        "time_ms",
        "uuid",
    )

    def __init__(self, uuid: str, parent: str | None, kind: str) -> None:
        self.uuid = uuid
        self.parent = parent
        self.kind = kind
        self.number = 0
        self.offset = 0
        self.length = 0
        self.subtype = ""
        self.sidechain = False
        self.summary = False
        self.prompt = False
        self.message_id = ""
        self.time_ms: int | None = None
        self.characters = 0
        self.context_tokens = 0
        self.calls: tuple[str, ...] = ()
        self.results: tuple[str, ...] = ()
        self.segment: Segment | None = None

    @property
    def boundary(self) -> bool:
        """Whether a compaction happened here."""
        return self.subtype == "compact_boundary"


class Segment(NamedTuple):
    """Messages that a compaction kept: spliced in after the summary ``anchor``, from ``head`` to ``tail``."""

    anchor: str
    head: str
    tail: str
    uuids: tuple[str, ...]
    """Their order where the client wrote it down, else empty: walk from tail to head."""


class Graph:
    """The records of a file by uuid, with the parents a client would see."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes: dict[str, Node] = {}
        self._parents: dict[str, str | None] = {}
        skipped: dict[str, str | None] = {}  # progress records: their children hang on their parents
        for node in nodes:
            if node.kind == "progress":
                skipped[node.uuid] = node.parent
            elif not node.sidechain:
                self.nodes.pop(node.uuid, None)  # a duplicate uuid: the last one wins, also in file order
                self.nodes[node.uuid] = node
        for node in self.nodes.values():
            self._parents[node.uuid] = _skip(node.parent, skipped)
        self._dropped: set[str] = set()
        self._splice()

    def parent(self, node: Node) -> Node | None:
        """The record that ``node`` hangs on, or None at a root and where the parent is not in the file."""
        uuid = self._parents[node.uuid]
        return None if uuid is None or uuid in self._dropped else self.nodes.get(uuid)

    def is_cut(self, node: Node) -> bool:
        """Whether the chain ends here by intent: no parent was ever named."""
        return self._parents[node.uuid] is None

    def alive(self) -> Iterable[Node]:
        """The nodes that a compaction with a preserved segment left in the conversation, in file order."""
        return (node for node in self.nodes.values() if node.uuid not in self._dropped)

    def _splice(self) -> None:
        """Hang the preserved segment of the last compaction between its summary and what came after."""
        boundaries = [node for node in self.nodes.values() if node.boundary]
        if not boundaries or boundaries[-1].segment is None:
            return
        segment = boundaries[-1].segment
        kept = self._kept(segment)
        if not kept:
            return
        for uuid, parent in self._parents.items():
            if parent == segment.anchor and uuid not in kept:
                self._parents[uuid] = kept[-1]
        for before, uuid in zip([segment.anchor, *kept], kept, strict=False):
            self._parents[uuid] = before
        limit = boundaries[-1].number
        keep = set(kept)
        self._dropped = {n.uuid for n in self.nodes.values() if n.number < limit and n.uuid not in keep}

    def _kept(self, segment: Segment) -> list[str]:
        """The uuids of a segment from head to tail; empty where it can't be walked, as the client does."""
        if segment.uuids and all(uuid in self.nodes for uuid in segment.uuids):
            return list(segment.uuids)
        walked: list[str] = []
        uuid: str | None = segment.tail
        while uuid is not None and uuid in self.nodes and uuid not in walked:
            walked.append(uuid)
            if uuid == segment.head:
                return walked[::-1]
            uuid = self._parents[uuid]
        return []


def live_chain(nodes: Iterable[Node], leaf_hints: Iterable[str]) -> list[Node]:
    """The records that the client would load on resume, oldest first, from the last compaction on.

    ``leaf_hints`` are the leafUuids of the file's last-prompt records in file order. Progress records are left
    out, parallel calls and their results are put back after their siblings.
    """
    graph = Graph(nodes)
    leaf = _leaf(graph, list(leaf_hints))
    if leaf is None:
        return []
    return _after_last_boundary(_recover_parallel(graph, _walk(graph, leaf)))


def _skip(parent: str | None, skipped: dict[str, str | None]) -> str | None:
    seen = set()
    while parent in skipped and parent not in seen:
        seen.add(parent)
        parent = skipped[parent]
    return None if parent in seen else parent


def _leaf(graph: Graph, hints: list[str]) -> Node | None:
    alive = list(graph.alive())
    if not alive:
        return None
    chosen = next((uuid for uuid in reversed(hints) if uuid in graph.nodes), None)
    if chosen is None:
        return alive[-1]
    below = {chosen}  # parents may follow their children in real files, so go round until nothing is added
    while True:
        more = {n.uuid for n in alive if n.uuid not in below and (p := graph.parent(n)) and p.uuid in below}
        if not more:
            break
        below |= more
    return max((graph.nodes[uuid] for uuid in below), key=lambda node: node.number)


def _walk(graph: Graph, leaf: Node) -> list[Node]:
    """From the leaf to the root; a cycle ends the walk, a missing parent is bridged."""
    walked: list[Node] = []
    seen: set[str] = set()
    node: Node | None = leaf
    while node is not None and node.uuid not in seen:
        seen.add(node.uuid)
        walked.append(node)
        if graph.is_cut(node):
            break
        node = graph.parent(node) or _bridge(graph, node, seen)
    return walked[::-1]


def _bridge(graph: Graph, node: Node, seen: set[str]) -> Node | None:
    """The record nearest in time before ``node``, within the client's window (2.1.112 and later)."""
    if node.time_ms is None:
        return None
    best: Node | None = None
    gap = BRIDGE_MS + 1
    for other in graph.alive():
        if other.uuid not in seen and other.time_ms is not None and 0 <= node.time_ms - other.time_ms < gap:
            best, gap = other, node.time_ms - other.time_ms
    return best


def _recover_parallel(graph: Graph, chain: list[Node]) -> list[Node]:
    """Put back the calls and results of a parallel turn that a plain walk misses, after their last sibling."""
    on_chain = {node.uuid for node in chain}
    last_of = {node.message_id: node.uuid for node in chain if node.message_id}
    siblings: dict[str, list[Node]] = {message: [] for message in last_of}
    owner: dict[str, str] = {}  # assistant uuid -> message id
    for node in graph.alive():
        if node.message_id in siblings:
            owner[node.uuid] = node.message_id
            if node.uuid not in on_chain:
                siblings[node.message_id].append(node)
    results: dict[str, list[Node]] = {}
    for node in graph.alive():
        parent = graph.parent(node) if node.results and node.uuid not in on_chain else None
        if parent is not None and parent.uuid in owner:
            results.setdefault(owner[parent.uuid], []).append(node)
    whole: list[Node] = []
    for node in chain:
        whole.append(node)
        if node.message_id and last_of[node.message_id] == node.uuid:
            whole += sorted(siblings[node.message_id], key=_time)
            whole += sorted(results.get(node.message_id, []), key=_time)
    return whole


def _time(node: Node) -> int:
    return node.time_ms or 0


def _after_last_boundary(chain: list[Node]) -> list[Node]:
    for index in range(len(chain) - 1, -1, -1):
        if chain[index].boundary:
            return chain[index:]
    return chain
