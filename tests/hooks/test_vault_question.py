"""Whether to copy what the client deletes is asked once, where it can be; until then links hold it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks import settings
from resume_hooks.archive import held
from resume_hooks.archive.retention.expiring import archive_expiring
from resume_hooks.archive.vault import first_use_notice, policy
from resume_hooks.hooks import vault_question
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived.manifest import archived_ids
from resume_hooks.storage import stored_settings
from tests.archive.retention.aged import aged, never, with_output
from tests.builders import CWD, ConfigHome, session_id

SOON, DUE = 25, 31  # days


@pytest.fixture
def asking(config_home: ConfigHome) -> ConfigHome:
    """A config home in which a client was started that can ask."""
    path = Path(config_home.where.state, first_use_notice.CAN_ASK)
    path.parent.mkdir(parents=True, mode=0o700)
    path.parent.parent.chmod(0o700)
    path.touch()
    return config_home


def start(home: ConfigHome) -> int:
    """What a start and what follows it does; how many sessions were copied."""
    project = os.path.basename(home.project())
    done = archive_expiring(project, CWD, home.where, never, waiting=True)
    held.look(CWD, home.where, never)
    return done.kept


def begun(home: ConfigHome) -> None:
    """A start that is to ask."""
    Path(home.where.state, first_use_notice.ASKING).touch()


def asked(home: ConfigHome) -> bool:
    """Whether the next start asks."""
    return os.path.exists(os.path.join(home.where.state, first_use_notice.TO_ASK))


def test_until_the_answer_links_hold_it(asking: ConfigHome) -> None:
    """What goes soon is linked as the start waits; what the client takes meanwhile is copied after a yes, not lost."""
    soon, young = aged(asking, 1, SOON), aged(asking, 2, 1)
    output = with_output(soon, SOON)
    assert start(asking) == 0
    ours = os.path.join(held_links.folder(asking.where), os.path.relpath(soon.path, asking.where.projects))
    assert os.path.samefile(soon.path, ours)
    assert (asked(asking), archived_ids(asking.where)) == (True, [])
    was = Path(soon.path).read_bytes()
    os.utime(soon.path, (Path(soon.path).stat().st_mtime - 10 * 86_400,) * 2)  # due, by then
    os.unlink(soon.path)
    Path(output).unlink()
    assert start(asking) == 0
    assert Path(ours).read_bytes() == was
    assert archived_ids(asking.where) == []
    said = vault_question.answer("vault on", asking.where)
    assert said["text"].startswith("vault is 20G")
    start(asking)
    assert archived_ids(asking.where) == [session_id(1)]
    assert not os.path.lexists(ours)
    assert os.path.exists(young.path)


def test_what_can_not_be_held_is_copied(asking: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost for the question's sake."""
    aged(asking, 1, SOON)
    monkeypatch.setattr(held_links, "why_not", lambda _: "no links are made here")
    assert start(asking) == 1


def test_a_no_lets_go(asking: ConfigHome) -> None:
    """Nothing is copied, and no link stays."""
    aged(asking, 1, SOON)
    start(asking)
    assert vault_question.answer("vault off", asking.where)["text"].startswith("vault is off")
    assert start(asking) == 0
    assert not os.path.exists(held_links.folder(asking.where))
    assert archived_ids(asking.where) == []


@pytest.mark.parametrize("settled", ["told", "chosen", "nobody can ask"])
def test_it_is_asked_where_that_is_open(asking: ConfigHome, settled: str) -> None:
    """Not of who was told, or has chosen, or has no client that can ask: their sessions are copied as ever."""
    assert vault_question.answer("", asking.where) == {}, "nothing is due"
    begun(asking)
    question = vault_question.answer("", asking.where)
    assert "up to 20 GB" in question["ask"]
    assert [word for _, word in question["choices"]] == ["vault on", "vault off", "later"]
    if settled == "told":
        first_use_notice.settle(asking.where)
    elif settled == "chosen":
        stored_settings.store("vault", "7G", asking.where)
    else:
        os.unlink(os.path.join(asking.where.state, first_use_notice.CAN_ASK))
    begun(asking)
    assert vault_question.answer("", asking.where) == {}
    aged(asking, 1, SOON)
    assert start(asking) == 1
    assert not asked(asking)


def test_an_employer_has_decided(asking: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept beyond that, nothing held, and nobody asked."""
    for module in (policy, first_use_notice):
        monkeypatch.setattr(module, "managed_days", lambda: ("/etc/x.json", 30))
    aged(asking, 1, SOON)
    assert start(asking) == 0
    assert not asked(asking)
    assert not os.path.exists(held_links.folder(asking.where))


def test_the_notice_is_not_said_before_the_answer(asking: ConfigHome) -> None:
    """Neither, which would count as one."""
    assert first_use_notice.line(asking.where) == ""
    assert first_use_notice.is_open(asking.where)
    vault_question.answer("vault on", asking.where)
    assert settings.load(asking.where)["vault"] == ("20G", "file")
    assert not first_use_notice.is_open(asking.where)
