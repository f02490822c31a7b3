"""Find words, such as ``password``, that may precede a secret of any length.

Each word has two Python functions. The first function quickly checks whether a secret may follow
the word in raw bytes, which may contain escapes of any depth. The second function returns the
secrets after the word in a text.
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
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.load_rules import build_branching_expression
from resume_hooks.redaction.notations import VALUE_FIELD_NAME_EXPRESSION
from resume_hooks.redaction.paired_fields import (
    NAME_FIELD_PATTERN,
    SECRET_KIND_EXPRESSION,
    kubernetes_secret_spans,
    paired_field_spans,
)
from resume_hooks.redaction.passwords import (
    CONTEXT_BYTES,
    NONE,
    assigned_secret_spans,
    range_and_meaning_of_name,
    secure_string_spans,
)
from resume_hooks.redaction.positional_secrets import (
    COMMAND_PATTERNS,
    PHRASE_PATTERNS,
    command_spans,
    printed_secret_spans,
    secret_phrase_spans,
    table_cell_spans,
)
from resume_hooks.redaction.program_options import (
    PASSWORD_OPTIONS,
    argument_spans,
    is_command_name,
    named_command_spans,
    password_option_positions,
    piped_input_spans,
)
from resume_hooks.redaction.spans import Span

_MAX_NESTED_WORDS = 2
"""Maximum number of words that are examined in a text that was already examined for an earlier word.

