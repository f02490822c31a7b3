"""The first pass over raw bytes of any kind: the places worth a closer look, fast, and letting no secret by.

Escapes of any depth stand in these bytes, so what parts a name from its value may hold backslashes, and what is
looked for is looser than a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.redaction.assignments import is_named
from resume_hooks.redaction.prefilter_patterns import begin, promising, words
from resume_hooks.redaction.token_patterns import is_called

_ASSIGNED = re.compile(rb"[a-z]{3,12}[\w-]{0,24}(?:[\\\"'`]{0,20}\]?[ \t]{0,4}[=:]|[ \t]+is[: \t])")
_ADDRESS = re.compile(rb"://[^\s/@\"]{0,300}@")
_BEGIN = re.compile(rb"-----begin [a-z0-9 ]{0,60}private key")
_ESCAPE = re.compile(rb"\\u00(?:[2-7]|1b)")
_LOGIN = re.compile(rb" -(?:u|-user)[ =]?[^\s:]{1,80}:")

_SHAPES = {b"://": _ADDRESS, b"-----begin": _BEGIN, b"\\u00": _ESCAPE, b" -u": _LOGIN, b" --user": _LOGIN}


def suspects(raw: bytes) -> Iterator[int]:
    """The places in ``raw`` at or shortly after which a secret may stand, in no order."""
    lower = raw.lower()
    coloured = raw.find(b"\x1b")
    if coloured >= 0:
        yield coloured
    for place, word in words(lower):
        if _SHAPES.get(word, _ASSIGNED).match(lower, place) or lower[max(0, place - 2) : place] == b"--":
            yield place
    for start, end in promising(raw):
        if is_called(raw, lower, start, end) or is_named(lower, begin(raw, start)):
            yield start
