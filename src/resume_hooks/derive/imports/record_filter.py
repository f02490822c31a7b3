"""Filter a record from elsewhere: keep its message, and remove fields that affect a client.

Invariant: the result contains only fields that are named in this module, so new fields of future
clients are removed too. Examples of removed fields are permission modes, system prompts, the
permissions of commands, plans and their files, instructions from hooks and tools, links to other
sessions, and token costs. ``toolUseResult`` is removed because only the screen needs it, and a
malformed one crashes client 2.1.42.

The tags that mark a client's reminders become plain words. A note replaces each block that cannot
be sent, so no message becomes empty and no call loses its result. Filtering a record twice has the
same result as filtering it once.
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
    tokens_before_compaction,
)
from resume_hooks.transcripts.tokens import image_size

IMAGE_MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_IMAGE_CHARACTERS = 5 * 1024 * 1024
"""The maximum number of base64 characters of an image.

According to the API's vision guide, the API rejects images with more characters.
``MAX_IMAGE_SIDE_PIXELS`` limits the sides of an image.
"""
MAX_IMAGE_SIDE_PIXELS = 8_000
# Maximum number of characters in a document. This is also the maximum size of a request to the API.
MAX_DOCUMENT_CHARACTERS = 32 * 1024 * 1024
# A note quotes at most this many characters of the imported file.
MAX_NOTE_QUOTE_CHARACTERS = 200
# The API accepts only ids and tool names that match this pattern.
_VALID_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,128}")
_INVALID_ID_CHARACTER_PATTERN = re.compile(r"[^A-Za-z0-9_-]")
# The character that starts a tag, and its Unicode variants.
_TAG_START_PATTERN = re.compile("[<\uff1c\ufe64]")
_REMINDER_TAG_PATTERN = re.compile(r"<(?=\s*(?:/\s*)?system-reminder\b)", re.IGNORECASE)
# The signature of a PDF file is within this number of bytes from its start.
_PDF_SIGNATURE_SEARCH_BYTES = 1_024


def filter_content(content: object, role: str) -> str | list[Record]:
    """Return the content of a message with only the blocks that an import may contain.

    ``role`` is ``user`` or ``assistant``, or ``queued`` for the content of a queued prompt. If
    ``content`` is a string, the result is a string too.
    """
    if isinstance(content, str):
        return escape_reminder_tags(content)
    if not isinstance(content, list):
        return [_make_omission_note("Content in an unknown format")]
    return _filter_blocks(content, _ALLOWED_BLOCK_TYPES[role])


def escape_reminder_tags(text: str) -> str:
    """Return ``text`` with the tags of a client's reminders changed into plain words.

    Tags that use Unicode variants of ``<`` are changed too. Otherwise, a model would believe that
    the text in these tags comes from the client, and the screen might hide the text.
    """
    if not _TAG_START_PATTERN.search(text):
        return text
    return replace_matches(text, ((_REMINDER_TAG_PATTERN, TAG_BRACKET),))


def make_valid_call_id(call_id: str) -> str:
    """Return a call's id if the API accepts it, or else a valid id that is derived from it.

    The result depends only on ``call_id``, so a call and its result still have the same id.
    """
    if _VALID_ID_PATTERN.fullmatch(call_id):
        return call_id
    return f"toolu_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def _filter_blocks(blocks: list[object], allowed_types: frozenset[str]) -> list[Record]:
    return [_filter_block(block, allowed_types) for block in blocks if isinstance(block, dict)]


def _filter_block(block: Record, allowed_types: frozenset[str]) -> Record:
    kind = get_string(block, "type")
    if kind not in allowed_types:
        shown_kind = plain_line(kind)[:MAX_NOTE_QUOTE_CHARACTERS]
        return _make_omission_note(
            f"A block of the kind {shown_kind}" if shown_kind else "A block without a kind"
        )
    return _restore_field_order(_BLOCK_FILTERS[kind](block), block)


def _restore_field_order(filtered: Record, original: Record) -> Record:
    """Return ``filtered`` with its fields in the order of ``original``."""
    return {key: filtered[key] for key in original if key in filtered} | filtered


def _filter_text_block(block: Record) -> Record:
    return {"type": TEXT, "text": escape_reminder_tags(get_string(block, "text"))}


def _filter_thinking_block(block: Record) -> Record:
    """Return a thinking block with only its text and its signature.

    A block without a signature is removed later, by ``mend_record``.
    """
    fields = _THINKING_FIELD_NAMES[block["type"]]
    return {
        "type": block["type"],
        **{key: block[key] for key in fields if isinstance(block.get(key), str)},
    }


def _filter_call_block(block: Record) -> Record:
    name, call_input = get_string(block, "name"), block.get("input")
    if _VALID_ID_PATTERN.fullmatch(name):
        valid_name = name
    else:
        valid_name = _INVALID_ID_CHARACTER_PATTERN.sub("_", name)[:64] or "unnamed"
    if isinstance(call_input, dict):
        arguments = call_input
    elif call_input is None:
        arguments = {}
    else:
        arguments = {"input": call_input}
    row = {
        "type": CALL,
        "id": make_valid_call_id(get_string(block, "id")),
        "name": valid_name,
        "input": arguments,
    }
    if block.get("caller") == _DIRECT_CALLER_FIELD_VALUE:
        return {**row, "caller": _DIRECT_CALLER_FIELD_VALUE}
    return row


def _filter_result_block(block: Record) -> Record:
    row: Record = {
        "type": RESULT,
        "tool_use_id": make_valid_call_id(get_string(block, "tool_use_id")),
    }
    content, error = block.get("content"), block.get("is_error")
    if isinstance(content, list):
        filtered_blocks = _filter_blocks(content, _ALLOWED_BLOCK_TYPES["result"])
        # The API rejects blank text.
        content = [part for part in filtered_blocks if part["type"] != TEXT or part["text"].strip()]
        if any(part["type"] != TEXT for part in content):
            error = None  # The API accepts ``is_error`` only in a result that is plain text.
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


def _filter_image_block(block: Record) -> Record:
    source = get_mapping(block, "source")
    media_type, data = get_string(source, "media_type"), get_string(source, "data")
    if (
        source.get("type") == "base64"
        and media_type in IMAGE_MEDIA_TYPES
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
                "source": _restore_field_order(
                    _make_media_source("base64", media_type, data), source
                ),
            }
    return _make_omission_note(f"An image {_describe_media_source(source)}")


def _filter_document_block(block: Record) -> Record:
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
            "source": _restore_field_order(_make_media_source(*source_type, data), source),
        }
    return _make_omission_note(f"A document {_describe_media_source(source)}")


def _make_media_source(encoding: str, media_type: str, data: str) -> Record:
    return {"type": encoding, "media_type": media_type, "data": data}


def _describe_media_source(source: Record) -> str:
    """Return a short description of the source of an image or a document that was left out.

    The source itself, an address or a file, is not read, because its contents may have changed.
    """
    source_name = get_string(source, "url") or get_string(source, "file_id")
    if source_name:
        return f"from {plain_line(source_name)[:MAX_NOTE_QUOTE_CHARACTERS]}"
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
    except ValueError:  # The data is not valid base64, or contains non-ASCII characters.
        return b""


def _make_omission_note(omitted_content: str) -> Record:
    return {"type": TEXT, "text": escape_reminder_tags(f"[{omitted_content} was left out]")}


_IMAGE_SIGNATURES = MappingProxyType(
    {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
)
_THINKING_FIELD_NAMES = MappingProxyType(
    {THINKING: ("thinking", "signature"), REDACTED_THINKING: ("data",)}
)
_DIRECT_CALLER_FIELD_VALUE = {
    "type": "direct"
    # Client 2.1.329 writes this value into the field ``caller`` of a call. Other values refer to a
    # run that the imported session does not contain.
}
_VISIBLE_BLOCK_TYPES = MEDIA_TYPES | {TEXT}
_ALLOWED_BLOCK_TYPES = MappingProxyType(
    {
        "user": _VISIBLE_BLOCK_TYPES | {RESULT},
        "assistant": THINKING_TYPES | {TEXT, CALL},
        "queued": _VISIBLE_BLOCK_TYPES,
        "result": _VISIBLE_BLOCK_TYPES,
    }
)
"""The types of blocks that an import may contain, for each role and for the content of a result.

