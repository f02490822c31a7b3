"""The lookup of terms in the index, and the ranking of turns by their best window and best record.

A term is looked up as typed or inflected. If the index does not contain it, it is looked up as the
prefix or a misspelling of other words. If no term of the query is found, each is also looked up as
a part of words.

A hit is a turn, because a question and its answer are in different records of a turn. Windows and
records have separate rankings (BM25), and a turn's reciprocal ranks in both are added.
``index.read_transcript.words_by_weight`` sets the weight of a prompt's words relative to those of
an output.
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

# the maximum number of words that a prefix or a part may stand for, the most common first
MAX_WORDS = 24
MAX_ALIKE = 6  # the maximum number of words that a misspelled word may stand for
MIN_PART = 3  # the minimum length of a part of a word; shorter parts are in too many words
# the minimum length of a typed word's prefix that replaces the word if no indexed word begins with it
MIN_BEGINNING = 5
MIN_MISSPELLED = 4  # the minimum length of a word that may be misspelled
MIN_SIMILARITY = 0.75  # the minimum similarity of a misspelled word to an indexed word, 0 to 1
PART_WEIGHT = 0.5  # the weight of a part of an identifier, relative to the whole identifier


class Token(NamedTuple):
    """A word of a term: its possible stems, and the parts of an identifier."""

    stems: tuple[str, ...]
    parts: tuple[str, ...] = ()


class Lookup(NamedTuple):
    """A term's lookup in the index.

    ``how`` is word, beginning, part, parts, alike or nowhere. ``tokens`` are the words to search
    for, ``marks`` are the stems to mark in a text, and ``names`` are the words that the term may
    stand for. ``rows`` is the number of records that contain the term; ``weight`` is higher for
    rarer terms.
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
        """Whether the index contains the term in any form."""
        return self.how != "nowhere"


