"""The bar over long work: drawn for somebody who waits, and for nobody else."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from resume_hooks.cli import output
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import SESSION, conversation, write_session


def screen(*, terminal: bool) -> SimpleNamespace:
    """The module ``sys`` with a terminal as its standard error, or a file."""
    return SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: terminal))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record the calls of the progress bar; every file is long."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(output, "MIN_PROGRESS_BYTES", 1)
    monkeypatch.setattr(output, "BAR_STEP_BYTES", 800)
    monkeypatch.setattr(
        output._ProgressBar, "advance", lambda _self, done, total: told.append((done, total))
    )
    monkeypatch.setattr(output, "sys", screen(terminal=True))
    return told


def test_a_long_scan_on_a_terminal(tmp_path: Path, drawn: list[tuple[int, int]]) -> None:
    """It shows its progress now and then, always for the same file."""
    path = write_session(tmp_path, SESSION, conversation(10))
    with output.scan_progress(path, quiet=False) as watching:
        found = scan_transcript(path, observers=watching)
    places = [done for done, _ in drawn]
    assert places[0] == 0
    assert all(later - earlier >= 800 for earlier, later in pairwise(places))
    assert 3 < len(places) < found.line_count
    assert {total for _, total in drawn} == {found.size}


@pytest.mark.parametrize("why", ["asked for JSON", "no terminal", "a short file", "no file"])
def test_nobody_waits(
    why: str, tmp_path: Path, drawn: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No observer slows down the scan."""
    path = write_session(tmp_path, SESSION, conversation(10))
    monkeypatch.setattr(output, "sys", screen(terminal=why != "no terminal"))
    if why == "a short file":
        monkeypatch.setattr(output, "MIN_PROGRESS_BYTES", 1_000_000)
    where = "/none.jsonl" if why == "no file" else path
    with output.scan_progress(where, quiet=why == "asked for JSON") as watching:
        assert watching == []
    assert drawn == []
