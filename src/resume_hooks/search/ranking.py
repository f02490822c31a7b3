"""What the index has of each term, and which turns answer best: by a turn's best window and best record together.

A term is looked up as it was typed or inflected, else as a beginning or a likeness of words; where
nothing is found at all, also as a part of words.

A turn is the unit of a hit, since a question and its answer stand in different records of one turn.
Windows and records each have their order (BM25); the reciprocal ranks of a turn in both are summed
up. What a word of a prompt counts beside one of an output is decided when it is indexed, by
``index.read_transcript.words_by_weight``.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from tantivy import Occur, Query

from resume_hooks.search.index.postings import SCHEMA, WORDS, Posting, Postings, turn_key
from resume_hooks.search.index.tokenize import stem
from resume_hooks.search.query import Period, Term
from resume_hooks.search.roles import ROLES
from resume_hooks.search.scope import Limits

MOST_WORDS = 24  # words that a beginning or a part of a word is taken for; the commonest of them
MOST_ALIKE = 6  # words that one which is nowhere is taken for since they look alike
SHORTEST_PART = 3  # characters that a part of a word needs; shorter ones are in everything
SHORTEST_STEM = (
    5  # characters of a typed word that may stand for it where nothing begins with the whole
)
SHORTEST_ALIKE = 4  # characters of a word that may be misspelled
ALIKE = 0.75  # how like a word must be to one that is nowhere, 0 to 1
IN_PARTS = 0.5  # what a part of an identifier counts beside the whole


class Token(NamedTuple):
    """A word of a term: the stems that stand for it, and the parts of an identifier."""

    stems: tuple[str, ...]
    parts: tuple[str, ...] = ()


class Lookup(NamedTuple):
    """A term as the index has it.

    ``how`` is word, beginning, part, parts, alike or nowhere; ``tokens`` are what is searched for,
    ``marks`` the stems to be marked in a text, ``names`` the words that it is taken for; ``rows``
    how many records have it; ``weight`` what finding it tells.
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
        """A term as it was typed; else, but for a phrase, what each of its words may stand for."""
        if term not in self._known:
            self._known[term] = self._looked_up(term)
        return self._known[term]

    def _looked_up(self, term: Term) -> Lookup:
        lookup = self.strictly(term)
        if lookup.known or term.exact:
            return lookup
        if len(term.forms) == 1 and len(term.forms[0]) == 1:
            whole = stem(term.forms[0][0])
            ways = (("beginning", self._beginning), ("alike", self._alike))
            return next(
                (self._with(lookup, how, words) for how, find in ways if (words := find(whole))),
                lookup,
            )
        tokens = [token for forms in term.forms if (token := self._token(forms))]
        names: list[str] = []
        marks: list[str] = []
        for token in tokens:
            names += [*token.parts, token.stems[0]]
            marks += token.parts or token.stems[:1]
        rows = max(map(self._count_rows, names), default=0)
        if not rows:
            return lookup
        weight = self._weight(rows)
        return Lookup(term, "parts", tuple(tokens), tuple(marks), rows, weight, tuple(marks))

    def strictly(self, term: Term) -> Lookup:
        """A term only as it was typed or inflected.

        For what must not be there, where a guess would hide hits.
        """
        wholes = tuple(stem(forms[0]) for forms in term.forms)
        rows = min(map(self._count_rows, wholes))
        if not rows:
            return Lookup(term, "nowhere", (), wholes, 0, self._weight(0))
        parts = []
        for forms in term.forms:
            parts.append(() if term.exact else tuple(map(stem, forms[1:])))
        tokens = tuple(Token((whole,), own) for whole, own in zip(wholes, parts, strict=True))
        return Lookup(term, "word", tokens, wholes, rows, self._weight(rows), wholes)

    def in_others(self, lookup: Lookup) -> Lookup:
        """A word, or what stands for it, and all words that it is a part of.

        The same lookup where no word has others.

        It reads every word that there is, which takes longer than many searches.
        """
        if lookup.term.exact or [len(forms) for forms in lookup.term.forms] != [1]:
            return lookup
        others = []
        for row in self._containing(stem(lookup.term.forms[0][0])):
            if row[0] not in lookup.names:
                others.append(row)
        if others:
            return self._with(lookup, "part", others)
        return lookup

    def _token(self, forms: Sequence[str]) -> Token | None:
        """A word of several by what there is of it, the whole or its parts."""
        whole, *parts = map(stem, forms)
        known = tuple(part for part in parts if self._count_rows(part))
        if known or self._count_rows(whole):
            return Token((whole,), known)
        return None

    def _with(self, lookup: Lookup, how: str, words: Sequence[tuple[str, int]]) -> Lookup:
        """A word, if the index has it, and others that may be meant."""
        names = tuple(name for name, _ in words)
        known: list[str] = []
        for token in lookup.tokens:
            known.extend(token.stems)
        rows = lookup.rows + sum(rows for _, rows in words)
        stems = (*known, *names)
        return Lookup(lookup.term, how, (Token(stems),), stems, rows, self._weight(rows), names)

    def _weight(self, rows: int) -> float:
        """The usual inverse frequency; what is nowhere weighs as what is in one record."""
        count = min(max(1, rows), self._all or 1)
        return math.log(1 + ((self._all or 1) - count + 0.5) / (count + 0.5))

    def _count_rows(self, name: str) -> int:
        return self._words.frequency(WORDS, name)

    def _beginning(self, start: str) -> list[tuple[str, int]]:
        """The words that begin so; where none does, the longest word that is a beginning of it."""
        words = _commonest(self._words.beginning(WORDS, start, 500))
        for length in range(len(start) - 1, SHORTEST_STEM - 1, -1):
            if not words and (rows := self._count_rows(start[:length])):
                words = [(start[:length], rows)]
        return words

    @functools.cached_property
    def _every(self) -> list[tuple[str, int]]:
        """Every word that there is."""
        return self._words.beginning(WORDS, "")

    def _containing(self, part: str) -> list[tuple[str, int]]:
        if len(part) < SHORTEST_PART and part.isascii():
            return []
        # What a stem lost of its word at the end, one of two letters or an e, may be in the part.
        return _commonest(
            (word, rows) for word, rows in self._every if part in f"{word}{word[-1:]} {word}e"
        )

    def _alike(self, word: str) -> list[tuple[str, int]]:
        """The words that are most like one, as a misspelled one is.

        They begin with the same letter.
        """
        if len(word) < SHORTEST_ALIKE:
            return []
        import difflib  # 1 ms, which a word that is there does not need

        near = {
            other: rows
            for other, rows in self._words.beginning(WORDS, word[0])
            if abs(len(other) - len(word)) <= 2  # more letters are another word
        }
        return [
            (other, near[other])
            for other in difflib.get_close_matches(word, near, MOST_ALIKE, ALIKE)
        ]


