"""Filter a foreign record: keep the message, and drop everything that changes a client's behaviour.

Invariant: the result contains only fields that are named in this module, so a field that future
clients obey is dropped already. The filter drops permission modes, system prompts, rights of
commands, plans and their files, instructions from hooks and tools, links to other sessions, token
costs, and ``toolUseResult``, which is for the screen only and crashes client 2.1.42 if malformed.
The tags of a client's reminders become plain words. Each block that cannot be sent is replaced by a
note, so no message is empty and no call loses its result. Filtering a record twice has the same
result as filtering it once.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Callable
from types import MappingProxyType

from resume_hooks import clock
from resume_hooks.sessions.opening_layout import ChildAttributes
from resume_hooks.system.text import TAG_BRACKET, plain_line, replace_matches
from resume_hooks.transcripts.attachments import QUEUED, attachment_kind
from resume_hooks.transcripts.records import (
    CALL,
    COMPACTION,
    DOCUMENT,
    IMAGE,
    MEDIA_TYPES,
    REDACTED_THINKING,
    RESULT,
    SYNTHETIC_MODEL,
    TEXT,
    THINKING,
    THINKING_TYPES,
    Record,
    get_kind,
    get_mapping,
    get_message,
    get_string,
    tokens_before,
)
from resume_hooks.transcripts.tokens import image_size

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_IMAGE_CHARACTERS = 5 * 1024 * 1024
"""The maximum number of base64 characters of an image, and the maximum number of pixels of its longest side.

The API refuses larger images (its guide to vision).
"""
MAX_IMAGE_SIDE_PIXELS = 8_000
# the maximum number of characters in a document: the largest request of the API
MAX_DOCUMENT_CHARACTERS = 32 * 1024 * 1024
MAX_NOTE_WORD_CHARACTERS = 200  # the maximum number of characters in a foreign word in a note
# the pattern that the API requires for ids and names of tools
_VALID_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_TAG_START = re.compile("[<\uff1c\ufe64]")  # the start of a tag, including its Unicode variants
_REMINDER = re.compile(r"<(?=\s*(?:/\s*)?system-reminder\b)", re.IGNORECASE)
_PDF_SIGNATURE_SEARCH_BYTES = (
    1_024  # a PDF contains its signature in this number of bytes at the start
)


def filter_content(content: object, role: str) -> str | list[Record]:
    """Return the filtered content of a message by ``role`` (user or assistant), or of a ``queued`` prompt.

    If the content is a string, the result is a string.
    """
    if isinstance(content, str):
        return escape_reminder_tags(content)
    if not isinstance(content, list):
        return [_make_omission_note("Content in an unknown format")]
    return _filter_blocks(content, _ALLOWED_TYPES[role])


def escape_reminder_tags(text: str) -> str:
    """Return ``text`` with a client's reminder tags as plain words, including tags in Unicode variants of the letters.

    A model takes the text in such tags for the client's own, and a screen may hide it.
    """
    if not _TAG_START.search(text):
        return text
    return replace_matches(text, ((_REMINDER, TAG_BRACKET),))


def make_valid_id(call: str) -> str:
    """Return a call's id if the API accepts it, else an id derived from it. A call and its result get the same id."""
    if _VALID_ID.fullmatch(call):
        return call
    return f"toolu_{hashlib.sha256(call.encode('utf-8', 'replace')).hexdigest()[:24]}"


def _filter_blocks(blocks: list[object], allowed_types: frozenset[str]) -> list[Record]:
    return [_filter_block(block, allowed_types) for block in blocks if isinstance(block, dict)]


def _filter_block(block: Record, allowed_types: frozenset[str]) -> Record:
    kind = get_string(block, "type")
    if kind not in allowed_types:
        shown_kind = plain_line(kind)[:MAX_NOTE_WORD_CHARACTERS]
        return _make_omission_note(
            f"A block of the kind {shown_kind}" if shown_kind else "A block without a kind"
        )
    return _restore_order(_BLOCK_FILTERS[kind](block), block)


