"""Words that precede secrets of any length, and the functions that examine the text after them.

Each word has a loose expression for the first pass, which scans bytes with escapes of any depth. It
also has a function that returns the secrets at the word's positions in a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache, partial
from typing import NamedTuple

from resume_hooks.redaction.credentials import (
    cookie_spans,
    driver_address_spans,
    password_hash_spans,
    private_key_spans,
    registry_auth_spans,
    signature_spans,
    userinfo_spans,
)
from resume_hooks.redaction.fixed_places import (
    COMMANDS,
    PHRASES,
    command_spans,
    phrase_spans,
    printed_spans,
    table_cell_spans,
)
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.load_rules import branching_expression
from resume_hooks.redaction.paired_fields import (
    KIND,
    NAME_FIELD,
    kubernetes_spans,
    paired_field_spans,
)
from resume_hooks.redaction.passwords import (
    BEFORE_PASS,
    NONE,
    assigned_spans,
    name_at,
    secure_string_spans,
)
from resume_hooks.redaction.program_options import (
    OPTIONS,
    argument_spans,
    is_command,
    may_be_arguments,
    named_command_spans,
    piped_spans,
)
from resume_hooks.redaction.spans import Span
from resume_hooks.redaction.ways import PAIRED

_NESTED = 2
"""The maximum number of words to examine inside a text that another word already covers.

More such words occur only in texts that were made to slow down the search.
"""


_Look = Callable[[bytes, int], Generator[Span, None, int | None]]
"""A function that examines the text after a word at a position, and may return the end of the
examined text."""


class _Word(NamedTuple):
    """A word's two handlers: for the positions in raw lower-case bytes that may have a secret, and for the secrets."""

    may_tell: Callable[[bytes, Iterable[int]], Iterator[int]]
    spans: Callable[[bytes, Iterable[int]], Iterator[Span]]


def _word_alone(may_tell: Callable[[bytes, int], object], look: _Look) -> _Word:
    """The handlers of a word that counts without other words; ``look`` may return the end of the examined text."""

    def telling_places(lower: bytes, places: Iterable[int]) -> Iterator[int]:
        return (place for place in places if may_tell(lower, place))

    def spans(raw: bytes, places: Iterable[int]) -> Iterator[Span]:
        end = nested = 0
        for place in places:
            nested = nested + 1 if place < end else 0
            if nested <= _NESTED:
                end = max(end, (yield from look(raw, place)) or 0)

    return _Word(telling_places, spans)


_GIVEN = late(
    rb"[\\\"'`)\[\]]{0,20}[ \t]{0,30}(?:[=:>,({|?<]|or\b)|[\\\"'`\])]{1,20}\.|\)[\s\\nrt]{0,20}values"
    rb"|(?:&(?:quot|#0?34|#x22);|\\+x22)[ \t]{0,4}[:=]"
    rb"|[ \t]{1,30}(?:is|was|as|to|with)\b|[ \t]{1,30}\\*[\"'`]"
    rb"|[ \t]{1,30}(?:\d[ \t]{1,4})?(?=[^\s]{6})[^\s]{0,40}?[0-9!#$%^&*+~]|[ \t]{1,4}--"
    rb"|[ \t][^\n:=]{0,60}(?:\b(?:is|was|to)\b|:)[: \t]"
    rb"|[\\\"'`,]{0,20}(?:[\s\"'`-]|\\+[nrt]|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){1,60}" + PAIRED
)
"""The text between a name and its value, with escapes of any depth."""

_TOLD = late(rb"(?:define|set|env)[^\n]{0,40}\Z")
"""A command that sets the following name."""


_APART = frozenset([b"-", b",", b"|", b"\t", b";"])
"""The text before an option, or before a name in a column's header."""


def _may_be_set(lower: bytes, place: int) -> bool:
    """Check whether a name may precede a secret: with a sign, as an option, in a command, or after a login in netrc."""
    start, end, what = name_at(lower, place)
    if what == NONE or lower.startswith(b"secret removed: ", start):
        return bool(is_command(lower, place))
    return bool(
        _GIVEN.match(lower, end)
        or lower[start - 1 : start] in _APART
        or _TOLD.search(lower, max(0, start - 48), start)
        or is_command(lower, place)
        or NAME_FIELD.search(lower, max(0, start - 40), start)
        or (
            lower.startswith(b"password", place)
            and b"login" in lower[max(0, place - BEFORE_PASS) : place]
        )
    )


