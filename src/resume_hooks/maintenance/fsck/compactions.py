"""Compactions that lost something: what they kept can't be found, or what they dropped is sent again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from resume_hooks.maintenance.fsck.findings import Finding, Kind
from resume_hooks.transcripts.nodes import Node, Segment
from resume_hooks.transcripts.transcript import Transcript

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


def of_compactions(transcript: Transcript) -> Iterator[Finding]:
    """What is wrong with the last compaction of the main conversation; earlier ones are cut off with it."""
    last = next((node for node in reversed(transcript.nodes) if node.boundary and not node.sidechain), None)
    if last is None:
        return
    if all(node.uuid != last.uuid for node in transcript.chain):
        yield from _undone(transcript, last)
    elif last.segment is not None:
        missing = missing_marks(last.segment, {node.uuid: node for node in transcript.nodes})
        if missing:
            yield Finding(MARKS_LOST, f"{', '.join(missing)} of what it kept can't be found", last.number, last.uuid)


def missing_marks(segment: Segment, nodes: Mapping[str, Node]) -> list[str]:
    """The marks of kept messages that lead nowhere, in words."""
    missing = [] if segment.anchor in nodes else [f"the anchor {segment.anchor}"]
    if segment.uuids is not None:
        return missing + [uuid for uuid in segment.uuids if uuid not in nodes]
    return missing if segment.head in walked(segment, nodes) else [*missing, f"the way to {segment.head}"]


def walked(segment: Segment, nodes: Mapping[str, Node]) -> list[str]:
    """The records from the tail of a segment up to its head, or as far as they lead; oldest first."""
    found: dict[str, None] = {}
    node = nodes.get(segment.tail)
    while node is not None and node.uuid not in found:
        found[node.uuid] = None
        if node.uuid == segment.head:
            break
        node = nodes.get(node.parent) if node.parent else None
    return list(found)[::-1]


def _undone(transcript: Transcript, last: Node) -> Iterator[Finding]:
    """The record that leads around the compaction; a conversation that was rewound to before it has none."""
    places = {node.uuid: node.number for node in transcript.nodes}
    for node in transcript.chain:
        before = places.get(node.parent or "", last.number)
        if node.number > last.number > before:
            message = f"It hangs on record {before}, before the compaction in record {last.number}"
            yield Finding(UNDONE, message, node.number, node.uuid)
