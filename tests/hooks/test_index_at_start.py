"""Tests of the background hook that updates the search index."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

from resume_hooks.clock import DAY, HOUR
from resume_hooks.hooks import background, hook_state
from resume_hooks.search.index.connect import index_status
from resume_hooks.search.index.database import index_file_path
from resume_hooks.search.result import SearchResult
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.builders import ConfigHome
from tests.search.asking import write_talk


@pytest.fixture(autouse=True)
def simulate_interactive_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate an interactive client that is still running."""
    monkeypatch.delenv("CLAUDE_CODE_ENTRYPOINT", raising=False)
    monkeypatch.setenv("CLAUDE_PID", str(os.getpid()))


def search_without_update(home: ConfigHome) -> SearchResult:
    """Search for "linter" without updating the index first, and return the result."""
    return search_index(["linter"], Scope(), home.where, max_seconds=-1)


def read_stamp() -> dict[str, object]:
    """Return the stamp that tells the next start when to update the index again."""
    return hook_state.read_note("indexed.json")


def test_a_search_reports_unindexed_files(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search reports that files are not indexed yet; after the hook's update, it finds them.

    The hook also stores the time of the next update.
    """
    monkeypatch.setattr("resume_hooks.search.index.connect.index_in_background", lambda *_: None)
    for number in range(1, 6):
        write_talk(config_home, number, f"tune the linter, {number}")
    first = search_without_update(config_home)
    assert len(first.hits) < 5
    assert any("Not indexed yet" in note for note in first.notes)
    assert index_status(config_home.where).outdated_file_count
    begun = int(time.time())
    background.update_index()
    done = search_without_update(config_home)
    assert (len(done.hits), done.notes) == (5, [])
    assert not index_status(config_home.where).outdated_file_count
    made = read_stamp()["made"]
    assert isinstance(made, int)
    assert begun <= made <= time.time()
    assert (read_stamp()["look"], read_stamp()["wait"]) == (made + DAY, False)
    assert Path(hook_state.note_path("indexed.json")).stat().st_mtime == made


def test_the_hook_does_not_wait_for_another_index_update(config_home: ConfigHome) -> None:
    """If another process is updating the index, the hook ends immediately and does not store a time.

    Without a stored time, the next start tries again.
    """
    write_talk(config_home, 1, "tune the linter")
    background.update_index()
    assert hook_state.consume_note("indexed.json")
    write_talk(config_home, 2, "the linter again")
    with open(f"{index_file_path(config_home.where)}.lock", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        begun = time.monotonic()
        background.update_index()
        assert time.monotonic() - begun < 5
    assert read_stamp() == {}
    assert index_status(config_home.where).outdated_file_count == 1


def test_the_index_update_stops_after_its_client_has_ended(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its client has ended, the hook stops after one file, and the next hook indexes the other files."""
    for number in range(1, 6):
        write_talk(config_home, number, f"tune the linter, {number}")
    monkeypatch.setenv("CLAUDE_PID", str(2**22 + 1))
    background.update_index()
    assert (read_stamp(), index_status(config_home.where).outdated_file_count) == ({}, 4)
    monkeypatch.setenv("CLAUDE_PID", str(os.getpid()))
    background.update_index()
    assert index_status(config_home.where).outdated_file_count == 0


def test_without_sessions_no_index_is_created(config_home: ConfigHome) -> None:
    """Without sessions, the hook creates no index, but it stores the time of the next update."""
    background.update_index()
    assert not os.path.exists(index_file_path(config_home.where))
    assert read_stamp()


def test_a_headless_run_does_not_update_the_index(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a headless run, the hook creates no index and stores no time for the next update."""
    write_talk(config_home, 1, "tune the linter")
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    background.update_index()
    assert not os.path.exists(index_file_path(config_home.where))
    assert not read_stamp()


def test_an_index_of_a_newer_version_is_left_alone(config_home: ConfigHome) -> None:
    """If a newer version made the index, the hook does not update it and tries again after an hour."""
    write_talk(config_home, 1, "tune the linter")
    background.update_index()
    with sqlite3.connect(index_file_path(config_home.where)) as db:
        db.execute("UPDATE about SET version = 99")
    background.update_index()
    made = read_stamp()["made"]
    assert isinstance(made, int)
    assert (read_stamp()["look"], read_stamp()["wait"]) == (made + HOUR, True)


def test_the_hook_updates_the_index(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook updates the index even if archiving fails."""
    path = write_talk(config_home, 1, "tune the linter")
    event = config_home.root / "event"
    event.write_text(
        json.dumps({"session_id": path.stem, "transcript_path": str(path), "source": "startup"})
    )
    monkeypatch.setattr(
        background, "archive_in_background", lambda _event: (_ for _ in ()).throw(OSError)
    )
    with event.open(encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        # Keep the hook from lowering the priority of the test process.
        monkeypatch.setattr(os, "nice", lambda _: 0)
        background.main()
    assert index_status(config_home.where).outdated_file_count == 0
    assert read_stamp()