def _restore_order(row: Record, original: Record) -> Record:
    """Return ``row`` with its fields in the original order, so that the request has the same bytes."""
    return {key: row[key] for key in original if key in row} | row


def _filter_text(block: Record) -> Record:
    return {"type": TEXT, "text": escape_reminder_tags(get_string(block, "text"))}


def _filter_thinking(block: Record) -> Record:
    """Return a thinking block with its signature.

    A block without a signature is removed later by ``mend_record``.
    """
    fields = _THINKING_FIELDS[block["type"]]
    return {
        "type": block["type"],
        **{key: block[key] for key in fields if isinstance(block.get(key), str)},
    }


def _filter_call(block: Record) -> Record:
    name, call_input = get_string(block, "name"), block.get("input")
    if _VALID_ID.fullmatch(name):
        valid_name = name
    else:
        valid_name = _INVALID_CHARACTER.sub("_", name)[:64] or "unnamed"
    if isinstance(call_input, dict):
        arguments = call_input
    elif call_input is None:
        arguments = {}
    else:
        arguments = {"input": call_input}
    row = {
        "type": CALL,
        "id": make_valid_id(get_string(block, "id")),
        "name": valid_name,
        "input": arguments,
    }
    if block.get("caller") == _DIRECT_CALLER:
        return {**row, "caller": _DIRECT_CALLER}
    return row


def _filter_result(block: Record) -> Record:
    row: Record = {"type": RESULT, "tool_use_id": make_valid_id(get_string(block, "tool_use_id"))}
    content, error = block.get("content"), block.get("is_error")
    if isinstance(content, list):
        filtered_blocks = _filter_blocks(content, _ALLOWED_TYPES["result"])
        content = [
            part for part in filtered_blocks if part["type"] != TEXT or part["text"].strip()
        ]  # the API refuses blank text
        if any(part["type"] != TEXT for part in content):
            error = None  # the API accepts this block only with plain text
    elif isinstance(content, str):
        content = escape_reminder_tags(content)
    elif content is None:
        content = ""
    else:
        content = "[Content in an unknown format was left out]"
    row["content"] = content
    if isinstance(error, bool):
        return {**row, "is_error": error}
    return row


def _filter_image(block: Record) -> Record:
    source = get_mapping(block, "source")
    media_type, data = get_string(source, "media_type"), get_string(source, "data")
    if (
        source.get("type") == "base64"
        and media_type in IMAGE_TYPES
        and len(data) <= MAX_IMAGE_CHARACTERS
    ):
        content = _decode_base64(data)
        size = image_size(content)
        if (
            _find_image_type(content) == media_type
            and size is not None
            and 0 < min(size) <= max(size) <= MAX_IMAGE_SIDE_PIXELS
        ):
            return {
                "type": IMAGE,
                "source": _restore_order(_make_media_source("base64", media_type, data), source),
            }
    return _make_omission_note(f"An image {_describe_source(source)}")


def _filter_document(block: Record) -> Record:
    source = get_mapping(block, "source")
    source_type, data = (
        (get_string(source, "type"), get_string(source, "media_type")),
        escape_reminder_tags(get_string(source, "data")),
    )
    is_text = source_type == ("text", "text/plain") and data.strip()
    is_pdf = (
        source_type == ("base64", "application/pdf")
        and b"%PDF" in _decode_base64(data)[:_PDF_SIGNATURE_SEARCH_BYTES]
    )
    if (is_text or is_pdf) and len(data) <= MAX_DOCUMENT_CHARACTERS:
        return {
            "type": DOCUMENT,
            "source": _restore_order(_make_media_source(*source_type, data), source),
        }
    return _make_omission_note(f"A document {_describe_source(source)}")


def _make_media_source(encoding: str, media_type: str, data: str) -> Record:
    return {"type": encoding, "media_type": media_type, "data": data}


