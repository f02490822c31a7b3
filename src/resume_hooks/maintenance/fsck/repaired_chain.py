"""Which records a repair keeps: everything that can be reached from the end of the conversation, gaps bridged.

Pure functions over nodes. Links are mended on copies; what is answered are the nodes given, as they stand in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from resume_hooks.errors import UsageError
from resume_hooks.maintenance.fsck.links import walked
from resume_hooks.transcripts.chain import live_chain
from resume_hooks.transcripts.graph import Graph, find_leaf
from resume_hooks.transcripts.nodes import Checkpoint, KeptSegment, Node
from resume_hooks.transcripts.records import ASSISTANT, PROGRESS
from resume_hooks.transcripts.transcript import Transcript


def repaired_chain(transcript: Transcript, nodes: Sequence[Node], branch: str | None = None) -> list[Node]:
    """The chain to keep, oldest first; empty where no conversation can be reached.

    ``nodes`` are the transcript's, with whatever was salvaged from its bad lines. The end is the live one, or the
    message at or above the record ``branch``. Gaps are bridged as the client does, and where it does not, to the
    nearest earlier message of the main conversation. UsageError for a branch that is not in the file.
    """
    known = {node.uuid: node.parent for node in nodes}
    originals = [node for node in nodes if node.kind != PROGRESS and not node.broken]
    copies = _stepped_over([copy(node) for node in originals], known)
    end = _end(transcript, copies, branch)
    if end is None:
        return []
    kept = _without_later_compactions(copies, end, transcript.size)
    places = {id(node): place for place, node in enumerate(copies)}
    chain = [originals[places[id(node)]] for node in _bridged(kept, end, transcript.size)]
    return _numbered(_answered_in_time(chain), transcript.line_count)


def _stepped_over(copies: list[Node], parents: Mapping[str, str | None]) -> list[Node]:
    """Nodes that hang on each other, wherever progress and broken records stand in the file; marks that lead on."""
    usable = {node.uuid: node for node in copies}
    for node in copies:
        seen: set[str] = set()
        above = node.parent
        while above is not None and above in parents and above not in usable and above not in seen:
            seen.add(above)
            above = parents[above]
        node.parent = above
    for node in copies:
        if node.boundary and node.segment is not None:
            node.segment = _findable(node.segment, usable, node)
    return copies


def _end(transcript: Transcript, copies: Sequence[Node], branch: str | None) -> Node | None:
    if branch is None:
        return find_leaf(Graph(copies, transcript.size), transcript.checkpoint)
    known = {node.uuid: node for node in copies}
    node = known.get(branch)
    if node is None:
        raise UsageError(f"No record {branch} is in this session", "Use a uuid that fsck names.")
    seen: set[str] = set()
    while node is not None and not node.spoken and node.uuid not in seen:
        seen.add(node.uuid)
        node = known.get(node.parent or "")
    return node


def _without_later_compactions(copies: list[Node], end: Node, size: int) -> list[Node]:
    """The nodes without the compactions that would drop ``end``: those are of another branch."""
    kept = list(copies)
    while end.uuid not in Graph(kept, size).nodes:
        last = next(place for place in range(len(kept) - 1, -1, -1) if kept[place].boundary)
        del kept[last]
    return kept


def _bridged(kept: Sequence[Node], end: Node, size: int) -> list[Node]:
    """The chain up to ``end``, started anew behind each gap that the client would not bridge."""
    exact = Checkpoint()
    exact.point(end.uuid, explicit=True)
    chain: list[Node] = []
    while True:
        longer = live_chain(kept, exact, size)
        if len(longer) <= len(chain):
            return chain or longer
        chain = longer
        graph, first = Graph(kept, size), chain[0]
        before = _nearest_before(graph, first, chain)
        if first.boundary or graph.is_root(first) or before is None:
            return chain
        first.parent = before.uuid


def _nearest_before(graph: Graph, first: Node, chain: Sequence[Node]) -> Node | None:
    """The last message of the main conversation that stands before ``first`` in the file and is not on the chain."""
    on_chain = {node.uuid for node in chain}
    earlier = (
        node
        for node in graph.nodes.values()
        if node.number < first.number and (node.spoken or node.boundary) and not node.sidechain
    )
    return max((node for node in earlier if node.uuid not in on_chain), key=lambda node: node.number, default=None)


def _findable(segment: KeptSegment, known: Mapping[str, Node], boundary: Node) -> KeptSegment:
    """What a compaction kept, as far as it is in the file; a lost anchor is replaced by the summary after it."""
    uuids = segment.uuids if segment.uuids is not None else walked(segment, known)
    anchor = segment.anchor
    if anchor not in known:
        anchor = next((node.uuid for node in known.values() if node.parent == boundary.uuid), boundary.uuid)
    return KeptSegment(anchor, "", "", tuple(uuid for uuid in uuids if uuid in known))


def _answered_in_time(chain: Sequence[Node]) -> list[Node]:
    """The chain with results that stand behind a later answer moved up to their calls: no client sends them there."""
    row: list[Node] = []
    callers: dict[str, Node] = {}
    answer: Node | None = None
    for node in chain:
        caller = next((callers[call] for call in node.results if call in callers), None)
        if caller is not None and answer is not None and answer.message_id != caller.message_id:
            place = row.index(caller) + 1
            while place < len(row) and (row[place].results or row[place].message_id == caller.message_id):
                place += 1
            row.insert(place, node)
            continue
        row.append(node)
        if node.kind == ASSISTANT:
            answer = node
        callers.update(dict.fromkeys(node.calls, node))
    return row


def _numbered(chain: list[Node], lines: int) -> list[Node]:
    """Records of one line get numbers of their own past the end of the file: edits go by number."""
    seen: set[int] = set()
    for node in chain:
        if node.number in seen:
            node.number = lines + len(seen)
        seen.add(node.number)
    return chain
