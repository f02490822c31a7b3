"""Judge answers: the ranks of the right session and turn, and whether strong hits are right.

A turn is right if it contains an answering record. A session is right if it contains one.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from benchmarks.recall.questions import Question, find_right_places, find_session_of_file
from benchmarks.recall.searcher import Answer

JUDGED_HIT_COUNT = 5
"""The number of first hits of each answer that are counted by their strength."""

STRENGTH_NAMES = ("strong", "fair", "weak")


class JudgedAnswer(NamedTuple):
    """A question with its answer.

    ``session_rank`` and ``turn_rank`` are the ranks of the first right session and turn, counted
    from 1, or 0 if there is none. ``are_hits_right`` says for each hit whether its turn is right.
    """

    question: Question
    answer: Answer
    session_rank: int
    turn_rank: int
    are_hits_right: tuple[bool, ...]


class Score(NamedTuple):
    """The results of a searcher for some questions, as fractions of the questions.

    ``session_first_fraction`` are the answers whose first session is right, and
    ``session_top_five_fraction`` those with a right session among the first five.
    ``turn_first_fraction`` and ``turn_top_five_fraction`` are the same for turns.
    ``mean_reciprocal_rank`` is computed from the ranks of the first right sessions.
    ``no_hits_fraction`` are the answers without hits, and ``strong_fraction`` the answers whose best
    hit is called strong.
    """

    session_first_fraction: float
    session_top_five_fraction: float
    mean_reciprocal_rank: float
    turn_first_fraction: float
    turn_top_five_fraction: float
    no_hits_fraction: float
    strong_fraction: float


class StrengthPrecision(NamedTuple):
    """The number of hits with a given strength, and the fraction of them that are right."""

    hit_count: int
    right_fraction: float


def judge_answer(question: Question, answer: Answer) -> JudgedAnswer:
    """Find the ranks of the first right session and turn in an answer, and its right hits."""
    right = find_right_places(question)
    sessions = dict.fromkeys(find_session_of_file(hit.file) for hit in answer.hits)
    return JudgedAnswer(
        question,
        answer,
        find_rank(list(sessions), {find_session_of_file(place.file) for place in right}),
        find_rank(answer.hits, right),
        tuple(hit in right for hit in answer.hits),
    )


def compute_score(judged_answers: Sequence[JudgedAnswer]) -> Score:
    """Return the results of a searcher for the given questions, as fractions of these questions."""
    sessions, turns = (
        [one.session_rank for one in judged_answers],
        [one.turn_rank for one in judged_answers],
    )
    return Score(
        compute_share(sessions, 1),
        compute_share(sessions, 5),
        mean(1 / place if place else 0.0 for place in sessions),
        compute_share(turns, 1),
        compute_share(turns, 5),
        mean(not one.answer.hits for one in judged_answers),
        mean("strong" in one.answer.strengths[:1] for one in judged_answers),
    )


def compute_strength_precision(
    judged_answers: Iterable[JudgedAnswer],
) -> dict[str, StrengthPrecision]:
    """Return, for each strength, how many hits have it, and the fraction of them that is right.

    Only the first ``JUDGED_HIT_COUNT`` hits of each answer are counted.
    """
    hits: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for one in judged_answers:
        for called, is_right in list(zip(one.answer.strengths, one.are_hits_right, strict=True))[
            :JUDGED_HIT_COUNT
        ]:
            hits[called] += 1
            right[called] += is_right
    return {
        called: StrengthPrecision(hits[called], right[called] / max(1, hits[called]))
        for called in STRENGTH_NAMES
    }


def find_rank(hits: Sequence[object], right_hits: Collection[object]) -> int:
    """Return the rank of the first right hit, counted from 1, or 0 if no hit is right."""
    return next((place for place, hit in enumerate(hits, 1) if hit in right_hits), 0)


def compute_share(ranks: Sequence[int], max_rank: int) -> float:
    """Return the fraction of the ranks that are from 1 to ``max_rank``."""
    return mean(0 < place <= max_rank for place in ranks)


def mean(values: Iterable[float]) -> float:
    """Return the mean of some values, or 0 if there are none."""
    return statistics.fmean(found) if (found := list(values)) else 0.0


def compute_median_and_p95(times: Sequence[float]) -> tuple[float, float]:
    """Return the median of some times and their 95th percentile."""
    return statistics.median(times), statistics.quantiles(
        [*times, times[-1]], n=20, method="inclusive"
    )[-1]
