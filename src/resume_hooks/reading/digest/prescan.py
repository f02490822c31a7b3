"""Read the few needed fields of a long line without parsing the line.

Most bytes of a session are contents of files that were read. For a record with such contents, the
digest only needs to know that the read succeeded. The fields are searched for in the form in which
clients write them. In JSON, quotes inside a text are always escaped, so a text cannot contain a
quoted key. A line in any other form must be parsed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.transcripts.attachments import HOOK_CONTEXT, QUEUED
from resume_hooks.transcripts.records import REJECTION_BEGINNING

# The minimum number of bytes in a line for which a prescan is faster than parsing.
MIN_PRESCAN_BYTES = 3_000
# This many bytes at the start of a line are searched for its first keys.
MAX_ENVELOPE_BYTES = 2_000
# The types of attachments whose text the digest uses.
RELEVANT_ATTACHMENT_TYPES = frozenset(kind.encode() for kind in (QUEUED, HOOK_CONTEXT))

_RECORD_START_PATTERN = compile_lazily(
    rb'\{"parentUuid":(?:null|"([0-9a-f-]{36})"),"isSidechain":(false|true),(?:"attachment":\{"type":"(\w+)")?'
)
_MESSAGE_KEY = b'"message":'
_USER_MESSAGE_START = b'"type":"user",' + _MESSAGE_KEY
_RESULT_START_PATTERN = compile_lazily(
    _USER_MESSAGE_START + rb'\{(?:"role":"user",)?"content":\[\{'
    rb'(?:"type":"tool_result","tool_use_id":"([\w.-]{1,100})"|"tool_use_id":"([\w.-]{1,100})","type":"tool_result"[,}])'
)
_UUID_VALUE_PATTERN = compile_lazily(rb'([0-9a-f-]{36})","timestamp":"')
_UUID_KEY = b'"uuid":"'
_THINKING_START = b'"content":[{"type":"thinking",'
_RELEVANT_BLOCK_TYPES = (b'"type":"text"', b'"type":"tool_use"', b'"type":"tool_result"')
_NEXT_KEY_PATTERN = compile_lazily(rb'"(?:uuid":"|is_error":true|tool_use_id"|toolUseResult")')
"""Matches the key of the record's own id, and keys that come before this id only in a record that
contains more than a successful result."""

_REJECTION_START = REJECTION_BEGINNING.encode()
_LATER_TEXT_START = b'},{"type":"text","text":"'
"""The start of a text that comes after another block. The user may have typed this text during the
call."""


class Prescan(NamedTuple):
    """The fields of a long record that the digest needs: the uuids of the record and of its parent.

    ``is_sidechain`` means that the record belongs to a sub-agent. If the record contains the
    successful result of a call, ``call_id`` is the call's id, else ``""``.
    """

    uuid: str
    parent_uuid: str
    is_sidechain: bool
    call_id: str = ""


def prescan_line(raw: bytes) -> Prescan | None:
    """Return the fields of a line that the digest needs, or None if the line must be parsed."""
    envelope = _RECORD_START_PATTERN.match(raw) if len(raw) >= MIN_PRESCAN_BYTES else None
    if (
        envelope is None
        or envelope[3] in RELEVANT_ATTACHMENT_TYPES
        or not raw.endswith((b"}\n", b"}"))
    ):
        return None
    if envelope[3] is None:
        # If the first inner object is not the message, the record may report the progress of a
        # sub-agent.
        inner_start = raw.find(b"{", 1, MAX_ENVELOPE_BYTES)
        result_match = _RESULT_START_PATTERN.match(raw, inner_start - len(_USER_MESSAGE_START))
        if result_match is not None:
            return _prescan_result(raw, envelope, result_match)
        is_thinking = (
            raw.startswith(_MESSAGE_KEY, inner_start - len(_MESSAGE_KEY))
            and raw.find(_THINKING_START, inner_start, MAX_ENVELOPE_BYTES) > 0
        )
        if not is_thinking or any(block in raw for block in _RELEVANT_BLOCK_TYPES):
            return None
    uuid_start = raw.find(_UUID_KEY)
    if uuid_start >= 0 and raw.find(_UUID_KEY, uuid_start + 1) < 0:
        uuid_match = _UUID_VALUE_PATTERN.match(raw, uuid_start + len(_UUID_KEY))
    else:
        uuid_match = None
    if uuid_match:
        return _make_prescan(envelope, uuid_match)
    return None


def _prescan_result(
    raw: bytes, envelope: re.Match[bytes], result_match: re.Match[bytes]
) -> Prescan | None:
    """Return the needed fields of a record that contains a result.

    The record also contains a long copy of the result for the client. The copy comes after the
    record's id, so the search for the id does not read the copy.
    """
    next_key = _NEXT_KEY_PATTERN.search(raw, result_match.end())
    if next_key and next_key[0] == _UUID_KEY:
        uuid_match = _UUID_VALUE_PATTERN.match(raw, next_key.end())
    else:
        uuid_match = None
    if (
        uuid_match is None
        or _REJECTION_START in raw[:MAX_ENVELOPE_BYTES]
        or raw.find(_UUID_KEY, 0, result_match.start()) >= 0
    ):
        return None
    if _LATER_TEXT_START in raw:
        return None
    return _make_prescan(envelope, uuid_match, result_match[1] or result_match[2])


def _make_prescan(
    envelope: re.Match[bytes], uuid_match: re.Match[bytes], call_id: bytes = b""
) -> Prescan:
    return Prescan(
        uuid_match[1].decode(),
        (envelope[1] or b"").decode(),
        envelope[2] == b"true",
        call_id.decode(),
    )
