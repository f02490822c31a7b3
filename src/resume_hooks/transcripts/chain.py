"""Compute the live chain: the records that a client would send on resume.

The rules of the client were determined with versions up to 2.1.329 (docs/transcripts.md). Where
versions differ, the module follows the newest one. The functions work with nodes and read no files.

Each record names its parent by uuid. Progress records and broken records are skipped, so their
children become children of the skipped record's parent. Messages that the last compaction kept are
inserted between its summary and the records after it. Other messages before that compaction are
removed.

The chain usually ends at the record that the checkpoint names. It ends at the last record of the
file if there is no checkpoint, or if the last record continues the conversation after the record
that the checkpoint names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import NamedTuple

from resume_hooks.transcripts.nodes import Checkpoint, Node, iterate_ancestors
from resume_hooks.transcripts.records import ASSISTANT, PROGRESS

MIN_SKIPPED_FILE_BYTES = 5 * 1024 * 1024
"""In files larger than this, clients since 2.1.112 do not read the part before a compaction."""


class RecordGraph:
    """The records of a transcript by uuid, with the parents that a client would use.

    ``nodes`` is in the order in which the uuids first appear. ``has_inserted_messages`` is true if
    messages that a compaction kept were inserted.
    """

    def __init__(self, nodes: Iterable[Node], size: int = 0) -> None:
        self.nodes: dict[str, Node] = {}
        self._parents: dict[str, str | None] = {}
        progress_parents: dict[str, str | None] = {}
        broken_parents: dict[str, str | None] = {}
        for node in nodes:
            if node.kind == PROGRESS:
                progress_parents[node.uuid] = _skip_progress_records(
                    node.parent_uuid, progress_parents
                )
            elif node.is_broken:
                broken_parents[node.uuid] = _skip_progress_records(
                    node.parent_uuid, progress_parents
                )
            else:
                if size > MIN_SKIPPED_FILE_BYTES and node.is_boundary and node.kept_segment is None:
                    self.nodes.clear()
                    self._parents.clear()
                    progress_parents.clear()
                # If several records have the same uuid, the last one replaces the others at the
                # position of the first.
                self.nodes[node.uuid] = node
                self._parents[node.uuid] = _skip_progress_records(
                    node.parent_uuid, progress_parents
                )
        for uuid, parent in self._parents.items() if broken_parents else ():
            self._parents[uuid] = self._skip_broken_parents(parent, broken_parents)
        self.has_inserted_messages = self._insert_kept_messages()

    def find_parent(self, node: Node) -> Node | None:
        """Return the parent of ``node``, or None if it has no parent or if its parent is not in the file."""
        uuid = self._parents[node.uuid]
        if uuid is None:
            return None
        return self.nodes.get(uuid)

    def is_root(self, node: Node) -> bool:
        """Check whether a record starts a conversation, because it does not name a parent.

        A record whose parent is missing in the file is not a root.
        """
        return self._parents[node.uuid] is None

    def group_children(self, nodes: Iterable[Node]) -> dict[str, list[Node]]:
        """Group ``nodes`` by the uuid of their parent, keeping their order."""
        children_by_parent: dict[str, list[Node]] = {}
        for node in nodes:
            parent = self._parents[node.uuid]
            if parent is not None:
                children_by_parent.setdefault(parent, []).append(node)
        return children_by_parent

    @cached_property
    def indexes_by_uuid(self) -> dict[str, int]:
        """The index of each record in ``nodes``, by uuid."""
        return {uuid: index for index, uuid in enumerate(self.nodes)}

    @cached_property
    def sorted_nodes_by_sidechain(self) -> dict[bool, list[Node]]:
        """The records that have a time, sorted by time.

        The key False has the records of the main conversation, and the key True has those of side
        chains. Records with equal times are in reverse file order.
        """
        dated_nodes = [node for node in reversed(self.nodes.values()) if node.time_ms is not None]
        dated_nodes.sort(key=lambda node: node.time_ms or 0)
        return {
            is_sidechain: [node for node in dated_nodes if node.is_sidechain is is_sidechain]
            for is_sidechain in (False, True)
        }

    def _skip_broken_parents(
        self, parent: str | None, broken_parents: dict[str, str | None]
    ) -> str | None:
        seen_ids: set[str] = set()
        while parent is not None and parent not in self.nodes and parent in broken_parents:
            if parent in seen_ids:
                return None
            seen_ids.add(parent)
            parent = broken_parents[parent]
        return parent

    def _insert_kept_messages(self) -> bool:
        """Insert the messages that the last compaction kept, and remove other records before it.

        Return whether messages were inserted. If the kept messages cannot be determined, the graph
        is unchanged.
        """
        boundaries = []
        for node in self.nodes.values():
            if node.is_boundary:
                boundaries.append(node)
        if not any(node.kept_segment for node in boundaries):
            return False
        last_boundary = boundaries[-1]
        kept_ids = self._find_kept_uuids(last_boundary)
        if kept_ids is None:
            return False
        if kept_ids and last_boundary.kept_segment is not None:
            before = anchor = last_boundary.kept_segment.anchor_uuid
            for uuid in kept_ids:
                self._parents[uuid] = before
                before = uuid
            for uuid, parent in self._parents.items():
                if parent == anchor and uuid != kept_ids[0]:
                    self._parents[uuid] = kept_ids[-1]
        self._drop_unkept_nodes_before(last_boundary, kept_ids)
        return bool(kept_ids)

    def _find_kept_uuids(self, boundary: Node) -> list[str] | None:
        """Return the uuids of the messages that a compaction kept, in order.

        Return None if the boundary record names messages that do not exist.
        """
        segment = boundary.kept_segment
        if segment is None:
            return []
        if segment.uuids is not None:
            if all(uuid in self.nodes for uuid in segment.uuids):
                return list(segment.uuids)
            return None
        walked_ids: dict[str, None] = {}
        uuid: str | None = segment.tail_uuid
        while uuid is not None and uuid in self.nodes and uuid not in walked_ids:
            walked_ids[uuid] = None
            if uuid == segment.head_uuid:
                return list(walked_ids)[::-1]
            uuid = self._parents[uuid]
        return None

    def _drop_unkept_nodes_before(self, boundary: Node, kept_ids: list[str]) -> None:
        """Remove the records before ``boundary``, except those with ``kept_ids``.

        If the parent of a message after the boundary is removed, the message becomes a child of the
        last kept message.
        """
        dropped_ids = set(takewhile(lambda uuid: uuid != boundary.uuid, self.nodes)) - set(kept_ids)
        for uuid in dropped_ids:
            del self.nodes[uuid], self._parents[uuid]
        for uuid, parent in self._parents.items() if kept_ids else ():
            if parent in dropped_ids and self.nodes[uuid].is_message:
                self._parents[uuid] = kept_ids[-1]


def _skip_progress_records(
    parent: str | None, progress_parents: dict[str, str | None]
) -> str | None:
    """Return ``parent`` or, if it is a progress record, the uuid of its nearest ancestor of another kind.

    Progress records are skipped only if they come earlier in the file.
    """
    if parent is not None:
        return progress_parents.get(parent, parent)
    return None


def find_last_message(graph: RecordGraph, checkpoint: Checkpoint) -> Node | None:
    """Return the last message of a resumed conversation, or None if the conversation is empty."""
    main_nodes = [node for node in graph.nodes.values() if not node.is_sidechain]
    if checkpoint.is_rewound_to_start or not main_nodes:
        return None
    last_node = max(main_nodes, key=lambda node: node.line_number)
    checkpoint_node = graph.nodes.get(checkpoint.uuid)
    # Clients since 2.1.112 reject a checkpoint on a side chain, so it is ignored.
    if checkpoint_node is not None and checkpoint_node.is_sidechain:
        checkpoint_node = None
    if not graph.has_inserted_messages or (checkpoint.has_unfollowed_rewind and checkpoint_node):
        chosen_node = _select_checkpoint(graph, checkpoint, checkpoint_node, last_node)
        if chosen_node is None and not graph.has_inserted_messages:
            if checkpoint.has_branch_hint:
                chosen_node = last_node
            else:
                chosen_node = _find_newest_descendant(graph, last_node, main_nodes)
        leaf = _find_nearest_message_ancestor(graph, chosen_node) if chosen_node else None
        if leaf is not None:
            return leaf
    return _choose_leaf(graph, checkpoint, checkpoint_node, last_node) or max(
        main_nodes, key=_get_node_time
    )


def _select_checkpoint(
    graph: RecordGraph, checkpoint: Checkpoint, checkpoint_node: Node | None, last_node: Node
) -> Node | None:
    """Return the record that the checkpoint names, or the last record of the file.

    The last record is returned if it continues the conversation from the checkpoint.
    """
    if checkpoint_node is None or checkpoint.has_unfollowed_rewind:
        return checkpoint_node
    if _is_continuation(
        graph, last_node, checkpoint_node, checkpoint, may_be_checkpoint_itself=True
    ):
        return last_node
    return checkpoint_node


def _choose_leaf(
    graph: RecordGraph, checkpoint: Checkpoint, checkpoint_node: Node | None, last_node: Node
) -> Node | None:
    answered_ids = {
        parent.uuid
        for node in graph.nodes.values()
        if node.is_message and (parent := graph.find_parent(node))
    }
    parents = graph.group_children(graph.nodes.values())
    end_nodes = (
        _find_nearest_message_ancestor(graph, node)
        for node in graph.nodes.values()
        if node.uuid not in parents
    )
    leaves = {}
    for end_node in end_nodes:
        if end_node is not None and end_node.uuid not in answered_ids:
            leaves[end_node.uuid] = end_node
    if len(leaves) > 1:
        is_leaf = checkpoint_node is not None and checkpoint_node.uuid in leaves
        if checkpoint_node is not None and is_leaf and not checkpoint.has_unfollowed_rewind:
            is_leaf = not _is_continuation(
                graph, last_node, checkpoint_node, checkpoint, may_be_checkpoint_itself=False
            )
        chosen_message = _find_nearest_message_ancestor(
            graph, checkpoint_node if checkpoint_node is not None and is_leaf else last_node
        )
        if chosen_message is not None:
            return chosen_message
    return max(
        (leaf for leaf in leaves.values() if not leaf.is_sidechain),
        key=_get_node_time,
        default=None,
    )


def _find_newest_descendant(graph: RecordGraph, last_node: Node, nodes: list[Node]) -> Node:
    """Return the newest descendant of the last record of the file.

    In some files a parent is written after its children, so the last record may have descendants.
    """
    if max(nodes, key=_get_node_time) is last_node:
        return last_node
    children = graph.group_children(nodes)
    descendants: list[Node] = []
    seen_ids = {last_node.uuid}
    queue = [last_node]
    while queue:
        new_nodes = []
        for child in children.get(queue.pop().uuid, ()):
            if child.uuid not in seen_ids:
                new_nodes.append(child)
        for child in new_nodes:
            seen_ids.add(child.uuid)
        descendants += new_nodes
        queue += new_nodes
    dated_nodes = [node for node in descendants if node.time_ms is not None]
    return max(
        dated_nodes,
        key=lambda node: (_get_node_time(node), graph.indexes_by_uuid[node.uuid]),
        default=last_node,
    )


def _is_continuation(
    graph: RecordGraph,
    last_node: Node,
    checkpoint_node: Node,
    checkpoint: Checkpoint,
    *,
    may_be_checkpoint_itself: bool,
) -> bool:
    """Check whether the last record continues the conversation from the checkpoint.

    This is true if the checkpoint's record is among the ancestors of the last record. It is also
    true if one of these ancestors is another call of the same answer as the checkpoint's record.
    """
    batch_call, answered_calls = (
        _ParallelBatch(None, ())
        if checkpoint.has_rewind
        else _find_parallel_batch(graph, checkpoint_node)
    )
    batch_message_id = (
        batch_call.message_id if batch_call is not None and batch_call.call_ids else ""
    )
    # The records of the same answer that precede the call.
    preceding_nodes = islice(
        iterate_ancestors(batch_call if batch_message_id else None, graph.find_parent), 1, None
    )
    earlier_ids = {
        node.uuid
        for node in takewhile(
            lambda node: _can_be_inside_answer(node, batch_message_id), preceding_nodes
        )
    }
    is_in_batch = False
    child: Node | None = None
    for node in iterate_ancestors(last_node, graph.find_parent):
        if may_be_checkpoint_itself and node is checkpoint_node:
            return True
        if batch_message_id:
            if is_in_batch and node is batch_call:
                return True
            if node is not batch_call and node.message_id == batch_message_id and node.call_ids:
                if node.uuid in earlier_ids:
                    return True
                is_in_batch = True
            elif not _can_be_inside_answer(node, batch_message_id):
                is_in_batch = False
        if node is batch_call and child is not None:
            call_ids = set(node.call_ids)
            if call_ids.intersection(answered_calls) and call_ids.intersection(
                child.answered_call_ids
            ) - set(answered_calls):
                return True
        child = node
    return False


class _ParallelBatch(NamedTuple):
    """The parallel calls of the answer to which the checkpoint's record belongs.

    ``call_node`` is the call to which the checkpoint's record belongs. ``answered_call_ids``
    are the ids of the calls that have been answered so far. If the record neither contains a result nor follows one,
    ``call_node`` is the record's own node, and there are no ids. If such a record is a remark,
    ``call_node`` is None.
    """

    call_node: Node | None
    answered_call_ids: tuple[str, ...]


def _find_parallel_batch(graph: RecordGraph, checkpoint_node: Node) -> _ParallelBatch:
    """Find the parallel calls to which the checkpoint's record belongs."""
    node = next(
        (
            ancestor
            for ancestor in iterate_ancestors(checkpoint_node, graph.find_parent)
            if not ancestor.is_remark
        ),
        None,
    )
    if node is not None and node.answered_call_ids:
        return _ParallelBatch(graph.find_parent(node), node.answered_call_ids)
    return _ParallelBatch(node if node is checkpoint_node else None, ())