def _matches_at(text: bytes) -> Callable[[bytes, int], object]:
    pattern = late(text)
    return lambda lower, place: pattern.match(lower, place)  # noqa: PLW0108 - .match alone would compile it now


def _may_always_tell(lower: bytes, place: int) -> object:  # noqa: ARG001 - a word's form
    return True


def _may_be_given(lower: bytes, place: int) -> object:
    return b"|" in lower[max(0, place - 60) : place] or b"<<<" in lower[place : place + 64]


_CLOSE = 24
"""The number of bytes after a name to search for the start of its value."""


def _spans_by_names(raw: bytes, places: Iterable[int]) -> Iterator[Span]:
    """Yield the secrets of names that contain a word at ``places``: assigned, in a column, or passed to a command."""
    behind = nested = end = 0
    for place in places:
        yield from named_command_spans(raw, place)
        if place < end:
            continue
        start, end, what = name_at(raw, place)
        if what != NONE:
            yield from paired_field_spans(raw, start, end)
        nested = nested + 1 if place < behind else 0
        if (
            raw.startswith(b"secret removed: ", start)
            or raw.find(b"[secret removed: ", end, end + _CLOSE) >= 0
        ):
            continue
        if what != NONE and nested <= _NESTED:
            yield from table_cell_spans(raw, start, end)
            behind = max(behind, (yield from assigned_spans(raw, start, end, what)))


def _places_that_set(lower: bytes, places: Iterable[int]) -> Iterator[int]:
    return (place for place in places if _may_be_set(lower, place))


_PASS = _Word(_places_that_set, _spans_by_names)


def _word_at_end(word: bytes, endings: bytes = b"") -> _Word:
    """A word that counts only if the name ends with it or with ``endings``: not ``key`` in ``keyboard``."""
    other = late(re.escape(word) + rb"(?!(?:" + endings + rb")(?![a-z]))[a-z]+(?![\w-])")

    def telling_places(lower: bytes, places: Iterable[int]) -> Iterator[int]:
        for place in places:
            if not other.match(lower, place) and _may_be_set(lower, place):
                yield place

    return _Word(telling_places, _spans_by_names)


WORDS: dict[bytes, _Word] = {
    b"pass": _PASS,
    b"pw": _word_at_end(b"pw", rb"d"),
    b"secret": _PASS,
    b"token": _word_at_end(b"token"),
    b"key": _word_at_end(b"key"),
    b"auth": _word_at_end(b"auth", rb"tok|ident|orization"),
    b"cred": _word_at_end(b"cred", rb"s|entials?"),
    b"salt": _word_at_end(b"salt"),
    b"psk": _word_at_end(b"psk"),
    b"community": _word_at_end(b"community"),
    b"login": _word_at_end(b"login", rb"s"),
    **{
        row.option: _Word(
            partial(may_be_arguments, option=row.option), partial(argument_spans, option=row.option)
        )
        for row in OPTIONS
    },
    **{text: _word_alone(_may_always_tell, partial(command_spans, word=text)) for text in COMMANDS},
    **{text: _word_alone(_may_always_tell, partial(phrase_spans, word=text)) for text in PHRASES},
    b"sudo ": _word_alone(_may_be_given, piped_spans),
    **dict.fromkeys([b"sig=", b"signature="], _word_alone(_may_always_tell, signature_spans)),
    b"@tcp(": _word_alone(_may_always_tell, driver_address_spans),
    b"_auth": _word_alone(
        _matches_at(rb"_auth(?:token)?[\\\"']{0,20}[ \t]{0,4}[=:]"), registry_auth_spans
    ),
    b"cookie": _word_alone(_matches_at(rb"cookie(?:[\\\"' \t]{0,20}[:=]|[ =])"), cookie_spans),
    b"private": _word_alone(_matches_at(rb"private(?: key|-lines)"), private_key_spans),
    b"securestring": _word_alone(_may_always_tell, secure_string_spans),
    b"kind": _word_alone(_matches_at(KIND), kubernetes_spans),
    b"static key": _word_alone(_may_always_tell, private_key_spans),
    b"$ ": _word_alone(_matches_at(rb"\$ [^\n\\]{3,200}(?:\n|\\+n)"), printed_spans),
    b"://": _word_alone(_matches_at(rb"://[^\s/@\"]{1,300}+@"), userinfo_spans),
    b"$": _word_alone(
        _matches_at(rb"\$\$?(?:(?:2[abxy]|[156y]|apr1|argon2)[^\s\"]{24}|\d{4,8}\$)"),
        password_hash_spans,
    ),
}
"""The lower-case words that may precede a secret of any length."""


