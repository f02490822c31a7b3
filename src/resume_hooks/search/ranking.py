"""Look up terms in the index, and rank turns by their best window and best record.

A term is looked up as it was typed, except that its English ending does not matter. If the index
does not contain it, it is looked up as the beginning of other words, or as a misspelling of them.
If the whole query then has no hit, each term is also looked up as a part of words.

A hit is a turn and not a record, because a question and its answer are different records of a turn.
Windows and records are ranked separately (BM25), and a turn's score is the sum of its reciprocal
ranks in both rankings. A prompt's words have more weight than the words of a tool's output, see
``index.read_transcript.encode_weighted_words``.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from tantivy import Occur, Query

from resume_hooks.search.index.postings import (
    INDEX_SCHEMA,
    WORDS_FIELD_NAME,
    Posting,
    Postings,
    WordWithRecordCount,
    make_key_from_file_and_number,
)
from resume_hooks.search.index.tokenize import stem_word
from resume_hooks.search.query import Period, Term
from resume_hooks.search.roles import ROLES
from resume_hooks.search.scope import ScopeConditions

# Maximum number of words that replace a prefix or a part of a word. The most common words are
# chosen.
MAX_REPLACEMENT_WORDS = 24
MAX_CORRECTIONS = 6  # Maximum number of words that replace a misspelled word.
# Minimum length of a part of a word. A shorter part would occur in too many words.
MIN_PART_LETTERS = 3
# If no indexed word begins with the typed word, the typed word is shortened until an indexed word
# matches, but never to fewer letters than this.
MIN_PREFIX_LETTERS = 5
MIN_MISSPELLED_LETTERS = 4  # a shorter word is never treated as a misspelling
MIN_SPELLING_SIMILARITY = (
    0.75  # minimum similarity (0 to 1) of a misspelled word and its correction
)
IDENTIFIER_PART_WEIGHT = 0.5  # weight of a part of an identifier, relative to the whole identifier


class Token(NamedTuple):
    """A word of a term: its possible stems and, for an identifier, the stems of its parts."""

    stems: tuple[str, ...]
    part_stems: tuple[str, ...] = ()


class Lookup(NamedTuple):
    """The result of looking up a term in the index.

    ``kind`` is how the term was found: "word", "beginning", "part", "parts", "alike" (as a
    misspelling) or "nowhere". ``tokens`` are the words to search for, ``stems_to_mark`` are the
    stems to mark in a text, and ``replacement_words`` are the words with which the term was
    replaced. ``record_count`` is the number of records that contain these words. ``weight`` is
    higher for rarer terms.
    """

    term: Term
    kind: str
    tokens: tuple[Token, ...]
    stems_to_mark: tuple[str, ...]
    record_count: int
    weight: float
    replacement_words: tuple[str, ...] = ()

    @property
    def is_in_index(self) -> bool:
        """Whether the index contains the term, or words that are searched in its place."""
        return self.kind != "nowhere"


class TermLookups:
    """Looks up terms in an index. Each term is looked up only once."""

    def __init__(self, postings: Postings) -> None:
        self._words = postings
        self._total_records = postings.record_count
        self._lookups: dict[Term, Lookup] = {}

    def look_up(self, term: Term) -> Lookup:
        """Look up a term as typed. If the index does not contain it, look up words that may replace it.

        A phrase is never replaced.
        """
        if term not in self._lookups:
            self._lookups[term] = self._look_up_uncached(term)
        return self._lookups[term]

    def _look_up_uncached(self, term: Term) -> Lookup:
        lookup = self.look_up_exact_words(term)
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
            names += [*token.part_stems, token.stems[0]]
            marks += token.part_stems or token.stems[:1]
        rows = max(map(self._count_records_containing, names), default=0)
        if not rows:
            return lookup
        weight = self._inverse_frequency(rows)
        return Lookup(term, "parts", tuple(tokens), tuple(marks), rows, weight, tuple(marks))

    def look_up_exact_words(self, term: Term) -> Lookup:
        """Look up a term only as it was typed, except that its English ending does not matter.

        Excluded terms are looked up in this way, because a wrong replacement would hide hits.
        """
        whole_stems = tuple(stem_word(forms[0]) for forms in term.forms)
        rows = min(map(self._count_records_containing, whole_stems))
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

    def look_up_inside_words(self, lookup: Lookup) -> Lookup:
        """Return a lookup that includes all indexed words that contain the term.

        Return ``lookup`` unchanged if there are no such words. This function reads every word of
        the index, which takes longer than a usual search.
        """
        if lookup.term.is_phrase or [len(forms) for forms in lookup.term.forms] != [1]:
            return lookup
        other_words = []
        for row in self._words_containing(stem_word(lookup.term.forms[0][0])):
            if row[0] not in lookup.replacement_words:
                other_words.append(row)
        if other_words:
            return self._add_words(lookup, "part", other_words)
        return lookup

    def _look_up_token(self, forms: Sequence[str]) -> Token | None:
        """Look up one token of a term that has several tokens. ``forms`` are the forms of this token.

        Return None if the index contains none of them.
        """
        whole_stem, *parts = map(stem_word, forms)
        known_parts = tuple(part for part in parts if self._count_records_containing(part))
        if known_parts or self._count_records_containing(whole_stem):
            return Token((whole_stem,), known_parts)
        return None

    def _add_words(self, lookup: Lookup, kind: str, words: Sequence[WordWithRecordCount]) -> Lookup:
        """Return a lookup that also contains ``words``, which may replace the term."""
        names = tuple(name for name, _ in words)
        known_stems: list[str] = []
        for token in lookup.tokens:
            known_stems.extend(token.stems)
        rows = lookup.record_count + sum(rows for _, rows in words)
        stems = (*known_stems, *names)
        return Lookup(
            lookup.term, kind, (Token(stems),), stems, rows, self._inverse_frequency(rows), names
        )

    def _inverse_frequency(self, record_count: int) -> float:
        """Return the inverse document frequency of a word that occurs in ``record_count`` records.

        A word in no record has the same value as a word in a single record.
        """
        count = min(max(1, record_count), self._total_records or 1)
        return math.log(1 + ((self._total_records or 1) - count + 0.5) / (count + 0.5))

    def _count_records_containing(self, word: str) -> int:
        return self._words.count_records_containing(WORDS_FIELD_NAME, word)

    def _words_with_prefix(self, prefix: str) -> list[WordWithRecordCount]:
        """Return the words that begin with a prefix.

        If there are none, return the longest beginning of the prefix that is itself a word in the
        index.
        """
        words = _most_common_words(self._words.words_with_prefix(WORDS_FIELD_NAME, prefix, 500))
        for length in range(len(prefix) - 1, MIN_PREFIX_LETTERS - 1, -1):
            if not words and (rows := self._count_records_containing(prefix[:length])):
                words = [(prefix[:length], rows)]
        return words

    @functools.cached_property
    def _all_words(self) -> list[WordWithRecordCount]:
        """Every word of the index with its number of records."""
        return self._words.words_with_prefix(WORDS_FIELD_NAME, "")

    def _words_containing(self, part: str) -> list[WordWithRecordCount]:
        if len(part) < MIN_PART_LETTERS and part.isascii():
            return []
        # Stemming may have removed the last letters of ``part``, for example an e or a doubled
        # letter.
        return _most_common_words(
            (word, rows) for word, rows in self._all_words if part in f"{word}{word[-1:]} {word}e"
        )

    def _similar_words(self, word: str) -> list[WordWithRecordCount]:
        """Return the indexed words that are most similar to a word that may be misspelled.

        Only words that begin with the same letter are compared.
        """
        if len(word) < MIN_MISSPELLED_LETTERS:
            return []
        import difflib  # Imported here because the import takes 1 ms, and only a missing word needs it.

        candidates = {
            other: rows
            for other, rows in self._words.words_with_prefix(WORDS_FIELD_NAME, word[0])
            if abs(len(other) - len(word))
            <= 2  # A word whose length differs by more is not a misspelling.
        }
        return [
            (other, candidates[other])
            for other in difflib.get_close_matches(
                word, candidates, MAX_CORRECTIONS, MIN_SPELLING_SIMILARITY
            )
        ]


def _most_common_words(words: Iterable[WordWithRecordCount]) -> list[WordWithRecordCount]:
    return sorted(words, key=lambda word: -word[1])[:MAX_REPLACEMENT_WORDS]


MAX_RANKED_RECORDS = 300  # maximum number of records, and of windows, in a ranking
MAX_CHECKED_TURNS = 60  # at most this number of turns, the best ones, are checked for the terms
MAX_WINDOWS_PER_TERM = 2_000  # maximum number of windows in which a term is looked up
MAX_PHRASE_RECORDS = 2_000
"""The maximum number of records that are searched for a phrase.

