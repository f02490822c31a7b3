"""Measure how much an agent reads to answer a question with our verbs, or by reading the whole file.

The agent works in a simple way. It searches, and reads the hits from the best one to the first
right one. If that hit is not the answering record, the agent also reads the hit's turn. It also
reads the session's outline to know the context.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from click.testing import CliRunner

from benchmarks.recall.questions import CorpusHome, Place, Question, find_right_places
from resume_hooks.cli.main import cli
from resume_hooks.cli.output import DEFAULT_MAX_CHARACTERS
from resume_hooks.paths import Where
from resume_hooks.search.result_text import result_text
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.needs import corpus_folder

DEFAULT_HIT_COUNT = 10
"""The number of hits that ``search`` shows by default."""

MAX_READ_HITS = 5
"""The number of hits after which the agent stops reading."""


class AnswerCost(NamedTuple):
    """The numbers of characters that our verbs print while an agent finds one answer.

    ``file_bytes`` is the number of bytes of the file that contains the answer.
    """

    search_characters: int
    read_characters: int
    outline_characters: int
    file_bytes: int

    @property
    def total_characters(self) -> int:
        """The number of characters that the agent reads in all."""
        return self.search_characters + self.read_characters + self.outline_characters


def print_costs(home: CorpusHome, asked: Sequence[Question]) -> None:
    """Print the median and the 90th percentile of each part of the cost, over the answered questions."""
    costs = [found for question in asked if (found := measure_cost(home, question)) is not None]
    print(
        f"agent's cost: {len(costs)} of {len(asked)} answers found; characters{'':8} {'median':>10} {'p90':>10}"
    )
    if len(costs) < 2:
        return
    parts: dict[str, list[float]] = {
        "search": [cost.search_characters for cost in costs],
        "read: the hits up to the right one, and its turn": [
            cost.read_characters for cost in costs
        ],
        "outline of its session": [cost.outline_characters for cost in costs],
        "search and read": [cost.search_characters + cost.read_characters for cost in costs],
        "search, read and outline": [cost.total_characters for cost in costs],
        "the file, read whole (bytes)": [cost.file_bytes for cost in costs],
        "the file / search, read and outline": [
            cost.file_bytes / cost.total_characters for cost in costs
        ],
    }
    for name, values in parts.items():
        high = statistics.quantiles(values, n=10, method="inclusive")[-1]
        print(f"{name:60} {statistics.median(values):>10,.0f} {high:>10,.0f}")


def measure_cost(home: CorpusHome, question: Question) -> AnswerCost | None:
    """Return the cost of an answer, or None if the answer is not among the first hits."""
    found = search_index(
        [question.text], Scope(include_helpers=True), Where(home.where), max_hits=DEFAULT_HIT_COUNT
    )
    right = find_right_places(question)
    hits = found.hits[:MAX_READ_HITS]
    correct = [
        number
        for number, hit in enumerate(hits)
        if Place(home.find_path_in_corpus(hit.file), hit.turn_number) in right
    ]
    if not correct:
        return None
    best = hits[correct[0]]
    reads = sum(
        _count_printed_characters(home, "read", hit.reference) for hit in hits[: correct[0] + 1]
    )
    session, _, line = best.reference.rpartition(":")
    name = home.find_path_in_corpus(best.file)
    if (name, int(line)) not in question.answer_lines:
        reads += _count_printed_characters(home, "read", session, "--turns", str(best.turn_number))
    size = (corpus_folder() / name).stat().st_size
    return AnswerCost(
        len(result_text(found, DEFAULT_MAX_CHARACTERS)),
        reads,
        _count_printed_characters(home, "outline", session),
        size,
    )


def _count_printed_characters(home: CorpusHome, *arguments: str) -> int:
    """Return the number of characters that a verb prints."""
    done = CliRunner().invoke(cli, list(arguments), env=home.where)
    if done.exit_code:
        raise RuntimeError(f"{' '.join(arguments)}: {done.output}")
    return len(done.output)
