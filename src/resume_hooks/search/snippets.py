"""The place in a text that shows why it was found: a window with as many of the words as possible, and their marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.search.record_text import Text, phrase_of, text_of
from resume_hooks.search.terms import Lookup

REACH = 400_000
"""Characters of a text that are looked through; what was found beyond is shown by the text's start."""

LEAD = 1_000
"""Characters before a phrase that are looked through as well."""

MOST_MARKS = 2_000

_PART = "(?:(?<![0-9A-Za-z])|(?-i:(?<=[a-z0-9])(?=[A-Z])))"
"""Where a part of an identifier may begin, as a word does."""


class Snippet(NamedTuple):
    """A piece of a text on one line, with the spans of the words in it; ``near`` is how closely they stand, 0 to 1."""

    text: str
    marks: list[tuple[int, int]]
    near: float


def pattern_of(terms: Sequence[Sequence[Lookup]]) -> re.Pattern[str] | None:
    """What marks words in a bare text: one group for each term, matching what any of its lookups found."""
    groups = ["|".join(_words(lookups)) or "(?!)" for lookups in terms]
    return re.compile("|".join(f"({group})" for group in groups), re.IGNORECASE) if groups else None


def snippet_of(text: Text, pattern: re.Pattern[str] | None, width: int, place: int = 0) -> Snippet:
    """About ``width`` characters around the densest place of ``text``; the words are looked for from ``place`` on."""
    begin = max(0, place - LEAD) if place > REACH // 2 else 0
    flat = text.shown[begin : begin + REACH]
    bare = text.bare[begin : begin + REACH]
    found = [] if pattern is None else [(m.start(), m.end(), m.lastindex or 0) for m in _some(pattern, bare)]
    first, last, kinds = _densest(found, width)
    start = max(0, min(first - max(0, width - (last - first)) // 3, len(flat) - width))
    start = _word_start(flat, start)
    end = min(len(flat), start + width)
    shown = f"{'… ' if start or begin else ''}{flat[start:end].rstrip()}{' …' if end < len(flat) else ''}"
    shift = start - (2 if start or begin else 0)
    marks = [(a - shift, b - shift) for a, b, _ in found if a >= start and b <= end]
    spread = 1 - min(1.0, (last - first) / (4 * width)) if kinds > 1 else 0.0
    return Snippet(shown, marks, spread * kinds / max(1, len({kind for *_, kind in found})))


def _some(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return [match for match, _ in zip(pattern.finditer(text), range(MOST_MARKS), strict=False)]


def _densest(found: Sequence[tuple[int, int, int]], width: int) -> tuple[int, int, int]:
    """Where the most different words stand within ``width`` characters: start, end, and how many."""
    best = (0, 0, 0)
    left = 0
    for right in range(len(found)):
        while found[right][1] - found[left][0] > width and left < right:
            left += 1
        kinds = len({kind for *_, kind in found[left : right + 1]})
        if kinds > best[2]:
            best = (found[left][0], found[right][1], kinds)
    return best


def _word_start(text: str, start: int) -> int:
    """The start of a word at or soon after a place."""
    space = text.find(" ", start, start + 20) if start else -1
    return space + 1 if space >= 0 else start


def _words(lookups: Sequence[Lookup]) -> list[str]:
    """What a term is in a text: the phrase that it is, or any of the stems that were found, the longest first."""
    phrases = [phrase_of(found.term.text).pattern for found in lookups if found.term.exact]
    stems = {stem for found in lookups if not found.term.exact for stem in found.stems}
    whole = {text_of(found.term.text).bare.lower() for found in lookups if not found.term.text.isascii()}
    return [*phrases, *map(_stem, sorted(stems | whole, key=lambda stem: (-len(stem), stem)))]


def _stem(stem: str) -> str:
    """What a stem matches: it at the start of a word (a short one), or anywhere; endings y and i are the same."""
    stem = text_of(stem).bare
    body = re.escape(stem[:-1]) + "[iy]" if stem.endswith("i") and len(stem) > 2 else re.escape(stem)
    if not stem.isascii():
        return body
    return f"{_PART}{body}[0-9A-Za-z]*" if len(stem) < 5 else f"{body}[0-9A-Za-z]*"