The index shows only that a record contains the words of the phrase, so the record's text must be
read.
"""

RANK_DAMPING = 5
"""A number that is added to a rank before its reciprocal is taken.

With a larger number, the first ranks have less advantage over later ranks.
"""

# Bonus for a turn from the period that the question mentions, as a fraction of the turn's score.
TIME_HINT_BONUS = 0.3
TITLE_ROLE = ROLES.index("title")


class TurnHit(NamedTuple):
    """A turn with its matching records, the best record first.

    ``term_numbers`` are the numbers of the query's terms that occur in the turn.
    """

    turn_key: int
    records: list[Posting]
    score: float
    term_numbers: frozenset[int] = frozenset()


class WordingTurn(NamedTuple):
    """A turn found by one wording of the question. ``wording_index`` counts the wordings from 0."""

    wording_index: int
    turn: TurnHit


class Ranking:
    """Ranks the turns that meet the conditions of a scope and contain no excluded term.

    ``period`` is the period that the question mentions, or None. Turns from this period get a
    bonus.
    """

    def __init__(
        self,
        postings: Postings,
        conditions: ScopeConditions,
        excluded_lookups: Sequence[Lookup],
        period: Period | None,
    ) -> None:
        self._words = postings
        self._conditions = conditions
        self._exclusions = [
            (Occur.MustNot, _query_for_all_words(lookup))
            for lookup in excluded_lookups
            if lookup.is_in_index
        ]
        self._period = period
        self.has_unread_records = False
        """Whether there are more matching records than were read."""

    def rank_turns(self, lookups: Sequence[Lookup]) -> list[TurnHit]:
        """Return the turns that contain at least one of the terms and all of the phrases, best first."""
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
        records_by_turn = _group_by_turn(postings)
        turn_query = Query.boolean_query(
            [(Occur.Must, _query_for_any_term(known_lookups)), *self._conditions.turn_clauses]
        )
        windows = self._words.find_turns(turn_query, MAX_RANKED_RECORDS)
        scores = self._combined_scores(records_by_turn, windows)
        hits = []
        for key, score in scores.items():
            hits.append(TurnHit(key, _sort_titles_last(records_by_turn[key]), score))
        hits.sort(key=lambda hit: -hit.score)
        return [
            *self._add_term_numbers(hits[:MAX_CHECKED_TURNS], lookups),
            *hits[MAX_CHECKED_TURNS:],
        ]

    def latest_turns(self, max_turns: int) -> list[TurnHit]:
        """Return the newest turns that meet the conditions, for a query without terms.

        The ``records`` of each turn contain only the first matching message.
        """
        return [
            TurnHit(
                key, [min(records, key=lambda record: (record.role_index, record.line_number))], 0.0
            )
            for key, records in _group_by_turn(self.matching_records(max_turns)).items()
        ]

    def matching_records(self, max_records: int, lookups: Sequence[Lookup] = ()) -> list[Posting]:
        """Return the newest records that the scope selects, newest first.

        If ``lookups`` are given, the records must also contain every word of their terms.
        """
        words = [(Occur.Must, _query_for_all_words(lookup)) for lookup in lookups]
        return self._search_records(
            Occur.Must,
            Query.boolean_query(words) if words else Query.all_query(),
            max_records,
            "time",
        )

    def _phrase_candidates(self, phrases: Sequence[Lookup]) -> list[Posting]:
        """Return the records that contain all words of at least one phrase.

        The records are in turns in which each phrase has such a record.
        """
        groups = []
        for phrase in phrases:
            groups.append(
                self._search_records(Occur.Must, _query_for_all_words(phrase), MAX_PHRASE_RECORDS)
            )
        self.has_unread_records = any(len(group) == MAX_PHRASE_RECORDS for group in groups)
        turns = []
        for group in groups:
            turns.append(
                {make_key_from_file_and_number(row.file_id, row.turn_number) for row in group}
            )
        shared_turns = set.intersection(*turns)
        rows = chain.from_iterable(groups)
        return [
            row
            for row in rows
            if make_key_from_file_and_number(row.file_id, row.turn_number) in shared_turns
        ]

    def _search_records(
        self, occur: Occur, query: Query, max_records: int, order_by: str | None = None
    ) -> list[Posting]:
        postings = self._words.find_records(
            Query.boolean_query(
                [(occur, query), *self._conditions.record_clauses, *self._exclusions]
            ),
            max_records,
            order_by,
        )
        self.has_unread_records = self.has_unread_records or len(postings) == max_records
        return postings

    def _combined_scores(
        self, records_by_turn: Mapping[int, Sequence[Posting]], window_scores: Mapping[int, float]
    ) -> dict[int, float]:
        """Return each turn's score, from the ranks of its best record and of its best window."""
        records = _reciprocal_ranks({key: rows[0].score for key, rows in records_by_turn.items()})
        window_ranks = _reciprocal_ranks(window_scores)
        scores = {}
        for key, rows in records_by_turn.items():
            time_factor = 1 + TIME_HINT_BONUS * bool(
                self._period and any(self._period.contains(row.record_time) for row in rows)
            )
            scores[key] = (records[key] + window_ranks.get(key, 0.0)) * time_factor
        return scores

    def _add_term_numbers(
        self, hits: Sequence[TurnHit], lookups: Sequence[Lookup]
    ) -> list[TurnHit]:
        """Return the turns, each with the indexes of the query's terms that occur in it."""
        terms: dict[int, set[int]] = {hit.turn_key: set() for hit in hits}
        keys = list(terms)
        if not keys:
            return []
        turn_condition = Query.term_set_query(INDEX_SCHEMA, "turn_key", keys)
        for number, lookup in enumerate(lookups):
            if lookup.is_in_index:
                query = Query.boolean_query(
                    [(Occur.Must, turn_condition), (Occur.Must, _query_for_all_words(lookup))]
                )
                for key in self._words.find_turns(query, MAX_WINDOWS_PER_TERM):
                    terms[key].add(number)
        return [hit._replace(term_numbers=frozenset(terms[hit.turn_key])) for hit in hits]


