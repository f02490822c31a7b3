"""Which kept sessions are packed by themselves: quiet ones that are ancestors, near their end, or gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from resume_hooks.archive.retention import pack_idle
from resume_hooks.archive.retention.archive_now import archive
from resume_hooks.archive.retention.pack_idle import due, pack_quiet
from resume_hooks.archive.vault.keep import keep
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.manifest import find
from resume_hooks.sessions.files import SessionFile
from resume_hooks.sessions.link_log import Link, record_link
from tests.archive.retention.aged import aged, at_once, never
from tests.builders import ConfigHome, session_id


def form(home: ConfigHome, session: SessionFile) -> str:
    """How a session is kept."""
    kept = find(session.session_id, home.where)
    return kept.form if kept else ""


@pytest.mark.parametrize(
    ("days", "ancestor", "gone", "packed"),
    [(2, True, False, True), (2, False, False, False), (2, False, True, True), (25, False, False, True)],
)
def test_quiet_and_worth_it(config_home: ConfigHome, days: float, ancestor: bool, gone: bool, packed: bool) -> None:
    """An ancestor, one near its end, one that is gone; any other stays a link."""
    session = aged(config_home, 1, days)
    keep(session, config_home.where)
    if ancestor:
        record_link(Link(session_id(2), session.session_id, "clear", "2026-01-31T09:30:00.000Z"), config_home.where)
    if gone:
        os.unlink(session.path)
    assert pack_quiet(config_home.where, never) == 0
    assert form(config_home, session) == ("packed" if packed else "linked")


def test_one_that_somebody_is_at(config_home: ConfigHome) -> None:
    """It was written today: it stays a link, which grows with it."""
    session = aged(config_home, 1, 0.5)
    keep(session, config_home.where)
    record_link(Link(session_id(2), session.session_id, "clear", "2026-01-31T09:30:00.000Z"), config_home.where)
    assert list(due(config_home.where, os.stat(session.path).st_mtime + 60)) == []


def test_what_there_is_no_time_for(config_home: ConfigHome) -> None:
    """It is counted, and stays as it is."""
    session = aged(config_home, 1, 25)
    keep(session, config_home.where)
    assert pack_quiet(config_home.where, at_once) == 1
    assert form(config_home, session) == "linked"


def test_one_too_large_for_a_start(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """What took long, and was not done, is not begun again by itself; what was only begun late is."""
    session = aged(config_home, 1, 25)
    kept = keep(session, config_home.where)
    answers = iter([False, True, True, True])
    assert pack_quiet(config_home.where, lambda: next(answers)) == 1
    assert pack_quiet(config_home.where, at_once) == 1
    monkeypatch.setattr(pack_idle, "FAIR", 0.0)
    answers = iter([False, True, True, True])
    assert pack_quiet(config_home.where, lambda: next(answers)) == 0
    assert pack_quiet(config_home.where, never) == 0
    assert form(config_home, session) == "linked"
    assert archive([session], config_home.where).packed == (kept.session_id,)
    assert form(config_home, session) == "packed"


def test_another_config_home_s(config_home: ConfigHome, tmp_path: Path) -> None:
    """Its client may be at it, which is not known here."""
    shared = {**config_home.environ, "RESUME_HOOKS_HOME": str(tmp_path / "state")}
    keep(aged(config_home, 1, 25), Where(shared))
    assert len(list(due(Where(shared), time.time()))) == 1
    assert list(due(Where({**shared, "CLAUDE_CONFIG_DIR": str(tmp_path / "other")}), time.time())) == []
