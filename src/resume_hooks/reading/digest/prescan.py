"""Records that a digest needs little of, recognised without a parser: long answers of tools, and what links others.

Most bytes of a session are files that were read; a digest needs to know of them only that the reading worked. In a
line as clients write it a quote inside a text is always escaped, so these keys are never part of one. Whatever looks
different is left to the parser.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.transcripts.attachments import HOOK_CONTEXT, QUEUED
from resume_hooks.transcripts.records import REJECTION

SHORTEST = 3_000  # bytes of a line from which on skimming is faster than parsing
REACH = 2_000  # bytes at the start of a line that hold its envelope and the answer's own keys
TELLING = frozenset(kind.encode() for kind in (QUEUED, HOOK_CONTEXT))  # kinds of attachments that say something

_HEAD = late(
    rb'\{"parentUuid":(?:null|"([0-9a-f-]{36})"),"isSidechain":(false|true),(?:"attachment":\{"type":"(\w+)")?'
)
_MESSAGE = b'"message":'
_USER = b'"type":"user",' + _MESSAGE
_CALL = late(
    _USER + rb'\{(?:"role":"user",)?"content":\[\{'
    rb'(?:"type":"tool_result","tool_use_id":"([\w.-]{1,100})"|"tool_use_id":"([\w.-]{1,100})","type":"tool_result"[,}])'
)
_OWN = late(rb'([0-9a-f-]{36})","timestamp":"')
_UUID = b'"uuid":"'
_THOUGHT = b'"content":[{"type":"thinking",'
_BLOCKS = (b'"type":"text"', b'"type":"tool_use"', b'"type":"tool_result"')
_NEXT = late(rb'"(?:uuid":"|is_error":true|tool_use_id"|toolUseResult")')
"""The record's own id behind an answer's call, or before that a key that says more than that it worked."""

_REFUSED = REJECTION.encode()


class Prescan(NamedTuple):
    """A record's id and that of the one before it; the ``call`` that it answers without an error, ``""`` for none."""

    uuid: str
    parent: str
    sidechain: bool
    call: str = ""


def prescan(raw: bytes) -> Prescan | None:
    """What is told of a line; None if it has to be parsed."""
    head = _HEAD.match(raw) if len(raw) >= SHORTEST else None
    if head is None or head[3] in TELLING or not raw.endswith((b"}\n", b"}")):
        return None
    if head[3] is None:
        inner = raw.find(b"{", 1, REACH)  # what lies deeper is another record's: progress of a sub-agent
        call = _CALL.match(raw, inner - len(_USER))
        if call is not None:
            return _answer(raw, head, call)
        thinks = raw.startswith(_MESSAGE, inner - len(_MESSAGE)) and raw.find(_THOUGHT, inner, REACH) > 0
        if not thinks or any(block in raw for block in _BLOCKS):
            return None
    at = raw.find(_UUID)
    own = _OWN.match(raw, at + len(_UUID)) if at >= 0 and raw.find(_UUID, at + 1) < 0 else None
    return _skimmed(head, own) if own else None


def _answer(raw: bytes, head: re.Match[bytes], call: re.Match[bytes]) -> Prescan | None:
    """The same of an answer. Behind its id comes what the client kept of the result, as long as the answer itself."""
    following = _NEXT.search(raw, call.end())
    own = _OWN.match(raw, following.end()) if following and following[0] == _UUID else None
    if own is None or _REFUSED in raw[:REACH] or raw.find(_UUID, 0, call.start()) >= 0:
        return None
    return _skimmed(head, own, call[1] or call[2])


def _skimmed(head: re.Match[bytes], own: re.Match[bytes], call: bytes = b"") -> Prescan:
    return Prescan(own[1].decode(), (head[1] or b"").decode(), head[2] == b"true", call.decode())
