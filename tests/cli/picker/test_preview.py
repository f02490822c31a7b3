"""Previews are made aside, the last one wanted alone; what becomes of those that fail."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from resume_hooks.cli.picker import chooser_threads as previews
from resume_hooks.cli.picker.chooser_threads import READING_NOTICE, Previews
from resume_hooks.hooks.session_list.preview import OUTLINE
from resume_hooks.search import listing
from resume_hooks.search.listing import ListedSession
from tests.builders import CWD, SESSION, ConfigHome, conversation, custom_title, write_session
from tests.hooks.session_list.rows import row


@pytest.fixture
def session(config_home: ConfigHome) -> ListedSession:
    """The row of a session of three turns."""
    write_session(
        config_home.project(), SESSION, [*conversation(3), custom_title("Fix the parser")]
    )
    (found,) = listing.list_project(CWD, config_home.where)
    return found


def wait_for(made: Previews, kind: str, one: ListedSession) -> list[str]:
    """Wait for a preview and return it."""
    deadline = time.monotonic() + 20
    while (lines := made.find_lines(kind, one)) == [READING_NOTICE]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return lines


def test_they_are_made_aside_and_kept(config_home: ConfigHome, session: ListedSession) -> None:
    """The first answer is a notice; the result is announced once; a second request reads no disk."""
    told = threading.Event()
    made = Previews(config_home.where, told.set)
    assert made.find_lines(OUTLINE, session) == [READING_NOTICE]
    assert told.wait(20)
    lines = wait_for(made, OUTLINE, session)
    os.remove(session.path)
    assert made.find_lines(OUTLINE, session) == lines


def test_only_the_last_one_wanted_is_made(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A user who scrolls through a list waits for no skipped preview."""
    seen: list[str] = []

    def noted(_kind: str, one: ListedSession, _environ: object) -> list[str]:
        seen.append(one.title)
        return [one.title]

    monkeypatch.setattr(previews, "make_preview", noted)
    made = Previews(config_home.where, lambda: None)
    for number in range(1, 50):
        made.find_lines(OUTLINE, row(number))
    assert wait_for(made, OUTLINE, row(49)) == ["Title 49"]
    assert len(seen) < 5


def test_a_bug_costs_that_preview_alone(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one is made by a new thread."""
    made = Previews(config_home.where, lambda: None)
    monkeypatch.setattr(threading, "excepthook", lambda told: made.record_failure(told.exc_value))
    monkeypatch.setattr(previews, "make_preview", lambda *_: 1 / 0)
    assert wait_for(made, OUTLINE, row(1)) == ["This can't be shown: ZeroDivisionError"]
    monkeypatch.setattr(previews, "make_preview", lambda *_: ["fine"])
    assert wait_for(made, OUTLINE, row(2)) == ["fine"]