def _can_be_inside_answer(node: Node, message_id: str) -> bool:
    """Check whether a record can be between the calls of one answer.

    Only other blocks of the answer, results and remarks can be there.
    """
    if node.kind == ASSISTANT:
        return node.message_id == message_id
    return node.is_remark or bool(node.answered_call_ids)


def _find_nearest_message_ancestor(graph: RecordGraph, node: Node) -> Node | None:
    return next(
        (above for above in iterate_ancestors(node, graph.find_parent) if above.is_message), None
    )


def _get_node_time(node: Node) -> int:
    if node.time_ms is None:
        return -1
    return node.time_ms


MAX_SUBSTITUTE_AGE_MS = (
    # If a parent is missing, the client looks for a substitute that is at most this number of
    # milliseconds older than the child.
    5_000
)


def build_live_chain(
    nodes: Iterable[Node], checkpoint: Checkpoint, size: int = 0, *, bridge_gaps: bool = True
) -> list[Node]:
    """Return the records that the client would load on resume, oldest first.

    The chain starts with the last compaction, if there is one. ``size`` is the size of the whole
    file in bytes, because clients skip parts of large files. If ``bridge_gaps`` is false, the chain
    starts at the first record whose parent is missing. This is for callers that have read only the
    end of a file.
    """
    graph = RecordGraph(nodes, size)
    last_message = find_last_message(graph, checkpoint)
    if last_message is None:
        return []
    chain = _find_path_to_root(graph, last_message, bridge_gaps=bridge_gaps)
    if outside_nodes := _list_nodes_outside_chain(graph, chain):
        chain = ParallelCallRestorer(graph, chain, outside_nodes).restore_chain()
        chain += _find_following_remarks(
            graph, last_message, outside_nodes, {node.uuid for node in chain}
        )
    return _select_nodes_since_boundary(chain)