class Terms:
    """Lookups of terms in one index."""

    def __init__(self, words: Postings) -> None:
        self._words = words
        self._all = words.records
        self._known: dict[Term, Lookup] = {}

    def look_up(self, term: Term) -> Lookup:
        """Look a term up as typed. If that fails and the term is not a phrase, look up words that it may stand for."""
        if term not in self._known:
            self._known[term] = self._look_up_uncached(term)
        return self._known[term]

    def _look_up_uncached(self, term: Term) -> Lookup:
        lookup = self.look_up_strictly(term)
        if lookup.known or term.exact:
            return lookup
        if len(term.forms) == 1 and len(term.forms[0]) == 1:
            whole_stem = stem(term.forms[0][0])
            searches = (("beginning", self._words_with_beginning), ("alike", self._similar_words))
            return next(
                (
                    self._with_words(lookup, how, words)
                    for how, find in searches
                    if (words := find(whole_stem))
                ),
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

    def look_up_strictly(self, term: Term) -> Lookup:
        """Look a term up only as typed or inflected.

        This is used for excluded terms, because a wrong guess would hide hits.
        """
        wholes = tuple(stem(forms[0]) for forms in term.forms)
        rows = min(map(self._count_rows, wholes))
        if not rows:
            return Lookup(term, "nowhere", (), wholes, 0, self._weight(0))
        parts = []
        for forms in term.forms:
            parts.append(() if term.exact else tuple(map(stem, forms[1:])))
        tokens = tuple(
            Token((whole_stem,), part_stems)
            for whole_stem, part_stems in zip(wholes, parts, strict=True)
        )
        return Lookup(term, "word", tokens, wholes, rows, self._weight(rows), wholes)

    def look_up_in_others(self, lookup: Lookup) -> Lookup:
        """Return a lookup with all words that contain the lookup's word.

        Return the same lookup if no other word contains it.

        This reads every word of the index, which takes longer than many whole searches.
        """
        if lookup.term.exact or [len(forms) for forms in lookup.term.forms] != [1]:
            return lookup
        others = []
        for row in self._words_containing(stem(lookup.term.forms[0][0])):
            if row[0] not in lookup.names:
                others.append(row)
        if others:
            return self._with_words(lookup, "part", others)
        return lookup

    def _token(self, forms: Sequence[str]) -> Token | None:
        """Return the indexed forms of one word of a longer term: the whole word, or its parts."""
        whole_stem, *parts = map(stem, forms)
        known_parts = tuple(part for part in parts if self._count_rows(part))
        if known_parts or self._count_rows(whole_stem):
            return Token((whole_stem,), known_parts)
        return None

    def _with_words(self, lookup: Lookup, how: str, words: Sequence[tuple[str, int]]) -> Lookup:
        """Return a lookup of a word, if the index contains it, together with the ``words`` that it may stand for."""
        names = tuple(name for name, _ in words)
        known_stems: list[str] = []
        for token in lookup.tokens:
            known_stems.extend(token.stems)
        rows = lookup.rows + sum(rows for _, rows in words)
        stems = (*known_stems, *names)
        return Lookup(lookup.term, how, (Token(stems),), stems, rows, self._weight(rows), names)

    def _weight(self, rows: int) -> float:
        """Return the inverse document frequency. A missing word has the weight of a word in a single record."""
        count = min(max(1, rows), self._all or 1)
        return math.log(1 + ((self._all or 1) - count + 0.5) / (count + 0.5))

    def _count_rows(self, name: str) -> int:
        return self._words.count_records_with(WORDS, name)

    def _words_with_beginning(self, start: str) -> list[tuple[str, int]]:
        """Return the words that begin with a prefix, or else the longest word that the prefix begins with."""
        words = _commonest(self._words.words_with_prefix(WORDS, start, 500))
        for length in range(len(start) - 1, MIN_BEGINNING - 1, -1):
            if not words and (rows := self._count_rows(start[:length])):
                words = [(start[:length], rows)]
        return words

    @functools.cached_property
    def _all_words(self) -> list[tuple[str, int]]:
        """Every word of the index."""
        return self._words.words_with_prefix(WORDS, "")

    def _words_containing(self, part: str) -> list[tuple[str, int]]:
        if len(part) < MIN_PART and part.isascii():
            return []
        # The part may include letters that stemming removed, such as a doubled letter or an e.
        return _commonest(
            (word, rows) for word, rows in self._all_words if part in f"{word}{word[-1:]} {word}e"
        )

    def _similar_words(self, word: str) -> list[tuple[str, int]]:
        """Return the words that are most similar to a possibly misspelled word.

        The words begin with the same letter.
        """
        if len(word) < MIN_MISSPELLED:
            return []
        import difflib  # the import takes 1 ms, and a word in the index does not need it

        candidates = {
            other: rows
            for other, rows in self._words.words_with_prefix(WORDS, word[0])
            if abs(len(other) - len(word)) <= 2  # a larger difference means another word
        }
        return [
            (other, candidates[other])
            for other in difflib.get_close_matches(word, candidates, MAX_ALIKE, MIN_SIMILARITY)
        ]


def _commonest(rows: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(rows, key=lambda row: -row[1])[:MAX_WORDS]


MAX_RANKED = 300  # the maximum number of records, and of windows, in a ranking
MAX_CANDIDATES = 60  # the number of turns whose terms are checked
MAX_WINDOWS = 2_000  # the number of these turns' windows to check
MAX_PHRASE_RECORDS = 2_000
"""The maximum number of records with the words of a phrase.

Only the records' texts show whether they contain the phrase.
"""

DAMPING = 5
"""The number added to a rank before taking its reciprocal. A larger number makes the first ranks
matter less."""

# the bonus for a turn at the time that the question hints at, as a fraction of the turn's score
HINT_BONUS = 0.3
TITLE = ROLES.index("title")


class TurnHit(NamedTuple):
    """A turn with its matching records, best first; ``terms`` are the positions of its terms in the query."""

    key: int
    records: list[Posting]
    score: float
    terms: frozenset[int] = frozenset()


class WordingTurn(NamedTuple):
    """A turn that a wording found; ``wording`` is the wording's number, from 0."""

    wording: int
    turn: TurnHit


class Ranking:
    """The ranking of turns that fulfil some conditions, for looked-up terms.

    ``when`` is the time that the question hints at.
    """

    def __init__(
        self, words: Postings, limits: Limits, excluded: Sequence[Lookup], when: Period | None
    ) -> None:
        self._words = words
        self._limits = limits
        self._not = [(Occur.MustNot, _query_for_all(lookup)) for lookup in excluded if lookup.known]
        self._when = when
        self.capped = False
        """Whether more records contain the words than were read."""

    def turns(self, lookups: Sequence[Lookup]) -> list[TurnHit]:
        """Return the turns that contain some of the terms and every phrase, best first."""
        known_lookups = [lookup for lookup in lookups if lookup.known]
        phrases = []
        for lookup in lookups:
            if lookup.term.exact:
                phrases.append(lookup)
        if not known_lookups or not all(lookup.known for lookup in phrases):
            return []
        if phrases:
            postings = self._phrase_candidates(phrases)
        else:
            postings = self._search_records(Occur.Must, _query_for_any(known_lookups), MAX_RANKED)
        by_turn = _group_by_turn(postings)
        limited = Query.boolean_query(
            [(Occur.Must, _query_for_any(known_lookups)), *self._limits.turns]
        )
        windows = self._words.turns(limited, MAX_RANKED)
        scores = self._combined_scores(by_turn, windows)
        hits = []
        for key, score in scores.items():
            hits.append(TurnHit(key, _titles_last(by_turn[key]), score))
        hits.sort(key=lambda hit: -hit.score)
        return [*self._add_terms(hits[:MAX_CANDIDATES], lookups), *hits[MAX_CANDIDATES:]]

    def latest(self, most: int) -> list[TurnHit]:
        """Return the turns that fulfil the conditions, newest first, for a question without words.

        The record of each is its first message.
        """
        return [
            TurnHit(key, [min(records, key=lambda record: (record.role, record.line))], 0.0)
            for key, records in _group_by_turn(self.records(most)).items()
        ]

    def records(self, most: int, having: Sequence[Lookup] = ()) -> list[Posting]:
        """Return the records that fulfil the conditions and contain every word of some terms.

        The newest come first.
        """
        words = [(Occur.Must, _query_for_all(lookup)) for lookup in having]
        return self._search_records(
            Occur.Must, Query.boolean_query(words) if words else Query.all_query(), most, "time"
        )

    def _phrase_candidates(self, phrases: Sequence[Lookup]) -> list[Posting]:
        """Return the records that may contain a phrase, from turns that may contain all phrases."""
        groups = []
        for phrase in phrases:
            groups.append(
                self._search_records(Occur.Must, _query_for_all(phrase), MAX_PHRASE_RECORDS)
            )
        self.capped = any(len(group) == MAX_PHRASE_RECORDS for group in groups)
        turns = []
        for group in groups:
            turns.append({turn_key(row.file, row.turn) for row in group})
        shared = set.intersection(*turns)
        rows = chain.from_iterable(groups)
        return [row for row in rows if turn_key(row.file, row.turn) in shared]

    def _search_records(
        self, occur: Occur, query: Query, most: int, order_by: str | None = None
    ) -> list[Posting]:
        postings = self._words.search(
            Query.boolean_query([(occur, query), *self._limits.records, *self._not]), most, order_by
        )
        self.capped = self.capped or len(postings) == most
        return postings

    def _combined_scores(
        self, by_turn: Mapping[int, Sequence[Posting]], windows: Mapping[int, float]
    ) -> dict[int, float]:
        """Return each turn's score, from the ranks of its best record and of its best window."""
        records = _rank_shares({key: rows[0].score for key, rows in by_turn.items()})
        windows = _rank_shares(windows)
        scores = {}
        for key, rows in by_turn.items():
            hinted = 1 + HINT_BONUS * bool(
                self._when and any(self._when.holds(row.time) for row in rows)
            )
            scores[key] = (records[key] + windows.get(key, 0.0)) * hinted
        return scores

    def _add_terms(self, hits: Sequence[TurnHit], lookups: Sequence[Lookup]) -> list[TurnHit]:
        """Return the turns with the positions of their terms in the query."""
        terms: dict[int, set[int]] = {hit.key: set() for hit in hits}
        keys = list(terms)
        if not keys:
            return []
        own = Query.term_set_query(SCHEMA, "turn_key", keys)
        for number, lookup in enumerate(lookups):
            if lookup.known:
                query = Query.boolean_query(
                    [(Occur.Must, own), (Occur.Must, _query_for_all(lookup))]
                )
                for key in self._words.turns(query, MAX_WINDOWS):
                    terms[key].add(number)
        return [hit._replace(terms=frozenset(terms[hit.key])) for hit in hits]


def combine_rankings(rankings: Sequence[Sequence[TurnHit]]) -> list[list[WordingTurn]]:
    """Combine the turns of several wordings, best first; each turn's best wording comes first."""
    turns: dict[int, list[WordingTurn]] = defaultdict(list)
    for number, ranking in enumerate(rankings):
        for turn in ranking:
            turns[turn.key].append(WordingTurn(number, turn))
    wording_turns = [
        sorted(wording_turns_of_turn, key=lambda wording_turn: -wording_turn.turn.score)
        for wording_turns_of_turn in turns.values()
    ]
    return sorted(
        wording_turns, key=lambda wording_turns_of_turn: -combined_score(wording_turns_of_turn)
    )


def combined_score(wording_turns: Iterable[WordingTurn]) -> float:
    """Return a turn's score from all wordings that found it: the root of the sum of squares.

    A turn that matches one wording well thus ranks above one that matches several a little.
    """
    return math.hypot(*(wording_turn.turn.score for wording_turn in wording_turns))


def _rank_shares(scores: Mapping[int, float]) -> dict[int, float]:
    """Return the scaled reciprocal rank of each key, 1 for the first rank.

    Equal scores have the same rank.
    """
    ranks: dict[float, int] = {}
    for rank, score in enumerate(sorted(scores.values(), reverse=True), 1):
        ranks.setdefault(score, rank)
    shares = {}
    for key, score in scores.items():
        shares[key] = (1 + DAMPING) / (ranks[score] + DAMPING)
    return shares


def _titles_last(records: list[Posting]) -> list[Posting]:
    """Return the records, best first but titles last, because a title names the topic without the answer."""
    return sorted(records, key=lambda record: (record.role == TITLE, -record.score))


def _group_by_turn(records: Iterable[Posting]) -> dict[int, list[Posting]]:
    groups: dict[int, list[Posting]] = defaultdict(list)
    for record in records:
        groups[turn_key(record.file, record.turn)].append(record)
    return groups


def _query_for_any(lookups: Iterable[Lookup]) -> Query:
    """Return a query that scores documents by their terms: each term by its best stem or by its identifier's parts."""
    clauses: list[Query] = []
    for token in (token for lookup in lookups for token in lookup.tokens):
        stem_queries = [_term_query(name) for name in token.stems]
        clauses.append(
            stem_queries[0] if len(stem_queries) == 1 else Query.disjunction_max_query(stem_queries)
        )
        for part in token.parts:
            clauses.append(Query.boost_query(_term_query(part), PART_WEIGHT))
    return Query.boolean_query([(Occur.Should, clause) for clause in clauses])


def _query_for_all(lookup: Lookup) -> Query:
    """Return a query for documents that contain every word of a term, with an identifier whole or by its parts."""
    words = []
    for token in lookup.tokens:
        alternatives = [_term_query(name) for name in token.stems]
        if token.parts:
            alternatives.append(
                Query.boolean_query([(Occur.Must, _term_query(part)) for part in token.parts])
            )
        words.append(
            alternatives[0]
            if len(alternatives) == 1
            else Query.boolean_query([(Occur.Should, alternative) for alternative in alternatives])
        )
    return Query.boolean_query([(Occur.Must, word) for word in words])


def _term_query(name: str) -> Query:
    return Query.term_query(SCHEMA, WORDS, name, index_option="freq")