def combine_rankings(rankings: Sequence[Sequence[TurnHit]]) -> list[list[WordingTurn]]:
    """Combine the turns that several wordings found, best first.

    Each turn comes with all wordings that found it, the best wording first.
    """
    turns: dict[int, list[WordingTurn]] = defaultdict(list)
    for number, ranking in enumerate(rankings):
        for turn in ranking:
            turns[turn.turn_key].append(WordingTurn(number, turn))
    groups = [
        sorted(group, key=lambda wording_turn: -wording_turn.turn.score) for group in turns.values()
    ]
    return sorted(groups, key=lambda group: -combined_score(group))


def combined_score(wording_turns: Iterable[WordingTurn]) -> float:
    """Combine the scores that a turn has for each wording: the square root of the sum of their squares.

    Because of the squares, a turn that matches one wording well ranks above a turn that matches
    several wordings a little.
    """
    return math.hypot(*(wording_turn.turn.score for wording_turn in wording_turns))


def _reciprocal_ranks(scores: Mapping[int, float]) -> dict[int, float]:
    """Return a number for each key: 1 for the key with the highest score, and less for each later rank.

    Keys with equal scores have the same rank.
    """
    ranks: dict[float, int] = {}
    for rank, score in enumerate(sorted(scores.values(), reverse=True), 1):
        ranks.setdefault(score, rank)
    reciprocal_ranks = {}
    for key, score in scores.items():
        reciprocal_ranks[key] = (1 + RANK_DAMPING) / (ranks[score] + RANK_DAMPING)
    return reciprocal_ranks


