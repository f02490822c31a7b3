"""Tests that the vault removes old copies by size or age, but no ancestor of an existing session."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from resume_hooks import settings
from resume_hooks.archive.vault import delete, permission, policy
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.cli.schema.sessions import ArchivedSessionRow
from resume_hooks.cli.show_archived import archived_session_text
from resume_hooks.errors import UsageError, VaultOff
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import vault_folder
from resume_hooks.sessions.archived.manifest import find_archived, list_archived
from resume_hooks.storage import stored_settings
from resume_hooks.system import claude_settings
from tests.archive.vault.full_sessions import session_with_every_file
from tests.builders import ConfigHome, conversation, session_id, write_session

DAY = 24 * 60 * 60


def archive_old_session(
    home: ConfigHome, number: int, days: int, *, parent_number: int = 0, keep_file: bool = False
) -> str:
    """Archive a session that was written ``days`` days ago, and return its id.

    The client's file is deleted unless ``keep_file`` is true.
    """
    own = session_id(number)
    rows = [*conversation(3, session_id=own)]
    if parent_number:
        file = str(home.project() / f"{session_id(parent_number)}.jsonl")
        said = {
            "parent_session_file": file,
            "parent_session_id": session_id(parent_number),
            "continuation_type": "handoff",
        }
        rows.insert(0, {"continue_metadata": said})
    path = write_session(home.project(), own, rows, mtime=time.time() - days * DAY)
    archive_session(locate.session_file(path), home.where)
    if not keep_file:
        os.unlink(path)
    return own


def archived_ids(home: ConfigHome) -> set[str]:
    """Return the ids of the archived sessions."""
    return {each.session_id for each in list_archived(home.where)}


@pytest.fixture
def remove_without_delay(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let removals begin immediately, without a daily limit."""
    monkeypatch.setattr(policy, "MIN_SECONDS_BETWEEN_POLICY_RUNS", 0)
    monkeypatch.setattr(policy, "DAILY_REMOVAL_DIVISOR", 1)
    note = Path(
        make_private_folder(vault_folder(config_home.where), config_home.where),
        policy.POLICY_STATE_FILE,
    )
    note.write_text(json.dumps({"version": 1, "announced": int(time.time())}))


