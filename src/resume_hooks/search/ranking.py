"""The lookup of terms in the index, and the ranking of turns by their best window and best record.

A term is looked up as typed or inflected. If the index does not contain it, it is looked up as the
prefix or a misspelling of other words. If no term of the query is found, each is also looked up as
a part of words.

A hit is a turn, because a question and its answer are in different records of a turn. Windows and
records have separate rankings (BM25), and a turn's reciprocal ranks in both are added.
``index.read_transcript.weighted_words`` sets the weight of a prompt's words relative to those of
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

from resume_hooks.search.index.postings import SCHEMA, WORDS_FIELD, Posting, Postings, turn_key
from resume_hooks.search.index.tokenize import stem_word
from resume_hooks.search.query import Period, Term
from resume_hooks.search.roles import ROLES
from resume_hooks.search.scope import ScopeConditions

# the maximum number of words that a prefix or a part may stand for, the most common first
MAX_EXPANDED_WORDS = 24
MAX_CORRECTIONS = 6  # the maximum number of words that a misspelled word may stand for
MIN_PART_LETTERS = 3  # the minimum length of a part of a word; shorter parts are in too many words
# the minimum length of a typed word's prefix that replaces the word if no indexed word begins with
# it
MIN_PREFIX_LETTERS = 5
MIN_MISSPELLED_LETTERS = 4  # the minimum length of a word that may be misspelled
MIN_SIMILARITY = 0.75  # the minimum similarity of a misspelled word to an indexed word, 0 to 1
PART_WEIGHT = 0.5  # the weight of a part of an identifier, relative to the whole identifier


class Token(NamedTuple):
    """A word of a term: its possible stems, and the parts of an identifier."""

    stems: tuple[str, ...]
    parts: tuple[str, ...] = ()


class Lookup(NamedTuple):
    """A term's lookup in the index.

    ``kind`` is word, beginning, part, parts, alike or nowhere. ``tokens`` are the words to search
    for, ``marks`` are the stems to mark in a text, and ``names`` are the words that the term may
    stand for. ``record_count`` is the number of records that contain the term; ``weight`` is higher
    for rarer terms.
    """

    term: Term
    kind: str
    tokens: tuple[Token, ...]
    marks: tuple[str, ...]
    record_count: int
    weight: float
    names: tuple[str, ...] = ()

    @property
    def is_in_index(self) -> bool:
        """Whether the index contains the term in any form."""
        return self.kind != "nowhere"


class TermLookups:
    """Lookups of terms in one index."""

    def __init__(self, words: Postings) -> None:
        self._words = words
        self._total_records = words.record_count
        self._lookups: dict[Term, Lookup] = {}

    def look_up(self, term: Term) -> Lookup:
        """Look a term up as typed. If that fails and the term is not a phrase, look up words that it may stand for."""
        if term not in self._lookups:
            self._lookups[term] = self._look_up_uncached(term)
        return self._lookups[term]

    def _look_up_uncached(self, term: Term) -> Lookup:
        lookup = self.look_up_strictly(term)
        if lookup.is_in_index or term.is_phrase:
            return lookup
        if len(term.forms) == 1 and len(term.forms[0]) == 1:
            whole_stem = stem_word(term.forms[0][0])
            searches = (("beginning", self._words_with_prefix), ("alike", self._similar_words))
            return next(
                (
                    self._add_words(lookup, how, words)
                    for how, find in searches
                    if (words := find(whole_stem))
                ),
                lookup,
            )
        tokens = [token for forms in term.forms if (token := self._look_up_token(forms))]
        names: list[str] = []
        marks: list[str] = []
        for token in tokens:
            names += [*token.parts, token.stems[0]]
            marks += token.parts or token.stems[:1]
        rows = max(map(self._count_records, names), default=0)
        if not rows:
            return lookup
        weight = self._inverse_frequency(rows)
        return Lookup(term, "parts", tuple(tokens), tuple(marks), rows, weight, tuple(marks))

    def look_up_strictly(self, term: Term) -> Lookup:
        """Look a term up only as typed or inflected.

        This is used for excluded terms, because a wrong guess would hide hits.
        """
        whole_stems = tuple(stem_word(forms[0]) for forms in term.forms)
        rows = min(map(self._count_records, whole_stems))
        if not rows:
            return Lookup(term, "nowhere", (), whole_stems, 0, self._inverse_frequency(0))
        parts = []
        for forms in term.forms:
            parts.append(() if term.is_phrase else tuple(map(stem_word, forms[1:])))
        tokens = tuple(
            Token((whole_stem,), part_stems)
            for whole_stem, part_stems in zip(whole_stems, parts, strict=True)
        )
        return Lookup(
            term, "word", tokens, whole_stems, rows, self._inverse_frequency(rows), whole_stems
        )

    def look_up_as_part(self, lookup: Lookup) -> Lookup:
        """Return a lookup with all words that contain the lookup's word.

        Return the same lookup if no other word contains it.

        This reads every word of the index, which takes longer than many whole searches.
        """
        if lookup.term.is_phrase or [len(forms) for forms in lookup.term.forms] != [1]:
            return lookup
        other_words = []
        for row in self._words_containing(stem_word(lookup.term.forms[0][0])):
            if row[0] not in lookup.names:
                other_words.append(row)
        if other_words:
            return self._add_words(lookup, "part", other_words)
        return lookup

    def _look_up_token(self, forms: Sequence[str]) -> Token | None:
        """Return the indexed forms of one word of a longer term: the whole word, or its parts."""
        whole_stem, *parts = map(stem_word, forms)
        known_parts = tuple(part for part in parts if self._count_records(part))
        if known_parts or self._count_records(whole_stem):
            return Token((whole_stem,), known_parts)
        return None

    def _add_words(self, lookup: Lookup, kind: str, words: Sequence[tuple[str, int]]) -> Lookup:
        """Return a lookup of a term's word, if it is indexed, and of the ``words`` that the term may stand for."""
        names = tuple(name for name, _ in words)
        known_stems: list[str] = []
        for token in lookup.tokens:
            known_stems.extend(token.stems)
        rows = lookup.record_count + sum(rows for _, rows in words)
        stems = (*known_stems, *names)
        return Lookup(
            lookup.term, kind, (Token(stems),), stems, rows, self._inverse_frequency(rows), names
        )

    def _inverse_frequency(self, rows: int) -> float:
        """Return the inverse document frequency. A missing word has the weight of a word in a single record."""
        count = min(max(1, rows), self._total_records or 1)
        return math.log(1 + ((self._total_records or 1) - count + 0.5) / (count + 0.5))

    def _count_records(self, name: str) -> int:
        return self._words.count_records_with(WORDS_FIELD, name)

    def _words_with_prefix(self, prefix: str) -> list[tuple[str, int]]:
        """Return the words that begin with a prefix, or else the longest word that the prefix begins with."""
        words = _most_common_words(self._words.words_with_prefix(WORDS_FIELD, prefix, 500))
        for length in range(len(prefix) - 1, MIN_PREFIX_LETTERS - 1, -1):
            if not words and (rows := self._count_records(prefix[:length])):
                words = [(prefix[:length], rows)]
        return words

    @functools.cached_property
    def _all_words(self) -> list[tuple[str, int]]:
        """Every word of the index."""
        return self._words.words_with_prefix(WORDS_FIELD, "")

    def _words_containing(self, part: str) -> list[tuple[str, int]]:
        if len(part) < MIN_PART_LETTERS and part.isascii():
            return []
        # The part may include letters that stemming removed, such as a doubled letter or an e.
        return _most_common_words(
            (word, rows) for word, rows in self._all_words if part in f"{word}{word[-1:]} {word}e"
        )

    def _similar_words(self, word: str) -> list[tuple[str, int]]:
        """Return the words that are most similar to a possibly misspelled word.

        The words begin with the same letter.
        """
        if len(word) < MIN_MISSPELLED_LETTERS:
            return []
        import difflib  # the import takes 1 ms, and a word in the index does not need it

        candidates = {
            other: rows
            for other, rows in self._words.words_with_prefix(WORDS_FIELD, word[0])
            if abs(len(other) - len(word)) <= 2  # a word with a larger difference is another word
        }
        return [
            (other, candidates[other])
            for other in difflib.get_close_matches(
                word, candidates, MAX_CORRECTIONS, MIN_SIMILARITY
            )
        ]


