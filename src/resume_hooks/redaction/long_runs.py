"""Find tokens in long runs of letters and digits. Almost every secret contains a long run.

A run consists of at least 16 letters, digits, ``_`` and ``-``. To find runs quickly, each of
these characters is replaced with the letter ``a`` in a copy of the text, and the copy is searched
for 16 consecutive ``a``. The text around a run then shows whether the run is a secret.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from resume_hooks.redaction.false_positives import entropy, is_placeholder
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.load_rules import Rule, token_rules
from resume_hooks.redaction.spans import SHAPE, Span

MIN_RUN_CHARACTERS = 16
"""Minimum number of characters in a run of token characters. Shorter runs are not examined."""

_RUN_CHARACTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_RUN_BYTE_TABLE = bytes(97 if sign in _RUN_CHARACTERS else 32 for sign in range(256))
_SHORTEST_RUN_AFTER_TRANSLATION = b"a" * MIN_RUN_CHARACTERS
_NON_DIGIT_CHARACTERS = bytes(range(256)).translate(None, b"0123456789")

_ID_PREFIXES = frozenset([b"toolu", b"msg_0", b"req_0", b"ephem", b"claud"])
"""The beginnings of the API's ids and of other words that are frequent in transcripts."""

_MAX_CACHED_RUNS = 50_000
_harmless_runs: set[bytes] = set()
"""Runs that contain neither a digit nor a keyword. They were already checked and are not secrets.

The number of these runs is limited.
"""

_VALUE_SEPARATORS = frozenset([b".", b"/", b"+", b"~"])
_VALUE_BYTE_TABLE = bytes(sign if sign in _RUN_CHARACTERS + b"./+~" else 0 for sign in range(256))
_VALUE_START_SEARCH_BYTES = 96
"""If a run of token characters is part of a longer value, this many bytes before the run are
searched for the start of the value."""

_HYPHEN_BYTE = 45
_CHARACTERS_BEFORE_VALUE = frozenset([b"=", b'"', b"'", b" ", b":"])
_SECRET_NAME_PATTERN = compile_lazily(
    rb"(?i)(?:key|token|secret|pat|password)[\"'\\]{0,8}[ \t]{0,4}[=:][ \t]{0,4}[\"'\\]{0,8}\Z"
)

_MAX_KEYWORD_OFFSET = 96
"""Maximum number of bytes between the start of a token and its keyword."""

_BASE64_BEFORE_TOKEN_PATTERN = compile_lazily(
    rb"(?:[A-Za-z0-9+/]{3}\+|(?=\S{0,12}\d)(?=\S{0,12}[A-Z])[A-Za-z0-9+/]{12}/)\Z"
)
"""Matches base64 text directly before the match of a rule. Such a match is part of the base64 text
and not a token."""

_TOKEN_TAIL_PATTERN = compile_lazily(rb"(?:\.?[\w-]){0,300}")
"""Matches characters after a match that still belong to the token, because newer tokens may be
longer."""


def runs_of_possible_secrets(raw: bytes) -> list[tuple[int, int]]:
    """Return the start and end of each long run in ``raw`` that may be a secret.

    Each of these runs contains a digit or a keyword, and is not a UUID, an API id or part of a
    longer base64 string.
    """
    classes = raw.translate(_RUN_BYTE_TABLE)
    find, end, runs = classes.find, 0, []
    while (start := find(_SHORTEST_RUN_AFTER_TRANSLATION, end)) >= 0:
        end = find(b" ", start)
        if end < 0:
            end = len(raw)
        run = raw[start:end]
        if (
            run in _harmless_runs
            or run[:5] in _ID_PREFIXES
            or (
                end - start == 36
                and run[8] == run[13] == _HYPHEN_BYTE
                and not _has_secret_name(raw, start)
            )
        ):
            continue
        if not (run.translate(None, _NON_DIGIT_CHARACTERS) or _has_keyword(run)):
            if len(_harmless_runs) < _MAX_CACHED_RUNS:
                _harmless_runs.add(run)
        elif not _is_inside_base64(raw, start, end):
            runs.append((start, end))
    return runs


def _has_keyword(run: bytes) -> bool:
    """Check whether a run contains a keyword of the rules for tokens."""
    return token_rules().keyword_pattern.search(run.lower()) is not None