def build_chain_to(nodes: Sequence[Node], last: Node, size: int = 0) -> list[Node]:
    """Return the records that the client would load if the conversation ended at ``last``, oldest first.

    ``nodes`` must be those of the whole file. Messages that a compaction after ``last`` removed are
    included. If ``last`` contains one of several parallel calls, the results of these calls follow
    it.
    """
    later_boundaries = (
        node
        for node in nodes
        if node.is_boundary and not node.is_sidechain and node.line_number > last.line_number
    )
    compaction = next(later_boundaries, None)
    if compaction is not None:
        size = min(size, compaction.offset)
        nodes = [node for node in nodes if node.line_number < compaction.line_number]
    graph = RecordGraph(nodes, size)
    leaf = graph.nodes.get(last.uuid)
    if leaf is None:
        return []
    chain = _find_path_to_root(graph, leaf, bridge_gaps=True)
    return _select_nodes_since_boundary(
        ParallelCallRestorer(graph, chain, _list_nodes_outside_chain(graph, chain)).restore_chain()
    )


def _list_nodes_outside_chain(graph: RecordGraph, chain: Sequence[Node]) -> list[Node]:
    on_chain = {node.uuid for node in chain}
    return [node for node in graph.nodes.values() if node.uuid not in on_chain]


def _find_path_to_root(graph: RecordGraph, leaf: Node, *, bridge_gaps: bool) -> list[Node]:
    """Return the path from the root to ``leaf``, oldest first.

    If a parent is missing or would close a cycle, and ``bridge_gaps`` is true, a substitute is
    used.
    """
    walked_nodes: dict[str, Node] = {}
    node: Node | None = leaf
    while node is not None:
        walked_nodes[node.uuid] = node
        if graph.is_root(node):
            break
        parent = graph.find_parent(node)
        if parent is None or parent.uuid in walked_nodes:
            parent = _find_substitute_parent(graph, node, walked_nodes) if bridge_gaps else None
        node = parent
    return list(walked_nodes.values())[::-1]


