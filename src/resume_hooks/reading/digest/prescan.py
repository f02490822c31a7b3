"""The prescan: the facts that the start of a long line shows, so that the line need not be parsed.

Most bytes of a session are the contents of files that were read. For these, the digest only needs
to know that the read succeeded. A prescan finds that in a line as clients write it, because quotes
inside a text are always escaped. The parser processes lines of any other form.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.transcripts.attachments import HOOK_CONTEXT, QUEUED
from resume_hooks.transcripts.records import REJECTION_BEGINNING

# the minimum number of bytes in a line for which a prescan is faster than parsing
MIN_PRESCAN_BYTES = 3_000
# the number of bytes at the start of a line that contain its envelope and the message's own keys
MAX_ENVELOPE_BYTES = 2_000
RELEVANT_ATTACHMENTS = frozenset(
    kind.encode() for kind in (QUEUED, HOOK_CONTEXT)
)  # the kinds of attachments with relevant text

_ENVELOPE = compile_lazily(
    rb'\{"parentUuid":(?:null|"([0-9a-f-]{36})"),"isSidechain":(false|true),(?:"attachment":\{"type":"(\w+)")?'
)
_MESSAGE_KEY = b'"message":'
_USER_MESSAGE = b'"type":"user",' + _MESSAGE_KEY
_RESULT_START = compile_lazily(
    _USER_MESSAGE + rb'\{(?:"role":"user",)?"content":\[\{'
    rb'(?:"type":"tool_result","tool_use_id":"([\w.-]{1,100})"|"tool_use_id":"([\w.-]{1,100})","type":"tool_result"[,}])'
)
_UUID_VALUE = compile_lazily(rb'([0-9a-f-]{36})","timestamp":"')
_UUID_KEY = b'"uuid":"'
_THINKING_START = b'"content":[{"type":"thinking",'
_RELEVANT_BLOCKS = (b'"type":"text"', b'"type":"tool_use"', b'"type":"tool_result"')
_NEXT_KEY = compile_lazily(rb'"(?:uuid":"|is_error":true|tool_use_id"|toolUseResult")')
"""The key of the record's own id after a result, or an earlier key that shows more than that the
call succeeded."""

_REJECTION = REJECTION_BEGINNING.encode()
_TEXT_AFTER_BLOCK = b'},{"type":"text","text":"'
"""The start of a text after another block. The user may have typed the text together with a
result."""


class Prescan(NamedTuple):
    """A record's id and its parent's id.

    ``call`` is the id of the call whose successful result the record contains, or ``""``.
    """

    uuid: str
    parent: str
    sidechain: bool
    call: str = ""


def prescan_line(raw: bytes) -> Prescan | None:
    """Return the prescan of a line, or None if the line must be parsed."""
    envelope = _ENVELOPE.match(raw) if len(raw) >= MIN_PRESCAN_BYTES else None
    if envelope is None or envelope[3] in RELEVANT_ATTACHMENTS or not raw.endswith((b"}\n", b"}")):
        return None
    if envelope[3] is None:
        inner_start = raw.find(
            b"{", 1, MAX_ENVELOPE_BYTES
        )  # deeper levels belong to another record, which reports a sub-agent's progress
        result_match = _RESULT_START.match(raw, inner_start - len(_USER_MESSAGE))
        if result_match is not None:
            return _prescan_result(raw, envelope, result_match)
        is_thinking = (
            raw.startswith(_MESSAGE_KEY, inner_start - len(_MESSAGE_KEY))
            and raw.find(_THINKING_START, inner_start, MAX_ENVELOPE_BYTES) > 0
        )
        if not is_thinking or any(block in raw for block in _RELEVANT_BLOCKS):
            return None
    uuid_start = raw.find(_UUID_KEY)
    if uuid_start >= 0 and raw.find(_UUID_KEY, uuid_start + 1) < 0:
        uuid_match = _UUID_VALUE.match(raw, uuid_start + len(_UUID_KEY))
    else:
        uuid_match = None
    if uuid_match:
        return _make_prescan(envelope, uuid_match)
    return None


def _prescan_result(
    raw: bytes, envelope: re.Match[bytes], result_match: re.Match[bytes]
) -> Prescan | None:
    """Return the prescan of a result.

    The client's copy of the result, which is equally long, comes after the record's id.
    """
    next_key = _NEXT_KEY.search(raw, result_match.end())
    if next_key and next_key[0] == _UUID_KEY:
        uuid_match = _UUID_VALUE.match(raw, next_key.end())
    else:
        uuid_match = None
    if (
        uuid_match is None
        or _REJECTION in raw[:MAX_ENVELOPE_BYTES]
        or raw.find(_UUID_KEY, 0, result_match.start()) >= 0
    ):
        return None
    if _TEXT_AFTER_BLOCK in raw:
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
