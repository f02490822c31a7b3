"""Which record a conversation ends at: the client's own choice, branch by branch (measured on 2.1.329).

The checkpoint wins, or the file's last record where that continues it; without one the last record decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.transcripts.graph import Graph
from resume_hooks.transcripts.nodes import Checkpoint, Node, ancestors
from resume_hooks.transcripts.records import ASSISTANT


def find_leaf(graph: Graph, checkpoint: Checkpoint) -> Node | None:
    """The message that a resumed conversation ends at; None if nothing is left of it."""
    rows = [node for node in graph.nodes.values() if not node.sidechain]
    if checkpoint.emptied or not rows:
        return None
    last = max(rows, key=lambda node: node.number)
    pointed = graph.nodes.get(checkpoint.uuid)
    if pointed is not None and pointed.sidechain:  # 2.1.112 and later find no such session; a child is to be sound
        pointed = None
    if not graph.spliced or (checkpoint.explicit and pointed):
        chosen = _settled(graph, checkpoint, pointed, last)
        if chosen is None and not graph.spliced:
            chosen = last if checkpoint.hinted else _newest_below(graph, last, rows)
        leaf = _message_at(graph, chosen) if chosen else None
        if leaf is not None:
            return leaf
    return _among_ends(graph, checkpoint, pointed, last) or max(rows, key=_time)


def _settled(graph: Graph, checkpoint: Checkpoint, pointed: Node | None, last: Node) -> Node | None:
    """The checkpoint's record, or the file's last one where the conversation went on from there."""
    if pointed is None or checkpoint.explicit:
        return pointed
    return last if _continues(graph, last, pointed, checkpoint, through_itself=True) else pointed


def _among_ends(graph: Graph, checkpoint: Checkpoint, pointed: Node | None, last: Node) -> Node | None:
    """The choice among the ends of all branches."""
    answered = {parent.uuid for node in graph.nodes.values() if node.spoken and (parent := graph.parent(node))}
    parents = graph.children(graph.nodes.values())
    ends = (_message_at(graph, node) for node in graph.nodes.values() if node.uuid not in parents)
    leaves = {end.uuid: end for end in ends if end is not None and end.uuid not in answered}
    if len(leaves) > 1:
        stays = pointed is not None and pointed.uuid in leaves
        if pointed is not None and stays and not checkpoint.explicit:
            stays = not _continues(graph, last, pointed, checkpoint, through_itself=False)
        chosen = _message_at(graph, pointed if pointed is not None and stays else last)
        if chosen is not None:
            return chosen
    return max((leaf for leaf in leaves.values() if not leaf.sidechain), key=_time, default=None)


def _newest_below(graph: Graph, last: Node, rows: list[Node]) -> Node:
    """The newest record that hangs below the file's last one, where parents were written after their children."""
    if max(rows, key=_time) is last:
        return last
    children = graph.children(rows)
    below: list[Node] = []
    seen = {last.uuid}
    queue = [last]
    while queue:
        more = [child for child in children.get(queue.pop().uuid, ()) if child.uuid not in seen]
        seen.update(child.uuid for child in more)
        below += more
        queue += more
    timed = [node for node in below if node.time_ms is not None]
    return max(timed, key=lambda node: (_time(node), graph.positions[node.uuid]), default=last)


def _continues(graph: Graph, last: Node, pointed: Node, checkpoint: Checkpoint, *, through_itself: bool) -> bool:
    """Whether the walk up from ``last`` passes the checkpoint, or another call of the same parallel batch."""
    caller, answered = (None, ()) if checkpoint.ever_explicit else _batch(graph, pointed)
    answer = caller.message_id if caller is not None and caller.calls else ""
    earlier = {node.uuid for node in _same_answer(graph, caller)} if caller is not None and answer else set()
    within = False
    child: Node | None = None
    for node in ancestors(last, graph.parent):
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
        if node is caller and child is not None and _answers_another(node, answered, child):
            return True
        child = node
    return False


def _batch(graph: Graph, pointed: Node) -> tuple[Node | None, tuple[str, ...]]:
    """The call that a checkpoint on or below a tool result belongs to, and what was answered; else the record."""
    node = next((above for above in ancestors(pointed, graph.parent) if not above.aside), None)
    if node is not None and node.results:
        return graph.parent(node), node.results
    return (node if node is pointed else None), ()


def _answers_another(caller: Node, answered: tuple[str, ...], child: Node) -> bool:
    calls = set(caller.calls)
    return bool(calls.intersection(answered)) and bool(calls.intersection(child.results) - set(answered))


def _same_answer(graph: Graph, caller: Node) -> Iterator[Node]:
    """The records above a call that belong to the same answer of the model."""
    above = ancestors(caller, graph.parent)
    next(above)
    for node in above:
        if not _accompanies(node, caller.message_id):
            return
        yield node


def _accompanies(node: Node, message_id: str) -> bool:
    """Whether a record can stand within an answer of several calls: its own blocks, results, remarks."""
    if node.kind == ASSISTANT:
        return node.message_id == message_id
    return node.aside or bool(node.results)


def _message_at(graph: Graph, node: Node) -> Node | None:
    """The nearest message at or above ``node``."""
    return next((above for above in ancestors(node, graph.parent) if above.spoken), None)


def _time(node: Node) -> int:
    return -1 if node.time_ms is None else node.time_ms
