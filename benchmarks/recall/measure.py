"""Measure how well searches answer the recall set, and what the answers cost an agent.

Run: ``python -m benchmarks.recall.measure [tune|kept|all]``. ``BENCH_PEER`` names the peer's
program, as for ``make bench``. Every searcher gets the same files, and each question once. Then
each paraphrased question is also asked in all its wordings.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.recall import peer
from benchmarks.recall.cost import print_costs
from benchmarks.recall.judge import (
    STRENGTH_NAMES,
    JudgedAnswer,
    compute_median_and_p95,
    compute_score,
    compute_strength_precision,
    judge_answer,
)
from benchmarks.recall.naive import FusedNaiveSearcher, NaiveSearcher
from benchmarks.recall.questions import (
    QUESTION_HALVES,
    QUESTION_KINDS,
    CorpusHome,
    Question,
    read_questions,
)
from benchmarks.recall.ripgrep import RipgrepSearcher
from benchmarks.recall.searcher import OwnSearcher, RetryingSearcher, Searcher, UnindexedSearcher
from tests.needs import corpus_folder

MAX_HITS = 10
"""The maximum number of hits of an answer."""

MIN_WORD_FRACTION = 2 / 3
"""A line must contain this fraction of a question's words to be a hit of the stricter ripgrep
searcher."""

NAME_WIDTH = 37  # Number of columns for a searcher's name in the table.


def make_searchers(
    home: CorpusHome, scratch: Path, questions: Sequence[Question]
) -> Iterator[Searcher]:
    """Yield our searchers, the naive searcher, and the searchers whose programs are installed."""
    yield OwnSearcher(home)
    yield UnindexedSearcher()
    yield NaiveSearcher()
    if RipgrepSearcher.is_installed():
        yield RipgrepSearcher(home, 0, "ripgrep, lines with any word")
        yield RipgrepSearcher(home, MIN_WORD_FRACTION, "ripgrep, lines with 2/3 of the words")
    else:
        print("ripgrep: not measured; install rg")
    if found := peer.find_peer_program():
        ways = [
            wordings for question in questions for wordings in ((question.text,), question.wordings)
        ]
        peer_searcher = peer.PeerSearcher(found, home, scratch / "peer", ways)
        print(peer_searcher.note)
        yield peer_searcher
    else:
        print(
            "peer: not measured; set BENCH_PEER to the aichat of a scratch venv with claude-code-tools"
        )


def print_table(title: str, results: Sequence[tuple[Searcher, Sequence[JudgedAnswer]]]) -> None:
    """Print a row for each searcher and kind of question."""
    print(f"\n{title:{NAME_WIDTH + 18}}session{'':15}turn{'':15}best hit{'':6}ms")
    print(
        f"{'':{NAME_WIDTH}} {'questions':16} {'hit@1':>7} {'hit@5':>6} {'MRR':>6} {'hit@1':>7} {'hit@5':>6} "
        f"{'empty':>7} {'strong':>8} {'median':>8} {'p95':>8}"
    )
    for searcher, asked in results:
        for kind in QUESTION_KINDS:
            chosen = [one for one in asked if one.question.kind == kind]
            if not chosen:
                continue
            found = compute_score(chosen)
            known = kind != "unanswerable"
            parts = [
                *_format_cells(found[:3], (7, 6, 6), is_shown=known),
                *_format_cells(found[3:5], (7, 6), is_shown=known and searcher.finds_turns),
                *_format_cells([found.no_hits_fraction], (7,)),
                *_format_cells(
                    [found.strong_fraction],
                    (8,),
                    is_shown=any(one.answer.strengths for one in chosen),
                ),
                *(f"{ms:8.1f}" for ms in compute_median_and_p95([one.answer.ms for one in chosen])),
            ]
            print(
                f"{searcher.name:{NAME_WIDTH}} {f'{len(chosen)} {kind}':16} {' '.join(parts)}",
                flush=True,
            )


def _format_cells(
    shares: Sequence[float], widths: Sequence[int], *, is_shown: bool = True
) -> list[str]:
    return [
        f"{share:{width}.2f}" if is_shown else f"{'-':>{width}}"
        for share, width in zip(shares, widths, strict=True)
    ]


def print_strength_precision(title: str, judged_answers: Sequence[JudgedAnswer]) -> None:
    """Print how often strong, fair and weak hits are right. Only the first hits of each answer count."""
    found = compute_strength_precision(judged_answers)
    parts = ", ".join(
        f"{name} {found[name].right_fraction:.2f} of {found[name].hit_count}"
        for name in STRENGTH_NAMES
    )
    is_consistent = 1 - found["weak"].right_fraction >= found["strong"].right_fraction
    print(
        f"right hits, {title}: {parts}; weak wrong >= strong right: {'yes' if is_consistent else 'NO'}"
    )


def ask_questions(
    searcher: Searcher, questions: Sequence[Question], wordings: Callable[[Question], Sequence[str]]
) -> list[JudgedAnswer]:
    """Ask each question in the wordings that ``wordings`` returns, and judge the answers."""
    return [
        judge_answer(question, searcher.search(wordings(question), MAX_HITS))
        for question in questions
    ]


def main(half: str) -> int:
    """Print the results for one half or for all questions.

    Return 0, 1 if the corpus is missing, or 2 if the half is unknown.
    """
    if half not in {*QUESTION_HALVES, "all"}:
        print("usage: python -m benchmarks.recall.measure [tune|kept|all]")
        return 2
    if not corpus_folder().is_dir():
        print(f"The corpus is not at {corpus_folder()}: set RESUME_HOOKS_CORPUS")
        return 1
    asked = read_questions(half)
    reworded = [question for question in asked if question.other_wordings]
    with tempfile.TemporaryDirectory(prefix="resume-hooks-recall-") as folder:
        home = CorpusHome(Path(folder) / ".claude")
        compared = list(make_searchers(home, Path(folder), asked))
        once = [
            (searcher, ask_questions(searcher, asked, lambda question: [question.text]))
            for searcher in compared
        ]
        print_table("one wording", once)
        compared.insert(1, RetryingSearcher(home))
        compared.insert(
            4, FusedNaiveSearcher(next(one for one in compared if isinstance(one, NaiveSearcher)))
        )
        several = [
            (searcher, ask_questions(searcher, reworded, lambda question: question.wordings))
            for searcher in compared
        ]
        print_table("four wordings", several)
        print()
        print_strength_precision("one wording", once[0][1])
        print_strength_precision("four wordings", several[0][1])
        print()
        print_costs(home, [question for question in asked if question.answer_lines])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "tune"))
