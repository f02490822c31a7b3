"""Tests of the progress bar, which is drawn only on a terminal and only for long work."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from resume_hooks.cli import output
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import SESSION, conversation, write_session


def fake_sys(*, terminal: bool) -> SimpleNamespace:
    """Return a replacement for ``sys`` whose standard error is a terminal if ``terminal`` is true."""
    return SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: terminal))


@pytest.fixture
def recorded_progress_steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record the calls of the progress bar, which is drawn even for small files in this test."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(output, "MIN_BYTES_FOR_PROGRESS_BAR", 1)
    monkeypatch.setattr(output, "PROGRESS_STEP_BYTES", 800)
    monkeypatch.setattr(
        output._ProgressBar, "advance", lambda _self, done, total: told.append((done, total))
    )
    monkeypatch.setattr(output, "sys", fake_sys(terminal=True))
    return told


def test_a_long_scan_draws_its_progress(
    tmp_path: Path, recorded_progress_steps: list[tuple[int, int]]
) -> None:
    """A long scan draws its progress in steps of at least 800 bytes."""
    path = write_session(tmp_path, SESSION, conversation(10))
    with output.show_scan_progress(path, quiet=False) as watching:
        found = scan_transcript(path, observers=watching)
    places = [done for done, _ in recorded_progress_steps]
    assert places[0] == 0
    assert all(later - earlier >= 800 for earlier, later in pairwise(places))
    assert 3 < len(places) < found.line_count
    assert {total for _, total in recorded_progress_steps} == {found.size}


@pytest.mark.parametrize("reason", ["asked for JSON", "no terminal", "a short file", "no file"])
def test_no_progress_is_drawn_for_short_scans_or_outside_terminals(
    reason: str,
    tmp_path: Path,
    recorded_progress_steps: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No progress bar is drawn for JSON output, outside a terminal, or for a short or missing file."""
    path = write_session(tmp_path, SESSION, conversation(10))
    monkeypatch.setattr(output, "sys", fake_sys(terminal=reason != "no terminal"))
    if reason == "a short file":
        monkeypatch.setattr(output, "MIN_BYTES_FOR_PROGRESS_BAR", 1_000_000)
    where = "/none.jsonl" if reason == "no file" else path
    with output.show_scan_progress(where, quiet=reason == "asked for JSON") as watching:
        assert watching == []
    assert recorded_progress_steps == []