def _describe_source(source: Record) -> str:
    """Return a note on the source of a dropped block.

    The block's address or file may have changed, so it is not opened.
    """
    place = get_string(source, "url") or get_string(source, "file_id")
    if place:
        return f"from {plain_line(place)[:MAX_NOTE_WORD_CHARACTERS]}"
    return "in a form that can't be sent"


def _find_image_type(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next(
        (name for signature, name in _IMAGE_SIGNATURES.items() if content.startswith(signature)), ""
    )


def _decode_base64(data: str) -> bytes:
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except ValueError:  # invalid base64, or non-ASCII characters
        return b""


def _make_omission_note(omitted_content: str) -> Record:
    return {"type": TEXT, "text": escape_reminder_tags(f"[{omitted_content} was left out]")}


_IMAGE_SIGNATURES = MappingProxyType(
    {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
)
_THINKING_FIELDS = MappingProxyType(
    {THINKING: ("thinking", "signature"), REDACTED_THINKING: ("data",)}
)
_DIRECT_CALLER = {
    "type": "direct"
}  # the caller as 2.1.329 writes it; any other caller refers to a run that does not exist here
_VISIBLE_TYPES = MEDIA_TYPES | {TEXT}
_ALLOWED_TYPES = MappingProxyType(
    {
        "user": _VISIBLE_TYPES | {RESULT},
        "assistant": THINKING_TYPES | {TEXT, CALL},
        "queued": _VISIBLE_TYPES,
        "result": _VISIBLE_TYPES,
    }
)
"""The block types that the API accepts in each position and that refer to nothing outside the message."""

_BLOCK_FILTERS: MappingProxyType[str, Callable[[Record], Record]] = MappingProxyType(
    {
        TEXT: _filter_text,
        THINKING: _filter_thinking,
        REDACTED_THINKING: _filter_thinking,
        CALL: _filter_call,
        RESULT: _filter_result,
        IMAGE: _filter_image,
        DOCUMENT: _filter_document,
    }
)

# the command mode of a user's queued prompt; other modes report tasks of the foreign client
PROMPT_MODE = "prompt"

CONVERSATION_SUBTYPES = frozenset({"compact_boundary", "local_command"})
"""System records that belong to a conversation.

The other system records describe the client that ran the conversation.
"""

SUMMARY_WARNING = (
    "[The summary below was written elsewhere, in a session that was imported. Nobody verified it.]"
)
_WARNING_BLOCK: Record = {"type": "text", "text": SUMMARY_WARNING}
MESSAGE_FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
"""Flags of a message that decide how it is shown and whether it is sent."""

HIDING_FLAGS = frozenset(
    {"isMeta", "isVisibleInTranscriptOnly"}
)  # the model reads the message, but no screen shows it
# the origin of a message that was not written by a user
NOTIFICATION = {"kind": "task-notification"}

ALLOWED_FIELDS = frozenset(
    {
        "attachment", "compactMetadata", "content", "cwd", "entrypoint", "gitBranch", "isSidechain", "level", "message",
        "origin", "parentUuid", "sessionId", "subtype", "timestamp", "type", "userType", "uuid",
        "version", *MESSAGE_FLAGS,
    }
)  # fmt: skip
"""The fields that a record of an imported session may have."""

_TOKEN_COUNTS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


def is_conversation(record: Record) -> bool:
    """Check whether a chain record is part of the conversation."""
    record_kind = get_kind(record)
    if record_kind == "attachment":
        # Client 2.1.329 sends all other attachments in the system role, which is not allowed for
        # foreign text.
        return (
            attachment_kind(record) == QUEUED
            and record["attachment"].get("commandMode", PROMPT_MODE) == PROMPT_MODE
        )
    return record_kind in {"user", "assistant"} or (
        record_kind == "system" and get_string(record, "subtype") in CONVERSATION_SUBTYPES
    )


def is_hidden(record: Record) -> bool:
    """Check whether the model reads a record that the screen does not show."""
    return any(record.get(flag) is True for flag in HIDING_FLAGS)


class ConversationFilter:
    """An edit for a chain rewrite: the record for an imported session, or None to drop it."""

    def __init__(self, setting: ChildAttributes) -> None:
        self._setting = setting

    def __call__(self, record: Record) -> Record | None:
        """Filter one chain record."""
        if not is_conversation(record):
            return None
        flags = {}
        for flag in MESSAGE_FLAGS:
            if record.get(flag) is True:
                flags[flag] = True
        instant = min(
            clock.normalize_timestamp(record.get("timestamp")), self._setting.at
        )  # no record may be later than the import
        return {  # the writer sets the links, and replaces an invalid time
            "parentUuid": get_string(record, "parentUuid") or None,
            "isSidechain": False,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self._setting.cwd,
            "sessionId": get_string(record, "sessionId") or self._setting.session_id,
            "version": self._setting.version,
            "type": get_kind(record),
            "uuid": get_string(record, "uuid"),
            "timestamp": instant,
            **flags,
            **_filter_message(record),
        }


def has_valid_content(record: Record) -> bool:
    """Check whether filtering would leave a conversation record's content unchanged."""
    match get_kind(record):
        case "user" | "assistant" as role:
            content = get_message(record).get("content")
            return bool(filter_content(content, role) == content)
        case "attachment":
            return bool(_filter_queued_content(record) == record["attachment"].get("prompt"))
    return True


def _filter_message(record: Record) -> Record:
    match get_kind(record):
        case "user":
            content = filter_content(get_message(record).get("content"), "user")
            is_summary = record.get("isCompactSummary") is True
            inner_message = {
                "role": "user",
                "content": _add_warning(content) if is_summary else content,
            }
            return {"message": inner_message, **_make_notification_origin(record)}
        case "assistant":
            return {"message": _filter_answer(get_message(record))}
        case "attachment":
            inner_message = {
                "type": QUEUED,
                "prompt": _filter_queued_content(record),
                "commandMode": PROMPT_MODE,
            }
            return {"attachment": inner_message}
    content = escape_reminder_tags(get_string(record, "content"))
    system_fields = {"subtype": get_string(record, "subtype"), "content": content, "level": "info"}
    if system_fields["subtype"] != COMPACTION:
        return system_fields
    return {
        **system_fields,
        "compactMetadata": {"trigger": "auto", "preTokens": tokens_before(record)},
    }


def _add_warning(content: str | list[Record]) -> str | list[Record]:
    """Return a summary with a warning on its origin. The client sends a summary first."""
    if isinstance(content, str):
        if content.startswith(SUMMARY_WARNING):
            return content
        return f"{SUMMARY_WARNING}\n\n{content}"
    if content[:1] == [_WARNING_BLOCK]:
        return content
    return [_WARNING_BLOCK, *content]


def _filter_answer(answer: Record) -> Record:
    """Return an answer without its cost, which another user paid, and without its model.

    Clients would continue with that model.
    """
    return {
        "model": SYNTHETIC_MODEL,
        "id": get_string(answer, "id"),
        "type": "message",
        "role": "assistant",
        "content": filter_content(answer.get("content"), "assistant"),
        "stop_reason": get_string(answer, "stop_reason") or None,
        "stop_sequence": get_string(answer, "stop_sequence") or None,
        "usage": dict.fromkeys(_TOKEN_COUNTS, 0),
    }


def _filter_queued_content(record: Record) -> str | list[Record]:
    return filter_content(record["attachment"].get("prompt"), "queued") or ""


def _make_notification_origin(record: Record) -> Record:
    is_notification = get_mapping(record, "origin").get("kind") == NOTIFICATION["kind"]
    if is_notification:
        return {"origin": NOTIFICATION}
    return {}