def _commonest(rows: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(rows, key=lambda row: -row[1])[:MOST_WORDS]


LOOKED_AT = 300  # records, and windows, that are looked at
CANDIDATES = 60  # turns that are weighed closely
MOST_WINDOWS = 2_000  # windows of these turns that are looked at
PHRASED = 2_000
"""Records with the words of a phrase that are looked at.

Whether they have the phrase only their texts tell.
"""

DAMPING = 5
"""What is added to a rank before its reciprocal counts: the more, the less the first places matter."""

HINTED = 0.3  # what being said at the time that a question hints at adds to a turn's score
TITLE = ROLES.index("title")


class TurnHit(NamedTuple):
    """A turn with its fitting records, the best first; ``terms`` are the places in the query of those that it has."""

    key: int
    records: list[Posting]
    score: float
    terms: frozenset[int] = frozenset()


class Found(NamedTuple):
    """A turn as one wording found it; ``wording`` is its number, from 0."""

    wording: int
    turn: TurnHit


class Ranking:
    """Ranks the turns within some limits for looked-up terms.

    ``when`` is the time that was hinted at.
    """

    def __init__(
        self, words: Postings, limits: Limits, excluded: Sequence[Lookup], when: Period | None
    ) -> None:
        self._words = words
        self._limits = limits
        self._not = [(Occur.MustNot, _all_of(lookup)) for lookup in excluded if lookup.known]
        self._when = when
        self.capped = False
        """Whether there were more records with the words than were looked at."""

    def turns(self, lookups: Sequence[Lookup]) -> list[TurnHit]:
        """The turns that hold some of the terms and every phrase, the best first."""
        known = [lookup for lookup in lookups if lookup.known]
        phrases = []
        for lookup in lookups:
            if lookup.term.exact:
                phrases.append(lookup)
        if not known or not all(lookup.known for lookup in phrases):
            return []
        if phrases:
            found = self._phrased(phrases)
        else:
            found = self._search_records(Occur.Must, _any_of(known), LOOKED_AT)
        by_turn = _by_turn(found)
        limited = Query.boolean_query([(Occur.Must, _any_of(known)), *self._limits.turns])
        windows = self._words.turns(limited, LOOKED_AT)
        scores = self._fused(by_turn, windows)
        hits = []
        for key, score in scores.items():
            hits.append(TurnHit(key, _titles_last(by_turn[key]), score))
        hits.sort(key=lambda hit: -hit.score)
        return [*self._add_terms(hits[:CANDIDATES], lookups), *hits[CANDIDATES:]]

    def latest(self, most: int) -> list[TurnHit]:
        """The turns within the limits, the newest first, where no words were given.

        Each by the first said in it.
        """
        return [
            TurnHit(key, [min(records, key=lambda record: (record.role, record.line))], 0.0)
            for key, records in _by_turn(self.records(most)).items()
        ]

    def records(self, most: int, having: Sequence[Lookup] = ()) -> list[Posting]:
        """The records within the limits, of those with every word of some terms.

        The newest first.
        """
        words = [(Occur.Must, _all_of(lookup)) for lookup in having]
        return self._search_records(
            Occur.Must, Query.boolean_query(words) if words else Query.all_query(), most, "time"
        )

    def _phrased(self, phrases: Sequence[Lookup]) -> list[Posting]:
        """The records that may hold a phrase, in turns that may hold all of them."""
        groups = []
        for phrase in phrases:
            groups.append(self._search_records(Occur.Must, _all_of(phrase), PHRASED))
        self.capped = any(len(group) == PHRASED for group in groups)
        turns = []
        for group in groups:
            turns.append({turn_key(row.file, row.turn) for row in group})
        shared = set.intersection(*turns)
        rows = chain.from_iterable(groups)
        return [row for row in rows if turn_key(row.file, row.turn) in shared]

    def _search_records(
        self, occur: Occur, query: Query, most: int, order_by: str | None = None
    ) -> list[Posting]:
        found = self._words.search(
            Query.boolean_query([(occur, query), *self._limits.records, *self._not]), most, order_by
        )
        self.capped = self.capped or len(found) == most
        return found

    def _fused(
        self, by_turn: Mapping[int, Sequence[Posting]], windows: Mapping[int, float]
    ) -> dict[int, float]:
        """What each turn comes to by the places of its best record and of its best window."""
        records = _rank_shares({key: rows[0].score for key, rows in by_turn.items()})
        windows = _rank_shares(windows)
        scores = {}
        for key, rows in by_turn.items():
            hinted = 1 + HINTED * bool(
                self._when and any(self._when.holds(row.time) for row in rows)
            )
            scores[key] = (records[key] + windows.get(key, 0.0)) * hinted
        return scores

    def _add_terms(self, hits: Sequence[TurnHit], lookups: Sequence[Lookup]) -> list[TurnHit]:
        """The turns with the places of the terms that each has."""
        terms: dict[int, set[int]] = {hit.key: set() for hit in hits}
        keys = list(terms)
        if not keys:
            return []
        own = Query.term_set_query(SCHEMA, "turn_key", keys)
        for number, lookup in enumerate(lookups):
            if lookup.known:
                query = Query.boolean_query([(Occur.Must, own), (Occur.Must, _all_of(lookup))])
                for key in self._words.turns(query, MOST_WINDOWS):
                    terms[key].add(number)
        return [hit._replace(terms=frozenset(terms[hit.key])) for hit in hits]


def fused(rankings: Sequence[Sequence[TurnHit]]) -> list[list[Found]]:
    """The turns that several wordings found, the best first; each by its best wording first."""
    turns: dict[int, list[Found]] = defaultdict(list)
    for number, ranking in enumerate(rankings):
        for turn in ranking:
            turns[turn.key].append(Found(number, turn))
    ways = [sorted(found, key=lambda way: -way.turn.score) for found in turns.values()]
    return sorted(ways, key=lambda found: -together(found))


def together(found: Iterable[Found]) -> float:
    """What a turn comes to by all wordings that found it, as lengths at right angles do.

    So what fits one of them well comes before what fits several a little.
    """
    return math.hypot(*(way.turn.score for way in found))


def _rank_shares(scores: Mapping[int, float]) -> dict[int, float]:
    """What each place in the order of what is scored counts, the first one 1.

    What scores alike has the same one.
    """
    places: dict[float, int] = {}
    for place, score in enumerate(sorted(scores.values(), reverse=True), 1):
        places.setdefault(score, place)
    shares = {}
    for key, score in scores.items():
        shares[key] = (1 + DAMPING) / (places[score] + DAMPING)
    return shares


def _titles_last(records: list[Posting]) -> list[Posting]:
    """Records, the best first, titles last: they say that something is there, not what."""
    return sorted(records, key=lambda record: (record.role == TITLE, -record.score))


def _by_turn(records: Iterable[Posting]) -> dict[int, list[Posting]]:
    groups: dict[int, list[Posting]] = defaultdict(list)
    for record in records:
        groups[turn_key(record.file, record.turn)].append(record)
    return groups


def _any_of(lookups: Iterable[Lookup]) -> Query:
    """What scores documents by the terms that they have: the best of what stands for each, and identifiers' parts."""
    clauses: list[Query] = []
    for token in (token for lookup in lookups for token in lookup.tokens):
        ways = [_term(name) for name in token.stems]
        clauses.append(ways[0] if len(ways) == 1 else Query.disjunction_max_query(ways))
        for part in token.parts:
            clauses.append(Query.boost_query(_term(part), IN_PARTS))
    return Query.boolean_query([(Occur.Should, clause) for clause in clauses])


def _all_of(lookup: Lookup) -> Query:
    """What holds for documents that have every word of a term, an identifier whole or by its parts."""
    words = []
    for token in lookup.tokens:
        ways = [_term(name) for name in token.stems]
        if token.parts:
            ways.append(Query.boolean_query([(Occur.Must, _term(part)) for part in token.parts]))
        words.append(
            ways[0]
            if len(ways) == 1
            else Query.boolean_query([(Occur.Should, way) for way in ways])
        )
    return Query.boolean_query([(Occur.Must, word) for word in words])


def _term(name: str) -> Query:
    return Query.term_query(SCHEMA, WORDS, name, index_option="freq")
