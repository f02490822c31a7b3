"""Attachments: what the client adds to a conversation by itself, and which of its texts reach the API.

Measured on 2.1.42, 2.1.112 and 2.1.329. Kinds that are not named here send little or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from resume_hooks.transcripts.parted_text import put_together
from resume_hooks.transcripts.records import Record, mapping, string

Address = tuple[str | int, ...]  # keys and indexes that lead from a record to a value in it

QUEUED, HOOK_CONTEXT, HOOK_SUCCESS = "queued_command", "hook_additional_context", "hook_success"
"""Kinds of attachments: a prompt typed while the model was busy, what hooks added for the model, how one hook went."""

EVERY = -1  # in an address of the table: each item of a list

SENT: dict[str, Address] = {
    "agent_listing_delta": ("addedLines", EVERY),
    "deferred_tools_delta": ("addedLines", EVERY),
    "edited_text_file": ("snippet",),
    "file": ("content", "file", "content"),
    HOOK_CONTEXT: ("content", EVERY),
    HOOK_SUCCESS: ("content",),
    "mcp_instructions_delta": ("addedBlocks", EVERY),
    "nested_memory": ("content", "content"),
    QUEUED: ("prompt",),
    "selected_lines_in_ide": ("content",),
    "skill_listing": ("content",),
    "total_tokens_reminder": ("text",),
}
"""Where the text of each kind stands that sends one."""

BULK = frozenset({"edited_text_file", "file", HOOK_CONTEXT, HOOK_SUCCESS, "selected_lines_in_ide"})
"""Kinds whose text may be replaced. The others are listings that the client never sends again once they are in the
conversation, rules of the project, or the user's words."""


def kind_of(record: Record) -> str:
    """The kind of an attachment record."""
    return string(mapping(record, "attachment"), "type")


def sent_texts(record: Record) -> Iterator[tuple[Address, str]]:
    """The texts of an attachment record that are sent, each with its address in the record.

    Since 2.1.329 what was ``rendered`` for the API may stand beside the attachment; then it alone
    counts.
    """
    rendered = record.get("rendered")
    if isinstance(rendered, list):
        yield from _texts_at(record, ("rendered", EVERY, "content"), ())
    elif (field := SENT.get(kind_of(record))) is not None:
        yield from _texts_at(record, ("attachment", *field), ())


def hook_texts(record: Record) -> list[str]:
    """What hooks added for the model at one event, a text that came in parts whole again.

    Of other records nothing.
    """
    if kind_of(record) == HOOK_CONTEXT:
        texts = mapping(record, "attachment").get("content")
    else:
        texts = None
    if isinstance(texts, list):
        return put_together(text for text in texts if isinstance(text, str))
    return []


def hook_output(record: Record) -> str:
    """What one hook gave for the model, as its output says; ``""`` for nothing.

    These records stand before that of ``hook_texts``, which holds them all and may be too long for
    a head.
    """
    if kind_of(record) != HOOK_SUCCESS:
        return ""
    try:
        output = json.loads(string(mapping(record, "attachment"), "stdout"))
    except (ValueError, RecursionError):
        return ""
    if isinstance(output, dict):
        return string(mapping(output, "hookSpecificOutput"), "additionalContext")
    return ""


def _texts_at(value: object, path: Address, walked: Address) -> Iterator[tuple[Address, str]]:
    if not path:
        if isinstance(value, str):
            yield walked, value
        return
    key, *rest = path
    if key == EVERY and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts_at(item, tuple(rest), (*walked, index))
    elif isinstance(key, str) and isinstance(value, dict) and key in value:
        yield from _texts_at(value[key], tuple(rest), (*walked, key))
