"""Recognise values that are code, according to the text around them.

Examples are variables, methods, types and states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.redaction.lazy_patterns import compile_lazily

PROGRAM_NAME_PATTERN = compile_lazily(
    rb"[A-Za-z]+(?:\d{1,3}[A-Za-z]{0,2})?(?:_(?:\d{0,2}[a-z]+\d{0,3}|[A-Z]+\d{0,3}|\d{1,4}))+|\w+://.*|[\w.-]+/[\w./-]*[-_.][\w./-]*"
    rb"|[\w.-]+\.[a-z]\w{1,3}"
)
"""Matches names in programs, addresses and files."""

VIM_SYNTAX_LINE_STARTS = (b"syn keyword", b"syn match", b"syn region", b"syntax keyword")
"""The beginnings of lines in a Vim syntax file. Such a file lists the words of a language."""

_AFTER_DECLARED_NAME_PATTERN = compile_lazily(rb"[ \t]{0,4}[=:,)]")
_KEYWORD_SEARCH_BYTES = 28
"""The number of bytes before a name in which the keyword of its declaration is searched for."""

_SAME_WORD_SEARCH_BYTES = 4_000
"""The number of bytes before and after a value in which other occurrences of the value are searched
for."""

_MAX_EXAMINED_OCCURRENCES = 8
"""Maximum number of occurrences of the same word that are examined."""

_NAME_CHARACTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_WORD_CHARACTERS = frozenset(bytes([sign]) for sign in _NAME_CHARACTERS)
_MAX_NAME_BYTES = 64

_CHARACTERS_BEFORE_VALUE = b" \t\"'"

_BEFORE_DECLARED_NAME_PATTERN = compile_lazily(
    rb"(?:\A|[\n(,;]|\b(?:let|var|val|const|local|my))[ \t]{0,20}\$?\Z"
)
"""Matches the text before a declared name: the beginning of a line, a previous parameter, or a
keyword."""

_MIN_NAMES_WITH_SAME_VALUE = 4
"""A value that at least this many other names have is not a password. Up to three names may have
the same password, for example those for a user, a host and a database."""

_BLANK_CHARACTERS = frozenset([b" ", b"\t"])
_QUOTE_CHARACTERS = frozenset([b'"', b"'"])
_LUA_METHOD_PATTERN = compile_lazily(rb"[a-z_]+:[a-z_]+")
"""Matches an object and its method in Lua."""

_CLOSING_BRACKET_PATTERN = compile_lazily(rb"[ \t]{0,4}[,)}\]]")
_SECRET_WORD_END_PATTERN = compile_lazily(
    rb"(?i)(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)\Z"
)
_CONSTANT_END_PATTERN = compile_lazily(rb"_[A-Z]{3,}\Z")


def is_variable(raw: bytes, match: re.Match[bytes]) -> bool:
    """Check whether an unquoted value is a name in a program, for example ``password=db_pass2)``."""
    value = match["bare"]
    if match[0][:1] in _BLANK_CHARACTERS and _LUA_METHOD_PATTERN.fullmatch(value):
        return True
    if not PROGRAM_NAME_PATTERN.fullmatch(value) or b"/" in value or b"." in value:
        return False
    is_closed = _CLOSING_BRACKET_PATTERN.match(raw, match.end()) is not None
    if is_closed and (match[0][:1] in _QUOTE_CHARACTERS or _SECRET_WORD_END_PATTERN.search(value)):
        return True
    if _CONSTANT_END_PATTERN.search(value) and is_closed:
        return True
    return _is_assigned_elsewhere(raw, match.start("bare"), value)


def _is_assigned_elsewhere(raw: bytes, position: int, value: bytes) -> bool:
    """Check whether a value is a parameter, or a variable that was assigned before."""
    for other_position in _positions_nearby(
        raw, position, value, max(0, position - _SAME_WORD_SEARCH_BYTES), position
    ):
        if _AFTER_DECLARED_NAME_PATTERN.match(
            raw, other_position + len(value)
        ) and _BEFORE_DECLARED_NAME_PATTERN.search(
            raw, max(0, other_position - _KEYWORD_SEARCH_BYTES), other_position
        ):
            return True
    return False


def is_value_of_many_names(raw: bytes, position: int, value: bytes) -> bool:
    """Check whether a value is a type or a state, because many other names nearby have this value."""
    if not value.isalpha():
        return False
    names: set[bytes] = set()
    for other_position in _positions_nearby(
        raw,
        position,
        value,
        max(0, position - _SAME_WORD_SEARCH_BYTES),
        position + _SAME_WORD_SEARCH_BYTES,
    ):
        text_before = raw[max(0, other_position - _MAX_NAME_BYTES) : other_position].rstrip(
            _CHARACTERS_BEFORE_VALUE
        )
        if text_before.endswith((b":", b"=")):
            name = text_before[:-1].rstrip(_CHARACTERS_BEFORE_VALUE)
            names.add(name[len(name.rstrip(_NAME_CHARACTERS)) :])
    return len(names) >= _MIN_NAMES_WITH_SAME_VALUE


def _positions_nearby(
    raw: bytes, position: int, value: bytes, start: int, end: int
) -> Iterator[int]:
    """Yield the positions between ``start`` and ``end`` where ``value`` occurs as a whole word.

    Only its first few occurrences are examined. ``position`` itself is not yielded.
    """
    other_position = start - 1
    for _ in range(_MAX_EXAMINED_OCCURRENCES):
        other_position = raw.find(value, other_position + 1, end)
        if other_position < 0:
            break
        is_whole_word = (
            raw[other_position - 1 : other_position] not in _WORD_CHARACTERS
            and raw[other_position + len(value) : other_position + len(value) + 1]
            not in _WORD_CHARACTERS
        )
        if is_whole_word and other_position != position:
            yield other_position
