"""Read attachments: records that the client adds to a conversation.

The text of some attachments is sent to the API. The kinds were determined with clients 2.1.42,
2.1.112 and 2.1.329. For kinds that are not listed here, little or no text is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from resume_hooks.transcripts.parted_text import join_parts
from resume_hooks.transcripts.records import Record, get_mapping, get_string

# The keys and list indexes that lead from a record to a value in it.
Address = tuple[str | int, ...]

QUEUED, HOOK_CONTEXT, HOOK_SUCCESS = "queued_command", "hook_additional_context", "hook_success"
"""Kinds of attachments.

``QUEUED`` is a prompt that was typed while the model was busy. ``HOOK_CONTEXT`` contains the texts
that all hooks added, and ``HOOK_SUCCESS`` contains the result of a single hook.
"""

EVERY_LIST_ITEM = -1  # In an address in the table below, this index stands for all items of a list.

TEXT_ADDRESSES_BY_KIND: dict[str, Address] = {
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
"""The address of an attachment's text in the record, by the kind of the attachment.

Only the kinds whose text is sent to the API are included.
"""

TRIMMABLE_ATTACHMENT_KINDS = frozenset(
    {"edited_text_file", "file", HOOK_CONTEXT, HOOK_SUCCESS, "selected_lines_in_ide"}
)
"""Kinds of attachments whose text a trim may replace.

Other kinds contain listings that the client sends only once, the project's rules, or the user's
words.
"""


def attachment_kind(record: Record) -> str:
    """Return the kind of an attachment record."""
    return get_string(get_mapping(record, "attachment"), "type")


def iterate_sent_texts(record: Record) -> Iterator[tuple[Address, str]]:
    """Yield the texts of an attachment record that are sent to the API, each with its address.

    Since client 2.1.329, a record can have a ``rendered`` field that contains the text for the API.
    If a record has this field, only that text is sent.
    """
    rendered = record.get("rendered")
    if isinstance(rendered, list):
        yield from _iterate_texts_at_address(record, ("rendered", EVERY_LIST_ITEM, "content"), ())
    elif (field := TEXT_ADDRESSES_BY_KIND.get(attachment_kind(record))) is not None:
        yield from _iterate_texts_at_address(record, ("attachment", *field), ())


def list_hook_texts(record: Record) -> list[str]:
    """Return the texts that hooks added for the model at one event.

    If a text was split into parts, it is joined again. For records of other kinds, the list is
    empty.
    """
    if attachment_kind(record) == HOOK_CONTEXT:
        texts = get_mapping(record, "attachment").get("content")
    else:
        texts = None
    if isinstance(texts, list):
        return join_parts(text for text in texts if isinstance(text, str))
    return []


def read_hook_output(record: Record) -> str:
    """Return the text that the output of a single hook contains for the model, or ``""`` if there is none.

    A later record repeats the outputs of all hooks, and ``list_hook_texts`` reads that record. Use
    this function if only the start of the file was read, because the later record may not be
    included.
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


def _iterate_texts_at_address(
    value: object, prefix: Address, address: Address
) -> Iterator[tuple[Address, str]]:
    if not prefix:
        if isinstance(value, str):
            yield address, value
        return
    key, *rest = prefix
    if key == EVERY_LIST_ITEM and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _iterate_texts_at_address(item, tuple(rest), (*address, index))
    elif isinstance(key, str) and isinstance(value, dict) and key in value:
        yield from _iterate_texts_at_address(value[key], tuple(rest), (*address, key))
