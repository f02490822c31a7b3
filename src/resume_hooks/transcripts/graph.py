"""The linked records of a file as a client of 2.1.329 holds them: by uuid, with the parents that it would see.

Progress and broken records are stepped over; the last compaction's kept messages are hung between its summary and
what came after, and what it dropped is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import PROGRESS

SKIPPED_BYTES = 5 * 1024 * 1024
"""Size of a file, in bytes, over which clients (2.1.112 and later) don't even read what a compaction dropped."""


class Graph:
    """``nodes`` by uuid in the order of their first appearance; ``spliced`` where kept messages were hung in."""

    def __init__(self, nodes: Iterable[Node], size: int = 0) -> None:
        self.nodes: dict[str, Node] = {}
        self._parents: dict[str, str | None] = {}
        self._read(nodes, skipping=size > SKIPPED_BYTES)
        self.spliced = self._splice()

    def parent(self, node: Node) -> Node | None:
        """The record that ``node`` hangs on, or None at a root and where the parent is not in the file."""
        uuid = self._parents[node.uuid]
        return None if uuid is None else self.nodes.get(uuid)

    def is_root(self, node: Node) -> bool:
        """Whether no parent was ever named, so that nothing is missing above."""
        return self._parents[node.uuid] is None

    def children(self, among: Iterable[Node]) -> dict[str, list[Node]]:
        """The records of ``among`` that hang on each uuid, in their order."""
        found: dict[str, list[Node]] = {}
        for node in among:
            parent = self._parents[node.uuid]
            if parent is not None:
                found.setdefault(parent, []).append(node)
        return found

    @cached_property
    def positions(self) -> dict[str, int]:
        """The place of each record in the file order of ``nodes``."""
        return {uuid: place for place, uuid in enumerate(self.nodes)}

    @cached_property
    def by_time(self) -> dict[bool, list[Node]]:
        """The dated records of the main conversation and of sidechains, by time; of equal ones the first comes last."""
        dated = [node for node in reversed(self.nodes.values()) if node.time_ms is not None]
        dated.sort(key=lambda node: node.time_ms or 0)
        return {side: [node for node in dated if node.sidechain is side] for side in (False, True)}

    def _read(self, nodes: Iterable[Node], *, skipping: bool) -> None:
        progress: dict[str, str | None] = {}
        broken: dict[str, str | None] = {}
        for node in nodes:
            if node.kind == PROGRESS:
                progress[node.uuid] = _step(node.parent, progress)
            elif node.broken:
                broken[node.uuid] = _step(node.parent, progress)
            else:
                if skipping and node.boundary and node.segment is None:
                    self.nodes.clear()
                    self._parents.clear()
                    progress.clear()
                self.nodes[node.uuid] = node  # a duplicate uuid: the last one wins, in the place of the first
                self._parents[node.uuid] = _step(node.parent, progress)
        for uuid, parent in self._parents.items() if broken else ():
            self._parents[uuid] = self._past_broken(parent, broken)

    def _past_broken(self, parent: str | None, broken: dict[str, str | None]) -> str | None:
        seen: set[str] = set()
        while parent is not None and parent not in self.nodes and parent in broken:
            if parent in seen:
                return None
            seen.add(parent)
            parent = broken[parent]
        return parent

    def _splice(self) -> bool:
        """Hang in what the last compaction kept and drop the rest before it; do nothing if that can't be told."""
        boundaries = [node for node in self.nodes.values() if node.boundary]
        if not any(node.segment for node in boundaries):
            return False
        last = boundaries[-1]
        kept = self._kept(last)
        if kept is None:
            return False
        if kept and last.segment is not None:
            self._hang(kept, last.segment.anchor)
        self._drop(last, kept)
        return bool(kept)

    def _kept(self, boundary: Node) -> list[str] | None:
        """The uuids that a boundary kept, from head to tail; None if its marks lead nowhere."""
        segment = boundary.segment
        if segment is None:
            return []
        if segment.uuids is not None:
            return list(segment.uuids) if all(uuid in self.nodes for uuid in segment.uuids) else None
        walked: dict[str, None] = {}
        uuid: str | None = segment.tail
        while uuid is not None and uuid in self.nodes and uuid not in walked:
            walked[uuid] = None
            if uuid == segment.head:
                return list(walked)[::-1]
            uuid = self._parents[uuid]
        return None

    def _hang(self, kept: list[str], anchor: str) -> None:
        before = anchor
        for uuid in kept:
            self._parents[uuid] = before
            before = uuid
        for uuid, parent in self._parents.items():
            if parent == anchor and uuid != kept[0]:
                self._parents[uuid] = kept[-1]

    def _drop(self, boundary: Node, kept: list[str]) -> None:
        """Forget what stands before ``boundary``; messages that hang there hang on the last kept one instead."""
        keep = set(kept)
        dropped = set()
        for uuid in self.nodes:
            if uuid == boundary.uuid:
                break
            if uuid not in keep:
                dropped.add(uuid)
        for uuid in dropped:
            del self.nodes[uuid], self._parents[uuid]
        for uuid, parent in self._parents.items() if kept else ():
            if parent in dropped and self.nodes[uuid].spoken:
                self._parents[uuid] = kept[-1]


def _step(parent: str | None, progress: dict[str, str | None]) -> str | None:
    """The parent that children of a progress record hang on; only records that came earlier are known."""
    return progress.get(parent, parent) if parent is not None else None
