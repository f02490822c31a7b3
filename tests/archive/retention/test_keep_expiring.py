"""Tests that each start of a session archives some of the sessions that expire soon.

The time for this is limited.
"""

from __future__ import annotations

import json
import os
import time

import pytest

from resume_hooks.archive.retention import archive_sessions, expiring
from resume_hooks.archive.retention.expiring import ArchiveBatch, archive_sessions_before_expiry
from resume_hooks.archive.vault import permission
from resume_hooks.sessions.archived.manifest import archived_ids, find_archived
from tests.archive.retention.sessions_of_age import (
    DAY,
    always_over_time_limit,
    never_over_time_limit,
    session_of_age,
    write_file_backups,
    write_tool_output,
)
from tests.builders import CWD, ConfigHome, session_id


def archive_one_batch(
    home: ConfigHome, *, is_user_waiting: bool = True, is_time_over: bool = False, cwd: str = CWD
) -> ArchiveBatch:
    """Archive one batch of the expiring sessions in a project."""
    return archive_sessions_before_expiry(
        home.project().name,
        cwd,
        home.where,
        always_over_time_limit if is_time_over else never_over_time_limit,
        is_user_waiting=is_user_waiting,
    )


def test_expiring_sessions_are_archived_once(config_home: ConfigHome) -> None:
    """A batch archives old sessions, and young sessions with old outputs.

    The next batch archives nothing. The next check is planned for the moment when another session
    becomes due.
    """
    session_of_age(config_home, 1, 25)
    session_of_age(config_home, 2, 22.5)
    young = session_of_age(config_home, 3, 0.1)
    write_tool_output(young, 25)
    session_of_age(config_home, 4, 0.1)
    found = archive_one_batch(config_home)
    assert (found.archived_count, found.failed_count, found.remaining_count) == (2, 0, 0)
    assert archived_ids(config_home.where) == [session_id(1), session_id(3)]
    assert found.next_check_time == pytest.approx(time.time() + DAY / 2, abs=60)
    assert archive_one_batch(config_home)[:3] == (0, 0, 0)


def test_a_batch_archives_at_least_the_most_urgent_session(config_home: ConfigHome) -> None:
    """Even with no time left, a batch archives the session that expires first."""
    for number, days in ((1, 24), (2, 29), (3, 26)):
        session_of_age(config_home, number, days)
    for done in ([2], [2, 3], [1, 2, 3]):
        found = archive_one_batch(config_home, is_time_over=True)
        assert archived_ids(config_home.where) == [session_id(number) for number in done]
        assert found.remaining_count == 3 - len(done)
        assert (found.next_check_time <= time.time()) is bool(found.remaining_count)


def test_a_continued_session_is_archived_again(config_home: ConfigHome) -> None:
    """A session that continued after it was archived is archived again before it expires."""
    session = session_of_age(config_home, 1, 25)
    archive_one_batch(config_home)
    kept = find_archived(session.session_id, config_home.where)
    assert kept
    os.utime(os.path.join(kept.folder, "manifest.json"), (time.time() - 26 * DAY,) * 2)
    assert archive_one_batch(config_home)[:3] == (1, 0, 0)


def test_other_projects_are_archived_if_no_user_waits(config_home: ConfigHome) -> None:
    """While no user waits, sessions of other projects that expire within a day are archived."""
    session_of_age(config_home, 1, 31, cwd="/other")
    session_of_age(config_home, 2, 25, cwd="/other")
    assert archive_one_batch(config_home).archived_count == 0
    assert archive_one_batch(config_home, is_user_waiting=False).archived_count == 1
    assert archived_ids(config_home.where) == [session_id(1)]


@pytest.mark.parametrize("days", [0, -1, "7"])
def test_nothing_is_archived_if_the_client_never_deletes(
    config_home: ConfigHome, days: object
) -> None:
    """If the client never deletes sessions, a batch archives none and plans the next check in a day."""
    (config_home.config / "settings.json").write_text(json.dumps({"cleanupPeriodDays": days}))
    session_of_age(config_home, 1, 400)
    found = archive_one_batch(config_home)
    assert found[:3] == (0, 0, 0)
    assert found.next_check_time == pytest.approx(time.time() + DAY, abs=60)


def test_every_session_is_due_if_the_retention_period_is_short(config_home: ConfigHome) -> None:
    """If the project's settings set a retention period below seven days, every session is archived."""
    folder = config_home.root / "work"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text('{"cleanupPeriodDays": 3}')
    session_of_age(config_home, 1, 0.1)
    assert archive_one_batch(config_home).archived_count == 0
    assert archive_one_batch(config_home, cwd=str(folder)).archived_count == 1


def test_nothing_is_archived_if_the_vault_is_off(config_home: ConfigHome) -> None:
    """With the vault off, a batch archives no session."""
    session_of_age(config_home, 1, 25)
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    assert archive_one_batch(config_home, is_user_waiting=False)[:3] == (0, 0, 0)
    assert archived_ids(config_home.where) == []


@pytest.mark.parametrize("exceeded_limit", ["files", "bytes"])
def test_large_sessions_are_skipped_while_a_user_waits(
    config_home: ConfigHome, exceeded_limit: str
) -> None:
    """While a user waits, a session with many files or bytes is skipped, and smaller ones are archived."""
    session = session_of_age(config_home, 1, 29)
    folder = write_file_backups(
        config_home,
        session,
        29,
        count=archive_sessions.MAX_QUICK_SESSION_FILES + 1 if exceeded_limit == "files" else 1,
    )
    if exceeded_limit == "bytes":
        (folder / "large@v1").write_bytes(bytes(permission.MAX_QUICK_ARCHIVE_BYTES))
        os.utime(folder, (time.time() - 29 * DAY,) * 2)
    session_of_age(config_home, 2, 25)
    found = archive_one_batch(config_home)
    assert (found.archived_count, found.remaining_count) == (1, 1)
    assert archive_one_batch(config_home, is_user_waiting=False).archived_count == 1


def test_a_batch_tries_all_sessions_after_a_failed_copy(config_home: ConfigHome) -> None:
    """If a copy fails, the batch tries the other sessions and raises no error.

    All failed sessions are tried again an hour later.
    """
    session_of_age(config_home, 1, 25)
    session_of_age(config_home, 2, 25)
    state = config_home.config / "resume-hooks"
    state.mkdir(mode=0o700)
    (state / "vault").write_text("in the way")
    found = archive_one_batch(config_home)
    assert (found.archived_count, found.failed_count, found.remaining_count) == (0, 2, 0)
    assert found.next_check_time == pytest.approx(
        time.time() + expiring.RETRY_DELAY_SECONDS, abs=60
    )
