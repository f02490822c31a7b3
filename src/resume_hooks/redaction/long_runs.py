"""Long runs of letters and digits, and the tokens in them. Almost every secret is or contains such a run.

Runs of at least sixteen letters, digits, ``_`` and ``-`` are found by a fast search for one
literal. The search runs in a copy in which all these characters are replaced by the same character.
The text around a run then decides whether it is a secret.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from resume_hooks.redaction.false_positives import entropy, is_placeholder
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.load_rules import Rule, token_rules
from resume_hooks.redaction.spans import SHAPE, Span

MIN_RUN_CHARACTERS = 16
"""The minimum number of characters in a run."""

_RUN_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_CLASS_TABLE = bytes(97 if sign in _RUN_BYTES else 32 for sign in range(256))
_NEEDLE = b"a" * MIN_RUN_CHARACTERS
_NON_DIGITS = bytes(range(256)).translate(None, b"0123456789")

_ID_PREFIXES = frozenset([b"toolu", b"msg_0", b"req_0", b"ephem", b"claud"])
"""The prefixes of API ids and other words that are frequent in transcripts."""

_MAX_CACHED_RUNS = 50_000
_harmless_runs: set[bytes] = set()
"""A cache of runs without a digit or a keyword, so that each run is checked only once.

Its size is limited, and it never contains a secret.
"""

_VALUE_SEPARATORS = frozenset([b".", b"/", b"+", b"~"])
_VALUE_TABLE = bytes(sign if sign in _RUN_BYTES + b"./+~" else 0 for sign in range(256))
_VALUE_START_SEARCH_BYTES = 96
"""The number of bytes before a run to search for the start of its value."""

_HYPHEN = 45
_CHARACTERS_BEFORE_VALUE = frozenset([b"=", b'"', b"'", b" ", b":"])
_SECRET_NAME = compile_lazily(
    rb"(?i)(?:key|token|secret|pat|password)[\"'\\]{0,8}[ \t]{0,4}[=:][ \t]{0,4}[\"'\\]{0,8}\Z"
)

_MAX_KEYWORD_OFFSET = 96
"""The maximum number of bytes from the start of a token to its keyword."""

_BASE64_BEFORE_TOKEN = compile_lazily(
    rb"(?:[A-Za-z0-9+/]{3}\+|(?=\S{0,12}\d)(?=\S{0,12}[A-Z])[A-Za-z0-9+/]{12}/)\Z"
)
"""The text before a match that is by chance a part of base64."""

_TOKEN_TAIL = compile_lazily(rb"(?:\.?[\w-]){0,300}")
"""Characters that may follow a match and still belong to the token: newer tokens can be longer."""


def suspect_runs(raw: bytes) -> list[tuple[int, int]]:
    """Yield the start and end of long runs in ``raw`` that may be secrets.

    Such a run contains a digit or a keyword, and is not a UUID, an API id, or part of other base64.
    """
    classes = raw.translate(_CLASS_TABLE)
    find, end, runs = classes.find, 0, []
    while (start := find(_NEEDLE, end)) >= 0:
        end = find(b" ", start)
        if end < 0:
            end = len(raw)
        run = raw[start:end]
        if (
            run in _harmless_runs
            or run[:5] in _ID_PREFIXES
            or (
                end - start == 36
                and run[8] == run[13] == _HYPHEN
                and not _has_secret_name(raw, start)
            )
        ):
            continue
        if not (run.translate(None, _NON_DIGITS) or _has_keyword(run)):
            if len(_harmless_runs) < _MAX_CACHED_RUNS:
                _harmless_runs.add(run)
        elif not _is_inside_base64(raw, start, end):
            runs.append((start, end))
    return runs


def _has_keyword(run: bytes) -> bool:
    """Check whether a token may begin in a run. If not, this saves the 5 ms of loading the rules."""
    return token_rules().keyword_pattern.search(run.lower()) is not None


def _has_secret_name(raw: bytes, start: int) -> bool:
    """Check whether the text at ``start`` is assigned to a name that means a key or a token."""
    return (
        raw[start - 1 : start] in _CHARACTERS_BEFORE_VALUE
        and _SECRET_NAME.search(raw, max(0, start - 40), start) is not None
    )


def start_of_value(raw: bytes, start: int) -> int:
    """Return the start of the value around a long run. The value may also contain dots and other base64 characters."""
    if raw[start - 1 : start] not in _VALUE_SEPARATORS:
        return start
    text_before = raw[max(0, start - _VALUE_START_SEARCH_BYTES) : start].translate(_VALUE_TABLE)
    if b"\0" in text_before or start <= _VALUE_START_SEARCH_BYTES:
        return start - len(text_before.rpartition(b"\0")[2])
    return start


def _is_inside_base64(raw: bytes, start: int, end: int) -> bool:
    """Check whether a run is part of longer base64. A ``/`` is not enough, because addresses contain it."""
    byte_before = raw[start - 1 : start]
    is_inside = byte_before == b"+" or (byte_before == b"/" and raw[end : end + 1] in {b"+", b"="})
    return is_inside and start_of_value(raw, start) == start


def has_token_keyword(raw: bytes, lower: bytes, start: int, end: int) -> bool:
    """Check whether a token's keyword is in a long run, or at a short distance before the run."""
    return (
        token_rules().keyword_pattern.search(lower, _earliest_keyword_start(raw, start), end)
        is not None
    )


def token_spans(raw: bytes, lower: bytes, runs: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """Return the tokens in or around long runs of letters and digits; ``lower`` is ``raw`` in lower case.

    A rule scans no byte twice, however close its keywords are.
    """
    positions_by_rule: dict[Rule, list[int]] = {}
    for start, end in runs:
        for keyword in token_rules().keyword_pattern.finditer(
            lower, _earliest_keyword_start(raw, start), end
        ):
            for rule in token_rules().by_keyword[keyword[0]]:
                positions_by_rule.setdefault(rule, []).append(keyword.start())
    for rule, positions in positions_by_rule.items():
        for start, end in _windows_around_keywords(positions, rule.max_match_bytes):
            for match in rule.regex.finditer(raw, start, end):
                group = 1 if match.lastindex else 0
                keyword_number = bisect_left(positions, match.start())
                contains_keyword = (
                    keyword_number < len(positions) and positions[keyword_number] < match.end()
                )
                if (
                    contains_keyword
                    and _is_token_of_rule(rule, match[group])
                    and not _BASE64_BEFORE_TOKEN.search(
                        raw, max(0, match.start() - 24), match.start()
                    )
                ):
                    tail = _TOKEN_TAIL.match(raw, match.end(group))
                    yield Span(
                        rule.kind,
                        match.start(group),
                        tail.end() if tail else match.end(group),
                        SHAPE,
                    )


def _windows_around_keywords(positions: list[int], reach: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges around keywords that may contain their tokens, with overlapping ranges merged."""
    start, end = max(0, positions[0] - _MAX_KEYWORD_OFFSET), positions[0] + reach
    for position in positions[1:]:
        if position - _MAX_KEYWORD_OFFSET > end:
            yield start, end
            start = position - _MAX_KEYWORD_OFFSET
        end = position + reach
    yield start, end


def _earliest_keyword_start(raw: bytes, start: int) -> int:
    """Return the earliest start of a keyword. In a web hook's address, the keyword is several parts before the run."""
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
    if is_placeholder(value) or entropy(value) < rule.entropy:
        return False
    return rule.allowed is None or not rule.allowed.search(value)
