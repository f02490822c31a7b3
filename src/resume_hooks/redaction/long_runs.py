"""Long runs of letters and digits, and the tokens in them. Almost every secret is or contains such a run.

Runs of at least sixteen letters, digits, ``_`` and ``-`` are found by a fast search for one
literal. The search runs in a copy in which all these characters are replaced by the same character.
The text around a run then decides whether it is a secret.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from resume_hooks.redaction.false_positives import entropy, stands_for
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.load_rules import Rule, token_rules
from resume_hooks.redaction.spans import SHAPE, Span

SHORTEST = 16
"""The minimum number of characters in a run."""

_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_CLASSES = bytes(97 if sign in _WORD else 32 for sign in range(256))
_NEEDLE = b"a" * SHORTEST
_NO_DIGITS = bytes(range(256)).translate(None, b"0123456789")

_IDS = frozenset([b"toolu", b"msg_0", b"req_0", b"ephem", b"claud"])
"""The prefixes of API ids and other words that are frequent in transcripts."""

_DULL = 50_000
_dull: set[bytes] = set()
"""A cache of runs without a digit or a keyword, so that each run is checked only once.

Its size is limited, and it never contains a secret.
"""

_PARTING = frozenset([b".", b"/", b"+", b"~"])
_VALUES = bytes(sign if sign in _WORD + b"./+~" else 0 for sign in range(256))
_BACK = 96
"""The number of bytes before a run to search for the start of its value."""

_HYPHEN = 45
_SETTING = frozenset([b"=", b'"', b"'", b" ", b":"])
_NAMED = late(
    rb"(?i)(?:key|token|secret|pat|password)[\"'\\]{0,8}[ \t]{0,4}[=:][ \t]{0,4}[\"'\\]{0,8}\Z"
)

_BEFORE_KEYWORD = 96
"""The maximum number of bytes from the start of a token to its keyword."""

_TAIL = late(rb"(?:\.?[\w-]){0,300}")
"""Characters that may continue a token directly, because newer tokens are longer than the rule
expects."""


def promising_runs(raw: bytes) -> list[tuple[int, int]]:
    """Yield the start and end of long runs in ``raw`` that may be secrets.

    Such a run contains a digit or a keyword, and is not a UUID, an API id, or part of other base64.
    """
    classes = raw.translate(_CLASSES)
    find, end, found = classes.find, 0, []
    while (start := find(_NEEDLE, end)) >= 0:
        end = find(b" ", start)
        if end < 0:
            end = len(raw)
        run = raw[start:end]
        if (
            run in _dull
            or run[:5] in _IDS
            or (
                end - start == 36
                and run[8] == run[13] == _HYPHEN
                and not _is_set_to_name(raw, start)
            )
        ):
            continue
        if not (run.translate(None, _NO_DIGITS) or _has_keyword(run)):
            if len(_dull) < _DULL:
                _dull.add(run)
        elif not _is_inside(raw, start, end):
            found.append((start, end))
    return found


def _has_keyword(run: bytes) -> bool:
    """Check whether a token may begin in a run. If not, this saves the 5 ms of loading the rules."""
    return token_rules().keywords.search(run.lower()) is not None


def _is_set_to_name(raw: bytes, start: int) -> bool:
    """Check whether the text at ``start`` is assigned to a name that means a key or a token."""
    return (
        raw[start - 1 : start] in _SETTING
        and _NAMED.search(raw, max(0, start - 40), start) is not None
    )


def start_of_value(raw: bytes, start: int) -> int:
    """Return the start of the value around a long run. The value may also contain dots and other base64 characters."""
    if raw[start - 1 : start] not in _PARTING:
        return start
    before = raw[max(0, start - _BACK) : start].translate(_VALUES)
    if b"\0" in before or start <= _BACK:
        return start - len(before.rpartition(b"\0")[2])
    return start


def _is_inside(raw: bytes, start: int, end: int) -> bool:
    """Check whether a run is part of longer base64. A ``/`` is not enough, because addresses contain it."""
    before = raw[start - 1 : start]
    inside = before == b"+" or (before == b"/" and raw[end : end + 1] in {b"+", b"="})
    return inside and start_of_value(raw, start) == start


def has_token_keyword(raw: bytes, lower: bytes, start: int, end: int) -> bool:
    """Check whether a token's keyword is in a long run, or at a short distance before the run."""
    return token_rules().keywords.search(lower, _first_keyword_place(raw, start), end) is not None


def token_spans(raw: bytes, lower: bytes, runs: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """Return the tokens in or around long runs of letters and digits; ``lower`` is ``raw`` in lower case.

    A rule scans no byte twice, however close its keywords are.
    """
    called: dict[Rule, list[int]] = {}
    for start, end in runs:
        for keyword in token_rules().keywords.finditer(
            lower, _first_keyword_place(raw, start), end
        ):
            for rule in token_rules().by_keyword[keyword[0]]:
                called.setdefault(rule, []).append(keyword.start())
    for rule, places in called.items():
        for start, end in _windows_around_keywords(places, rule.reach):
            for match in rule.regex.finditer(raw, start, end):
                group = 1 if match.lastindex else 0
                first = bisect_left(places, match.start())
                holds_keyword = first < len(places) and places[first] < match.end()
                if holds_keyword and _is_token_of_rule(rule, match[group]):
                    tail = _TAIL.match(raw, match.end(group))
                    yield Span(
                        rule.kind,
                        match.start(group),
                        tail.end() if tail else match.end(group),
                        SHAPE,
                    )


def _windows_around_keywords(places: list[int], reach: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges around keywords that may contain their tokens, with overlapping ranges merged."""
    start, end = max(0, places[0] - _BEFORE_KEYWORD), places[0] + reach
    for place in places[1:]:
        if place - _BEFORE_KEYWORD > end:
            yield start, end
            start = place - _BEFORE_KEYWORD
        end = place + reach
    yield start, end


def _first_keyword_place(raw: bytes, start: int) -> int:
    """Return the earliest start of a keyword. In a web hook's address, the keyword is several parts before the run."""
    start = start_of_value(raw, start)
    before = raw[start - 1 : start]
    far = before == b"=" or (before == b"/" and raw.rfind(b"hook", max(0, start - 64), start) >= 0)
    if far:
        reach = 64
    elif before == b":":
        reach = 24
    else:
        reach = 12
    return max(0, start - reach)


def _is_token_of_rule(rule: Rule, value: bytes) -> bool:
    if stands_for(value) or entropy(value) < rule.entropy:
        return False
    return rule.allowed is None or not rule.allowed.search(value)
