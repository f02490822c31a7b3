"""How well searches answer the recall set, and what the answers cost an agent.

Run: ``python -m benchmarks.recall.measure [tune|final|all]``; ``BENCH_PEER`` names the peer, as for ``make bench``.
A hit is right where it shows a turn that holds an answering record; by session, where it is of such a session.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.recall import peer
from benchmarks.recall.cost import print_costs
from benchmarks.recall.questions import HALVES, Home, Place, Question, questions, right_places, session_of
from benchmarks.recall.ripgrep import Ripgrep
from resume_hooks.paths import Where
from resume_hooks.search.engine import find
from resume_hooks.search.scope import Scope
from tests.needs import corpus_folder

DEPTH = 10
"""Hits that are looked at."""

MOST_WORDS = 2 / 3
"""The part of a question's words that a line must hold for the stricter of the two people who grep."""

ROWS = (
    ("plain", ("plain",)),
    ("paraphrased", ("paraphrased",)),
    ("all answerable", ("plain", "paraphrased")),
)


class Searcher(Protocol):
    """Something that answers questions; ``by_turn``: with turns, not only with files."""

    @property
    def name(self) -> str:
        """What it is called in the table."""

    @property
    def by_turn(self) -> bool:
        """Whether it tells turns."""

    def search(self, text: str, most: int) -> Sequence[Place]:
        """The best hits, at most ``most``."""


class Score(NamedTuple):
    """What a searcher came to, as shares of the questions asked."""

    first: float
    five: float
    reciprocal: float
    session_first: float
    session_five: float


class Ours:
    """Our own search, over every project."""

    name = "resume-hooks"
    by_turn = True

    def __init__(self, home: Home) -> None:
        self._home = home

    def search(self, text: str, most: int) -> list[Place]:
        """The turns it finds."""
        found = find([text], Scope(helpers=True), Where(self._home.where), most=most)
        return [Place(self._home.name(hit.file), hit.turn) for hit in found.hits]


def score(searcher: Searcher, asked: Sequence[Question]) -> Score:
    """Ask answerable questions and judge the answers."""
    ranks, sessions = [], []
    for question in asked:
        hits, right = searcher.search(question.text, DEPTH), right_places(question)
        ranks.append(rank(hits, right))
        found = dict.fromkeys(session_of(hit.file) for hit in hits)
        sessions.append(rank(list(found), {session_of(place.file) for place in right}))
    return Score(
        share(ranks, 1),
        share(ranks, 5),
        sum(1 / place for place in ranks if place) / max(1, len(ranks)),
        share(sessions, 1),
        share(sessions, 5),
    )


def false_hits(searcher: Searcher, asked: Sequence[Question]) -> float:
    """The part of questions without an answer that got one all the same."""
    return sum(bool(searcher.search(question.text, DEPTH)) for question in asked) / max(1, len(asked))


def rank(hits: Sequence[object], right: Collection[object]) -> int:
    """The place of the first right hit, from 1; 0 for none."""
    return next((place for place, hit in enumerate(hits, 1) if hit in right), 0)


def share(ranks: Sequence[int], reach: int) -> float:
    """The part of ranks that are within the first ``reach``."""
    return sum(0 < place <= reach for place in ranks) / max(1, len(ranks))


def searchers(home: Home, scratch: Path, asked: Sequence[Question]) -> Iterator[Searcher]:
    """Ours and those that this machine has, each over the same files."""
    yield Ours(home)
    if Ripgrep.there():
        yield Ripgrep(home, 0, "ripgrep, lines with any word")
        yield Ripgrep(home, MOST_WORDS, "ripgrep, lines with 2/3 of the words")
    else:
        print("ripgrep: not measured; install rg")
    if found := peer.program():
        theirs = peer.Peer(found, home, scratch / "peer", [question.text for question in asked])
        print(theirs.note)
        yield theirs
    else:
        print("peer: not measured; set BENCH_PEER to the aichat of a scratch venv with claude-code-tools")


def print_table(home: Home, scratch: Path, asked: Sequence[Question]) -> None:
    """One row a searcher and kind of question."""
    open_ = [question for question in asked if not question.answers]
    compared = list(searchers(home, scratch, asked))
    print(
        f"{'':37} {'questions':18} {'turn':>6} {'':>6} {'':>6} {'session':>8}\n"
        f"{'':37} {'':18} {'hit@1':>6} {'hit@5':>6} {'MRR':>6} {'hit@1':>8} {'hit@5':>6} {'false':>6}"
    )
    for searcher in compared:
        for name, kinds in ROWS:
            chosen = [question for question in asked if question.kind in kinds]
            found = score(searcher, chosen)
            turns = [f"{part:6.2f}" for part in found[:3]] if searcher.by_turn else [f"{'-':>6}"] * 3
            sessions = f"{found.session_first:8.2f} {found.session_five:6.2f}"
            print(f"{searcher.name:37} {f'{len(chosen)} {name}':18} {' '.join(turns)} {sessions}")
        name = f"{len(open_)} unanswerable"
        print(f"{searcher.name:37} {name:18} {'':35} {false_hits(searcher, open_):7.2f}", flush=True)


def main(half: str) -> int:
    """Print the figures of one half, or of all questions; 1 without a corpus, 2 for what is no half."""
    if half not in {*HALVES, "all"}:
        print("usage: python -m benchmarks.recall.measure [tune|final|all]")
        return 2
    if not corpus_folder().is_dir():
        print(f"The corpus is not at {corpus_folder()}: set RESUME_HOOKS_CORPUS")
        return 1
    asked = questions(half)
    with tempfile.TemporaryDirectory(prefix="resume-hooks-recall-") as folder:
        home = Home(Path(folder) / ".claude")
        print_table(home, Path(folder), asked)
        print()
        print_costs(home, [question for question in asked if question.answers])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "tune"))
