"""Words that stand before a secret of any length, and who looks at what is behind them.

Each word has a loose expression for the first pass, which sees bytes with escapes of any depth, and a function that
says which secrets there are where the word stands in a text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from resume_hooks.redaction.credentials import cookies, driver, hashes, registry_auth, signature, userinfo
from resume_hooks.redaction.fixed_places import COMMANDS, PHRASES, command, phrase
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.passwords import BEFORE_PASS, PAIRED, after_sec, assigned
from resume_hooks.redaction.private_keys import private_keys
from resume_hooks.redaction.program_options import (
    OPTIONS,
    arguments,
    by_name,
    is_command,
    may_be_arguments,
    piped,
)
from resume_hooks.redaction.spans import Span

_NESTED = 2
"""Words that are looked behind within what was looked at behind another; more stand there only to take time."""


_Look = Callable[[bytes, int], Generator[Span, None, int | None]]
"""Finds what is behind a word at a place, and may return where what it looked at ends."""


class _Word(NamedTuple):
    """What a word calls for: at which of its places in raw lower-case bytes it may tell a secret, and what it tells."""

    may_tell: Callable[[bytes, Iterable[int]], Iterator[int]]
    spans: Callable[[bytes, Iterable[int]], Iterator[Span]]


def _word(may_tell: Callable[[bytes, int], object], look: _Look) -> _Word:
    """A word that is looked at by itself; ``look`` may return where what it looked at ends."""

    def telling(lower: bytes, places: Iterable[int]) -> Iterator[int]:
        return (place for place in places if may_tell(lower, place))

    def spans(raw: bytes, places: Iterable[int]) -> Iterator[Span]:
        end = nested = 0
        for place in places:
            nested = nested + 1 if place < end else 0
            if nested <= _NESTED:
                end = max(end, (yield from look(raw, place)) or 0)

    return _Word(telling, spans)


_ASSIGNED = late(
    rb"[a-z][\w.-]{2,35}+(?:[\\\"'`]{0,20}\]?[ \t]{0,30}[=:>,({]|[ \t]+is[: \t]|[ \t]+\\*'"
    rb"|[\\\"'`,]{0,20}(?:[\s\"'`-]|\\+[nrt]|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){1,60}" + PAIRED + rb")"
)
_TOLD = late(rb"(?:-[a-z-]{0,24}|(?:define|set|env)[^\n]{0,40})\Z")
"""How an option begins, or a command that sets what is named next."""


def _may_be_set(lower: bytes, place: int) -> bool:
    """Whether a name may tell a secret: by a sign, as an option, in a command, after a login in netrc."""
    return bool(
        _ASSIGNED.match(lower, place)
        or _TOLD.search(lower, max(0, place - 48), place)
        or is_command(lower, place)
        or (lower.startswith(b"password", place) and b"login" in lower[max(0, place - BEFORE_PASS) : place])
    )


def _may_be_secret(lower: bytes, place: int) -> bool:
    return lower.startswith(b"securestring", place) or (
        lower.startswith(b"secret", place)
        and not lower.startswith(b"removed: ", place + 7)
        and _may_be_set(lower, place)
    )


def _matching(text: bytes) -> Callable[[bytes, int], object]:
    pattern = late(text)
    return lambda lower, place: pattern.match(lower, place)  # noqa: PLW0108 - .match alone would compile it now


def _always(lower: bytes, place: int) -> object:  # noqa: ARG001 - a word's form
    return True


def _may_be_given(lower: bytes, place: int) -> object:
    return b"|" in lower[max(0, place - 60) : place] or b"<<<" in lower[place : place + 64]


def _either(look: _Look) -> _Look:
    """What is set to a name, or given to a command that has it in its own."""

    def spans(raw: bytes, place: int) -> Generator[Span, None, int | None]:
        yield from by_name(raw, place)
        return (yield from look(raw, place))

    return spans


_PASS = _word(_may_be_set, _either(assigned))

WORDS: dict[bytes, _Word] = {
    b"pass": _PASS,
    b"pwd": _PASS,
    b"sec": _word(_may_be_secret, _either(after_sec)),
    **{
        row.option: _Word(partial(may_be_arguments, option=row.option), partial(arguments, option=row.option))
        for row in OPTIONS
    },
    **{text: _word(_always, partial(command, word=text)) for text in COMMANDS},
    **{text: _word(_always, partial(phrase, word=text)) for text in PHRASES},
    b"sudo ": _word(_may_be_given, piped),
    **dict.fromkeys([b"sig=", b"signature="], _word(_always, signature)),
    b"@tcp(": _word(_always, driver),
    b"_auth": _word(_matching(rb"_auth(?:token)?[\\\"']{0,20}[ \t]{0,4}[=:]"), registry_auth),
    b"cookie": _word(_matching(rb"cookie(?:[\\\"' \t]{0,20}[:=]|[ =])"), cookies),
    b"private": _word(_matching(rb"private(?: key|-lines)"), private_keys),
    b"://": _word(_matching(rb"://[^\s/@\"]{1,300}+@"), userinfo),
    b"$": _word(_matching(rb"\$(?:(?:2[abxy]|[156y]|apr1|argon2)[^\s\"]{24}|\d{4,8}\$)"), hashes),
}
"""What may stand before a secret of any length, lower-case; few enough to be searched for one by one."""


def word_spans(raw: bytes, lower: bytes) -> Iterator[Span]:
    """Every secret that a word tells; ``lower`` is ``raw`` in lower case."""
    for word, places in _places(lower):
        yield from word.spans(raw, word.may_tell(lower, places))


def word_suspects(lower: bytes) -> Iterator[int]:
    """The places in lower-case bytes, with escapes of any depth, at which a word may tell a secret."""
    for word, places in _places(lower):
        yield from word.may_tell(lower, places)


def _places(lower: bytes) -> Iterator[tuple[_Word, Iterator[int]]]:
    for text, word in WORDS.items():
        if text in lower:
            yield word, _find(lower, text)


def _find(raw: bytes, text: bytes) -> Iterator[int]:
    place = raw.find(text)
    while place >= 0:
        yield place
        place = raw.find(text, place + len(text))
