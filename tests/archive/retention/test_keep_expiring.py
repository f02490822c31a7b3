"""Slices of keeping what goes soon: what is kept, in which order, within which time, and when the next look is due."""

from __future__ import annotations

import json
import os
import time

import pytest

from resume_hooks.archive.retention import archive_sessions, expiring
from resume_hooks.archive.retention.expiring import ArchiveBatch, archive_expiring
from resume_hooks.archive.vault import permission
from resume_hooks.sessions.archived.manifest import archived_ids, find_archived
from tests.archive.retention.aged import DAY, aged, at_once, never, with_backups, with_output
from tests.builders import CWD, ConfigHome, session_id


def sliced(
    home: ConfigHome, *, waiting: bool = True, over: bool = False, cwd: str = CWD
) -> ArchiveBatch:
    """One slice for the project of CWD."""
    return archive_expiring(
        home.project().name, cwd, home.where, at_once if over else never, is_user_waiting=waiting
    )


def test_expiring_sessions_are_archived_once(config_home: ConfigHome) -> None:
    """Old sessions and old outputs of young ones; then nothing.

    The next look is when the next is due.
    """
    aged(config_home, 1, 25)
    aged(config_home, 2, 22.5)
    young = aged(config_home, 3, 0.1)
    with_output(young, 25)
    aged(config_home, 4, 0.1)
    found = sliced(config_home)
    assert (found.archived_count, found.failed_count, found.remaining_count) == (2, 0, 0)
    assert archived_ids(config_home.where) == [session_id(1), session_id(3)]
    assert found.next_check == pytest.approx(time.time() + DAY / 2, abs=60)
    assert sliced(config_home)[:3] == (0, 0, 0)


def test_the_most_urgent_is_first_and_one_always_does(config_home: ConfigHome) -> None:
    """One is archived even without time, so that none is postponed for ever."""
    for number, days in ((1, 24), (2, 29), (3, 26)):
        aged(config_home, number, days)
    for done in ([2], [2, 3], [1, 2, 3]):
        found = sliced(config_home, over=True)
        assert archived_ids(config_home.where) == [session_id(number) for number in done]
        assert found.remaining_count == 3 - len(done)
        assert (found.next_check <= time.time()) is bool(found.remaining_count)


def test_a_continued_session_is_archived_again(config_home: ConfigHome) -> None:
    """It was archived, continued, and expires again."""
    session = aged(config_home, 1, 25)
    sliced(config_home)
    kept = find_archived(session.session_id, config_home.where)
    assert kept
    os.utime(os.path.join(kept.folder, "manifest.json"), (time.time() - 26 * DAY,) * 2)
    assert sliced(config_home)[:3] == (1, 0, 0)


def test_other_projects_are_kept_when_nobody_waits(config_home: ConfigHome) -> None:
    """What this client's own sweep would take from them within a day.

    What has days left is for their own starts.
    """
    aged(config_home, 1, 31, cwd="/other")
    aged(config_home, 2, 25, cwd="/other")
    assert sliced(config_home).archived_count == 0
    assert sliced(config_home, waiting=False).archived_count == 1
    assert archived_ids(config_home.where) == [session_id(1)]


@pytest.mark.parametrize("days", [0, -1, "7"])
def test_a_client_that_never_deletes(config_home: ConfigHome, days: object) -> None:
    """Nothing is due, and the next check is after a day."""
    (config_home.config / "settings.json").write_text(json.dumps({"cleanupPeriodDays": days}))
    aged(config_home, 1, 400)
    found = sliced(config_home)
    assert found[:3] == (0, 0, 0)
    assert found.next_check == pytest.approx(time.time() + DAY, abs=60)


def test_a_short_period(config_home: ConfigHome) -> None:
    """With a period below seven days every session is due; the project's own settings decide."""
    folder = config_home.root / "work"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text('{"cleanupPeriodDays": 3}')
    aged(config_home, 1, 0.1)
    assert sliced(config_home).archived_count == 0
    assert sliced(config_home, cwd=str(folder)).archived_count == 1


def test_nothing_where_the_vault_is_off(config_home: ConfigHome) -> None:
    """The sessions are not checked again."""
    aged(config_home, 1, 25)
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    assert sliced(config_home, waiting=False)[:3] == (0, 0, 0)
    assert archived_ids(config_home.where) == []


@pytest.mark.parametrize("what", ["files", "bytes"])
def test_large_sessions_are_skipped_while_a_user_waits(config_home: ConfigHome, what: str) -> None:
    """This applies to many files or bytes; other sessions are archived meanwhile."""
    session = aged(config_home, 1, 29)
    folder = with_backups(
        config_home,
        session,
        29,
        count=archive_sessions.MAX_QUICK_FILES + 1 if what == "files" else 1,
    )
    if what == "bytes":
        (folder / "large@v1").write_bytes(bytes(permission.MAX_QUICK_ARCHIVE_BYTES))
        os.utime(folder, (time.time() - 29 * DAY,) * 2)
    aged(config_home, 2, 25)
    found = sliced(config_home)
    assert (found.archived_count, found.remaining_count) == (1, 1)
    assert sliced(config_home, waiting=False).archived_count == 1


def test_a_vault_that_refuses(config_home: ConfigHome) -> None:
    """No error is raised; the other sessions are tried, and all again in an hour."""
    aged(config_home, 1, 25)
    aged(config_home, 2, 25)
    state = config_home.config / "resume-hooks"
    state.mkdir(mode=0o700)
    (state / "vault").write_text("in the way")
    found = sliced(config_home)
    assert (found.archived_count, found.failed_count, found.remaining_count) == (0, 2, 0)
    assert found.next_check == pytest.approx(time.time() + expiring.RETRY_SECONDS, abs=60)
