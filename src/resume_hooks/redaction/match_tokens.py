"""Apply the token rules to a text: the rules of ``rules.json`` and ``own_rules``, looked up by their keywords."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from resume_hooks.redaction.false_positives import entropy, stands_for
from resume_hooks.redaction.load_rules import Rule, rules
from resume_hooks.redaction.long_runs import begin
from resume_hooks.redaction.spans import SHAPE, Span

_BACK = 96
"""Bytes before its keyword in which a token may begin."""

_TAIL = re.compile(rb"(?:\.?[\w-]){0,300}")
"""What goes on directly after a token: a newer form of it is longer than the rule knows."""


def is_called(raw: bytes, lower: bytes, start: int, end: int) -> bool:
    """Whether a keyword of a token stands in a long run, or close before it."""
    return rules().keywords.search(lower, _from(raw, start), end) is not None


def tokens(raw: bytes, lower: bytes, runs: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """The tokens in long runs of letters and digits, or around them; ``lower`` is ``raw`` in lower case.

    A rule looks at no byte twice, however many of its keywords stand close together.
    """
    called: dict[Rule, list[int]] = {}
    for start, end in runs:
        for keyword in rules().keywords.finditer(lower, _from(raw, start), end):
            for rule in rules().by_keyword[keyword[0]]:
                called.setdefault(rule, []).append(keyword.start())
    for rule, places in called.items():
        for start, end in _windows(places, rule.reach):
            for match in rule.regex.finditer(raw, start, end):
                group = 1 if match.lastindex else 0
                if _holds(match, places) and _counts(rule, match[group]):
                    tail = _TAIL.match(raw, match.end(group))
                    yield Span(rule.kind, match.start(group), tail.end() if tail else match.end(group), SHAPE)


def _windows(places: list[int], reach: int) -> Iterator[tuple[int, int]]:
    """The stretches around keywords in which their tokens stand, those that overlap as one."""
    start, end = max(0, places[0] - _BACK), places[0] + reach
    for place in places[1:]:
        if place - _BACK > end:
            yield start, end
            start = place - _BACK
        end = place + reach
    yield start, end


def _holds(match: re.Match[bytes], places: list[int]) -> bool:
    """Whether one of the keywords at ``places`` stands in a match."""
    first = bisect_left(places, match.start())
    return first < len(places) and places[first] < match.end()


def _from(raw: bytes, start: int) -> int:
    """Where a keyword may begin; in the address of a hook it stands some parts before."""
    start = begin(raw, start)
    before = raw[start - 1 : start]
    far = before == b"=" or (before == b"/" and raw.rfind(b"hook", max(0, start - 64), start) >= 0)
    return max(0, start - (64 if far else 24 if before == b":" else 12))


def _counts(rule: Rule, value: bytes) -> bool:
    if stands_for(value) or entropy(value) < rule.entropy:
        return False
    return rule.allowed is None or not rule.allowed.search(value)