More words occur only in a text that was made to slow down the search.
"""


_SecretFinder = Callable[[bytes, int], Generator[Span, None, int | None]]
"""A function that yields the secrets after the word at a position. It may return the end of the
text that it examined."""


class _WordHandlers(NamedTuple):
    """The two functions for a word.

    ``find_candidate_positions`` yields those positions of the word in lower-case bytes after which a
    secret may follow. ``find_spans`` yields the secrets.
    """

    find_candidate_positions: Callable[[bytes, Iterable[int]], Iterator[int]]
    find_spans: Callable[[bytes, Iterable[int]], Iterator[Span]]


def _handlers_of_single_word(
    may_precede_secret: Callable[[bytes, int], object], find_secrets: _SecretFinder
) -> _WordHandlers:
    """Return the functions for a word that marks a secret even if it is not part of a longer name.

    ``find_secrets`` yields the secrets after the word.
    """

    def find_candidate_positions(lower: bytes, positions: Iterable[int]) -> Iterator[int]:
        return (position for position in positions if may_precede_secret(lower, position))

    def find_spans(raw: bytes, positions: Iterable[int]) -> Iterator[Span]:
        end = nested_words = 0
        for position in positions:
            nested_words = nested_words + 1 if position < end else 0
            if nested_words <= _MAX_NESTED_WORDS:
                end = max(end, (yield from find_secrets(raw, position)) or 0)

    return _WordHandlers(find_candidate_positions, find_spans)


_TEXT_BEFORE_VALUE_PATTERN = compile_lazily(
    rb"[\\\"'`)\[\]]{0,20}[ \t]{0,30}(?:[=:>,({|?<]|or\b)|[\\\"'`\])]{1,20}\.|\)[\s\\nrt]{0,20}values"
    rb"|(?:&(?:quot|#0?34|#x22);|\\+x22)[ \t]{0,4}[:=]"
    rb"|[ \t]{1,30}(?:is|was|as|to|with)\b|[ \t]{1,30}\\*[\"'`]"
    rb"|[ \t]{1,30}(?:\d[ \t]{1,4})?(?=[^\s]{6})[^\s]{0,40}?[0-9!#$%^&*+~]|[ \t]{1,4}--"
    rb"|[ \t][^\n:=]{0,60}(?:\b(?:is|was|to)\b|:)[: \t]"
    rb"|[\\\"'`,]{0,20}(?:[\s\"'`-]|\\+[nrt]|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){1,60}"
    + VALUE_FIELD_NAME_EXPRESSION
)
"""Matches the text between a name and its value, with escapes of any depth."""

_SET_COMMAND_PATTERN = compile_lazily(rb"(?:define|set|env)[^\n]{0,40}\Z")
"""Matches a command that assigns a value to the name after it."""


_CHARACTERS_BEFORE_OPTION_OR_COLUMN = frozenset([b"-", b",", b"|", b"\t", b";"])
"""The characters before an option, or before a name in a column heading."""


def _may_have_value(lower: bytes, position: int) -> bool:
    """Check whether a value may follow the name at ``position``.

    For example, a value may follow if there is an equals sign after the name, or if the name is an
    option or a column heading.
    """
    start, end, meaning = range_and_meaning_of_name(lower, position)
    if meaning == NONE or lower.startswith(b"secret removed: ", start):
        return is_command_name(lower, position)
    return bool(
        _TEXT_BEFORE_VALUE_PATTERN.match(lower, end)
        or lower[start - 1 : start] in _CHARACTERS_BEFORE_OPTION_OR_COLUMN
        or _SET_COMMAND_PATTERN.search(lower, max(0, start - 48), start)
        or is_command_name(lower, position)
        or NAME_FIELD_PATTERN.search(lower, max(0, start - 40), start)
        or (
            lower.startswith(b"password", position)
            and b"login" in lower[max(0, position - CONTEXT_BYTES) : position]
        )
    )


def _make_pattern_check(text: bytes) -> Callable[[bytes, int], object]:
    pattern = compile_lazily(text)
    return lambda lower, position: pattern.match(lower, position)  # noqa: PLW0108 - .match alone would compile it now


def _accept_every_position(lower: bytes, position: int) -> bool:  # noqa: ARG001 - a word's form
    return True


def _has_pipe_or_here_string(lower: bytes, position: int) -> bool:
    return (
        b"|" in lower[max(0, position - 60) : position] or b"<<<" in lower[position : position + 64]
    )


_PLACEHOLDER_SEARCH_BYTES = 24
"""The number of bytes after a name in which the placeholder for a removed secret is searched for.
"""


def _spans_of_names(raw: bytes, positions: Iterable[int]) -> Iterator[Span]:
    """Yield the secrets that belong to names which contain a word at one of ``positions``.

    A secret may be assigned to the name, be in a column with this name, or be an argument of a
    command.
    """
    examined_end = nested_words = name_end = 0
    for position in positions:
        yield from named_command_spans(raw, position)
        if position < name_end:
            continue
        start, name_end, meaning = range_and_meaning_of_name(raw, position)
        if meaning != NONE:
            yield from paired_field_spans(raw, start, name_end)
        nested_words = nested_words + 1 if position < examined_end else 0
        if (
            raw.startswith(b"secret removed: ", start)
            or raw.find(b"[secret removed: ", name_end, name_end + _PLACEHOLDER_SEARCH_BYTES) >= 0
        ):
            continue
        if meaning != NONE and nested_words <= _MAX_NESTED_WORDS:
            yield from table_cell_spans(raw, start, name_end)
            examined_end = max(
                examined_end, (yield from assigned_secret_spans(raw, start, name_end, meaning))
            )


def _positions_with_value(lower: bytes, positions: Iterable[int]) -> Iterator[int]:
    return (position for position in positions if _may_have_value(lower, position))


_NAME_HANDLERS = _WordHandlers(_positions_with_value, _spans_of_names)


def _handlers_of_last_word(word: bytes, endings: bytes = b"") -> _WordHandlers:
    """Return the functions for a word that ends a name or is followed by one of ``endings``.

    For example, ``key`` is not accepted in ``keyboard``.
    """
    longer_word = compile_lazily(
        re.escape(word) + rb"(?!(?:" + endings + rb")(?![a-z]))[a-z]+(?![\w-])"
    )

    def find_candidate_positions(lower: bytes, positions: Iterable[int]) -> Iterator[int]:
        for position in positions:
            if not longer_word.match(lower, position) and _may_have_value(lower, position):
                yield position

    return _WordHandlers(find_candidate_positions, _spans_of_names)


HANDLERS_BY_WORD: dict[bytes, _WordHandlers] = {
    b"pass": _NAME_HANDLERS,
    b"pw": _handlers_of_last_word(b"pw", rb"d"),
    b"secret": _NAME_HANDLERS,
    b"token": _handlers_of_last_word(b"token"),
    b"key": _handlers_of_last_word(b"key"),
    b"auth": _handlers_of_last_word(b"auth", rb"tok|ident|orization"),
    b"cred": _handlers_of_last_word(b"cred", rb"s|entials?"),
    b"salt": _handlers_of_last_word(b"salt"),
    b"psk": _handlers_of_last_word(b"psk"),
    b"community": _handlers_of_last_word(b"community"),
    b"login": _handlers_of_last_word(b"login", rb"s"),
    **{
        row.name: _WordHandlers(
            partial(password_option_positions, option=row.name),
            partial(argument_spans, option=row.name),
        )
        for row in PASSWORD_OPTIONS
    },
    **{
        text: _handlers_of_single_word(_accept_every_position, partial(command_spans, word=text))
        for text in COMMAND_PATTERNS
    },
    **{
        text: _handlers_of_single_word(
            _accept_every_position, partial(secret_phrase_spans, word=text)
        )
        for text in PHRASE_PATTERNS
    },
    b"sudo ": _handlers_of_single_word(_has_pipe_or_here_string, piped_input_spans),
    **dict.fromkeys(
        [b"sig=", b"signature="], _handlers_of_single_word(_accept_every_position, signature_spans)
    ),
    b"@tcp(": _handlers_of_single_word(_accept_every_position, driver_address_spans),
    b"_auth": _handlers_of_single_word(
        _make_pattern_check(rb"_auth(?:token)?[\\\"']{0,20}[ \t]{0,4}[=:]"), registry_auth_spans
    ),
    b"cookie": _handlers_of_single_word(
        _make_pattern_check(rb"cookie(?:[\\\"' \t]{0,20}[:=]|[ =])"), cookie_spans
    ),
    b"private": _handlers_of_single_word(
        _make_pattern_check(rb"private(?: key|-lines)"), private_key_spans
    ),
    b"securestring": _handlers_of_single_word(_accept_every_position, secure_string_spans),
    b"kind": _handlers_of_single_word(
        _make_pattern_check(SECRET_KIND_EXPRESSION), kubernetes_secret_spans
    ),
    b"static key": _handlers_of_single_word(_accept_every_position, private_key_spans),
    b"$ ": _handlers_of_single_word(
        _make_pattern_check(rb"\$ [^\n\\]{3,200}(?:\n|\\+n)"), printed_secret_spans
    ),
    b"://": _handlers_of_single_word(
        _make_pattern_check(rb"://[^\s/@\"]{1,300}+@"), userinfo_spans
    ),
    b"$": _handlers_of_single_word(
        _make_pattern_check(rb"\$\$?(?:(?:2[abxy]|[156y]|apr1|argon2)[^\s\"]{24}|\d{4,8}\$)"),
        password_hash_spans,
    ),
}
"""Maps each word that may precede a secret of any length to its functions. The words are in lower
case."""


def spans_after_indicator_words(raw: bytes, lower: bytes) -> Iterator[Span]:
    """Yield every secret in ``raw`` that follows one of the words in ``HANDLERS_BY_WORD``.

    ``lower`` is ``raw`` in lower case.
    """
    for word, positions in _positions_by_word(lower):
        if word.find_spans is _spans_of_names:
            yield from word.find_spans(raw, positions)
        else:
            yield from word.find_spans(raw, word.find_candidate_positions(lower, positions))


def positions_of_indicator_words(lower: bytes) -> Iterator[int]:
    """Yield the positions of words after which a secret may follow.

    The bytes are in lower case, and they may contain escapes of any depth.
    """
    for word, positions in _positions_by_word(lower):
        yield from word.find_candidate_positions(lower, positions)


_WordFinder = Callable[[bytes], Iterable[tuple[int, int]]]
"""A function that finds all words in lower-case bytes, even inside other words. For each word, it
yields the index in ``HANDLERS_BY_WORD`` and the position."""


@cache
def _make_word_finder() -> _WordFinder:
    """Return the fastest available search for the words.

    It takes 2 ms per megabyte with ahocorasick-rs, and 15 ms with a regular expression.
    """
    try:
        from ahocorasick_rs import BytesAhoCorasick
    except ImportError:  # There is no wheel of ahocorasick-rs for Alpine.
        return make_regex_word_finder()
    automaton = BytesAhoCorasick(list(HANDLERS_BY_WORD))
    return lambda lower: (
        match[:2] for match in automaton.find_matches_as_indexes(lower, overlapping=True)
    )


_RARE_CHARACTERS = b"k$<]>@wpcugf:-l"
"""Characters, rarest first. Each word contains at least one of them."""


def make_regex_word_finder() -> _WordFinder:
    """Return a search for the words that needs only the standard library.

    It searches only for the rarest character of each word, so it skips nine of ten bytes.
    """
    words_by_character: dict[bytes, list[tuple[int, bytes]]] = {}
    for index, word in enumerate(HANDLERS_BY_WORD):
        character = _RARE_CHARACTERS[
            min(_RARE_CHARACTERS.index(each) for each in word if each in _RARE_CHARACTERS)
        ]
        words_by_character.setdefault(bytes([character]), []).append((index, word))
    search = re.compile(
        b"|".join(
            _expression_around_character(character, words)
            for character, words in words_by_character.items()
        )
    ).search
    words_by_pair = _group_words_by_byte_pair(words_by_character)
    no_words: list[tuple[int, bytes, int]] = []

    def find_word_indexes_and_positions(lower: bytes) -> Iterator[tuple[int, int]]:
        match = search(lower)
        while match:  # Words may overlap, so the search continues at the next byte.
            position = match.start()
            for index, word, offset in words_by_pair.get(lower[position : position + 2], no_words):
                start = position - offset
                if start >= 0 and lower.startswith(word, start):
                    yield index, start
            match = search(lower, position + 1)

    return find_word_indexes_and_positions


def _group_words_by_byte_pair(
    words_by_character: dict[bytes, list[tuple[int, bytes]]],
) -> dict[bytes, list[tuple[int, bytes, int]]]:
    """Return the words that may occur around a pair of bytes: a rare character and the byte after it.

    Each word is a tuple of its index, its text, and the number of bytes before the character.
    """
    words_by_pair: dict[bytes, list[tuple[int, bytes, int]]] = {}
    for character, words in words_by_character.items():
        for index, word in words:
            offset = word.index(character)
            next_byte = word[offset + 1 : offset + 2]
            if next_byte:
                pairs = [character + next_byte]
            else:
                pairs = [character, *(character + bytes([byte]) for byte in range(256))]
            for pair in pairs:
                words_by_pair.setdefault(pair, []).append((index, word, offset))
    return words_by_pair


def _expression_around_character(character: bytes, words: list[tuple[int, bytes]]) -> bytes:
    """Return an expression that matches ``character`` wherever it is part of one of the words.

    It checks the text after the character first, and then the text before the character.
    """
    by_tail: dict[bytes, list[bytes]] = {}
    for _, word in words:
        by_tail.setdefault(word.partition(character)[2], []).append(b"(?<=%b)" % re.escape(word))
    return re.escape(character) + build_branching_expression(
        {tail: b"(?:%b)" % b"|".join(lookbehinds) for tail, lookbehinds in by_tail.items()}
    )


def _positions_by_word(lower: bytes) -> Iterator[tuple[_WordHandlers, list[int]]]:
    """Yield the functions that handle each word in the text, with the positions of the word.

    The words are in the order of ``HANDLERS_BY_WORD``.
    """
    positions: dict[int, list[int]] = {}
    for index, position in _make_word_finder()(lower):
        positions.setdefault(index, []).append(position)
    words = list(HANDLERS_BY_WORD.values())
    for index in sorted(positions):
        yield words[index], positions[index]
