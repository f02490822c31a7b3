"""Represent each record in memory by its links, its kind and its size.

Conversations are reconstructed from this data, while the records themselves stay on disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.attachments import iterate_sent_texts
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.records import Record, get_string


class KeptSegment(NamedTuple):
    """The messages that a compaction kept. They belong after the record ``anchor_uuid``.

    ``uuids`` are the uuids of these messages in order, or None if the client did not record the
    order. In that case, the messages are the records from ``tail_uuid`` up to its ancestor
    ``head_uuid``.
    """

    anchor_uuid: str
    head_uuid: str
    tail_uuid: str
    uuids: tuple[str, ...] | None


@dataclass(slots=True, eq=False)
class Node:
    """A record of the chain, with its links and its size.

    ``line_number`` is counted from 0. ``offset`` and ``line_length`` are the position and the size of
    the record's line in bytes. ``character_count`` is the number of characters that reach the API.
    ``call_ids`` are the ids of the calls in the record, and ``answered_call_ids`` are those of the
    calls whose results it contains.

    If ``has_uuid_sent_to_api`` is true, ``uuid`` is not the record's own id, but the id under which it was
    sent. ``is_copied`` is true if the record is a copy of a record before the last boundary
    (``transcript.CopyDetector``). For a boundary, ``logical_parent_uuid`` is the uuid of the record
    that the boundary follows.
    """

    uuid: str
    parent_uuid: str | None
    kind: str
    line_number: int = 0
    offset: int = 0
    line_length: int = 0
    session_id: str | None = None
    has_uuid_sent_to_api: bool = False
    subtype: str = ""
    is_sidechain: bool = False
    is_summary: bool = False
    is_prompt: bool = False
    is_meta: bool = False
    is_broken: bool = False
    is_copied: bool = False
    message_id: str = ""
    time_ms: int | None = None
    character_count: int = 0
    context_tokens: int = 0
    input_tokens: int = 0
    call_ids: tuple[str, ...] = ()
    answered_call_ids: tuple[str, ...] = ()
    kept_segment: KeptSegment | None = None
    logical_parent_uuid: str = ""

    @property
    def is_boundary(self) -> bool:
        """Whether the record is the boundary that a compaction writes."""
        return self.subtype == records.COMPACTION

    @property
    def is_message(self) -> bool:
        """Whether the record is a message of the user or of the assistant.

        A conversation can end only at a message.
        """
        return self.kind in records.MESSAGE_KINDS

    @property
    def is_in_conversation(self) -> bool:
        """Whether the record belongs to the conversation, unlike the output of a client's own command."""
        return (
            self.kind == records.ASSISTANT
            or self.is_prompt
            or bool(self.answered_call_ids)
            or self.is_summary
        )

    def was_made_from(self, record: Record | None) -> bool:
        """Check whether ``record``, which was read again, is still the record of this node."""
        return record is not None and self.uuid in records.list_uuids(record)

    @property
    def is_remark(self) -> bool:
        """Whether the record is not a message itself, but accompanies messages.

        Such a record is an attachment, a system record or a remark of the client.
        """
        if self.kind == records.SYSTEM:
            return not self.is_boundary
        return self.kind == records.ATTACHMENT or (self.is_meta and not self.answered_call_ids)


@dataclass(slots=True, eq=False)
class Checkpoint:
    """The record at which a conversation ends, according to the client's ``last-prompt`` records.

    ``uuid`` is the uuid of this record. A compaction removes it. ``has_rewind`` is true if the user
    rewound the conversation to this record. ``has_unfollowed_rewind`` is true if no record has
    followed since then. ``is_rewound_to_start`` is true if the user rewound the conversation to its
    start. ``has_branch_hint`` is true if the file has a ``last-prompt`` record.
    """

    uuid: str = ""
    has_unfollowed_rewind: bool = False
    has_rewind: bool = False
    is_rewound_to_start: bool = False
    has_branch_hint: bool = False

    def process_last_prompt(self, leaf_uuid: str | None, *, is_rewind: bool) -> None:
        """Process a ``last-prompt`` record, which names the record ``leaf_uuid``.

        If ``leaf_uuid`` is None and ``is_rewind`` is true, the user rewound the conversation to its
        start.
        """
        self.has_branch_hint = True
        if leaf_uuid:
            is_same = leaf_uuid == self.uuid
            self.has_unfollowed_rewind = is_rewind or (self.has_unfollowed_rewind and is_same)
            self.has_rewind = is_rewind or (self.has_rewind and is_same)
            self.uuid, self.is_rewound_to_start = leaf_uuid, False
        elif is_rewind:
            self.clear()
            self.is_rewound_to_start = True

    def process_node(self, node: Node) -> None:
        """Process the next record of the chain. Records must be passed in the order of the file."""
        if not node.is_sidechain:
            self.has_unfollowed_rewind = self.is_rewound_to_start = False
        if node.is_boundary:
            self.clear()

    def clear(self) -> None:
        """Forget the record at which the conversation ends."""
        self.uuid = ""
        self.has_unfollowed_rewind = self.has_rewind = self.is_rewound_to_start = False