def _most_common_words(rows: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(rows, key=lambda row: -row[1])[:MAX_EXPANDED_WORDS]


MAX_RANKED_RECORDS = 300  # the maximum number of records, and of windows, in a ranking
MAX_CHECKED_TURNS = 60  # the number of turns whose terms are checked
MAX_WINDOWS = 2_000  # the number of windows of these turns to check
MAX_PHRASE_RECORDS = 2_000
"""The maximum number of records with the words of a phrase.

Only the records' texts show whether they contain the phrase.
"""

RANK_DAMPING = 5
"""The number added to a rank before taking its reciprocal. A larger number makes the first ranks matter less."""

# the bonus for a turn at the time that the question hints at, as a fraction of the turn's score
TIME_HINT_BONUS = 0.3
TITLE_ROLE = ROLES.index("title")


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

    ``period`` is the time that the question hints at.
    """

    def __init__(
        self,
        words: Postings,
        conditions: ScopeConditions,
        excluded: Sequence[Lookup],
        period: Period | None,
    ) -> None:
        self._words = words
        self._conditions = conditions
        self._exclusions = [
            (Occur.MustNot, _query_for_all_words(lookup))
            for lookup in excluded
            if lookup.is_in_index
        ]
        self._period = period
        self.has_unread_records = False
        """Whether more records contain the words than were read."""

    def rank_turns(self, lookups: Sequence[Lookup]) -> list[TurnHit]:
        """Return the turns that contain some of the terms and every phrase, best first."""
        known_lookups = [lookup for lookup in lookups if lookup.is_in_index]
        phrases = []
        for lookup in lookups:
            if lookup.term.is_phrase:
                phrases.append(lookup)
        if not known_lookups or not all(lookup.is_in_index for lookup in phrases):
            return []
        if phrases:
            postings = self._phrase_candidates(phrases)
        else:
            postings = self._search_records(
                Occur.Must, _query_for_any_term(known_lookups), MAX_RANKED_RECORDS
            )
        by_turn = _group_by_turn(postings)
        turn_query = Query.boolean_query(
            [(Occur.Must, _query_for_any_term(known_lookups)), *self._conditions.turns]
        )
        windows = self._words.find_turns(turn_query, MAX_RANKED_RECORDS)
        scores = self._combined_scores(by_turn, windows)
        hits = []
        for key, score in scores.items():
            hits.append(TurnHit(key, _sort_titles_last(by_turn[key]), score))
        hits.sort(key=lambda hit: -hit.score)
        return [
            *self._find_terms_of_turns(hits[:MAX_CHECKED_TURNS], lookups),
            *hits[MAX_CHECKED_TURNS:],
        ]

    def latest_turns(self, max_turns: int) -> list[TurnHit]:
        """Return the turns that match the filters, newest first, for a query without search words.

        Each turn is represented by its first message.
        """
        return [
            TurnHit(key, [min(records, key=lambda record: (record.role, record.line))], 0.0)
            for key, records in _group_by_turn(self.matching_records(max_turns)).items()
        ]

    def matching_records(self, max_records: int, lookups: Sequence[Lookup] = ()) -> list[Posting]:
        """Return the records that fulfil the conditions and contain every word of some terms.

        The newest come first.
        """
        words = [(Occur.Must, _query_for_all_words(lookup)) for lookup in lookups]
        return self._search_records(
            Occur.Must,
            Query.boolean_query(words) if words else Query.all_query(),
            max_records,
            "time",
        )

    def _phrase_candidates(self, phrases: Sequence[Lookup]) -> list[Posting]:
        """Return the records that may contain a phrase, from turns that may contain all phrases."""
        groups = []
        for phrase in phrases:
            groups.append(
                self._search_records(Occur.Must, _query_for_all_words(phrase), MAX_PHRASE_RECORDS)
            )
        self.has_unread_records = any(len(group) == MAX_PHRASE_RECORDS for group in groups)
        turns = []
        for group in groups:
            turns.append({turn_key(row.file, row.turn) for row in group})
        shared_turns = set.intersection(*turns)
        rows = chain.from_iterable(groups)
        return [row for row in rows if turn_key(row.file, row.turn) in shared_turns]

    def _search_records(
        self, occur: Occur, query: Query, max_records: int, order_by: str | None = None
    ) -> list[Posting]:
        postings = self._words.find_records(
            Query.boolean_query([(occur, query), *self._conditions.records, *self._exclusions]),
            max_records,
            order_by,
        )
        self.has_unread_records = self.has_unread_records or len(postings) == max_records
        return postings

    def _combined_scores(
        self, by_turn: Mapping[int, Sequence[Posting]], windows: Mapping[int, float]
    ) -> dict[int, float]:
        """Return each turn's score, from the ranks of its best record and of its best window."""
        records = _reciprocal_ranks({key: rows[0].score for key, rows in by_turn.items()})
        windows = _reciprocal_ranks(windows)
        scores = {}
        for key, rows in by_turn.items():
            time_factor = 1 + TIME_HINT_BONUS * bool(
                self._period and any(self._period.contains(row.time) for row in rows)
            )
            scores[key] = (records[key] + windows.get(key, 0.0)) * time_factor
        return scores

    def _find_terms_of_turns(
        self, hits: Sequence[TurnHit], lookups: Sequence[Lookup]
    ) -> list[TurnHit]:
        """Return the turns with the positions of their terms in the query."""
        terms: dict[int, set[int]] = {hit.key: set() for hit in hits}
        keys = list(terms)
        if not keys:
            return []
        turn_condition = Query.term_set_query(SCHEMA, "turn_key", keys)
        for number, lookup in enumerate(lookups):
            if lookup.is_in_index:
                query = Query.boolean_query(
                    [(Occur.Must, turn_condition), (Occur.Must, _query_for_all_words(lookup))]
                )
                for key in self._words.find_turns(query, MAX_WINDOWS):
                    terms[key].add(number)
        return [hit._replace(terms=frozenset(terms[hit.key])) for hit in hits]


def combine_rankings(rankings: Sequence[Sequence[TurnHit]]) -> list[list[WordingTurn]]:
    """Combine the turns of several wordings, best first; each turn's best wording comes first."""
    turns: dict[int, list[WordingTurn]] = defaultdict(list)
    for number, ranking in enumerate(rankings):
        for turn in ranking:
            turns[turn.key].append(WordingTurn(number, turn))
    groups = [
        sorted(group, key=lambda wording_turn: -wording_turn.turn.score) for group in turns.values()
    ]
    return sorted(groups, key=lambda group: -combined_score(group))


def combined_score(wording_turns: Iterable[WordingTurn]) -> float:
    """Return a turn's score from all wordings that found it: the root of the sum of squares.

    A turn that matches one wording well thus ranks above one that matches several a little.
    """
    return math.hypot(*(wording_turn.turn.score for wording_turn in wording_turns))


def _reciprocal_ranks(scores: Mapping[int, float]) -> dict[int, float]:
    """Return the scaled reciprocal rank of each key, 1 for the first rank.

    Equal scores have the same rank.
    """
    ranks: dict[float, int] = {}
    for rank, score in enumerate(sorted(scores.values(), reverse=True), 1):
        ranks.setdefault(score, rank)
    reciprocal_ranks = {}
    for key, score in scores.items():
        reciprocal_ranks[key] = (1 + RANK_DAMPING) / (ranks[score] + RANK_DAMPING)
    return reciprocal_ranks


def _sort_titles_last(records: list[Posting]) -> list[Posting]:
    """Return the records, best first but titles last, because a title names the topic without the answer."""
    return sorted(records, key=lambda record: (record.role == TITLE_ROLE, -record.score))


def _group_by_turn(records: Iterable[Posting]) -> dict[int, list[Posting]]:
    groups: dict[int, list[Posting]] = defaultdict(list)
    for record in records:
        groups[turn_key(record.file, record.turn)].append(record)
    return groups


def _query_for_any_term(lookups: Iterable[Lookup]) -> Query:
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


def _query_for_all_words(lookup: Lookup) -> Query:
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
    return Query.term_query(SCHEMA, WORDS_FIELD, name, index_option="freq")