def _has_secret_name(raw: bytes, start: int) -> bool:
    """Check whether the text at ``start`` is assigned to a name that means a key, a token or a password."""
    return (
        raw[start - 1 : start] in _CHARACTERS_BEFORE_VALUE
        and _SECRET_NAME_PATTERN.search(raw, max(0, start - 40), start) is not None
    )


def start_of_value(raw: bytes, start: int) -> int:
    """Return the start of the value that contains a long run.

    The value may also contain dots and the other characters of base64.
    """
    if raw[start - 1 : start] not in _VALUE_SEPARATORS:
        return start
    text_before = raw[max(0, start - _VALUE_START_SEARCH_BYTES) : start].translate(
        _VALUE_BYTE_TABLE
    )
    if b"\0" in text_before or start <= _VALUE_START_SEARCH_BYTES:
        return start - len(text_before.rpartition(b"\0")[2])
    return start


def _is_inside_base64(raw: bytes, start: int, end: int) -> bool:
    """Check whether a run is part of longer base64.

    A ``/`` before the run is not a sufficient sign, because addresses also contain it.
    """
    byte_before = raw[start - 1 : start]
    is_inside = byte_before == b"+" or (byte_before == b"/" and raw[end : end + 1] in {b"+", b"="})
    return is_inside and start_of_value(raw, start) == start


def has_token_keyword(raw: bytes, lower: bytes, start: int, end: int) -> bool:
    """Check whether a long run, or the text shortly before it, contains a keyword of the rules."""
    return (
        token_rules().keyword_pattern.search(lower, _earliest_keyword_start(raw, start), end)
        is not None
    )


def token_spans(raw: bytes, lower: bytes, runs: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """Yield the tokens in or around long runs of token characters.

    ``lower`` is ``raw`` in lower case. Each rule searches every byte at most once, even if the
    rule's keywords are close together.
    """
    positions_by_rule: dict[Rule, list[int]] = {}
    for start, end in runs:
        for keyword in token_rules().keyword_pattern.finditer(
            lower, _earliest_keyword_start(raw, start), end
        ):
            for rule in token_rules().rules_by_keyword[keyword[0]]:
                positions_by_rule.setdefault(rule, []).append(keyword.start())
    for rule, positions in positions_by_rule.items():
        for start, end in _windows_around_keywords(positions, rule.max_match_bytes):
            for match in rule.pattern.finditer(raw, start, end):
                group = 1 if match.lastindex else 0
                keyword_number = bisect_left(positions, match.start())
                contains_keyword = (
                    keyword_number < len(positions) and positions[keyword_number] < match.end()
                )
                if (
                    contains_keyword
                    and _is_token_of_rule(rule, match[group])
                    and not _BASE64_BEFORE_TOKEN_PATTERN.search(
                        raw, max(0, match.start() - 24), match.start()
                    )
                ):
                    tail = _TOKEN_TAIL_PATTERN.match(raw, match.end(group))
                    yield Span(
                        rule.kind,
                        match.start(group),
                        tail.end() if tail else match.end(group),
                        SHAPE,
                    )


def _windows_around_keywords(
    positions: list[int], max_token_bytes: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges in which the tokens of keywords may lie. Overlapping ranges are merged.

    ``max_token_bytes`` is the maximum number of bytes from a keyword to the end of its token.
    """
    start, end = max(0, positions[0] - _MAX_KEYWORD_OFFSET), positions[0] + max_token_bytes
    for position in positions[1:]:
        if position - _MAX_KEYWORD_OFFSET > end:
            yield start, end
            start = position - _MAX_KEYWORD_OFFSET
        end = position + max_token_bytes
    yield start, end


def _earliest_keyword_start(raw: bytes, start: int) -> int:
    """Return the earliest position at which the keyword for a run may begin.

    In a web hook's address, the keyword is several parts before the run.
    """
    start = start_of_value(raw, start)
    byte_before = raw[start - 1 : start]
    may_be_far = byte_before == b"=" or (
        byte_before == b"/" and raw.rfind(b"hook", max(0, start - 64), start) >= 0
    )
    if may_be_far:
        search_bytes = 64
    elif byte_before == b":":
        search_bytes = 24
    else:
        search_bytes = 12
    return max(0, start - search_bytes)


def _is_token_of_rule(rule: Rule, value: bytes) -> bool:
    if is_placeholder(value) or entropy(value) < rule.min_entropy:
        return False
    return rule.exception_pattern is None or not rule.exception_pattern.search(value)
