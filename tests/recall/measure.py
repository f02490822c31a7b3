"""How well searches answer the recall set: ours, ripgrep over the same files, the peer's index where it is there.

Run: ``python -m tests.recall.measure [tune|final|all]``; ``BENCH_PEER`` names the peer's program, as for ``make bench``.
A hit is right where its turn holds an answering record; by session, where its session does.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from resume_hooks.searching.scope import Scope
from resume_hooks.searching.search import find
from tests.recall.questions import Home, Question, questions, turn_of

DEPTH = 10
"""Hits that are looked at."""


class Ranked(NamedTuple):
    """A hit: the file of the corpus, and the turn in it (-1 where only the file is known)."""

    file: str
    turn: int


Searcher = Callable[[str], Sequence[Ranked]]


class Score(NamedTuple):
    """What a searcher came to; shares of the questions asked."""

    asked: int
    first: float
    five: float
    reciprocal: float
    session_first: float
    session_five: float
    false: float


def ours(home: Home) -> Searcher:
    """Our search over every project."""

    def search(text: str) -> list[Ranked]:
        found = find([text], Scope(helpers=True), home.environ, most=DEPTH)
        return [Ranked(home.name(hit.file), hit.turn) for hit in found.hits]

    return search


def score(searcher: Searcher, asked: Sequence[Question]) -> Score:
    """Ask the questions and judge the answers."""
    ranks, sessions, false = [], [], 0
    answerable = [question for question in asked if question.answers]
    for question in answerable:
        hits = searcher(question.text)[:DEPTH]
        right = {(file, turn_of(file, line)) for file, line in question.answers}
        ranks.append(_rank([(hit.file, hit.turn) in right for hit in hits]))
        files = list(dict.fromkeys(hit.file for hit in hits))
        sessions.append(_rank([any(_session(file) == _session(name) for name, _ in right) for file in files]))
    open_ = [question for question in asked if not question.answers]
    false = sum(bool(searcher(question.text)) for question in open_)
    return Score(
        len(answerable),
        _share(ranks, 1),
        _share(ranks, 5),
        sum(1 / rank for rank in ranks if rank) / max(1, len(ranks)),
        _share(sessions, 1),
        _share(sessions, 5),
        false / max(1, len(open_)),
    )


def _session(name: str) -> str:
    """A session's file for one of its sub-agents'."""
    path = Path(name)
    return str(path.parents[1]) + ".jsonl" if path.parent.name == "subagents" else name


def _rank(right: Sequence[bool]) -> int:
    return right.index(True) + 1 if True in right else 0


def _share(ranks: Sequence[int], reach: int) -> float:
    return sum(0 < rank <= reach for rank in ranks) / max(1, len(ranks))


def main(half: str) -> None:
    """Print the figures."""
    asked = [question for question in questions() if half in {"all", question.half}]
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / ".claude")
        for kinds in (("plain",), ("paraphrased",), ("plain", "paraphrased", "unanswerable")):
            print(kinds, score(ours(home), [question for question in asked if question.kind in kinds]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tune")
