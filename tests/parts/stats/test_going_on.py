"""The measure of the ways on: what counts as kept, and that nothing is left behind in anybody's home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.going_on.bounds import Candidate, Room, Session, best, oracle, session_of, weights
from benchmarks.going_on.judge import Row, core
from benchmarks.going_on.measure import HEADS, Sums, own, place, row, table
from benchmarks.going_on.truth import SAMPLE, Item, items, source_of
from benchmarks.going_on.ways import MODEL, Left, Went, gone, laid
from resume_hooks.parts.stats.totals import Stretch
from resume_hooks.reading.digest.entries import DigestEntry

FILE = Item("s", "file", 7, "src/pool.py", in_summary=None)
DECISION = Item("s", "decision", 9, "take the lock   first", in_summary=None)


def test_word_for_word_or_by_a_line_of_the_digest() -> None:
    """White space aside; a digest's files by their section, a command of several lines as it was."""
    assert place(DECISION, Left(1, "we take the lock first, then")) == "in"
    assert place(DECISION, Left(1, "the lock is taken first")) == "out"
    assert place(FILE, Left(1, rows=[Row("files changed (1)", "src/pool.py")])) == "in"
    assert place(FILE, Left(1)) == "out"
    assert core(r"eval $'cat <<\'E\'\nx\\y\nE'") == r"cat <<'E' x\y E'"


def test_one_read_away() -> None:
    """A placeholder names the very record, or the full digest has it."""
    assert place(FILE, Left(1, named=frozenset({7}))) == "near"
    assert place(FILE, Left(1, named=frozenset({8}))) == "out"
    assert place(FILE, Left(1, more=[Row("files changed (1)", "src/pool.py")])) == "near"


def test_a_row_of_the_table() -> None:
    """Medians, counts of items, sentences, calls; empty where nobody ran the way or labelled a kind."""
    sums = Sums()
    left = Left(50, "take the lock first", frozenset({7}), lies=(1, 9))
    sums.add(Went("trim", left, 0.5, 60), [FILE, DECISION], 100)
    sums.add(Went("trim", None), [FILE], 100)
    assert row("trim", sums, Stretch("trim", 5, 4, 2, 8)) == (
        "| trim | 1 | 50 % | 60 | 0.50 | 1/0/0 |  |  |  | 0/1/0 | 1 of 9 | 2 (75 %: 8) of 4 |"
    )
    assert row("rollover", Sums(), None).count("|") == len(HEADS) + 3


def test_on_the_sample() -> None:
    """The session that we give away: a handoff has all that a reader labelled; the rest of a row needs no labels."""
    handoff = next(line for line in table(SAMPLE) if line.startswith("| handoff "))
    assert handoff.count("1/0/0") == 5
    assert "/" not in next(line for line in own([source_of(SAMPLE)]) if line.startswith("| handoff "))


def test_a_model_that_somebody_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is read, and looked up; without one the way has no figures."""
    (tmp_path / MODEL[0]).mkdir()
    (tmp_path / MODEL[0] / "sample.md").write_text("The fix is in `src/nowhere.py`.\n")
    for folder, lies in ((tmp_path, (1, 1)), (tmp_path / "none", None)):
        monkeypatch.setenv("BENCH_SUMMARIES", str(folder))
        with laid(source_of(SAMPLE)) as path:
            left = next(went.left for went in gone(path, source_of(SAMPLE)) if went.way == MODEL[0])
        assert (left.lies if left else None) == lies


def test_the_best_choice_of_sentences() -> None:
    """The labels take what adds most for its length; weights that were fit elsewhere take what looks like it, once."""
    short, long = DigestEntry("take the lock first"), DigestEntry("take the lock first, then read all of the file")
    said = [Candidate(long, frozenset({0}), (1, 1)), Candidate(short, frozenset({0}), (1, 1))]
    said.append(Candidate(DigestEntry("all tests pass"), frozenset(), (1, 0)))
    assert oracle(said) == [short]
    by = weights([Session("s", [], said * 50)])
    assert sum(by) == pytest.approx(0.8, abs=0.1)
    assert by[0] == pytest.approx(0.2, abs=0.1)
    chosen = best(Session("s", [], said), by, [Row("goal", "all tests pass")])
    assert chosen == [long]


def test_what_an_opening_could_keep() -> None:
    """On the sample: nothing without decisions, what was labelled with the best of them."""
    session = session_of(SAMPLE, items(SAMPLE))
    assert session.kept([], Room(shared=False)) == {}
    assert session.kept(oracle(session.said), Room(shared=False)) == {"decision": 1}


def test_on_a_real_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trim takes tokens and keeps words; a handoff takes more and keeps files; the home is as it was before."""
    monkeypatch.delenv("BENCH_PEER", raising=False)
    found = items("tune")
    source = source_of(found[0].session)
    before = dict(os.environ)
    with laid(source) as path:
        ways = {went.way: went.left for went in gone(path, source) if went.left}
    assert dict(os.environ) == before
    assert ways["go on"].tokens >= ways["trim"].tokens >= ways["trim, all it can"].tokens
    rows = [item for item in found if item.session == found[0].session]
    kept = {way: sum(place(item, left) == "in" for item in rows) for way, left in ways.items()}
    assert kept["fork"] == kept["go on"] >= kept["trim"]
    assert kept["rollover --quick"] <= kept["handoff"]
    assert all(place(item, ways["handoff"]) != "out" for item in rows if item.kind == "file")
