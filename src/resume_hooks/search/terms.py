"""What the index has of each term: as it was typed or inflected, else as a beginning, else as a part of other words."""

from __future__ import annotations

import math
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from resume_hooks.search.index.tokenize import TOKENIZER
from resume_hooks.search.query import Term

MOST_WORDS = 24  # words that a beginning or a part of a word is taken for; the commonest of them
SHORTEST_PART = 3  # characters that a part of a word needs; shorter ones are in everything
SHORTEST_STEM = 5  # characters of a typed word that may stand for it where nothing begins with the whole
ENDINGS = ("", "e", "s", "ed", "ing", "ion", "ment", "y")  # what a stem may have lost


class Lookup(NamedTuple):
    """A term as the index has it.

    ``expression`` is what SQLite is asked for, "" for what is nowhere; ``how`` is word, beginning, part, parts, related
    or nowhere; ``stems`` are the words to be marked in a text, ``names`` the words that it is taken for; ``rows`` how
    many records have it; ``weight`` what finding it tells.
    """

    term: Term
    expression: str
    how: str
    stems: tuple[str, ...]
    rows: int
    weight: float
    names: tuple[str, ...] = ()


class Terms:
    """Looks terms up in one index."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        (self._all,) = db.execute("SELECT max(id) FROM records").fetchone()
        db.execute(f'CREATE VIRTUAL TABLE IF NOT EXISTS temp.stemmer USING fts5(word, tokenize="{TOKENIZER}")')
        db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.stems USING fts5vocab(temp, stemmer, row)")

    def look_up(self, term: Term, *, part: bool = True) -> Lookup:
        """A term as it was typed, else as the beginning or a part of words, else an identifier by its parts.

        Looking for a ``part`` goes through all words that there are: a quarter of a second where there are many.
        """
        lookup = self.strictly(term)
        if lookup.rows:
            return lookup
        if not term.exact and len(term.forms) == 1:
            whole = self._stem(term.forms[0][0])
            how, words = "beginning", self._beginning(whole)
            if not words and part:
                how, words = "part", self._containing(whole)
            if words:
                known = [word for word, _ in words]
                return self._found(term, _any(map(self._spelling, known)), how, known, sum(rows for _, rows in words))
        if not term.exact and all(len(forms) > 1 or self._has(forms[0]) for forms in term.forms):
            parts = [part for forms in term.forms for part in (forms[:1] if self._has(forms[0]) else forms[1:])]
            if rows := min(map(self._has, parts)):
                return self._found(term, _all(parts), "parts", [self._stem(part) for part in parts], rows)
        return lookup

    def strictly(self, term: Term) -> Lookup:
        """A term only as it was typed or inflected; for what must not be there, where a guess would hide hits."""
        wholes = [forms[0] for forms in term.forms]
        stems = [self._stem(whole) for whole in wholes]
        rows = min(map(self._rows, stems))
        if rows:
            return self._found(term, _all(wholes), "word", stems, rows)
        return Lookup(term, "", "nowhere", tuple(stems), 0, self._weight(0))

    def related(self, lookup: Lookup) -> Lookup | None:
        """The words that may have been meant by a term; None where none are known or in the index."""
        (stem, *more) = [self._stem(forms[0]) for forms in lookup.term.forms] or [""]
        words = {} if more or lookup.term.exact else self._meanings.get(stem, {})
        known = {other: word for other, word in sorted(words.items()) if self._rows(other)}
        if not known:
            return None
        names, rows = tuple(known.values()), sum(map(self._rows, known))
        return Lookup(lookup.term, _any(names), "related", tuple(known), rows, lookup.weight, names)

    @cached_property
    def _meanings(self) -> dict[str, dict[str, str]]:
        """Related words by the stem of a word: their stems, and how they are spelled."""
        related = _synonyms()
        words = list(related)
        self._db.execute("DELETE FROM temp.stemmer")
        self._db.executemany("INSERT INTO temp.stemmer(rowid, word) VALUES(?,?)", enumerate(words))
        self._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.places USING fts5vocab(temp, stemmer, instance)")
        stems = {words[row]: stem for stem, row in self._db.execute("SELECT term, doc FROM temp.places WHERE offset=0")}
        meanings: dict[str, dict[str, str]] = {}
        for word, others in related.items():
            meant = meanings.setdefault(stems[word], {})
            meant.update({stems[other]: other for other in others if stems[other] != stems[word]})
        return meanings

    def _found(self, term: Term, expression: str, how: str, stems: Sequence[str], rows: int) -> Lookup:
        return Lookup(term, f"({expression})", how, tuple(stems), rows, self._weight(rows), tuple(stems))

    def _weight(self, rows: int) -> float:
        """The usual inverse frequency; what is nowhere weighs as what is in one record."""
        count = max(1, rows)
        return math.log(1 + ((self._all or 0) - count + 0.5) / (count + 0.5)) if (self._all or 0) >= count else 0.1

    def _stem(self, form: str) -> str:
        """A word as SQLite's own stemmer has it."""
        self._db.execute("DELETE FROM temp.stemmer")
        self._db.execute("INSERT INTO temp.stemmer VALUES(?)", (form,))
        row = self._db.execute("SELECT term FROM temp.stems LIMIT 1").fetchone()
        return str(row[0]) if row else form

    def _spelling(self, stem: str) -> str:
        """A word that has this stem: SQLite stems what it is asked for, and some stems have another stem themselves."""
        return next((stem + ending for ending in ENDINGS if self._stem(stem + ending) == stem), stem)

    def _has(self, form: str) -> int:
        return self._rows(self._stem(form))

    def _rows(self, stem: str) -> int:
        row = self._db.execute("SELECT doc FROM vocabulary WHERE term=?", (stem,)).fetchone()
        return int(row[0]) if row else 0

    def _beginning(self, start: str) -> list[tuple[str, int]]:
        """The words that begin so; where none does, the longest word that is a beginning of it."""
        query = "SELECT term, doc FROM vocabulary WHERE term>=? AND term<? LIMIT 500"
        words = _commonest(self._db.execute(query, (start, start + "\U0010ffff")))
        for length in range(len(start) - 1, SHORTEST_STEM - 1, -1):
            if not words and (rows := self._rows(start[:length])):
                words = [(start[:length], rows)]
        return words

    def _containing(self, part: str) -> list[tuple[str, int]]:
        if len(part) < SHORTEST_PART and part.isascii():
            return []
        rows = self._db.execute("SELECT term, doc FROM vocabulary WHERE instr(term, ?) LIMIT 500", (part,))
        return _commonest(rows)


def _synonyms() -> dict[str, set[str]]:
    """For each word those that people in software use for the same thing; ``synonyms.txt`` has a line a meaning."""
    related: dict[str, set[str]] = defaultdict(set)
    with open(os.path.join(os.path.dirname(__file__), "synonyms.txt"), encoding="ascii") as stream:
        for line in stream:
            words = line.split()
            for word in words:
                related[word].update(words)
    return related


def _commonest(rows: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(rows, key=lambda row: -row[1])[:MOST_WORDS]


def _all(words: Iterable[str]) -> str:
    return " AND ".join(map(_quoted, words))


def _any(words: Iterable[str]) -> str:
    return f"({' OR '.join(map(_quoted, words))})"


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'
