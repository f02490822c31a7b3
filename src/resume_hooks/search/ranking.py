"""Which turns answer best: each record by how well its words fit, each turn by its records and by what they cover.

A turn is the unit of a hit, since a question and its answer stand in different records of one turn.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from resume_hooks.clock import DAY
from resume_hooks.search.index.writing import ROLES
from resume_hooks.search.scope import Scope, condition
from resume_hooks.search.terms import Lookup

WEIGHTS = (8.0, 4.0, 2.0, 1.0)  # what a word is worth in a prompt or title, a reply, an input of a tool, an output
CANDIDATES = 200  # records that are looked at closely
AFFORDED = 20_000  # records that the rarest words may be in before the commoner ones are left to the coverage
PHRASED = 2_000
"""Records with the words of a phrase that are looked at; whether they have the phrase only their texts tell."""

LISTING, ASKING = 0.4, 10.0
"""Microseconds that it takes to list a record with a word, and to ask whether a candidate has one."""

MOST_MARKS = 30_000  # values of a query; SQLite takes 32,766
FURTHER = (1.0, 0.4, 0.2)  # what the best, the second and the third record of a turn count
SURE, PERHAPS = 1.0, 0.9
"""What a term counts that was found as it was typed, and one that only a related word stands for."""

GOOD = 1.0  # how well a turn fits, by what was typed, from which on related words are not asked for
FAIR = 0.5  # how well a turn must fit to be a hit; less is noise
NOISE = 0.35  # the part of the best turn's fit below which a turn is not worth reading
NAMED = 0.5  # what a title counts: it says what was talked about, in few words and without the answer
RECENT = 0.15  # what being said just now adds to a turn's score, at most
HALF_LIFE = 30 * DAY  # seconds after which half of that is left


_TITLE = ROLES.index("title")
_RECORD = "SELECT r.id, r.file, r.turn, r.role, r.time"


@dataclass(slots=True)
class RecordMatch:
    """A record that has some of the words; ``terms`` are their places in the query, each with how surely it has it."""

    record: int
    file: int
    turn: int
    role: int
    time: int
    score: float
    terms: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class TurnHit:
    """A turn with its fitting records, the best first."""

    records: list[RecordMatch]
    terms: dict[int, float]
    score: float
    fit: float = 0.0

    @property
    def best(self) -> RecordMatch:
        """The record to be shown."""
        return self.records[0]


class Ranking:
    """Ranks the turns in scope for looked-up terms; ``now`` in seconds since the epoch."""

    def __init__(self, db: sqlite3.Connection, scope: Scope, excluded: Sequence[Lookup], now: float) -> None:
        self._db = db
        self._where, self._values = condition(db, scope)
        self._not = "".join(f" NOT {lookup.expression}" for lookup in excluded if lookup.expression)
        self._now = now
        self._strict: dict[int, RecordMatch] = {}
        self.capped = False
        """Whether there were more records with the words than were looked at."""

    def turns(self, lookups: Sequence[Lookup]) -> list[TurnHit]:
        """The turns that hold enough of the terms, the best first."""
        known = [lookup for lookup in lookups if lookup.expression]
        if not known:
            return []
        self._strict = self._fetch(" AND ".join(lookup.expression for lookup in known))
        if len(known) > 1 and len(self._strict) < CANDIDATES:  # else what has some words only would come after these
            self._strict |= self._fetch(" OR ".join(lookup.expression for lookup in _afforded(known)))
        for lookup in known:
            if lookup.term.exact:
                self._strict = self._fetch(lookup.expression, PHRASED) | self._strict
        self._cover(self._strict, dict(enumerate(lookups)), SURE)
        return self._ranked(self._strict, lookups)

    def loose(self, lookups: Sequence[Lookup], related: Mapping[int, Lookup]) -> list[TurnHit]:
        """The turns again, with ``related`` words, by their places among the ``lookups``, for what may be meant."""
        also = self._fetch(" OR ".join(lookup.expression for lookup in _afforded([*related.values()])))
        fresh = {record: replace(other, score=0.0) for record, other in also.items() if record not in self._strict}
        self._cover(fresh, dict(enumerate(lookups)), SURE)
        candidates = self._strict | fresh
        for record, other in also.items():
            candidates[record].score += PERHAPS * other.score
        self._cover(candidates, related, PERHAPS)
        return self._ranked(candidates, lookups)

    def latest(self) -> list[TurnHit]:
        """The turns in scope, the newest first, where no words were given; each by the first that was said in it."""
        first = f"min(r.role * {2**40} + r.id)"  # SQLite takes the other columns from the row of the minimum
        query = f"{_RECORD}, {first} FROM records r WHERE {self._where} GROUP BY r.file, r.turn"
        rows = self._db.execute(f"{query} ORDER BY r.time DESC, r.id DESC", self._values)
        return [TurnHit([replace(_candidate(row), score=0.0)], {}, 0.0) for row in rows]

    def _fetch(self, expression: str, most: int = CANDIDATES) -> dict[int, RecordMatch]:
        weights = ", ".join(map(str, WEIGHTS))
        query = (
            f"{_RECORD}, bm25(words, {weights}) AS fit FROM words JOIN records r ON r.id=words.rowid"
            f" WHERE words MATCH ? AND {self._where} ORDER BY fit LIMIT {most}"
        )
        rows = self._db.execute(query, (f"({expression}){self._not}", *self._values)).fetchall()
        self.capped = self.capped or len(rows) == most
        return {row[0]: _candidate(row) for row in rows}

    def _cover(self, candidates: dict[int, RecordMatch], lookups: Mapping[int, Lookup], share: float) -> None:
        """Note which terms each candidate has, and what part of one each is."""
        ids = list(candidates)
        marks = ",".join("?" * len(ids))
        query: str
        values: list[str | int]
        for number, lookup in lookups.items():
            if not lookup.expression:
                continue
            query, values = "SELECT rowid FROM words WHERE words MATCH ?", [lookup.expression, *ids]
            asking = ASKING * len(ids) * max(1, len(lookup.stems))
            if LISTING * lookup.rows > asking and len(ids) <= MOST_MARKS:
                query = f"{query} AND rowid IN ({marks})"
            else:
                del values[1:]
            for (record,) in self._db.execute(query, values):
                if record in candidates:
                    candidates[record].terms.setdefault(number, share)

    def _ranked(self, candidates: dict[int, RecordMatch], lookups: Sequence[Lookup]) -> list[TurnHit]:
        groups: dict[tuple[int, int], list[RecordMatch]] = defaultdict(list)
        for candidate in candidates.values():
            groups[candidate.file, candidate.turn].append(candidate)
        weights = [lookup.weight for lookup in lookups]
        hits = [_turn(group, weights, self._now) for group in groups.values()]
        for hit in hits:
            hit.fit = hit.score / (sum(weights) or 1)
        phrases = {number for number, lookup in enumerate(lookups) if lookup.term.exact}
        return sorted((hit for hit in hits if phrases <= hit.terms.keys()), key=lambda hit: -hit.score)


def _candidate(row: tuple[int, int, int, int, int, float]) -> RecordMatch:
    share = NAMED if row[3] == _TITLE else 1.0
    return RecordMatch(*row[:5], score=-row[5] * share)


def _turn(group: list[RecordMatch], weights: Sequence[float], now: float) -> TurnHit:
    records = sorted(group, key=lambda record: -record.score * _covered(record.terms, weights))
    terms: dict[int, float] = {}
    for record in records:
        terms |= {number: max(share, terms.get(number, 0.0)) for number, share in record.terms.items()}
    fit = sum(share * record.score for share, record in zip(FURTHER, records, strict=False))
    recency = 1 + RECENT * 0.5 ** (max(0.0, now - records[0].time) / HALF_LIFE)
    records.sort(key=lambda record: record.role == _TITLE)  # a title says that something is there, not what
    return TurnHit(records, terms, fit * (0.2 + _covered(terms, weights) ** 2) * recency)


def _covered(terms: Mapping[int, float], weights: Sequence[float]) -> float:
    return sum(weights[number] * share for number, share in terms.items()) / (sum(weights) or 1)


def _afforded(known: Sequence[Lookup]) -> list[Lookup]:
    """The rarest terms, as many as can be ranked quickly; at least two."""
    rarest = sorted(known, key=lambda lookup: lookup.rows)
    chosen: list[Lookup] = []
    for lookup in rarest:
        if len(chosen) >= 2 and sum(other.rows for other in chosen) + lookup.rows > AFFORDED:
            break
        chosen.append(lookup)
    return chosen
