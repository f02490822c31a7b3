"""An observer with the extra data for copying a conversation.

It collects them during a scan.

They are the records to mend before an API accepts them, and the snapshots of the user's files by
message.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resume_hooks.transcripts import records
from resume_hooks.transcripts.bookkeeping import SHORTENED_RESULT, SNAPSHOTS
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, string


class Snapshot(NamedTuple):
    """A bookkeeping line with the state of the user's files at the record ``message``."""

    message: str
    offset: int
    length: int


class WriteScan:
    """Observes a scan: ``mends`` are records that no API accepts, ``replaced`` are lines about shortened results."""

    def __init__(self) -> None:
        self.mends: set[int] = set()
        self.replaced: list[tuple[int, int]] = []
        self.snapshots: list[Snapshot] = []

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Process one record."""
        if node is not None:
            stray = "sentAsUuid" in record and not node.given_uuid
            if node.spoken and (
                stray
                or needs_mending(record)
                or _has_duplicates(node.calls)
                or _has_duplicates(node.results)
            ):
                self.mends.add(node.number)
        elif (kind := records.kind(record)) in SNAPSHOTS:
            message = string(records.mapping(record, "snapshot"), "messageId")
            named = message or string(record, "snapshotMessageId") or string(record, "messageId")
            self.snapshots.append(Snapshot(named, line.offset, len(line.raw)))
        elif kind == SHORTENED_RESULT:
            self.replaced.append((line.offset, len(line.raw)))


def needs_mending(record: Record) -> bool:
    """Check whether the API or an old client rejects a message's form, which ``mend`` can correct."""
    content = records.message(record).get("content")
    if isinstance(content, str):
        return record.get("type") == records.ASSISTANT or not content.strip()
    if content == []:
        # every client skips an answer without blocks
        return record.get("type") != records.ASSISTANT
    return isinstance(content, list) and any(map(_is_rejected_block, content))


def mend_record(record: Record) -> Record | None:
    """Remove blank text and unsigned thinking from ``record``; convert an answer's content to blocks.

    Return None if no content remains.
    """
    found: Any = records.message(record).get("content")
    kept: list[Record] = []
    known: set[tuple[str, str]] = set()  # calls and results; only the first of each id is kept
    for block in records.blocks(record):
        one = string(block, "type"), records.call_id(block)
        if not _is_rejected_block(block) and one not in known:
            kept.append(block)
            known |= {one} if one[0] in {records.CALL, records.RESULT} else set()
    if not kept:
        return None
    content = found if isinstance(found, str) and record.get("type") == records.USER else kept
    # Drop an id that was not used; a reader of the copy would use it.
    rest = {}
    for key, value in record.items():
        if key != "sentAsUuid":
            rest[key] = value
    return records.with_content(rest, content)


def _is_rejected_block(block: object) -> bool:
    """Check whether the API rejects a block: blank text, thinking without its signature, or not a block."""
    if not isinstance(block, dict):
        return True
    kind = string(block, "type")
    if kind == records.TEXT:
        return not string(block, "text").strip()
    if kind == records.THINKING:
        return not string(block, "signature") or not isinstance(block.get("thinking"), str)
    return kind == records.REDACTED_THINKING and not string(block, "data")


def _has_duplicates(calls: tuple[str, ...]) -> bool:
    return len(calls) > 1 and len(set(calls)) < len(calls)
