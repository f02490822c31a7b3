"""The measure of the ways on: what counts as kept, and that nothing is left behind in anybody's home."""

from __future__ import annotations

import os

import pytest

from benchmarks.recovery.judge import Row
from benchmarks.recovery.truth import Item, items
from benchmarks.strategies.measure import COMPACT, Left, Sums, add, is_near, measured, row, survives

FILE = Item("s", "file", 7, "src/pool.py", in_summary=None)
DECISION = Item("s", "decision", 9, "take the lock   first", in_summary=None)


def test_word_for_word_or_by_a_line_of_the_digest() -> None:
    """White space aside; a digest's files by their section."""
    assert survives(DECISION, Left(1, "we take the lock first, then", frozenset()))
    assert not survives(DECISION, Left(1, "the lock is taken first", frozenset()))
    digest = [Row("files changed (1)", "src/pool.py")]
    assert survives(FILE, Left(1, "", frozenset(), digest))
    assert not survives(FILE, Left(1, "", frozenset()))


def test_one_read_away() -> None:
    """A placeholder names the very record, or the full digest has it."""
    assert is_near(FILE, Left(1, "", frozenset({7})))
    assert not is_near(FILE, Left(1, "", frozenset({8})))
    assert is_near(FILE, Left(1, "", frozenset(), (), [Row("files changed (1)", "src/pool.py")]))


def test_a_row_of_the_table() -> None:
    """Medians, shares in context and with one read; of a compaction nobody tells."""
    sums = Sums()
    add(sums, Left(50, "take the lock first", frozenset({7})), [FILE, DECISION], (0.5, 60.0, 0.5))
    assert (
        row("trim", sums) == "| trim | 1 | 50 % | 60 | 0.50 | 100 / 100 % | 0 / 0 % | 0 / 0 % | 0 / 0 % | 0 / 100 % |"
    )
    assert row(COMPACT, sums).count("below") == 5


def test_on_a_real_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trim takes tokens and keeps words; a handoff takes more and keeps files; the home is as it was before."""
    monkeypatch.delenv("BENCH_PEER", raising=False)
    found = items("tune")
    session = found[0].session
    before = dict(os.environ)
    ways = {way: left for way, left, *_ in measured(session)}
    assert dict(os.environ) == before
    assert ways["go on"].tokens >= ways["trim"].tokens >= ways["trim, all it can"].tokens
    rows = [item for item in found if item.session == session]
    kept = {way: sum(survives(item, left) for item in rows) for way, left in ways.items()}
    assert kept["fork"] == kept["go on"] >= kept["trim"]
    assert kept["rollover --quick"] <= kept["handoff"]
    assert all(is_near(item, ways["handoff"]) for item in rows if item.kind == "file")
