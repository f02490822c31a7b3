"""Which turns answer best: what a turn says in its best window and in its best record, taken together.

A turn is the unit of a hit, since a question and its answer stand in different records of one turn. Windows and
records each have their order (BM25); the reciprocal ranks of a turn in both are summed up. What a word of a prompt
counts beside one of an output is decided when it is indexed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tantivy import Occur, Query

from resume_hooks.clock import DAY
from resume_hooks.search.index.postings import SCHEMA, WORDS, Posting, Postings, turn_key
from resume_hooks.search.query import Period
from resume_hooks.search.roles import ROLES
from resume_hooks.search.scope import Limits
from resume_hooks.search.terms import IN_PARTS, Lookup

LOOKED_AT = 300  # records, and windows, that are looked at
CANDIDATES = 60  # turns that are weighed closely
OWN_RECORDS = 600  # records of these turns that are looked at
MOST_WINDOWS = 2_000  # windows of these turns that are looked at
PHRASED = 2_000
"""Records with the words of a phrase that are looked at; whether they have the phrase only their texts tell."""

DAMPING = 5
"""What is added to a rank before its reciprocal counts: the more, the less the first places matter."""

HINTED = 0.3  # what being said at the time that a question hints at adds to a turn's score
RECENT = 0.05  # what being said just now adds to a turn's score, at most
HALF_LIFE = 30 * DAY  # seconds after which half of that is left
TITLE = ROLES.index("title")


@dataclass(slots=True)
class TurnHit:
    """A turn with its fitting records, the best first; ``terms`` are the places in the query of those that it has."""

    key: int
    records: list[Posting]
    score: float
    terms: set[int] = field(default_factory=set)


class Found(NamedTuple):
    """A turn as one wording found it; ``wording`` is its number, from 0."""

    wording: int
    turn: TurnHit


class Ranking:
    """Ranks the turns within some limits for looked-up terms.

    ``when`` is the time that was hinted at, ``now`` in seconds since the epoch.
    """

    def __init__(
        self, words: Postings, limits: Limits, excluded: Sequence[Lookup], when: Period | None, now: float
    ) -> None:
        self._words = words
        self._limits = limits
        self._not = [(Occur.MustNot, _all_of(lookup)) for lookup in excluded if lookup.known]
        self._when = when
        self._now = now
        self.capped = False
        """Whether there were more records with the words than were looked at."""

    def turns(self, lookups: Sequence[Lookup]) -> list[TurnHit]:
        """The turns that hold some of the terms and every phrase, the best first."""
        known = [lookup for lookup in lookups if lookup.known]
        phrases = [lookup for lookup in lookups if lookup.term.exact]
        if not known or not all(lookup.known for lookup in phrases):
            return []
        found = self._phrased(phrases) if phrases else self._records(Occur.Must, _any_of(known), LOOKED_AT)
        by_turn = _by_turn(found)
        limited = Query.boolean_query([(Occur.Must, _any_of(known)), *self._limits.turns])
        windows = self._words.turns(limited, LOOKED_AT)
        if not phrases:
            self._add_missing(by_turn, [key for key in windows if key not in by_turn][:CANDIDATES], known)
        scores = self._fused(by_turn, windows)
        hits = [TurnHit(key, _told(by_turn[key]), score) for key, score in scores.items()]
        hits.sort(key=lambda hit: -hit.score)
        self._cover(hits[:CANDIDATES], lookups)
        return hits

    def latest(self, most: int) -> list[TurnHit]:
        """The turns within the limits, the newest first, where no words were given; each by the first said in it."""
        return [
            TurnHit(key, [min(records, key=lambda record: (record.role, record.line))], 0.0)
            for key, records in _by_turn(self.records(most)).items()
        ]

    def records(self, most: int, having: Sequence[Lookup] = ()) -> list[Posting]:
        """The records within the limits, of those with every word of some terms; the newest first."""
        words = [(Occur.Must, _all_of(lookup)) for lookup in having]
        return self._records(Occur.Must, Query.boolean_query(words) if words else Query.all_query(), most, "time")

    def _phrased(self, phrases: Sequence[Lookup]) -> list[Posting]:
        """The records that may hold a phrase, in turns that may hold all of them."""
        groups = [self._records(Occur.Must, _all_of(phrase), PHRASED) for phrase in phrases]
        self.capped = any(len(group) == PHRASED for group in groups)
        shared = set.intersection(*({turn_key(row.file, row.turn) for row in group} for group in groups))
        return [row for group in groups for row in group if turn_key(row.file, row.turn) in shared]

    def _records(self, occur: Occur, query: Query, most: int, order_by: str | None = None) -> list[Posting]:
        found = self._words.search(
            Query.boolean_query([(occur, query), *self._limits.records, *self._not]), most, order_by
        )
        self.capped = self.capped or len(found) == most
        return found

    def _add_missing(self, by_turn: dict[int, list[Posting]], keys: Sequence[int], known: Sequence[Lookup]) -> None:
        if keys:
            own = Query.const_score_query(Query.term_set_query(SCHEMA, "turn_key", keys), 0.0)
            query = Query.boolean_query([(Occur.Must, own), (Occur.Must, _any_of(known))])
            for key, records in _by_turn(self._records(Occur.Must, query, OWN_RECORDS)).items():
                by_turn.setdefault(key, records)

    def _fused(self, by_turn: Mapping[int, Sequence[Posting]], windows: Mapping[int, float]) -> dict[int, float]:
        """What each turn comes to by the places of its best record and of its best window."""
        # A title says what was talked about, not the answer.
        worth = {key: rows[0].score * (0.5 if rows[0].role == TITLE else 1.0) for key, rows in by_turn.items()}
        records, windows = _shares(worth), _shares(windows)
        scores = {}
        for key, rows in by_turn.items():
            recent = 1 + RECENT * 0.5 ** (max(0.0, self._now - rows[0].time) / HALF_LIFE)
            hinted = 1 + HINTED * bool(self._when and any(self._when.holds(row.time) for row in rows))
            scores[key] = (records[key] + windows.get(key, 0.0)) * recent * hinted
        return scores

    def _cover(self, hits: Sequence[TurnHit], lookups: Sequence[Lookup]) -> None:
        keys = [hit.key for hit in hits]
        if not keys:
            return
        own = Query.term_set_query(SCHEMA, "turn_key", keys)
        for number, lookup in enumerate(lookups):
            if lookup.known:
                query = Query.boolean_query([(Occur.Must, own), (Occur.Must, _all_of(lookup))])
                having = self._words.turns(query, MOST_WINDOWS)
                for hit in hits:
                    if hit.key in having:
                        hit.terms.add(number)


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


def _shares(scores: Mapping[int, float]) -> dict[int, float]:
    """What each place in the order of what is scored counts, the first one 1; what scores alike has the same one."""
    places: dict[float, int] = {}
    for place, score in enumerate(sorted(scores.values(), reverse=True), 1):
        places.setdefault(score, place)
    return {key: (1 + DAMPING) / (places[score] + DAMPING) for key, score in scores.items()}


def _told(records: list[Posting]) -> list[Posting]:
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
        ways = [_boosted(_term(name), share) for name, share in token.stems]
        clauses.append(ways[0] if len(ways) == 1 else Query.disjunction_max_query(ways))
        clauses += [_boosted(_term(part), IN_PARTS) for part in token.parts]
    return Query.boolean_query([(Occur.Should, clause) for clause in clauses])


def _boosted(query: Query, share: float) -> Query:
    return query if share == 1.0 else Query.boost_query(query, share)


def _all_of(lookup: Lookup) -> Query:
    """What holds for documents that have every word of a term, an identifier whole or by its parts."""
    words = []
    for token in lookup.tokens:
        ways = [_term(name) for name, _ in token.stems]
        if token.parts:
            ways.append(Query.boolean_query([(Occur.Must, _term(part)) for part in token.parts]))
        words.append(ways[0] if len(ways) == 1 else Query.boolean_query([(Occur.Should, way) for way in ways]))
    return Query.boolean_query([(Occur.Must, word) for word in words])


def _term(name: str) -> Query:
    return Query.term_query(SCHEMA, WORDS, name, index_option="freq")