@pytest.mark.parametrize("variable", ["RESUME_HOOKS_VAULT", "CLAUDE_PLUGIN_OPTION_VAULT"])
def test_an_environment_variable_removes_no_copies(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """An environment variable removes no copies: it may raise the limit but not lower it.

    A repository can set such a variable.
    """
    monkeypatch.setattr(policy, "MIN_SECONDS_BETWEEN_POLICY_RUNS", 0)
    one = archive_old_session(config_home, 1, 4000)
    hostile = Where({**config_home.environ, variable: "1"})
    for _ in range(3):
        assert policy.apply_policy(hostile) == []
        policy.take_pending_removal_announcement(hostile)
    assert archived_ids(config_home) == {one}
    stored_settings.store_setting("vault", "1", config_home.where)
    assert (
        policy.find_sessions_due_for_removal(Where({**config_home.environ, variable: "40G"})) == []
    )
    assert (
        policy.find_sessions_due_for_removal(Where({**config_home.environ, variable: "off"})) == []
    )
    assert len(policy.find_sessions_due_for_removal(hostile)) == 1


def test_a_smaller_limit_is_announced_and_removes_a_tenth_a_day(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user lowers the limit, nothing is removed before the user was told.

    From the next day on, a tenth of the sessions is removed each day.
    """
    for number in range(1, 21):
        archive_old_session(config_home, number, 100 - number)
    stored_settings.store_setting("vault", "1", config_home.where)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    for _ in range(3):
        assert policy.apply_policy(config_home.where) == []
        now += 3 * DAY  # Nothing was announced yet, so the time does not matter.
    said = policy.take_pending_removal_announcement(config_home.where)
    assert "the oldest 20 sessions are removed, a tenth of them each day" in said
    assert "config vault 40G" in said
    assert policy.take_pending_removal_announcement(config_home.where) == ""
    counts = []
    for _ in range(4):
        counts.append(len(policy.apply_policy(config_home.where)))
        assert policy.apply_policy(config_home.where) == []
        now += DAY
    assert counts == [2, 1, 1, 1]
    assert session_id(1) not in archived_ids(config_home)
    stored_settings.store_setting("vault", "40G", config_home.where)
    assert policy.apply_policy(config_home.where) == []
    assert len(archived_ids(config_home)) == 15


def test_the_default_limit_removes_nothing_by_age(config_home: ConfigHome) -> None:
    """By default, copies are kept without an age limit, up to 20 GB."""
    one = archive_old_session(config_home, 1, 4000)
    assert policy.apply_policy(config_home.where) == []
    assert archived_ids(config_home) == {one}
    assert settings.vault_limit(config_home.where) == 20 * 1024**3


@pytest.mark.usefixtures("remove_without_delay")
def test_the_oldest_copies_are_removed_first(config_home: ConfigHome) -> None:
    """The oldest copies are removed first, and only as many as the limit requires. 0 means no limit."""
    one, two, three = (
        archive_old_session(config_home, number, 100 - number) for number in (1, 2, 3)
    )
    takes = [each.stored for each in list_archived(config_home.where)]
    stored_settings.store_setting("vault", "0", config_home.where)
    assert policy.find_sessions_due_for_removal(config_home.where) == []
    stored_settings.store_setting("vault", str(sum(takes) - 1), config_home.where)
    assert [
        each.session_id for each, *_ in policy.find_sessions_due_for_removal(config_home.where)
    ] == [one]
    assert [
        each.session_id
        for each, *_ in policy.find_sessions_due_for_removal(
            config_home.where, kept_session_ids=[one]
        )
    ] == [two]
    (gone,) = policy.apply_policy(config_home.where)
    assert "the setting vault" in gone.describe_removal()
    assert archived_ids(config_home) == {two, three}


@pytest.mark.usefixtures("remove_without_delay")
def test_an_ancestor_of_an_existing_session_is_never_removed(config_home: ConfigHome) -> None:
    """An ancestor of an existing session is kept. Once no descendant exists, it is removed too."""
    one = archive_old_session(config_home, 1, 100)
    two = archive_old_session(config_home, 2, 90, parent_number=1)
    three = archive_old_session(config_home, 3, 80, parent_number=2, keep_file=True)
    other = archive_old_session(config_home, 4, 10)
    stored_settings.store_setting("vault", "1", config_home.where)
    assert {
        each.session_id for each, *_ in policy.find_sessions_due_for_removal(config_home.where)
    } == {
        three,
        other,
    }
    (config_home.project() / f"{three}.jsonl").unlink()
    assert {each.session_id for each in policy.apply_policy(config_home.where)} == {
        one,
        two,
        three,
        other,
    }
    assert archived_ids(config_home) == set()


def test_an_employer_limits_the_age_of_copies(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an employer limits the age of copies, a copy over the limit is removed a day after it was found."""
    old, young = archive_old_session(config_home, 1, 100), archive_old_session(config_home, 2, 10)
    monkeypatch.setattr(policy, "read_managed_retention", lambda: ("/etc/x", 30))
    assert policy.apply_policy(config_home.where) == policy.apply_policy(config_home.where) == []
    assert policy.read_removed_sessions(config_home.where) == []
    note = Path(vault_folder(config_home.where), policy.POLICY_STATE_FILE)
    # In the first case the clock was wrong. In the second case the copy was noted only a minute ago.
    for since in (
        time.time() + 9 * DAY,
        time.time() - 60,
    ):
        note.write_text(json.dumps({"version": 1, "since": {old: int(since)}}))
        assert policy.apply_policy(config_home.where) == []
        assert json.loads(note.read_bytes())["since"][old] <= time.time()
    note.write_text(json.dumps({"version": 1, "since": {old: int(time.time() - DAY)}}))
    (gone,) = policy.apply_policy(config_home.where)
    (told,) = policy.read_removed_sessions(config_home.where)
    assert (told.session_id, told.stored_bytes, told.reason) == (
        old,
        gone.stored_bytes,
        gone.reason,
    )
    assert (gone.session_id, "after 30 days" in gone.reason) == (old, True)
    assert archived_ids(config_home) == {young}


@pytest.mark.usefixtures("remove_without_delay")
def test_ancestors_of_a_session_in_the_trash_stay(config_home: ConfigHome) -> None:
    """Ancestors of a session in the trash are kept, because the session can be restored."""
    one = archive_old_session(config_home, 1, 100)
    two = archive_old_session(config_home, 2, 90, parent_number=1, keep_file=True)
    stored_settings.store_setting("vault", "1", config_home.where)
    path = str(config_home.project() / f"{two}.jsonl")
    delete.move_to_trash(
        delete.plan_delete(locate.session_file(path), config_home.where), config_home.where
    )
    assert not os.path.exists(path)
    assert {each.session_id for each in policy.apply_policy(config_home.where)} == {two}
    assert archived_ids(config_home) == {one}


def test_copies_of_another_config_home_stay(config_home: ConfigHome, tmp_path: Path) -> None:
    """The limit of one config home removes no copies of another one that shares the state folder."""
    shared = {**config_home.environ, "RESUME_HOOKS_HOME": str(tmp_path / "state")}
    other = {**shared, "CLAUDE_CONFIG_DIR": str(tmp_path / "other")}
    own = session_id(1)
    path = write_session(
        config_home.project(), own, conversation(2, session_id=own), mtime=time.time() - 100 * DAY
    )
    found = archive_session(locate.session_file(path), Where(shared))
    assert found.home == str(config_home.config)
    assert list_archived(Where(other)) == [found]
    stored_settings.store_setting("vault", "1", Where(shared))
    assert (
        policy.find_sessions_due_for_removal(Where(other)),
        [each.session_id for each, *_ in policy.find_sessions_due_for_removal(Where(shared))],
    ) == ([], [own])
    row = ArchivedSessionRow.model_validate(found)
    assert (row.present, row.file) == (True, str(path))
    assert archived_session_text(found, Where(other)).endswith(f", of {config_home.config}")
    assert ", of " not in archived_session_text(found, Where(shared))
    assert archive_session(session_with_every_file(config_home), config_home.where).home == ""


def test_an_employers_retention_forbids_copies(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If an employer limits the retention, no session is archived, and copies are removed as they expire."""
    monkeypatch.setattr(policy, "MIN_SECONDS_BETWEEN_POLICY_RUNS", 0)
    old = archive_old_session(config_home, 1, 25)
    young = archive_old_session(config_home, 2, 5, parent_number=1, keep_file=True)
    managed = tmp_path / "managed-settings.json"
    monkeypatch.setattr(claude_settings, "settings_files", lambda *_: [str(managed)])
    for value in ('"x"', "null", "0", "true"):
        managed.write_text(f'{{"cleanupPeriodDays":{value}}}')
        assert permission.check_archiving_allowed(config_home.where) == (True, "")
    managed.write_text('{"cleanupPeriodDays":20}')
    may, why = permission.check_archiving_allowed(config_home.where)
    assert (may, "20 days" in why, str(managed) in why) == (False, True, True)
    (gone,) = policy.apply_policy(config_home.where)
    assert (gone.session_id, str(managed) in gone.reason) == (old, True)
    assert archived_ids(config_home) == {young}


def test_the_first_copy_is_announced_once(config_home: ConfigHome) -> None:
    """The first copy is announced once, with the command that switches archiving off."""
    said = permission.make_first_archive_notice(config_home.where)
    assert "beyond the client's 30 days" in said
    assert "config vault off" in said
    assert permission.make_first_archive_notice(config_home.where) == ""


@pytest.mark.parametrize(
    ("text", "size"),
    [("500M", 500 * 1024**2), ("20 g", 0), ("2GB", 2 * 1024**3), ("7", 7), ("on", 20 * 1024**3)],
)
def test_a_size_limit_may_have_a_unit(config_home: ConfigHome, text: str, size: int) -> None:
    """Sizes such as ``500M`` and ``2GB`` are accepted. An invalid size is refused."""
    if not size:
        with pytest.raises(UsageError):
            stored_settings.store_setting("vault", text, config_home.where)
        return
    stored_settings.store_setting("vault", text, config_home.where)
    assert settings.vault_limit(config_home.where) == size


def test_a_copy_that_cannot_be_removed_stays(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a copy can't be removed, no error is raised and the copy can still be read."""
    one = archive_old_session(config_home, 1, 100)
    stored_settings.store_setting("vault", "1", config_home.where)

    def raise_vault_off(*_: object) -> None:
        raise VaultOff("no")

    monkeypatch.setattr(policy, "remove_archived", raise_vault_off)
    assert policy.apply_policy(config_home.where) == []
    assert find_archived(one, config_home.where) is not None
