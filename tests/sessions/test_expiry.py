"""Tests of the time at which the client deletes transcripts, tool outputs and backups."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.sessions.expiry import (
    EXPIRING_SOON_SECONDS,
    DatedSession,
    ExpiringSession,
    ExpiryCalculator,
    SessionExpiry,
    is_archived,
)
from resume_hooks.sessions.session_files import SessionFile, session_file
from tests.archive.retention.sessions_of_age import (
    DAY,
    session_of_age,
    write_file_backups,
    write_tool_output,
)
from tests.builders import ConfigHome


def expiring_parts(
    home: ConfigHome, session: SessionFile, max_seconds: float = EXPIRING_SOON_SECONDS
) -> ExpiringSession | None:
    """Return those files of a session that the client will delete within ``max_seconds`` seconds, or None.

    The client's default period of 30 days is used.
    """
    (ends,) = [
        ends
        for ends in ExpiryCalculator(30, home.where).sessions_in_folder(
            os.path.dirname(session.path)
        )
        if ends.session.path == session.path
    ]
    return ends.expiring_before(time.time() + max_seconds)


@pytest.mark.parametrize(
    ("age_days", "expires_soon"), [(0, False), (22.9, False), (23.1, True), (31, True)]
)
def test_a_transcript_expires_after_its_last_write(
    config_home: ConfigHome, age_days: float, expires_soon: bool
) -> None:
    """A transcript expires 30 days after its last write and is reported seven days before it expires."""
    session = session_of_age(config_home, 1, age_days)
    found = expiring_parts(config_home, session)
    assert (found is not None) is expires_soon
    if found:
        assert found.includes_transcript
        assert (found.deletion_time, found.last_write_time) == (
            session.mtime + 30 * DAY,
            session.mtime,
        )


@pytest.mark.parametrize("file_name", ["out.txt", "folder/out.txt"])
def test_an_old_output_of_a_recent_session_expires(config_home: ConfigHome, file_name: str) -> None:
    """A tool output expires 30 days after its own last write, even if its transcript does not expire.

    The same holds for files in subfolders.
    """
    session = session_of_age(config_home, 1, 0.5)
    path = Path(session.path.removesuffix(".jsonl")) / "tool-results" / file_name
    path.parent.mkdir(parents=True)
    write_tool_output(session, 25, file_name)
    write_tool_output(session, 1, "young.txt")
    found = expiring_parts(config_home, session)
    assert found
    assert not found.includes_transcript
    assert found.last_write_time == path.stat().st_mtime


def test_old_backups_of_a_recent_session_expire(config_home: ConfigHome) -> None:
    """A session's old backup folder expires, even if the session's transcript does not expire."""
    session = session_of_age(config_home, 1, 0.5)
    assert expiring_parts(config_home, session) is None
    write_file_backups(config_home, session, 25)
    found = expiring_parts(config_home, session)
    assert found
    assert not found.includes_transcript


def test_next_expiry_returns_the_first_deletion_after_a_time() -> None:
    """``next_expiry`` returns the first deletion after a given time, or None."""
    ends = SessionExpiry(DatedSession("x", "/x", 100.0, 1), 1_000.0, (50.0, 300.0))
    assert [ends.next_expiry(moment) for moment in (0, 1_051, 1_101, 1_301)] == [
        1_050,
        1_100,
        1_300,
        None,
    ]


def test_entries_that_are_not_sessions_are_skipped(config_home: ConfigHome) -> None:
    """Empty files, links, files not named after a session, and linked or missing folders are skipped."""
    folder = config_home.project()
    session = session_of_age(config_home, 1, 40)
    (folder / "00000002-0000-4000-8000-000000000002.jsonl").touch()
    (folder / "00000003-0000-4000-8000-000000000003.jsonl").symlink_to(session.path)
    (folder / "notes.jsonl").write_text("x")
    endings = ExpiryCalculator(30, config_home.where)
    assert [ends.session.path for ends in endings.sessions_in_folder(str(folder))] == [session.path]
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert (
        endings.sessions_in_folder(str(link))
        == endings.sessions_in_folder(str(folder.parent / "none"))
        == []
    )


def test_a_session_written_after_its_archiving_is_not_archived(config_home: ConfigHome) -> None:
    """A session that was written after it was archived is not treated as archived."""
    session = session_of_age(config_home, 1, 25)
    assert not is_archived(session.session_id, session.mtime, config_home.where)
    archive_session(session, config_home.where)
    assert is_archived(session.session_id, session.mtime, config_home.where)
    os.utime(session.path, (time.time() + 60,) * 2)
    assert not is_archived(session.session_id, session_file(session.path).mtime, config_home.where)
