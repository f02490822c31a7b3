"""Tests that the system clock may jump by a minute or by years between any two steps.

No jump causes an error or an endless wait.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import clock
from resume_hooks.archive.vault import commit, trash
from resume_hooks.hooks import confirmations, hook_state, pending_handoff, prompt, session
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.search import listing
from resume_hooks.search.index.connect import open_index
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.open_sessions import describe_open_session
from resume_hooks.storage import backups
from tests.builders import CWD, SESSION, ConfigHome, conversation, session_id, write_session
from tests.fuzz.targets.hooks import run_hook_main

YEAR_SECONDS = 365 * 86_400
SECONDS_BY_JUMP = {
    "a minute back": -60,
    "a year back": -YEAR_SECONDS,
    "a day ahead": 86_401,
    "a decade ahead": 10 * YEAR_SECONDS,
}
NEXT_SESSION_ID = session_id(2)


class ShiftedClock:
    """Replaces the clock with one that is ``ahead`` seconds ahead of the real clock."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        true = time.time
        patch.setattr(time, "time", lambda: true() + self.ahead)
        patch.setattr(
            clock,
            "now",
            lambda: clock.format_timestamp(datetime.fromtimestamp(true() + self.ahead, UTC)),
        )


@pytest.fixture
def shifted_clock(monkeypatch: pytest.MonkeyPatch) -> ShiftedClock:
    """Replace the engine's clock with one that the test can move ahead, and return the new clock."""
    return ShiftedClock(monkeypatch)


