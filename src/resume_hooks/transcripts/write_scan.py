"""What a copy of a conversation must know of a file besides its records.

Gathered while the file is scanned.

Which records need mending before an API takes them, and which snapshots of the user's files belong
to which messages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resume_hooks.transcripts import records
from resume_hooks.transcripts.bookkeeping import REPLACED, SNAPSHOTS
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, string


class Snapshot(NamedTuple):
    """A bookkeeping line about the user's files as they were at the record ``message``."""

    message: str
    offset: int
    length: int


class WriteScan:
    """Observes a scan: ``mends`` no API takes as they are, ``replaced`` lines are of results sent shorter."""

    def __init__(self) -> None:
        self.mends: set[int] = set()
        self.replaced: list[tuple[int, int]] = []
        self.snapshots: list[Snapshot] = []

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""
        if node is not None:
            stray = "sentAsUuid" in record and not node.given_uuid
            if node.spoken and (
                stray or needs_mending(record) or _repeats(node.calls) or _repeats(node.results)
            ):
                self.mends.add(node.number)
        elif (kind := records.kind(record)) in SNAPSHOTS:
            message = string(records.mapping(record, "snapshot"), "messageId")
            named = message or string(record, "snapshotMessageId") or string(record, "messageId")
            self.snapshots.append(Snapshot(named, line.offset, len(line.raw)))
        elif kind == REPLACED:
            self.replaced.append((line.offset, len(line.raw)))


def needs_mending(record: Record) -> bool:
    """Whether a message has a form that the API or an old client refuses (``mend`` gives one that they take)."""
    content = records.message(record).get("content")
    if isinstance(content, str):
        return record.get("type") == records.ASSISTANT or not content.strip()
    if content == []:
        return (
            record.get("type") != records.ASSISTANT
        )  # an answer without blocks is passed over by every client
    return isinstance(content, list) and any(map(_is_hollow, content))


def mend(record: Record) -> Record | None:
    """``record`` with blank text and unsigned thinking taken out, an answer as blocks.

    None if nothing is left.
    """
    found: Any = records.message(record).get("content")
    kept: list[Record] = []
    known: set[tuple[str, str]] = set()  # calls and results, of which the first of each id stays
    for block in records.blocks(record):
        one = string(block, "type"), records.call_id(block)
        if not _is_hollow(block) and one not in known:
            kept.append(block)
            known |= {one} if one[0] in {records.CALL, records.RESULT} else set()
    if not kept:
        return None
    content = found if isinstance(found, str) and record.get("type") == records.USER else kept
    # An id that was not taken on would be when the copy is read.
    rest = {}
    for key, value in record.items():
        if key != "sentAsUuid":
            rest[key] = value
    return records.with_content(rest, content)


def _is_hollow(block: object) -> bool:
    """Whether a block is refused by the API: blank text, thinking without its signature, no block at all."""
    if not isinstance(block, dict):
        return True
    kind = string(block, "type")
    if kind == records.TEXT:
        return not string(block, "text").strip()
    if kind == records.THINKING:
        return not string(block, "signature") or not isinstance(block.get("thinking"), str)
    return kind == records.REDACTED_THINKING and not string(block, "data")


def _repeats(calls: tuple[str, ...]) -> bool:
    return len(calls) > 1 and len(set(calls)) < len(calls)