def iterate_ancestors(node: Node | None, parent: Callable[[Node], Node | None]) -> Iterator[Node]:
    """Yield ``node`` and its ancestors.

    The iteration ends at a record without a parent, at a missing parent, or before a cycle.
    """
    seen_ids: set[str] = set()
    while node is not None and node.uuid not in seen_ids:
        seen_ids.add(node.uuid)
        yield node
        node = parent(node)


def make_node(record: Record, line: Line) -> Node:
    """Return the node of a record that has a ``uuid`` and one of the ``CHAIN_RECORD_KINDS``."""
    get = record.get
    kind: str = record["type"]
    parent = get("parentUuid")
    node = Node(record["uuid"], parent if isinstance(parent, str) and parent else None, kind)
    node.line_number, node.offset, node.line_length = line.number, line.offset, len(line.raw)
    node.time_ms = clock.to_milliseconds(get("timestamp"))
    node.is_sidechain = bool(get("isSidechain"))
    session_id = get("sessionId")
    if isinstance(session_id, str):
        node.session_id = sys.intern(session_id)
    else:
        node.session_id = None
    if kind in records.MESSAGE_KINDS:
        _read_message(node, record)
        if script_calls.is_unsent(record):
            node.character_count = 0
    elif kind == records.ATTACHMENT:
        node.character_count = sum(len(text) for _, text in iterate_sent_texts(record))
    elif kind == records.SYSTEM:
        node.subtype = get_string(record, "subtype")
        if node.is_boundary:
            node.kept_segment = _read_kept_segment(get("compactMetadata"))
            node.logical_parent_uuid = get_string(record, "logicalParentUuid")
    return node


def _read_message(node: Node, record: Record) -> None:
    message = records.get_message(record)
    content = message.get("content")
    if isinstance(content, list):
        node.is_broken = not _read_blocks(node, content) and bool(content)
    elif isinstance(content, str):
        node.character_count = len(content)
        node.is_broken = node.kind == records.ASSISTANT and not content.strip()
    else:
        node.is_broken = True
    if node.kind == records.ASSISTANT:
        node.message_id = get_string(message, "id")
        node.input_tokens, node.context_tokens = records.read_token_counts(record)
    else:
        node.is_meta = bool(record.get("isMeta"))
        node.is_summary = bool(record.get("isCompactSummary"))
        node.is_prompt = not node.answered_call_ids and records.is_prompt(record)


def _read_blocks(node: Node, content: list[object]) -> bool:
    """Store in a message's node the calls, results and number of characters found in the message's blocks.

    Return false if the message has no valid block.
    """
    calls: list[str] = []
    results: list[str] = []
    character_count = 0
    has_valid_block = False
    for block in content:
        if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
            continue
        has_valid_block = True
        if kind == records.CALL and node.kind == records.ASSISTANT:
            calls.append(get_string(block, "id"))
        elif kind == records.RESULT and node.kind == records.USER:
            results.append(get_string(block, "tool_use_id"))
        # Only texts, calls and thinking are counted, because the strings of images and documents
        # are encoded data.
        if kind == records.CALL:
            character_count += sum(map(len, records.iterate_strings(block.get("input"))))
        elif kind == records.RESULT:
            character_count += sum(
                len(get_string(inner_block, "text")) for inner_block in records.result_blocks(block)
            )
        else:
            character_count += len(get_string(block, "text")) + len(get_string(block, "thinking"))
    node.call_ids, node.answered_call_ids, node.character_count = (
        tuple(calls),
        tuple(results),
        character_count,
    )
    return has_valid_block


def _read_kept_segment(metadata: object) -> KeptSegment | None:
    if not isinstance(metadata, dict):
        return None
    message_list, segment = metadata.get("preservedMessages"), metadata.get("preservedSegment")
    if isinstance(message_list, dict):
        uuids = message_list.get("uuids")
        if isinstance(uuids, list):
            kept_order = tuple(uuid for uuid in uuids if isinstance(uuid, str))
        else:
            kept_order = ()
        return KeptSegment(get_string(message_list, "anchorUuid"), "", "", kept_order)
    if isinstance(segment, dict):
        return KeptSegment(
            get_string(segment, "anchorUuid"),
            get_string(segment, "headUuid"),
            get_string(segment, "tailUuid"),
            None,
        )
    return None