@pytest.fixture
def session_in_client(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a session for tests of hooks, and return its path."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    monkeypatch.setenv("CLAUDE_PID", "4711")
    return str(write_session(config_home.project(), SESSION, conversation(6)))


def answer_of_hook(
    main: Any, session_in_client: str, session_id: str = SESSION, **event: str
) -> dict[str, Any]:
    """Run a hook and return its answer, or ``{}`` if it prints nothing."""
    out = run_hook_main(
        main,
        json.dumps(
            {"session_id": session_id, "transcript_path": session_in_client, "cwd": CWD, **event}
        ).encode(),
    )
    return dict(json.loads(out)) if out else {}


@pytest.mark.parametrize("jump_seconds", SECONDS_BY_JUMP.values(), ids=SECONDS_BY_JUMP)
def test_sessions_before_and_after_a_clock_jump_are_not_linked(
    config_home: ConfigHome,
    shifted_clock: ShiftedClock,
    session_in_client: str,
    jump_seconds: float,
) -> None:
    """If the clock jumps too far between one session's end and the next one's start, no link is recorded.

    The note that was written at the end is deleted, so the next two sessions are linked again.
    """
    answer_of_hook(session.main, session_in_client, hook_event_name="SessionEnd", reason="clear")
    shifted_clock.ahead = jump_seconds
    answer_of_hook(
        session.main,
        session_in_client,
        NEXT_SESSION_ID,
        hook_event_name="SessionStart",
        source="clear",
    )
    linked = [(link.parent_id, link.child_id) for link in read_links(config_home.where)]
    assert (
        linked
        == (
            [(SESSION, NEXT_SESSION_ID)]
            if abs(jump_seconds) <= session.MAX_END_TO_START_SECONDS - 5
            else []
        )
        or abs(jump_seconds) == 60
    )
    assert not hook_state.list_note_names("clear-")
    answer_of_hook(session.main, session_in_client, hook_event_name="SessionEnd", reason="clear")
    answer_of_hook(
        session.main,
        session_in_client,
        session_id(3),
        hook_event_name="SessionStart",
        source="clear",
    )
    assert read_links(config_home.where)[-1].child_id == session_id(3)


@pytest.mark.parametrize("jump_seconds", SECONDS_BY_JUMP.values(), ids=SECONDS_BY_JUMP)
def test_a_clock_jump_closes_an_open_question(
    config_home: ConfigHome,
    shifted_clock: ShiftedClock,
    session_in_client: str,
    jump_seconds: float,
) -> None:
    """If the clock jumps after a question, the question is no longer open but can be asked again."""
    confirmations.store_question(StoredQuestion(SESSION, "", time.time()))
    shifted_clock.ahead = jump_seconds
    found = confirmations.find_question(SESSION)
    assert found is not None
    assert not found.is_open
    confirmations.store_question(StoredQuestion(SESSION, "", time.time()))
    again = confirmations.find_question(SESSION)
    assert again is not None
    assert again.is_open


@pytest.mark.parametrize("jump_seconds", SECONDS_BY_JUMP.values(), ids=SECONDS_BY_JUMP)
def test_a_handoff_survives_a_clock_jump(
    config_home: ConfigHome,
    shifted_clock: ShiftedClock,
    session_in_client: str,
    jump_seconds: float,
) -> None:
    """If the clock jumps after a handoff, its child still exists, and a second handoff works.

    The next session mentions the handoff only if it is recent according to the changed clock.
    """
    said = answer_of_hook(prompt.main, session_in_client, prompt=">handoff go on")["reason"]
    assert "handed off" in said
    shifted_clock.ahead = jump_seconds
    started = answer_of_hook(
        session.main,
        session_in_client,
        NEXT_SESSION_ID,
        hook_event_name="SessionStart",
        source="startup",
    )
    assert (
        "waits here" not in str(started)
        or 0 <= jump_seconds <= pending_handoff.ANNOUNCEMENT_PERIOD_SECONDS
    )
    again = answer_of_hook(prompt.main, session_in_client, prompt=">handoff go on")["reason"]
    assert "handed off" in again
    (link, *_) = read_links(config_home.where)
    assert (config_home.project() / f"{link.child_id}.jsonl").is_file()


@pytest.mark.parametrize("jump_seconds", SECONDS_BY_JUMP.values(), ids=SECONDS_BY_JUMP)
def test_a_clock_jump_releases_a_claimed_note(
    config_home: ConfigHome, shifted_clock: ShiftedClock, jump_seconds: float
) -> None:
    """If the clock jumps after a hook has claimed a note, the note can be claimed again."""
    hook_state.write_note("x", {})
    assert hook_state.claim_note("x")
    assert not hook_state.claim_note("x")
    shifted_clock.ahead = jump_seconds
    assert hook_state.claim_note("x")


@pytest.mark.parametrize("jump_seconds", SECONDS_BY_JUMP.values(), ids=SECONDS_BY_JUMP)
def test_a_clock_jump_does_not_break_lists_and_search(
    config_home: ConfigHome,
    shifted_clock: ShiftedClock,
    session_in_client: str,
    jump_seconds: float,
) -> None:
    """If the clock jumps, a list shows no negative numbers of days, and the index is complete."""
    os.utime(session_in_client, (time.time() - 3_600,) * 2)
    shifted_clock.ahead = jump_seconds
    (row,) = listing.list_project(CWD, config_home.where)
    assert row.days_to_expiry is None or row.days_to_expiry >= 0
    assert clock.parse_timestamp(row.end_time) is not None
    assert (
        "clock" in describe_open_session(session_file(session_in_client), config_home.where)
    ) == (jump_seconds == -YEAR_SECONDS), "unknown counts as open"
    with open_index(config_home.where) as index:
        assert index.postings.record_count == 12
    shifted_clock.ahead = 0
    with open_index(config_home.where) as index:
        assert index.update_outcome.remaining_file_count == 0


def test_a_clock_jump_does_not_mix_entries_of_trash_and_backups(
    config_home: ConfigHome, shifted_clock: ShiftedClock, session_in_client: str
) -> None:
    """If the clock jumps, each entry in the trash and each backup still gets a separate folder."""
    folders = []
    for ahead in (0, -YEAR_SECONDS, 10 * YEAR_SECONDS):
        shifted_clock.ahead = ahead
        with commit.lock_trash(config_home.where):
            folders.append(trash.create_trash_folder(SESSION, clock.now(), config_home.where))
        with backups.open_and_copy_for_rewrite(
            SESSION, session_in_client, config_home.where, keep_copy=True
        ) as (
            _,
            kept,
        ):
            assert Path(kept).read_bytes() == Path(session_in_client).read_bytes()
        assert backups.backup_time(kept)[:4] == clock.now()[:4]
    assert len(set(folders)) == 3


@pytest.mark.parametrize("jump_seconds", SECONDS_BY_JUMP.values(), ids=SECONDS_BY_JUMP)
def test_a_clock_jump_does_not_block_an_install(
    tmp_path: Path, jump_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the clock jumps after a failed installation, the next installation does not have to wait."""
    import sys

    from tests.needs import REPO

    monkeypatch.setattr(sys, "path", [str(REPO / "hooks"), *sys.path])
    install_attempt, install_venv = map(
        importlib.import_module, ("install_attempt", "install_venv")
    )
    now, locks = time.time(), install_venv.list_needed_lock_files(has_team=False)
    state = {
        "lock": install_venv.digest_lock_files(locks),
        "started": now,
        "retry_after": now + 3_600,
        "state": "failed",
    }
    (tmp_path / "install.json").write_text(json.dumps(state))
    assert not install_attempt.is_installation_due(tmp_path, locks, now + 1, is_requested=False)
    assert install_attempt.is_installation_due(
        tmp_path, locks, now + jump_seconds, is_requested=False
    )