def _find_substitute_parent(
    graph: RecordGraph, node: Node, walked_nodes: dict[str, Node]
) -> Node | None:
    """Return the record that was written most recently before ``node``, or at the same time, or None.

    If several records have that time, return the first of them. Like the client, the function
    considers only the last few seconds before ``node``.
    """
    if node.time_ms is None:
        return None
    dated_nodes = graph.sorted_nodes_by_sidechain[node.is_sidechain]
    for index in range(bisect_right(dated_nodes, node.time_ms, key=_get_node_time) - 1, -1, -1):
        candidate = dated_nodes[index]
        if node.time_ms - _get_node_time(candidate) > MAX_SUBSTITUTE_AGE_MS:
            return None
        if candidate.uuid not in walked_nodes:
            return candidate
    return None


def _find_following_remarks(
    graph: RecordGraph, leaf: Node, outside_nodes: list[Node], seen_ids: set[str]
) -> list[Node]:
    """Return the attachments and system records that follow the leaf, sorted by time."""
    children = graph.group_children(
        node for node in outside_nodes if not node.is_message and node.uuid not in seen_ids
    )
    remarks: list[Node] = []
    queue = [leaf]
    while queue:
        children_of_node = []
        for node in children.pop(queue.pop(0).uuid, ()):
            if node is not leaf:
                children_of_node.append(node)
        remarks += children_of_node
        queue += children_of_node
    return sorted(remarks, key=_get_node_time)


