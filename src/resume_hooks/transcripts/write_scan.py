"""Collect the data that a copy of a conversation needs in addition to its nodes.

The data consists of the records that must be repaired before the API accepts them, and the
snapshots of the user's files.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.metadata_records import SHORTENED_RESULTS_KIND, SNAPSHOT_KINDS
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, get_string


class Snapshot(NamedTuple):
    """A line that records the state of the user's files at the time of a message.

    ``message_uuid`` is the uuid of the message. ``offset`` and ``length`` are the position and the
    size of the line in bytes.
    """

    message_uuid: str
    offset: int
    length: int


class CopyPreparationObserver:
    """An observer of a scan that collects what a copy of a conversation needs.

    This includes the line numbers of records that the API would reject, the snapshots of the user's
    files, and the lines that list shortened tool results.
    """

    def __init__(self) -> None:
        self.records_to_mend: set[int] = set()
        self.shortened_result_lines: list[tuple[int, int]] = []
        self.snapshots: list[Snapshot] = []

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Collect the data of one record."""
        if node is not None:
            has_ignored_sent_uuid = "sentAsUuid" in record and not node.has_uuid_sent_to_api
            if node.is_message and (
                has_ignored_sent_uuid
                or needs_repair(record)
                or _has_duplicates(node.call_ids)
                or _has_duplicates(node.answered_call_ids)
            ):
                self.records_to_mend.add(node.line_number)
        elif (kind := records.get_kind(record)) in SNAPSHOT_KINDS:
            message = get_string(records.get_mapping(record, "snapshot"), "messageId")
            message_id = (
                message
                or get_string(record, "snapshotMessageId")
                or get_string(record, "messageId")
            )
            self.snapshots.append(Snapshot(message_id, line.offset, len(line.raw)))
        elif kind == SHORTENED_RESULTS_KIND:
            self.shortened_result_lines.append((line.offset, len(line.raw)))


def needs_repair(record: Record) -> bool:
    """Check whether a record has a message that the API or an old client would reject.

    ``mend_record`` repairs such a message.
    """
    content = records.get_message(record).get("content")
    if isinstance(content, str):
        return record.get("type") == records.ASSISTANT or not content.strip()
    if content == []:
        # Every client skips an answer without blocks.
        return record.get("type") != records.ASSISTANT
    return isinstance(content, list) and any(map(_is_rejected_block, content))


def mend_record(record: Record) -> Record | None:
    """Return a record without blank texts, and without thinking that lacks a signature.

    If the content of an answer is a string, it is converted to a block. Return None if no content
    remains.
    """
    content_before: Any = records.get_message(record).get("content")
    kept_blocks: list[Record] = []
    # The ids of the calls and results so far. If an id occurs again, its call or result is removed.
    known_ids: set[tuple[str, str]] = set()
    for block in records.list_blocks(record):
        block_id = get_string(block, "type"), records.call_id(block)
        if not _is_rejected_block(block) and block_id not in known_ids:
            kept_blocks.append(block)
            known_ids |= {block_id} if block_id[0] in {records.CALL, records.RESULT} else set()
    if not kept_blocks:
        return None
    content = (
        content_before
        if isinstance(content_before, str) and record.get("type") == records.USER
        else kept_blocks
    )
    # The field ``sentAsUuid`` is omitted. Readers ignore it in the parent's record, but they would
    # use it in the copy.
    other_fields = {}
    for key, value in record.items():
        if key != "sentAsUuid":
            other_fields[key] = value
    return records.replace_content(other_fields, content)


def _is_rejected_block(block: object) -> bool:
    """Check whether the API rejects a block.

    The API rejects a blank text, thinking without a signature, and a value that is not a block.
    """
    if not isinstance(block, dict):
        return True
    kind = get_string(block, "type")
    if kind == records.TEXT:
        return not get_string(block, "text").strip()
    if kind == records.THINKING:
        return not get_string(block, "signature") or not isinstance(block.get("thinking"), str)
    return kind == records.REDACTED_THINKING and not get_string(block, "data")


def _has_duplicates(call_ids: tuple[str, ...]) -> bool:
    return len(call_ids) > 1 and len(set(call_ids)) < len(call_ids)