These are only types that the API accepts and that do not refer to anything outside their message.
"""

_BLOCK_FILTERS: MappingProxyType[str, Callable[[Record], Record]] = MappingProxyType(
    {
        TEXT: _filter_text_block,
        THINKING: _filter_thinking_block,
        REDACTED_THINKING: _filter_thinking_block,
        CALL: _filter_call_block,
        RESULT: _filter_result_block,
        IMAGE: _filter_image_block,
        DOCUMENT: _filter_document_block,
    }
)

# The command mode of a prompt that the user queued. Queued prompts with other modes are reports
# about tasks that ran in the original client.
QUEUED_PROMPT_MODE = "prompt"

CONVERSATION_SUBTYPES = frozenset({"compact_boundary", "local_command"})
"""The subtypes of system records that belong to a conversation.

System records of other subtypes describe the client that had the conversation.
"""

SUMMARY_WARNING = (
    "[The summary below was written elsewhere, in a session that was imported. Nobody verified it.]"
)
_WARNING_BLOCK_PATTERN: Record = {"type": "text", "text": SUMMARY_WARNING}
MESSAGE_FLAG_NAMES = (
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isApiErrorMessage",
)
"""The flags of a message that affect whether a client shows it and whether it sends it."""

# The model reads a message with one of these flags, but no screen shows it.
HIDING_FLAG_NAMES = frozenset({"isMeta", "isVisibleInTranscriptOnly"})
# The origin of a message that a client wrote in the user's role.
NOTIFICATION_ORIGIN = {"kind": "task-notification"}

IMPORTABLE_FIELD_NAMES = frozenset(
    {
        "attachment", "compactMetadata", "content", "cwd", "entrypoint", "gitBranch", "isSidechain", "level", "message",
        "origin", "parentUuid", "sessionId", "subtype", "timestamp", "type", "userType", "uuid",
        "version", *MESSAGE_FLAG_NAMES,
    }
)  # fmt: skip
"""The fields that the records of an imported session may have."""

_TOKEN_COUNT_FIELD_NAMES = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


def is_conversation_record(record: Record) -> bool:
    """Check whether a record of the chain belongs to the conversation."""
    record_kind = get_kind(record)
    if record_kind == "attachment":
        # Client 2.1.329 sends most attachments with the system role, which imported text must not
        # have. Queued prompts are the exception.
        return (
            attachment_kind(record) == QUEUED
            and record["attachment"].get("commandMode", QUEUED_PROMPT_MODE) == QUEUED_PROMPT_MODE
        )
    return record_kind in {"user", "assistant"} or (
        record_kind == "system" and get_string(record, "subtype") in CONVERSATION_SUBTYPES
    )


def is_hidden_from_screen(record: Record) -> bool:
    """Check whether a record has a flag that hides it from the screen, although the model reads it."""
    return any(record.get(flag) is True for flag in HIDING_FLAG_NAMES)


class ConversationFilter:
    """An edit that returns a record as it appears in an imported session, or None to omit it."""

    def __init__(self, attributes: ChildAttributes) -> None:
        self._attributes = attributes

    def __call__(self, record: Record) -> Record | None:
        """Return the filtered record, or None if it does not belong to the conversation."""
        if not is_conversation_record(record):
            return None
        flags = {}
        for flag in MESSAGE_FLAG_NAMES:
            if record.get(flag) is True:
                flags[flag] = True
        # A record cannot be newer than its import, so a later time is replaced by the time of the
        # import.
        instant = min(
            clock.normalize_timestamp(record.get("timestamp")), self._attributes.created_at
        )
        return {  # The writer sets the links between records, and replaces an invalid time.
            "parentUuid": get_string(record, "parentUuid") or None,
            "isSidechain": False,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self._attributes.cwd,
            "sessionId": get_string(record, "sessionId") or self._attributes.session_id,
            "version": self._attributes.version,
            "type": get_kind(record),
            "uuid": get_string(record, "uuid"),
            "timestamp": instant,
            **flags,
            **_filter_message(record),
        }


def has_valid_content(record: Record) -> bool:
    """Check whether a message has only content that an import may contain.

    This is true if filtering would not change the content.
    """
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
                "content": _add_import_warning(content) if is_summary else content,
            }
            return {"message": inner_message, **_copy_notification_origin(record)}
        case "assistant":
            return {"message": _filter_answer(get_message(record))}
        case "attachment":
            inner_message = {
                "type": QUEUED,
                "prompt": _filter_queued_content(record),
                "commandMode": QUEUED_PROMPT_MODE,
            }
            return {"attachment": inner_message}
    content = escape_reminder_tags(get_string(record, "content"))
    system_fields = {"subtype": get_string(record, "subtype"), "content": content, "level": "info"}
    if system_fields["subtype"] != COMPACTION:
        return system_fields
    return {
        **system_fields,
        "compactMetadata": {"trigger": "auto", "preTokens": tokens_before_compaction(record)},
    }


def _add_import_warning(content: str | list[Record]) -> str | list[Record]:
    """Return the content of a compaction's summary, preceded by a warning that the summary was imported.

    The warning is part of the summary because clients send a summary before all other records.
    """
    if isinstance(content, str):
        if content.startswith(SUMMARY_WARNING):
            return content
        return f"{SUMMARY_WARNING}\n\n{content}"
    if content[:1] == [_WARNING_BLOCK_PATTERN]:
        return content
    return [_WARNING_BLOCK_PATTERN, *content]


def _filter_answer(answer: Record) -> Record:
    """Return an answer without its token counts and with a placeholder for its model.

    The counts are those of another user. If the model's name were kept, clients would continue with
    that model.
    """
    return {
        "model": SYNTHETIC_MODEL,
        "id": get_string(answer, "id"),
        "type": "message",
        "role": "assistant",
        "content": filter_content(answer.get("content"), "assistant"),
        "stop_reason": get_string(answer, "stop_reason") or None,
        "stop_sequence": get_string(answer, "stop_sequence") or None,
        "usage": dict.fromkeys(_TOKEN_COUNT_FIELD_NAMES, 0),
    }


def _filter_queued_content(record: Record) -> str | list[Record]:
    return filter_content(record["attachment"].get("prompt"), "queued") or ""


def _copy_notification_origin(record: Record) -> Record:
    is_notification = get_mapping(record, "origin").get("kind") == NOTIFICATION_ORIGIN["kind"]
    if is_notification:
        return {"origin": NOTIFICATION_ORIGIN}
    return {}