def _sort_titles_last(records: list[Posting]) -> list[Posting]:
    """Return the records, which are sorted best first, with the titles moved to the end.

    A title may mention the topic, but it does not contain the answer.
    """
    return sorted(records, key=lambda record: (record.role_index == TITLE_ROLE, -record.score))


def _group_by_turn(records: Iterable[Posting]) -> dict[int, list[Posting]]:
    groups: dict[int, list[Posting]] = defaultdict(list)
    for record in records:
        groups[make_key_from_file_and_number(record.file_id, record.turn_number)].append(record)
    return groups


def _query_for_any_term(lookups: Iterable[Lookup]) -> Query:
    """Return a query that scores documents by the terms that they contain.

    A word's score is the score of its best stem. For an identifier, the scores of its parts are
    added.
    """
    clauses: list[Query] = []
    for token in (token for lookup in lookups for token in lookup.tokens):
        stem_queries = [_query_for_word(name) for name in token.stems]
        clauses.append(
            stem_queries[0] if len(stem_queries) == 1 else Query.disjunction_max_query(stem_queries)
        )
        for part in token.part_stems:
            clauses.append(Query.boost_query(_query_for_word(part), IDENTIFIER_PART_WEIGHT))
    return Query.boolean_query([(Occur.Should, clause) for clause in clauses])


def _query_for_all_words(lookup: Lookup) -> Query:
    """Return a query for documents that contain every word of a term.

    For an identifier, a document may contain the whole identifier or all of its parts.
    """
    words = []
    for token in lookup.tokens:
        alternatives = [_query_for_word(name) for name in token.stems]
        if token.part_stems:
            alternatives.append(
                Query.boolean_query(
                    [(Occur.Must, _query_for_word(part)) for part in token.part_stems]
                )
            )
        words.append(
            alternatives[0]
            if len(alternatives) == 1
            else Query.boolean_query([(Occur.Should, alternative) for alternative in alternatives])
        )
    return Query.boolean_query([(Occur.Must, word) for word in words])


def _query_for_word(word: str) -> Query:
    return Query.term_query(INDEX_SCHEMA, WORDS_FIELD_NAME, word, index_option="freq")
