"""Previews: what they say, how far they read, and what becomes of those that fail."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from resume_hooks.cli.picker import preview as previews
from resume_hooks.cli.picker.preview import COST, KINDS, LINEAGE, OUTLINE, READING, Previews, facts, preview
from resume_hooks.search import listing
from resume_hooks.search.listing import ListedSession
from tests.builders import CWD, SESSION, ConfigHome, conversation, custom_title, write_session
from tests.cli.picker.rows import row


@pytest.fixture
def session(config_home: ConfigHome) -> ListedSession:
    """The row of a session of three turns."""
    write_session(config_home.project(), SESSION, [*conversation(3), custom_title("Fix the parser")])
    (found,) = listing.listed(CWD, config_home.where)
    return found


def test_each_kind(config_home: ConfigHome, session: ListedSession) -> None:
    """Turns newest first, generations oldest first, what each way leaves."""
    lines = {kind: preview(kind, session, config_home.where) for kind in KINDS}
    assert lines[OUTLINE][0] == "3 turns, newest first"
    assert [line.split(" · ")[0] for line in lines[OUTLINE][1:]] == ["3", "2", "1"]
    assert lines[LINEAGE][:2] == ["1 session, oldest first", "1. Fix the parser · original"]
    assert lines[COST][0] == "context 1,500 tokens, 1 % of 200,000"
    assert any(line.startswith("handoff") for line in lines[COST])
    assert facts(session)[:2] == ["Fix the parser", f"{SESSION} · original"]


def test_of_a_large_file_the_end_alone(
    config_home: ConfigHome, session: ListedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and tells no numbers, which it can't know."""
    monkeypatch.setattr(previews, "WHOLE", session.size - 1)
    monkeypatch.setattr(previews, "END", session.size // 2)
    lines = preview(OUTLINE, session, config_home.where)
    assert "of it the last" in lines[0]
    assert "prompt 4" in lines[1]
    assert not lines[1][0].isdigit() or lines[1].startswith("01-31")
    assert len(lines) < 4
    monkeypatch.setattr(previews, "END", 10)
    assert preview(OUTLINE, session, config_home.where)[1:] == ["no whole turn there"]


def test_a_session_that_is_gone(config_home: ConfigHome, session: ListedSession) -> None:
    """Why, instead of what was there."""
    os.remove(session.path)
    for kind in KINDS:
        assert "can't be read" in preview(kind, session, config_home.where)[0]


def wait_for(made: Previews, kind: str, one: ListedSession) -> list[str]:
    """The preview, once it is made."""
    deadline = time.monotonic() + 20
    while (lines := made.of(kind, one)) == [READING]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return lines


def test_they_are_made_aside_and_kept(config_home: ConfigHome, session: ListedSession) -> None:
    """The first answer is that it is read; the end of it is told once; the second asks no disk."""
    told = threading.Event()
    made = Previews(config_home.where, told.set)
    assert made.of(OUTLINE, session) == [READING]
    assert told.wait(20)
    lines = wait_for(made, OUTLINE, session)
    os.remove(session.path)
    assert made.of(OUTLINE, session) == lines


def test_only_the_last_one_wanted_is_made(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who runs through a list waits for none of what they passed."""
    seen: list[str] = []

    def noted(_kind: str, one: ListedSession, _environ: object) -> list[str]:
        seen.append(one.title)
        return [one.title]

    monkeypatch.setattr(previews, "preview", noted)
    made = Previews(config_home.where, lambda: None)
    for number in range(1, 50):
        made.of(OUTLINE, row(number))
    assert wait_for(made, OUTLINE, row(49)) == ["Title 49"]
    assert len(seen) < 5


def test_a_bug_costs_that_preview_alone(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is made by a new thread."""
    made = Previews(config_home.where, lambda: None)
    monkeypatch.setattr(threading, "excepthook", lambda told: made.fail(told.exc_value))
    monkeypatch.setattr(previews, "preview", lambda *_: 1 / 0)
    assert wait_for(made, OUTLINE, row(1)) == ["This can't be shown: ZeroDivisionError"]
    monkeypatch.setattr(previews, "preview", lambda *_: ["fine"])
    assert wait_for(made, OUTLINE, row(2)) == ["fine"]
