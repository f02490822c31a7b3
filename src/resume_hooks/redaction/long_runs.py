"""Long runs of letters and digits, which almost every secret is, or holds.

Runs of sixteen or more letters, digits, ``_`` and ``-`` are found at the speed of a search for one literal, in a copy
where every such character is the same one; what stands around a run decides.
"""

from __future__ import annotations

import re

from resume_hooks.redaction.load_rules import rules

SHORTEST = 16
"""Characters of a run that is looked at."""

_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_CLASSES = bytes(97 if sign in _WORD else 32 for sign in range(256))
_NEEDLE = b"a" * SHORTEST
_NO_DIGITS = bytes(range(256)).translate(None, b"0123456789")

_IDS = frozenset([b"toolu", b"msg_0", b"req_0", b"ephem", b"claud"])
"""How ids of the API and other words begin that transcripts are full of."""

_DULL = 50_000
_dull: set[bytes] = set()
"""Runs without a digit or a keyword, so that each is looked at once; at most so many, and never a secret."""

_PARTING = frozenset([b".", b"/", b"+", b"~"])
_VALUES = bytes(sign if sign in _WORD + b"./+~" else 0 for sign in range(256))
_BACK = 96
"""Bytes before a run in which the value begins that it belongs to."""

_HYPHEN = 45
_SETTING = frozenset([b"=", b'"', b"'", b" ", b":"])
_NAMED = re.compile(rb"(?i)(?:key|token|secret|pat|password)[\"'\\]{0,8}[ \t]{0,4}[=:][ \t]{0,4}[\"'\\]{0,8}\Z")


def promising(raw: bytes) -> list[tuple[int, int]]:
    """Where long runs in ``raw`` begin and end that may be secrets.

    Those have a digit or a keyword, and are no UUID, no id of the API, and not inside base64 of something else.
    """
    classes = raw.translate(_CLASSES)
    find, keyword, end, found = classes.find, rules().keywords.search, 0, []
    while (start := find(_NEEDLE, end)) >= 0:
        end = find(b" ", start)
        if end < 0:
            end = len(raw)
        run = raw[start:end]
        if (
            run in _dull
            or run[:5] in _IDS
            or (end - start == 36 and run[8] == run[13] == _HYPHEN and not _sets(raw, start))
        ):
            continue
        if not run.translate(None, _NO_DIGITS) and not keyword(run.lower()):
            if len(_dull) < _DULL:
                _dull.add(run)
        elif not _is_inside(raw, start, end):
            found.append((start, end))
    return found


def _sets(raw: bytes, start: int) -> bool:
    """Whether a name that keys and tokens have is set to what begins at ``start``."""
    return raw[start - 1 : start] in _SETTING and _NAMED.search(raw, max(0, start - 40), start) is not None


def begin(raw: bytes, start: int) -> int:
    """Where the value begins that a long run belongs to: dots and the signs of base64 part it from what is before."""
    if raw[start - 1 : start] not in _PARTING:
        return start
    before = raw[max(0, start - _BACK) : start].translate(_VALUES)
    return start - len(before.rpartition(b"\0")[2]) if b"\0" in before or start <= _BACK else start


def _is_inside(raw: bytes, start: int, end: int) -> bool:
    """Whether a run is a part of longer base64: ``/`` alone says nothing, since it parts addresses, too."""
    before = raw[start - 1 : start]
    inside = before == b"+" or (before == b"/" and raw[end : end + 1] in {b"+", b"="})
    return inside and begin(raw, start) == start