def word_spans(raw: bytes, lower: bytes) -> Iterator[Span]:
    """Yield every secret that a word indicates; ``lower`` is ``raw`` in lower case."""
    for word, places in _places_by_word(lower):
        if word.spans is _spans_by_names:
            yield from word.spans(raw, places)
        else:
            yield from word.spans(raw, word.may_tell(lower, places))


def word_suspects(lower: bytes) -> Iterator[int]:
    """Yield the positions of words that may precede a secret in lower-case bytes, with escapes of any depth."""
    for word, places in _places_by_word(lower):
        yield from word.may_tell(lower, places)


_Finder = Callable[[bytes], Iterable[tuple[int, int]]]
"""A function that finds every word in lower-case bytes, even inside another word: its index in
``WORDS``, its position."""


@cache
def _word_finder() -> _Finder:
    """Return the fastest available search: 2 ms per megabyte with ahocorasick-rs, 15 with an expression."""
    try:
        from ahocorasick_rs import BytesAhoCorasick
    except ImportError:  # ahocorasick-rs has no wheel for Alpine
        return word_finder_by_expression()
    automaton = BytesAhoCorasick(list(WORDS))
    return lambda lower: (
        match[:2] for match in automaton.find_matches_as_indexes(lower, overlapping=True)
    )


_RAREST = b"k$<]>@wpcugf:-l"
"""Characters chosen so that each word contains at least one, the rarest in texts first."""


def word_finder_by_expression() -> _Finder:
    """Search with the standard library. Searching for each word's rarest character alone skips nine bytes in ten."""
    around: dict[bytes, list[tuple[int, bytes]]] = {}
    for number, word in enumerate(WORDS):
        sign = _RAREST[min(_RAREST.index(each) for each in word if each in _RAREST)]
        around.setdefault(bytes([sign]), []).append((number, word))
    search = re.compile(
        b"|".join(_expression_around_sign(sign, words) for sign, words in around.items())
    ).search
    by_pair = _words_by_pair(around)
    no_words: list[tuple[int, bytes, int]] = []

    def find(lower: bytes) -> Iterator[tuple[int, int]]:
        match = search(lower)
        while match:  # continue at the next byte, because words may overlap
            place = match.start()
            for number, word, before in by_pair.get(lower[place : place + 2], no_words):
                start = place - before
                if start >= 0 and lower.startswith(word, start):
                    yield number, start
            match = search(lower, place + 1)

    return find


def _words_by_pair(
    around: dict[bytes, list[tuple[int, bytes]]],
) -> dict[bytes, list[tuple[int, bytes, int]]]:
    """Return the candidate words for a character and the byte after it, each with the bytes before the character."""
    by_pair: dict[bytes, list[tuple[int, bytes, int]]] = {}
    for sign, words in around.items():
        for number, word in words:
            before = word.index(sign)
            second = word[before + 1 : before + 2]
            if second:
                pairs = [sign + second]
            else:
                pairs = [sign, *(sign + bytes([other]) for other in range(256))]
            for pair in pairs:
                by_pair.setdefault(pair, []).append((number, word, before))
    return by_pair


def _expression_around_sign(sign: bytes, words: list[tuple[int, bytes]]) -> bytes:
    """Return an expression for a character in one of some words, which tests the text after the character first."""
    by_tail: dict[bytes, list[bytes]] = {}
    for _, word in words:
        by_tail.setdefault(word.partition(sign)[2], []).append(b"(?<=%b)" % re.escape(word))
    return re.escape(sign) + branching_expression(
        {tail: b"(?:%b)" % b"|".join(wholes) for tail, wholes in by_tail.items()}
    )


def _places_by_word(lower: bytes) -> Iterator[tuple[_Word, list[int]]]:
    """Return the words that occur in lower-case bytes, in the order of ``WORDS``, with their positions in order."""
    places: dict[int, list[int]] = {}
    for number, place in _word_finder()(lower):
        places.setdefault(number, []).append(place)
    words = list(WORDS.values())
    for number in sorted(places):
        yield words[number], places[number]
