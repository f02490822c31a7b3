"""The links between records: parents that are missing, come later or go round, and ids that stand twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from resume_hooks.maintenance.fsck.findings import Defect, Kind
from resume_hooks.transcripts.graph import Graph
from resume_hooks.transcripts.nodes import KeptSegment, Node, ancestors
from resume_hooks.transcripts.records import PROGRESS
from resume_hooks.transcripts.transcript import Transcript

CUT = Kind(
    "history-cut", "error", "Every client loads the conversation from this record on; what is before is not sent."
)
BRIDGED = Kind(
    "parent-bridged",
    "warning",
    "Clients up to 2.1.42 lose everything before it; later ones go on at the record nearest in time.",
)
DANGLING = Kind("parent-missing", "warning", "Clients start the conversation here. Nothing before it is in this file.")
ASIDE = Kind("parent-missing-aside", "note", "The record is on no branch that a client would load.")
CYCLE = Kind(
    "parent-cycle",
    "error",
    "Client 2.1.112 refuses the whole session; others end the conversation where the circle closes.",
)
LATER = Kind("parent-after-child", "note", "Clients load it as it is; clients write it so themselves.")
TWICE = Kind("uuid-repeated", "error", "The last one wins: what the earlier record says is not sent.", repairable=False)
COPY = Kind("record-repeated", "note", "The last one wins, and says the same.")


def of_ties(transcript: Transcript) -> Iterator[Defect]:
    """Every broken link of a transcript."""
    yield from _of_chain(transcript)
    on_chain = {node.uuid for node in transcript.chain}
    for node in transcript.nodes:
        above = transcript.parent(node)
        if above is not None and above.number > node.number:
            yield LATER.at(node, f"Its parent stands in record {above.number}")
        elif node.parent and above is None and node.uuid not in on_chain and node.kind != PROGRESS:
            yield ASIDE.at(node, f"Its parent {node.parent} is not in the file")
    yield from _of_circles(transcript)
    yield from _of_repetitions(transcript)


def _of_chain(transcript: Transcript) -> Iterator[Defect]:
    """Gaps of the live chain: bridged within it, a cut at its start."""
    graph = Graph(transcript.nodes, transcript.size)
    before: Node | None = None
    for node in transcript.chain:
        if before is None and not node.boundary and not graph.is_root(node):
            yield _start(transcript, node)
        elif before is not None and node.parent is not None and transcript.parent(node) is None:
            message = f"Its parent {node.parent} is not in the file; bridged to record {before.number}"
            yield BRIDGED.at(node, message)
        before = node


def _start(transcript: Transcript, first: Node) -> Defect:
    on_chain = {node.uuid for node in transcript.chain}
    lost = sum(
        node.prompt and not node.sidechain and node.uuid not in on_chain
        for node in transcript.nodes
        if node.number < first.number
    )
    tail = f"; {lost} earlier turns are lost" if lost else ""
    message = f"Its parent {first.parent} leads nowhere{tail}"
    return (CUT if lost else DANGLING).at(first, message)


def _of_circles(transcript: Transcript) -> Iterator[Defect]:
    """One finding a circle, at the record that closes it in the order of the file."""
    settled: set[str] = set()
    for start in transcript.nodes:
        path: dict[str, None] = {}
        node: Node | None = start
        while node is not None and node.uuid not in settled and node.uuid not in path:
            path[node.uuid] = None
            node = transcript.parent(node)
        if node is not None and node.uuid in path:
            round_trip = list(path)[list(path).index(node.uuid) :]
            first = min((transcript.by_uuid[uuid] for uuid in round_trip), key=lambda found: found.number)
            yield CYCLE.at(first, f"Its parents lead back to itself, past {len(round_trip)} records")
        settled.update(path)


def _of_repetitions(transcript: Transcript) -> Iterator[Defect]:
    seen: dict[str, Node] = {}
    for node in transcript.nodes:
        first = seen.setdefault(node.uuid, node)
        if first is not node:
            same = transcript.read(first).get("message") == transcript.read(node).get("message")
            kind = COPY if same else TWICE
            yield kind.at(node, f"Record {first.number} has the same uuid")


UNDONE = Kind(
    "compaction-undone",
    "warning",
    "Clients send what it dropped again, without its summary; in files over 5 MiB they lose that instead.",
    repairable=False,
)
MARKS_LOST = Kind(
    "segment-lost",
    "error",
    "Clients go on without the messages that the compaction kept: the summary alone is left of them.",
)


def of_compactions(transcript: Transcript) -> Iterator[Defect]:
    """What is wrong with the last compaction of the main conversation; earlier ones are cut off with it."""
    last = next((node for node in reversed(transcript.nodes) if node.boundary and not node.sidechain), None)
    if last is None:
        return
    if all(node.uuid != last.uuid for node in transcript.chain):
        yield from _undone(transcript, last)
    elif last.segment is not None:
        missing = missing_marks(last.segment, transcript.by_uuid)
        if missing:
            yield MARKS_LOST.at(last, f"{', '.join(missing)} of what it kept can't be found")


def missing_marks(segment: KeptSegment, nodes: Mapping[str, Node]) -> list[str]:
    """The marks of kept messages that lead nowhere, in words."""
    missing = [] if segment.anchor in nodes else [f"the anchor {segment.anchor}"]
    if segment.uuids is not None:
        return missing + [uuid for uuid in segment.uuids if uuid not in nodes]
    return missing if segment.head in walked(segment, nodes) else [*missing, f"the way to {segment.head}"]


def walked(segment: KeptSegment, nodes: Mapping[str, Node]) -> list[str]:
    """The records from the tail of a segment up to its head, or as far as they lead; oldest first."""
    found: list[str] = []
    for node in ancestors(nodes.get(segment.tail), lambda node: nodes.get(node.parent) if node.parent else None):
        found.append(node.uuid)
        if node.uuid == segment.head:
            break
    return found[::-1]


def _undone(transcript: Transcript, last: Node) -> Iterator[Defect]:
    """The record that leads around the compaction; a conversation that was rewound to before it has none."""
    for node in transcript.chain:
        before = transcript.parent(node)
        if before is not None and node.number > last.number > before.number:
            message = f"It hangs on record {before.number}, before the compaction in record {last.number}"
            yield UNDONE.at(node, message)
