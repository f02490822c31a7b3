"""Tests of the question that asks the user whether to archive sessions.

Until the user answers, sessions are only linked, not copied.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from resume_hooks import settings
from resume_hooks.archive import link_sessions
from resume_hooks.archive.retention.ancestors import (
    archive_ancestors,
    archive_parents,
    archive_pending_sessions,
)
from resume_hooks.archive.retention.expiring import archive_sessions_before_expiry
from resume_hooks.archive.vault import permission
from resume_hooks.clock import DAY
from resume_hooks.hooks import expiring_sessions
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived.manifest import archived_ids, list_archived
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.storage import stored_settings
from tests.archive.retention.sessions_of_age import (
    never_over_time_limit,
    session_of_age,
    write_file_backups,
    write_tool_output,
)
from tests.archive.vault.full_sessions import archived_contents
from tests.builders import CWD, ConfigHome

DUE_SOON_DAYS, OVERDUE_DAYS = 25, 31  # days


@pytest.fixture
def client_that_can_ask(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """Return a config home in which the user has started a client that can ask the question."""
    path = Path(config_home.where.state, permission.CLIENT_CAN_ASK_MARKER_FILE)
    path.parent.mkdir(parents=True, mode=0o700)
    path.parent.parent.chmod(0o700)
    path.touch()
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", CWD)
    return config_home


def count_copies_at_start(home: ConfigHome) -> int:
    """Run the hooks that run at a client's start and return the number of sessions they copied."""
    project = os.path.basename(home.project())
    done = archive_sessions_before_expiry(
        project, CWD, home.where, never_over_time_limit, is_user_waiting=True
    )
    link_sessions.link_all_sessions(home.where, never_over_time_limit)
    return done.archived_count


def question_shown_by_module(home: ConfigHome) -> str:
    """Return the question that the client's module shows at a start, or "" if it shows none."""
    event = {"cwd": CWD, "transcript_path": str(home.project() / "x.jsonl")}
    return expiring_sessions.claim_vault_announcement(event, home.where)


def store_vault_setting(home: ConfigHome, value: str) -> None:
    """Store the setting ``vault``, as ``config vault`` does."""
    stored_settings.store_setting("vault", value, home.where)


def test_no_session_is_copied_before_an_answer(client_that_can_ask: ConfigHome) -> None:
    """No session is copied until the user answers yes; then all expiring sessions are copied.

    This includes a session that the client deleted in the meantime.
    """
    was = dict[str, dict[str, bytes]]()
    gone, soon = (session_of_age(client_that_can_ask, number, DUE_SOON_DAYS) for number in (1, 2))
    for each in (gone, soon):
        files = [Path(each.path), write_tool_output(each, DUE_SOON_DAYS)]
        if each == soon:
            files += write_file_backups(client_that_can_ask, each, DUE_SOON_DAYS).iterdir()
        was[each.session_id] = {
            str(path.relative_to(client_that_can_ask.config)): path.read_bytes() for path in files
        }
    assert count_copies_at_start(client_that_can_ask) == 0
    os.utime(gone.path, (time.time() - OVERDUE_DAYS * DAY,) * 2)
    os.unlink(gone.path)
    shutil.rmtree(gone.path.removesuffix(".jsonl"))
    assert count_copies_at_start(client_that_can_ask) == 0
    assert archived_ids(client_that_can_ask.where) == []
    store_vault_setting(client_that_can_ask, "on")
    count_copies_at_start(client_that_can_ask)
    assert {
        each.session_id: archived_contents(each, client_that_can_ask)
        for each in list_archived(client_that_can_ask.where)
    } == was


def test_ancestors_are_not_archived_before_an_answer(client_that_can_ask: ConfigHome) -> None:
    """A child's ancestors are archived only after the user has answered yes."""
    parent = session_of_age(client_that_can_ask, 1, 1)
    assert question_shown_by_module(client_that_can_ask) == ""
    assert (
        archive_ancestors(
            LineageFinder(client_that_can_ask.where).find_lineage(parent.path),
            client_that_can_ask.where,
        )
        == []
    )
    assert "A private folder of at most 20 GB will keep copies" in question_shown_by_module(
        client_that_can_ask
    )
    assert question_shown_by_module(client_that_can_ask) == "", "told once"
    assert (
        archive_pending_sessions(client_that_can_ask.where, never_over_time_limit),
        archived_ids(client_that_can_ask.where),
    ) == (1, [])
    assert not archive_parents(client_that_can_ask.where, 0, never_over_time_limit)
    store_vault_setting(client_that_can_ask, "on")
    assert archive_pending_sessions(client_that_can_ask.where, never_over_time_limit) == 0
    assert archived_ids(client_that_can_ask.where) == [parent.session_id]