def _select_nodes_since_boundary(chain: list[Node]) -> list[Node]:
    return chain[max((index for index, node in enumerate(chain) if node.is_boundary), default=0) :]


class _RestoredRegion(NamedTuple):
    """The records to restore between two indexes of the chain.

    ``restored_nodes`` are records that are inserted in the order of the file. ``remarks_by_preceding_uuid``
    maps the uuid of a record in the chain to the remarks that directly follow it.
    """

    start_index: int
    end_index: int
    restored_nodes: list[Node]
    remarks_by_preceding_uuid: dict[str, list[Node]]


class ParallelCallRestorer:
    """Restores the records of parallel calls that are not on the chain.

    Clients link the parallel calls of one answer as branches, of which the chain contains only one.
    """

    def __init__(self, graph: RecordGraph, chain: list[Node], nodes_off_chain: list[Node]) -> None:
        self._graph = graph
        self._chain = chain
        self._children = graph.group_children(nodes_off_chain)
        self._restored_ids: set[str] = set()
        self._positions = {node.uuid: place for place, node in enumerate(chain)}
        branched_answer_ids = {
            message_id for node in nodes_off_chain if (message_id := self._find_answer_id(node))
        }
        self._answers: dict[str, list[Node]] = {}
        for node in [*chain, *nodes_off_chain]:
            if node.message_id in branched_answer_ids and (
                node.uuid in self._positions or node.message_id in self._answers
            ):
                self._answers.setdefault(node.message_id, []).append(node)

    def restore_chain(self) -> list[Node]:
        """Return the chain with the restored records, in the order of the file."""
        regions = []
        for message_id in self._answers:
            if (region := self._build_restored_region(message_id)) is not None:
                regions.append(region)
        merged_regions: list[_RestoredRegion] = []
        for region in sorted(regions, key=lambda found: found.start_index):
            if merged_regions and region.start_index < merged_regions[-1].end_index:
                previous = merged_regions.pop()
                end, recovered_nodes = (
                    max(previous.end_index, region.end_index),
                    [*previous.restored_nodes, *region.restored_nodes],
                )
                remarks_after = (
                    previous.remarks_by_preceding_uuid | region.remarks_by_preceding_uuid
                )
                region = _RestoredRegion(previous.start_index, end, recovered_nodes, remarks_after)  # noqa: PLW2901
            merged_regions.append(region)
        positions = self._graph.indexes_by_uuid
        complete_chain: list[Node] = []
        next_index = 0
        for start, end, recovered_nodes, remarks_after in merged_regions:
            pending_nodes = sorted(
                recovered_nodes, key=lambda node: positions[node.uuid], reverse=True
            )
            complete_chain += self._chain[next_index : start + 1]
            for node in self._chain[start + 1 : end]:
                while pending_nodes and positions[pending_nodes[-1].uuid] < positions[node.uuid]:
                    complete_chain.append(pending_nodes.pop())
                complete_chain.append(node)
                complete_chain += remarks_after.get(node.uuid, ())
            complete_chain += pending_nodes[::-1]
            next_index = end
        return complete_chain + self._chain[next_index:]

    def _find_answer_id(self, node: Node) -> str:
        """Return the message id of the answer to which the record belongs, or ``""``.

        The record may be a block of the answer, the result of one of its calls, or a remark that
        follows such a block or result.
        """
        ancestor = next(
            (
                ancestor
                for ancestor in iterate_ancestors(node, self._graph.find_parent)
                if not ancestor.is_remark
            ),
            None,
        )
        if ancestor is not None and ancestor.answered_call_ids:
            ancestor = self._graph.find_parent(ancestor)
        if ancestor is not None:
            return ancestor.message_id
        return ""

    def _build_restored_region(self, message_id: str) -> _RestoredRegion | None:
        answer_nodes = self._answers[message_id]
        start = self._positions[answer_nodes[0].uuid]
        restored_nodes = self._mark_as_restored(
            [node for node in answer_nodes if node.uuid not in self._positions]
        )
        missing_results = []
        for caller in answer_nodes:
            missing_results += [
                node
                for node in self._list_children_not_yet_restored(caller)
                if node.answered_call_ids
            ]
        results = self._mark_as_restored(missing_results)
        end = max(self._positions.get(node.uuid, -1) for node in answer_nodes) + 1
        # The region includes the results of the answer's calls, and the remarks among them.
        while end < len(self._chain):
            node = self._chain[end]
            if not (
                node.message_id == message_id
                if node.kind == ASSISTANT
                else node.is_remark or node.answered_call_ids
            ):
                break
            end += 1
        remarks_after: dict[str, list[Node]] = {}
        if any(node.call_ids for node in answer_nodes):
            answered_nodes = [
                node for node in self._chain[start + 1 : end] if node.answered_call_ids
            ]
            for node in [*answer_nodes, *results, *answered_nodes]:
                restored_nodes += self._find_following_remarks(node)
            for node in self._chain[start + 1 : end]:
                if node.is_remark and (remarks := self._find_following_remarks(node)):
                    remarks_after[node.uuid] = remarks
        restored_nodes += results
        if restored_nodes or remarks_after:
            return _RestoredRegion(start, end, restored_nodes, remarks_after)
        return None

    def _find_following_remarks(self, node: Node) -> list[Node]:
        """Return the remarks that follow ``node``.

        A sequence of remarks is returned only if it has no branches and ends with a remark. Any
        other sequence belongs to a different branch of the conversation.
        """
        remarks: list[Node] = []
        for child in self._list_children_not_yet_restored(node):
            consecutive_remarks: list[Node] = []
            queue = [child]
            while len(queue) == 1 and queue[0].is_remark and queue[0] not in consecutive_remarks:
                consecutive_remarks.append(queue[0])
                queue = self._list_children_not_yet_restored(queue[0])
            if consecutive_remarks and not queue:
                remarks += self._mark_as_restored(consecutive_remarks)
        return remarks

    def _list_children_not_yet_restored(self, node: Node) -> list[Node]:
        return [
            child
            for child in self._children.get(node.uuid, ())
            if child.uuid not in self._restored_ids
        ]

    def _mark_as_restored(self, nodes: list[Node]) -> list[Node]:
        """Return ``nodes`` without duplicates, and remember them as restored."""
        restored_nodes = list({node.uuid: node for node in nodes}.values())
        self._restored_ids.update(node.uuid for node in restored_nodes)
        return restored_nodes
