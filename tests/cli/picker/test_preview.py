"""Tests of the chooser's previews.

A preview is made in a thread, and only for the row that was selected last. Failures are shown.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from resume_hooks.cli.picker import chooser_threads as previews
from resume_hooks.cli.picker.chooser_threads import PREVIEW_LOADING_NOTICE, PreviewReader
from resume_hooks.hooks.session_list.preview import OUTLINE
from resume_hooks.search import listing
from resume_hooks.search.listing import ListedSession
from tests.builders import CWD, SESSION, ConfigHome, conversation, custom_title, write_session
from tests.hooks.session_list.rows import make_listed_session


@pytest.fixture
def listed_session(config_home: ConfigHome) -> ListedSession:
    """Return the row of a session with three turns."""
    write_session(
        config_home.project(), SESSION, [*conversation(3), custom_title("Fix the parser")]
    )
    (found,) = listing.list_project(CWD, config_home.where)
    return found


def wait_for_preview(reader: PreviewReader, kind: str, session: ListedSession) -> list[str]:
    """Wait for a preview and return its lines."""
    deadline = time.monotonic() + 20
    while (lines := reader.find_preview_lines(kind, session)) == [PREVIEW_LOADING_NOTICE]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return lines


def test_a_preview_is_made_in_a_thread_and_cached(
    config_home: ConfigHome, listed_session: ListedSession
) -> None:
    """The first request for a preview returns a notice, and a later request returns the preview's lines.

    The session's file is read only once.
    """
    told = threading.Event()
    made = PreviewReader(config_home.where, told.set)
    assert made.find_preview_lines(OUTLINE, listed_session) == [PREVIEW_LOADING_NOTICE]
    assert told.wait(20)
    lines = wait_for_preview(made, OUTLINE, listed_session)
    os.remove(listed_session.path)
    assert made.find_preview_lines(OUTLINE, listed_session) == lines


def test_only_the_latest_preview_is_made(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows that the user scrolls past get no preview."""
    seen: list[str] = []

    def record_title(_kind: str, row: ListedSession, _environ: object) -> list[str]:
        seen.append(row.title)
        return [row.title]

    monkeypatch.setattr(previews, "make_preview", record_title)
    made = PreviewReader(config_home.where, lambda: None)
    for number in range(1, 50):
        made.find_preview_lines(OUTLINE, make_listed_session(number))
    assert wait_for_preview(made, OUTLINE, make_listed_session(49)) == ["Title 49"]
    assert len(seen) < 5


def test_an_exception_affects_only_one_preview(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a preview fails, it shows the error, and a new thread makes the next preview."""
    made = PreviewReader(config_home.where, lambda: None)
    monkeypatch.setattr(
        threading, "excepthook", lambda told: made.record_thread_failure(told.exc_value)
    )
    monkeypatch.setattr(previews, "make_preview", lambda *_: 1 / 0)
    assert wait_for_preview(made, OUTLINE, make_listed_session(1)) == [
        "This can't be shown: ZeroDivisionError"
    ]
    monkeypatch.setattr(previews, "make_preview", lambda *_: ["fine"])
    assert wait_for_preview(made, OUTLINE, make_listed_session(2)) == ["fine"]
