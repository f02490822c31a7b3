"""Which kept sessions are packed by themselves: quiet ones that are ancestors, near their end, or gone."""

from __future__ import annotations

import os

import pytest

from resume_hooks.expiry.packing import due, pack_quiet
from resume_hooks.links import Link, record_link
from resume_hooks.sessions import SessionFile
from resume_hooks.vault.keeping import keep
from resume_hooks.vaulted.notes import find
from tests.builders import ConfigHome, session_id
from tests.expiry.aged import aged, at_once, never


def form(home: ConfigHome, session: SessionFile) -> str:
    """How a session is kept."""
    kept = find(session.session_id, home.environ)
    return kept.form if kept else ""


@pytest.mark.parametrize(
    ("days", "ancestor", "gone", "packed"),
    [(2, True, False, True), (2, False, False, False), (2, False, True, True), (25, False, False, True)],
)
def test_quiet_and_worth_it(config_home: ConfigHome, days: float, ancestor: bool, gone: bool, packed: bool) -> None:
    """An ancestor, one near its end, one that is gone; any other stays a link."""
    session = aged(config_home, 1, days)
    keep(session, config_home.environ)
    if ancestor:
        record_link(Link(session_id(2), session.session_id, "clear", "2026-01-31T09:30:00.000Z"), config_home.environ)
    if gone:
        os.unlink(session.path)
    assert pack_quiet(config_home.environ, never) == 0
    assert form(config_home, session) == ("packed" if packed else "linked")


def test_one_that_somebody_is_at(config_home: ConfigHome) -> None:
    """It was written today: it stays a link, which grows with it."""
    session = aged(config_home, 1, 0.5)
    keep(session, config_home.environ)
    record_link(Link(session_id(2), session.session_id, "clear", "2026-01-31T09:30:00.000Z"), config_home.environ)
    assert list(due(config_home.environ, os.stat(session.path).st_mtime + 60)) == []


def test_what_there_is_no_time_for(config_home: ConfigHome) -> None:
    """It is counted, and stays as it is."""
    session = aged(config_home, 1, 25)
    keep(session, config_home.environ)
    assert pack_quiet(config_home.environ, at_once) == 1
    assert form(config_home, session) == "linked"