def test_a_restore_works_without_an_answer(client_that_can_ask: ConfigHome) -> None:
    """``restore`` archives and restores a deleted session even if the user has not answered the question."""
    session = session_of_age(client_that_can_ask, 1, 1)
    count_copies_at_start(client_that_can_ask)
    os.unlink(session.path)
    count_copies_at_start(client_that_can_ask)
    assert archived_ids(client_that_can_ask.where) == []
    link_sessions.archive_lost_sessions(client_that_can_ask.where)
    assert archived_ids(client_that_can_ask.where) == [session.session_id]


def test_sessions_are_copied_after_five_days_without_an_answer(
    client_that_can_ask: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user does not answer, a start copies sessions five days after the question and says so."""
    session_of_age(client_that_can_ask, 1, DUE_SOON_DAYS)
    assert count_copies_at_start(client_that_can_ask) == 0
    later = time.time() + 5 * DAY + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert question_shown_by_module(client_that_can_ask) == ""
    assert count_copies_at_start(client_that_can_ask) == 1
    assert "vault off" in permission.make_first_archive_notice(client_that_can_ask.where)


def test_answering_no_deletes_all_links(client_that_can_ask: ConfigHome) -> None:
    """After the user answers no, no session is copied, and the existing links are deleted."""
    session_of_age(client_that_can_ask, 1, DUE_SOON_DAYS)
    count_copies_at_start(client_that_can_ask)
    store_vault_setting(client_that_can_ask, "off")
    assert count_copies_at_start(client_that_can_ask) == 0
    assert not os.path.exists(held_links.links_folder(client_that_can_ask.where))
    assert archived_ids(client_that_can_ask.where) == []


@pytest.mark.parametrize("reason", ["told", "chosen", "no modules"])
def test_only_undecided_users_are_asked(client_that_can_ask: ConfigHome, reason: str) -> None:
    """The question is shown only to users who have not chosen yet and were never told about copies.

    For all other users, sessions are copied without a question. The same is true for clients that
    cannot ask a question.
    """
    assert question_shown_by_module(client_that_can_ask) == "", "nothing has to be copied"
    session_of_age(client_that_can_ask, 1, DUE_SOON_DAYS)
    count_copies_at_start(client_that_can_ask)
    line = question_shown_by_module(client_that_can_ask)
    assert (
        "Archiving waits for your answer. If you do not answer, sessions are archived from " in line
    )
    assert line.endswith(
        "resume-hooks config vault on; to keep no copies: resume-hooks config vault off"
    )
    assert settings.load_settings(client_that_can_ask.where)["vault"].source == "default"
    os.unlink(os.path.join(client_that_can_ask.where.state, permission.NOTICE_GIVEN_MARKER_FILE))
    if reason == "told":
        Path(client_that_can_ask.where.state, permission.USER_INFORMED_MARKER_FILE).touch()
    elif reason == "chosen":
        store_vault_setting(client_that_can_ask, "7G")
    else:
        os.unlink(
            os.path.join(client_that_can_ask.where.state, permission.CLIENT_CAN_ASK_MARKER_FILE)
        )
    assert question_shown_by_module(client_that_can_ask) == ""
    assert count_copies_at_start(client_that_can_ask) == 1


def test_a_policy_prevents_archiving_and_the_question(
    client_that_can_ask: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an organization's policy limits how long sessions are kept, no session is archived or linked.

    The question whether to archive sessions is not shown either.
    """
    monkeypatch.setattr(permission, "read_managed_retention", lambda: ("/etc/x.json", 30))
    session_of_age(client_that_can_ask, 1, DUE_SOON_DAYS)
    assert count_copies_at_start(client_that_can_ask) == 0
    assert question_shown_by_module(client_that_can_ask) == ""
    assert not os.path.exists(held_links.links_folder(client_that_can_ask.where))


def test_an_answer_cancels_the_archive_notice(client_that_can_ask: ConfigHome) -> None:
    """Once the user has answered the question, the separate notice about archiving is not shown."""
    assert permission.make_first_archive_notice(client_that_can_ask.where) == ""
    assert permission.is_archiving_notice_due(client_that_can_ask.where)
    store_vault_setting(client_that_can_ask, "on")
    assert settings.load_settings(client_that_can_ask.where)["vault"] == ("20G", "file")
    assert not permission.is_archiving_notice_due(client_that_can_ask.where)
