"""What answers are worth: how far up the right session and the right turn stand, and whether sure hits are right.

A hit is right where it shows a turn that holds an answering record; by session, where it is of such
a session.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from benchmarks.recall.questions import Question, right_places, session_of
from benchmarks.recall.searcher import Answer

JUDGED = 5
"""Hits of an answer by which what is called sure is judged."""

STRENGTHS = ("strong", "fair", "weak")


class Asked(NamedTuple):
    """A question and how it was answered: the ranks, from 1, of the first right session and turn; 0 for none.

    ``right`` says so of each hit.
    """

    question: Question
    answer: Answer
    session: int
    turn: int
    right: tuple[bool, ...]


class Score(NamedTuple):
    """What a searcher came to, as shares of the questions asked.

    ``strong``: of those whose best hit is called so.
    """

    session_first: float
    session_five: float
    reciprocal: float
    first: float
    five: float
    empty: float
    strong: float


class Sureness(NamedTuple):
    """Of the hits that are called so: how many there are, and the part of them that is right."""

    hits: int
    right: float


def judged(question: Question, answer: Answer) -> Asked:
    """How a question was answered."""
    right = right_places(question)
    sessions = dict.fromkeys(session_of(hit.file) for hit in answer.hits)
    return Asked(
        question,
        answer,
        rank(list(sessions), {session_of(place.file) for place in right}),
        rank(answer.hits, right),
        tuple(hit in right for hit in answer.hits),
    )


def score(asked: Sequence[Asked]) -> Score:
    """The figures of some questions."""
    sessions, turns = [one.session for one in asked], [one.turn for one in asked]
    return Score(
        share(sessions, 1),
        share(sessions, 5),
        mean(1 / place if place else 0.0 for place in sessions),
        share(turns, 1),
        share(turns, 5),
        mean(not one.answer.hits for one in asked),
        mean("strong" in one.answer.strengths[:1] for one in asked),
    )


def sureness(asked: Iterable[Asked]) -> dict[str, Sureness]:
    """By how sure hits are called, of the first few of each answer."""
    hits: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for one in asked:
        for called, is_right in list(zip(one.answer.strengths, one.right, strict=True))[:JUDGED]:
            hits[called] += 1
            right[called] += is_right
    return {
        called: Sureness(hits[called], right[called] / max(1, hits[called])) for called in STRENGTHS
    }


def rank(hits: Sequence[object], right: Collection[object]) -> int:
    """The place of the first right hit, from 1; 0 for none."""
    return next((place for place, hit in enumerate(hits, 1) if hit in right), 0)


def share(ranks: Sequence[int], reach: int) -> float:
    """The part of ranks that are within the first ``reach``."""
    return mean(0 < place <= reach for place in ranks)


def mean(values: Iterable[float]) -> float:
    """The mean of some values; 0 of none."""
    return statistics.fmean(found) if (found := list(values)) else 0.0


def spread(times: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    return statistics.median(times), statistics.quantiles(
        [*times, times[-1]], n=20, method="inclusive"
    )[-1]
