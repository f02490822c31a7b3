"""A long answer of a tool, told without parsing it: which call it answers, and where it stands in the conversation.

Most bytes of a session are files that were read; a digest needs to know of them only that the reading worked. In a
line as clients write it a quote inside a text is always escaped, so these keys are never part of one. Whatever looks
different is left to the parser.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SHORTEST = 3_000
"""Bytes of a line from which on skimming is faster than parsing."""

REACH = 2_000
"""Bytes at the start of a line that hold its envelope and the answer's own keys."""

_PARENT = re.compile(rb'\{"parentUuid":"([0-9a-f-]{36})","isSidechain":false,')
_CALL = re.compile(rb'"content":\[\{(?:"type":"tool_result",)?"tool_use_id":"([\w.-]{1,100})"')
_OWN = b'"uuid":"'
_FAILED = b'"is_error":true'
_ID = 36


class Answer(NamedTuple):
    """The call that was answered, without an error, and the ids of the record and of the one before it."""

    call: str
    uuid: str
    parent: str


def skim(raw: bytes) -> Answer | None:
    """The answer in a line; None where the line has to be parsed."""
    if len(raw) < SHORTEST:
        return None
    parent, call = _PARENT.match(raw), _CALL.search(raw, 0, REACH)
    if parent is None or call is None or _FAILED in raw:
        return None
    own = raw.find(_OWN, call.end())
    if own < 0 or raw.rfind(_OWN) != own or raw.find(b'"tool_use_id":"', call.end()) >= 0:
        return None
    start = own + len(_OWN)
    return Answer(call[1].decode(), raw[start : start + _ID].decode("ascii", "replace"), parent[1].decode())
