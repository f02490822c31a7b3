"""Attachments: records that the client adds to a conversation, and their texts that reach the API.

Measured with 2.1.42, 2.1.112 and 2.1.329. Other kinds send little or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from resume_hooks.transcripts.parted_text import join_parts
from resume_hooks.transcripts.records import Record, get_mapping, get_string

Address = tuple[str | int, ...]  # the keys and indexes from a record to a value in it

QUEUED, HOOK_CONTEXT, HOOK_SUCCESS = "queued_command", "hook_additional_context", "hook_success"
"""Kinds of attachments: a prompt typed while the model was busy, all hooks' additions, one hook's result."""

EVERY_LIST_ITEM = -1  # in an address of the table below: every item of a list

TEXT_ADDRESSES: dict[str, Address] = {
    "agent_listing_delta": ("addedLines", EVERY_LIST_ITEM),
    "deferred_tools_delta": ("addedLines", EVERY_LIST_ITEM),
    "edited_text_file": ("snippet",),
    "file": ("content", "file", "content"),
    HOOK_CONTEXT: ("content", EVERY_LIST_ITEM),
    HOOK_SUCCESS: ("content",),
    "mcp_instructions_delta": ("addedBlocks", EVERY_LIST_ITEM),
    "nested_memory": ("content", "content"),
    QUEUED: ("prompt",),
    "selected_lines_in_ide": ("content",),
    "skill_listing": ("content",),
    "total_tokens_reminder": ("text",),
}
"""The address of the text in each kind of attachment that sends one."""

REPLACEABLE_KINDS = frozenset(
    {"edited_text_file", "file", HOOK_CONTEXT, HOOK_SUCCESS, "selected_lines_in_ide"}
)
"""Kinds whose text may be replaced.

The other kinds are listings that the client sends only once, the project's rules, or the user's
words.
"""


def attachment_kind(record: Record) -> str:
    """Return the kind of an attachment record."""
    return get_string(get_mapping(record, "attachment"), "type")


def iterate_sent_texts(record: Record) -> Iterator[tuple[Address, str]]:
    """Yield the texts of an attachment record that are sent, each with its address in the record.

    Since 2.1.329 the text ``rendered`` for the API may be stored next to the attachment; then only
    that text counts.
    """
    rendered = record.get("rendered")
    if isinstance(rendered, list):
        yield from _texts_at_address(record, ("rendered", EVERY_LIST_ITEM, "content"), ())
    elif (field := TEXT_ADDRESSES.get(attachment_kind(record))) is not None:
        yield from _texts_at_address(record, ("attachment", *field), ())


def hook_texts_of_record(record: Record) -> list[str]:
    """Return the texts that hooks added for the model at one event; join a text that came in parts.

    The list is empty for other records.
    """
    if attachment_kind(record) == HOOK_CONTEXT:
        texts = get_mapping(record, "attachment").get("content")
    else:
        texts = None
    if isinstance(texts, list):
        return join_parts(text for text in texts if isinstance(text, str))
    return []


def read_hook_output(record: Record) -> str:
    """Return the text for the model in one hook's output, or ``""``.

    The records with such outputs precede the record of ``hook_texts_of_record``, which contains all
    texts and may lie beyond the head of the file.
    """
    if attachment_kind(record) != HOOK_SUCCESS:
        return ""
    try:
        output = json.loads(get_string(get_mapping(record, "attachment"), "stdout"))
    except (ValueError, RecursionError):
        return ""
    if isinstance(output, dict):
        return get_string(get_mapping(output, "hookSpecificOutput"), "additionalContext")
    return ""


def _texts_at_address(
    value: object, prefix: Address, address: Address
) -> Iterator[tuple[Address, str]]:
    if not prefix:
        if isinstance(value, str):
            yield address, value
        return
    key, *rest = prefix
    if key == EVERY_LIST_ITEM and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts_at_address(item, tuple(rest), (*address, index))
    elif isinstance(key, str) and isinstance(value, dict) and key in value:
        yield from _texts_at_address(value[key], tuple(rest), (*address, key))
