"""Whether copies are kept is asked where it can be; until then nothing is copied, and links hold the sessions."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import settings
from resume_hooks.archive import held
from resume_hooks.archive.retention.ancestors import archive_ancestors, archive_parents, archive_pending
from resume_hooks.archive.retention.expiring import archive_expiring
from resume_hooks.archive.vault import permission
from resume_hooks.clock import DAY
from resume_hooks.hooks import expiring_sessions
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived.manifest import all_archived, archived_ids
from resume_hooks.sessions.lineage import Family
from resume_hooks.storage import stored_settings
from tests.archive.retention.aged import aged, never, with_backups, with_output
from tests.archive.vault.laid_out import kept_files
from tests.builders import CWD, ConfigHome

SOON, DUE = 25, 31  # days


@pytest.fixture
def asking(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """A config home in which a client was started that can ask."""
    path = Path(config_home.where.state, permission.CAN_ASK)
    path.parent.mkdir(parents=True, mode=0o700)
    path.parent.parent.chmod(0o700)
    path.touch()
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", CWD)
    return config_home


def start(home: ConfigHome) -> int:
    """What a start and what follows it does; how many sessions were copied."""
    project = os.path.basename(home.project())
    done = archive_expiring(project, CWD, home.where, never, waiting=True)
    held.look(home.where, never)
    return done.kept


def said(home: ConfigHome, word: str = "") -> dict[str, Any]:
    """What the module is answered."""
    event = {"args": word, "cwd": CWD, "transcript_path": str(home.project() / "x.jsonl")}
    return expiring_sessions.vault_answer(event, home.where)


def answered(home: ConfigHome, word: str) -> str:
    """What is told in the end of an answer that was kept."""
    (_, keep), _ = said(home, word)["choices"]
    return str(said(home, keep)["text"])


@pytest.mark.parametrize(("word", "told"), [("vault on", "What Claude Code deletes"), ("vault off", "Nothing")])
def test_one_key_takes_an_answer_back(asking: ConfigHome, word: str, told: str) -> None:
    """Nothing was copied before it, nothing let go, and copies wait as if nobody had answered; Esc is that key."""
    aged(asking, 1, SOON)
    start(asking)
    said(asking)
    question = said(asking, word)
    assert question["ask"].startswith(f"{told} is archived (vault ")
    assert archived_ids(asking.where) == []
    assert "Copies wait for your answer" in said(asking, question["choices"][-1][1])["text"]
    assert settings.load(asking.where)["vault"].source == "default"
    assert permission.is_open(asking.where)
    assert os.path.exists(held_links.folder(asking.where))
    assert start(asking) == 0
    stored_settings.store("vault", "7G", asking.where)
    assert said(asking, "undo vault off")["text"].startswith("What Claude Code deletes is archived (vault 7G)")


def test_until_the_answer_nothing_is_copied(asking: ConfigHome) -> None:
    """A yes copies at once all that goes soon, and the next start what the client took before it."""
    was = dict[str, dict[str, bytes]]()
    gone, soon = (aged(asking, number, SOON) for number in (1, 2))
    for each in (gone, soon):
        files = [Path(each.path), with_output(each, SOON)]
        if each == soon:
            files += with_backups(asking, each, SOON).iterdir()
        was[each.session_id] = {str(path.relative_to(asking.config)): path.read_bytes() for path in files}
    assert start(asking) == 0
    os.utime(gone.path, (time.time() - DUE * DAY,) * 2)
    os.unlink(gone.path)
    shutil.rmtree(gone.path.removesuffix(".jsonl"))
    assert start(asking) == 0
    assert archived_ids(asking.where) == []
    assert answered(asking, "vault on").endswith("archived 1 that go soon")
    assert archived_ids(asking.where) == [soon.session_id]
    start(asking)
    assert {each.session_id: kept_files(each, asking) for each in all_archived(asking.where)} == was


def test_ancestors_wait_for_the_answer(asking: ConfigHome) -> None:
    """What a child was made of is archived after a yes."""
    parent = aged(asking, 1, 1)
    assert said(asking) == {}
    assert archive_ancestors(Family(asking.where).lineage(parent.path), asking.where) == []
    assert "ask" in said(asking)
    assert said(asking) == {}, "asked once"
    assert (archive_pending(asking.where, never), archived_ids(asking.where)) == (1, [])
    assert not archive_parents(asking.where, 0, never)
    answered(asking, "vault on")
    assert archive_pending(asking.where, never) == 0
    assert archived_ids(asking.where) == [parent.session_id]


def test_what_a_verb_is_asked_for_does_not_wait(asking: ConfigHome) -> None:
    """``restore`` brings back what only a link has."""
    session = aged(asking, 1, 1)
    start(asking)
    os.unlink(session.path)
    start(asking)
    assert archived_ids(asking.where) == []
    held.archive_lost(asking.where)
    assert archived_ids(asking.where) == [session.session_id]


def test_copies_wait_for_five_days(asking: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then they are made two days before they are needed, and that is told."""
    aged(asking, 1, SOON)
    assert start(asking) == 0
    later = time.time() + 5 * DAY + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert said(asking) == {}
    assert start(asking) == 1
    assert "vault off" in permission.line(asking.where)


def test_a_no_lets_go(asking: ConfigHome) -> None:
    """Nothing is copied, and no link stays."""
    aged(asking, 1, SOON)
    start(asking)
    assert answered(asking, "vault off").startswith("Nothing is archived (vault off)")
    assert start(asking) == 0
    assert not os.path.exists(held_links.folder(asking.where))
    assert archived_ids(asking.where) == []


@pytest.mark.parametrize("settled", ["told", "chosen", "nobody can ask"])
def test_it_is_asked_where_that_is_open(asking: ConfigHome, settled: str) -> None:
    """Not of who was told, or has chosen, or has no client that can ask: their sessions are copied as ever."""
    assert said(asking) == {}, "nothing has to be copied"
    aged(asking, 1, SOON)
    question = said(asking)
    assert "up to 20 GB" in question["ask"]
    assert [word for _, word in question["choices"]] == ["vault on", "vault off", "later"]
    os.unlink(os.path.join(asking.where.state, permission.ASKED))
    if settled == "told":
        permission.settle(asking.where)
    elif settled == "chosen":
        stored_settings.store("vault", "7G", asking.where)
        assert said(asking, "vault on")["text"].startswith("What Claude Code deletes is archived (vault 7G)"), (
            "answered in another window"
        )
    else:
        os.unlink(os.path.join(asking.where.state, permission.CAN_ASK))
    assert said(asking) == {}
    assert start(asking) == (settled != "chosen")


def test_an_employer_has_decided(asking: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept beyond that, nothing held, and nobody asked."""
    monkeypatch.setattr(permission, "managed_days", lambda: ("/etc/x.json", 30))
    aged(asking, 1, SOON)
    assert start(asking) == 0
    assert said(asking) == {}
    assert not os.path.exists(held_links.folder(asking.where))


def test_the_notice_is_not_said_before_the_answer(asking: ConfigHome) -> None:
    """Neither, which would count as one."""
    assert permission.line(asking.where) == ""
    assert permission.is_open(asking.where)
    said(asking, "vault on")
    assert settings.load(asking.where)["vault"] == ("20G", "file")
    assert not permission.is_open(asking.where)
