"""What the index has of each term: as it was typed or inflected, else as a beginning, a part or a likeness of words."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.search.index.postings import WORDS, Postings
from resume_hooks.search.index.tokenize import stem
from resume_hooks.search.query import Term

MOST_WORDS = 24  # words that a beginning or a part of a word is taken for; the commonest of them
MOST_ALIKE = 6  # words that one which is nowhere is taken for since they look alike
SHORTEST_PART = 3  # characters that a part of a word needs; shorter ones are in everything
SHORTEST_STEM = 5  # characters of a typed word that may stand for it where nothing begins with the whole
SHORTEST_ALIKE = 4  # characters of a word that may be misspelled
ALIKE = 0.75  # how like a word must be to one that is nowhere, 0 to 1
GUESSED = 0.6  # what a word counts that only stands for the one that was typed
IN_PARTS = 0.5  # what a part of an identifier counts beside the whole


class Token(NamedTuple):
    """A word of a term: the stems that stand for it, each with what it counts, and the parts of an identifier."""

    stems: tuple[tuple[str, float], ...]
    parts: tuple[str, ...] = ()


class Lookup(NamedTuple):
    """A term as the index has it.

    ``how`` is word, beginning, part, parts, alike, in others or nowhere; ``tokens`` are what is searched for, ``marks``
    the stems to be marked in a text, ``names`` the words that it is taken for; ``rows`` how many records have it;
    ``weight`` what finding it tells.
    """

    term: Term
    how: str
    tokens: tuple[Token, ...]
    marks: tuple[str, ...]
    rows: int
    weight: float
    names: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the index has it in any way."""
        return self.how != "nowhere"


class Terms:
    """Looks terms up in one index."""

    def __init__(self, words: Postings) -> None:
        self._words = words
        self._all = words.records
        self._known: dict[Term, Lookup] = {}

    def look_up(self, term: Term) -> Lookup:
        """A term as it was typed, else, if it is no phrase, by what may be meant by each of its words."""
        if term not in self._known:
            self._known[term] = self._looked_up(term)
        return self._known[term]

    def _looked_up(self, term: Term) -> Lookup:
        lookup = self.strictly(term)
        if lookup.known or term.exact:
            return lookup
        if len(term.forms) == 1 and len(term.forms[0]) == 1:
            whole = stem(term.forms[0][0])
            ways = (("beginning", self._beginning), ("part", self._containing), ("alike", self._alike))
            return next((self._with(lookup, how, words) for how, find in ways if (words := find(whole))), lookup)
        tokens = [token for forms in term.forms if (token := self._token(forms))]
        rows = max((self._rows(name) for token in tokens for name in (*token.parts, token.stems[0][0])), default=0)
        if not rows:
            return lookup
        marks = tuple(name for token in tokens for name in (token.parts or (token.stems[0][0],)))
        return Lookup(term, "parts", tuple(tokens), marks, rows, self._weight(rows), marks)

    def strictly(self, term: Term) -> Lookup:
        """A term only as it was typed or inflected; for what must not be there, where a guess would hide hits."""
        wholes = tuple(stem(forms[0]) for forms in term.forms)
        rows = min(map(self._rows, wholes))
        if not rows:
            return Lookup(term, "nowhere", (), wholes, 0, self._weight(0))
        parts = [() if term.exact else tuple(map(stem, forms[1:])) for forms in term.forms]
        tokens = tuple(Token(((whole, 1.0),), own) for whole, own in zip(wholes, parts, strict=True))
        return Lookup(term, "word", tokens, wholes, rows, self._weight(rows), wholes)

    def in_others(self, lookup: Lookup) -> Lookup:
        """A word, or what stands for it, and all words that it is a part of; the same lookup where there are none.

        Names of letters alone: a hash holds many a short word.
        """
        whole = stem(lookup.term.forms[0][0])
        if lookup.term.exact or len(lookup.tokens) != 1 or lookup.tokens[0].parts or not whole.isalpha():
            return lookup
        others = [row for row in self._containing(whole) if row[0].isalpha() and row[0] not in lookup.names]
        return self._with(lookup, "in others", others) if others else lookup

    def _token(self, forms: Sequence[str]) -> Token | None:
        """A word of several by what there is of it, the whole or its parts."""
        whole, *parts = map(stem, forms)
        known = tuple(part for part in parts if self._rows(part))
        return Token(((whole, 1.0),), known) if known or self._rows(whole) else None

    def _with(self, lookup: Lookup, how: str, words: Sequence[tuple[str, int]]) -> Lookup:
        """A word, if the index has it, and others that may be meant."""
        names = tuple(name for name, _ in words)
        known = tuple(way for token in lookup.tokens for way in token.stems)
        rows = lookup.rows + sum(rows for _, rows in words)
        stems = (*known, *((name, GUESSED) for name in names))
        marks = (*(name for name, _ in known), *names)
        return Lookup(lookup.term, how, (Token(stems),), marks, rows, self._weight(rows), names)

    def _weight(self, rows: int) -> float:
        """The usual inverse frequency; what is nowhere weighs as what is in one record."""
        count = min(max(1, rows), self._all or 1)
        return math.log(1 + ((self._all or 1) - count + 0.5) / (count + 0.5))

    def _rows(self, name: str) -> int:
        return self._words.frequency(WORDS, name)

    def _beginning(self, start: str) -> list[tuple[str, int]]:
        """The words that begin so; where none does, the longest word that is a beginning of it."""
        words = _commonest(self._words.beginning(WORDS, start, 500))
        for length in range(len(start) - 1, SHORTEST_STEM - 1, -1):
            if not words and (rows := self._rows(start[:length])):
                words = [(start[:length], rows)]
        return words

    @functools.cached_property
    def _every(self) -> list[tuple[str, int]]:
        """Every word that there is, which takes longer than many searches."""
        return self._words.beginning(WORDS, "")

    def _containing(self, part: str) -> list[tuple[str, int]]:
        if len(part) < SHORTEST_PART and part.isascii():
            return []
        # What a stem lost of its word at the end, one of two letters or an e, may be in the part.
        return _commonest((word, rows) for word, rows in self._every if part in f"{word}{word[-1:]} {word}e")

    def _alike(self, word: str) -> list[tuple[str, int]]:
        """The words that are most like one, as a misspelled one is; they begin with the same letter."""
        if len(word) < SHORTEST_ALIKE:
            return []
        import difflib  # 1 ms, which a word that is there does not need

        near = {
            other: rows
            for other, rows in self._words.beginning(WORDS, word[0])
            if abs(len(other) - len(word)) <= 2  # more letters are another word
        }
        return [(other, near[other]) for other in difflib.get_close_matches(word, near, MOST_ALIKE, ALIKE)]


def _commonest(rows: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(rows, key=lambda row: -row[1])[:MOST_WORDS]
