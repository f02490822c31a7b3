"""That copies will be kept is reported first where it can be.

Meanwhile nothing is copied, and links contain the sessions.
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
    archive_pending,
)
from resume_hooks.archive.retention.expiring import archive_expiring
from resume_hooks.archive.vault import permission
from resume_hooks.clock import DAY
from resume_hooks.hooks import expiring_sessions
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived.manifest import archived_ids, list_archived
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.storage import stored_settings
from tests.archive.retention.aged import (
    has_time_left,
    session_of_age,
    write_file_backups,
    write_tool_output,
)
from tests.archive.vault.laid_out import archived_contents
from tests.builders import CWD, ConfigHome

SOON, DUE = 25, 31  # days


@pytest.fixture
def asking(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """A config home in which a client was started that can ask."""
    path = Path(config_home.where.state, permission.CAN_ASK_NOTE)
    path.parent.mkdir(parents=True, mode=0o700)
    path.parent.parent.chmod(0o700)
    path.touch()
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", CWD)
    return config_home


def start(home: ConfigHome) -> int:
    """Run a start and its background work. Return the number of copied sessions."""
    project = os.path.basename(home.project())
    done = archive_expiring(project, CWD, home.where, has_time_left, is_user_waiting=True)
    link_sessions.link_all_sessions(home.where, has_time_left)
    return done.archived_count


def module_reply(home: ConfigHome) -> str:
    """Return the reply to the module at a start."""
    event = {"cwd": CWD, "transcript_path": str(home.project() / "x.jsonl")}
    return expiring_sessions.claim_vault_announcement(event, home.where)


def decide(home: ConfigHome, value: str) -> None:
    """Run ``config vault``."""
    stored_settings.store_setting("vault", value, home.where)


def test_until_a_word_nothing_is_copied(asking: ConfigHome) -> None:
    """After it, a start copies all expiring sessions, including those that the client has deleted."""
    was = dict[str, dict[str, bytes]]()
    gone, soon = (session_of_age(asking, number, SOON) for number in (1, 2))
    for each in (gone, soon):
        files = [Path(each.path), write_tool_output(each, SOON)]
        if each == soon:
            files += write_file_backups(asking, each, SOON).iterdir()
        was[each.session_id] = {
            str(path.relative_to(asking.config)): path.read_bytes() for path in files
        }
    assert start(asking) == 0
    os.utime(gone.path, (time.time() - DUE * DAY,) * 2)
    os.unlink(gone.path)
    shutil.rmtree(gone.path.removesuffix(".jsonl"))
    assert start(asking) == 0
    assert archived_ids(asking.where) == []
    decide(asking, "on")
    start(asking)
    assert {
        each.session_id: archived_contents(each, asking) for each in list_archived(asking.where)
    } == was


def test_ancestors_wait_for_a_word(asking: ConfigHome) -> None:
    """A child's ancestors are archived after a yes."""
    parent = session_of_age(asking, 1, 1)
    assert module_reply(asking) == ""
    assert (
        archive_ancestors(LineageFinder(asking.where).find_lineage(parent.path), asking.where) == []
    )
    assert "up to 20 GB, will be kept" in module_reply(asking)
    assert module_reply(asking) == "", "told once"
    assert (archive_pending(asking.where, has_time_left), archived_ids(asking.where)) == (1, [])
    assert not archive_parents(asking.where, 0, has_time_left)
    decide(asking, "on")
    assert archive_pending(asking.where, has_time_left) == 0
    assert archived_ids(asking.where) == [parent.session_id]


def test_a_requested_restore_does_not_wait(asking: ConfigHome) -> None:
    """``restore`` restores a session that exists only as our link."""
    session = session_of_age(asking, 1, 1)
    start(asking)
    os.unlink(session.path)
    start(asking)
    assert archived_ids(asking.where) == []
    link_sessions.archive_lost_sessions(asking.where)
    assert archived_ids(asking.where) == [session.session_id]


def test_copies_wait_for_five_days(asking: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then they are made two days before they are needed, and that is reported."""
    session_of_age(asking, 1, SOON)
    assert start(asking) == 0
    later = time.time() + 5 * DAY + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert module_reply(asking) == ""
    assert start(asking) == 1
    assert "vault off" in permission.describe_first_archive(asking.where)


def test_a_no_lets_go(asking: ConfigHome) -> None:
    """Nothing is copied, and all links are removed."""
    session_of_age(asking, 1, SOON)
    start(asking)
    decide(asking, "off")
    assert start(asking) == 0
    assert not os.path.exists(held_links.links_folder(asking.where))
    assert archived_ids(asking.where) == []


@pytest.mark.parametrize("settled", ["told", "chosen", "no modules"])
def test_it_is_reported_where_that_is_open(asking: ConfigHome, settled: str) -> None:
    """Not who was told of copies, or has chosen, or has no client that can tell: their sessions are copied as ever."""
    assert module_reply(asking) == "", "nothing has to be copied"
    session_of_age(asking, 1, SOON)
    start(asking)
    line = module_reply(asking)
    assert "Copies wait for your answer; without one they are made from " in line
    assert line.endswith(
        "resume-hooks config vault on; to keep none: resume-hooks config vault off"
    )
    assert settings.load_settings(asking.where)["vault"].source == "default"
    os.unlink(os.path.join(asking.where.state, permission.ASKED_NOTE))
    if settled == "told":
        Path(asking.where.state, permission.INFORMED_NOTE).touch()
    elif settled == "chosen":
        decide(asking, "7G")
    else:
        os.unlink(os.path.join(asking.where.state, permission.CAN_ASK_NOTE))
    assert module_reply(asking) == ""
    assert start(asking) == 1


def test_an_employer_has_decided(asking: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is archived or linked, and nobody is asked."""
    monkeypatch.setattr(permission, "read_managed_retention", lambda: ("/etc/x.json", 30))
    session_of_age(asking, 1, SOON)
    assert start(asking) == 0
    assert module_reply(asking) == ""
    assert not os.path.exists(held_links.links_folder(asking.where))


def test_the_notice_is_not_said_while_copies_wait(asking: ConfigHome) -> None:
    """It speaks of copies that were made."""
    assert permission.describe_first_archive(asking.where) == ""
    assert permission.is_notice_due(asking.where)
    decide(asking, "on")
    assert settings.load_settings(asking.where)["vault"] == ("20G", "file")
    assert not permission.is_notice_due(asking.where)
