"""Values that are code according to their context: variables, methods, types, states."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.redaction.lazy_patterns import late

NAMED = late(
    rb"[A-Za-z]+(?:\d{1,3}[a-z]{0,2})?(?:_(?:\d{0,2}[a-z]+\d{0,3}|[A-Z]+\d{0,3}|\d{1,4}))+|\w+://.*|[\w.-]+/[\w./-]*[-_.][\w./-]*"
    rb"|[\w.-]+\.[a-z]\w{1,3}"
)
"""Names in programs, addresses and files."""

_DECLARED = late(rb"[ \t]{0,4}[=:,)]")
_INDENT = 28
"""The number of bytes before a name to search for a keyword of its declaration."""

_NEAR = 4_000
"""The number of bytes around a value to search for the same word."""

_MOST_PLACES = 8
"""The maximum number of positions of the same word to examine."""

_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_OF_WORDS = frozenset(bytes([sign]) for sign in _WORD)
_LONGEST_NAME = 64

_OPENS_VALUE = b" \t\"'"

_DECLARED_BEFORE = late(rb"(?:\A|[\n(,;]|\b(?:let|var|val|const|local|my))[ \t]{0,20}\$?\Z")
"""The text before a declared name: the beginning of a line, or other parameters."""

_MANY_NAMES = 4
"""The minimum number of other names with the same value. A password may belong to a user, a host
and a database."""

_BLANK = frozenset([b" ", b"\t"])
_QUOTE_SIGNS = frozenset([b'"', b"'"])
_METHOD = late(rb"[a-z_]+:[a-z_]+")
"""A method of an object in Lua."""

_CLOSES = late(rb"[ \t]{0,4}[,)}\]]")
_TELLS_A_SECRET = late(rb"(?i)(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)\Z")
_CONSTANT_END = late(rb"_[A-Z]{3,}\Z")


def is_variable(raw: bytes, found: re.Match[bytes]) -> bool:
    """Check whether an unquoted value is a name in a program: ``password=db_pass2)``."""
    value = found["bare"]
    if found[0][:1] in _BLANK and _METHOD.fullmatch(value):
        return True
    if not NAMED.fullmatch(value) or b"/" in value or b"." in value:
        return False
    closed = _CLOSES.match(raw, found.end()) is not None
    if closed and (found[0][:1] in _QUOTE_SIGNS or _TELLS_A_SECRET.search(value)):
        return True
    if _CONSTANT_END.search(value) and closed:
        return True
    return _is_set_elsewhere(raw, found.start("bare"), value)


def _is_set_elsewhere(raw: bytes, place: int, value: bytes) -> bool:
    """Check whether a value is assigned to earlier as a variable, or is a parameter."""
    for at in _places_near(raw, place, value, max(0, place - _NEAR), place):
        if _DECLARED.match(raw, at + len(value)) and _DECLARED_BEFORE.search(
            raw, max(0, at - _INDENT), at
        ):
            return True
    return False


def is_kind_of_many(raw: bytes, place: int, value: bytes) -> bool:
    """Check whether many other names nearby have the same word as their value, which is then a type or a state."""
    if not value.isalpha():
        return False
    names: set[bytes] = set()
    for at in _places_near(raw, place, value, max(0, place - _NEAR), place + _NEAR):
        before = raw[max(0, at - _LONGEST_NAME) : at].rstrip(_OPENS_VALUE)
        if before.endswith((b":", b"=")):
            name = before[:-1].rstrip(_OPENS_VALUE)
            names.add(name[len(name.rstrip(_WORD)) :])
    return len(names) >= _MANY_NAMES


def _places_near(raw: bytes, place: int, value: bytes, start: int, end: int) -> Iterator[int]:
    """Yield some positions, except ``place``, of a value as a whole word between ``start`` and ``end``."""
    at = start - 1
    for _ in range(_MOST_PLACES):
        at = raw.find(value, at + 1, end)
        if at < 0:
            break
        whole = (
            raw[at - 1 : at] not in _OF_WORDS
            and raw[at + len(value) : at + len(value) + 1] not in _OF_WORDS
        )
        if whole and at != place:
            yield at
