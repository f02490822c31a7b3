"""Attachments that carry bulk: which of their texts a placeholder may stand for.

Only the kinds named here: others hold instructions, permissions, or words of the user.
"""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.records import Record, string
from resume_hooks.trim.placeholders import SHORTEST, stands_for_something

FIELDS: dict[str, tuple[tuple[str | int, ...], ...]] = {
    "file": (("content", "file", "content"),),
    "already_read_file": (("content", "file", "content"),),
    "edited_text_file": (("snippet",),),
    "selected_lines_in_ide": (("content",),),
    "hook_additional_context": (("content", 0), ("content", 1), ("content", 2), ("content", 3)),
    "directory": (("content",),),
    "mcp_resource": (("content",),),
}
"""The texts of each kind, by their addresses within the attachment."""


def texts_of(record: Record) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """The address and the characters of each trimmable text of an attachment record.

    Clients since 2.1.329 keep what they send in ``rendered``; what it was made from stays on the screen.
    """
    attachment = record.get("attachment")
    fields = FIELDS.get(string(attachment, "type")) if isinstance(attachment, dict) else None
    if fields is None:
        return
    rendered = record.get("rendered")
    if isinstance(rendered, list):
        for index in range(len(rendered)):
            yield from _text_at(record, ("rendered", index, "content"))
        return
    for field in fields:
        yield from _text_at(record, ("attachment", *field))


def _text_at(record: Record, address: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    value: object = record
    for key in address:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return
    if isinstance(value, str) and len(value) > SHORTEST and not stands_for_something(value):
        yield address, len(value)
