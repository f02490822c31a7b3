"""Tests of ``rename``, which sets a title or a tag and refuses a title that another session has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)
from tests.cli.conftest import Cli, Document

OTHER_ID = session_id(2)


@pytest.fixture
def old_session(config_home: ConfigHome) -> Path:
    """Write a session whose file has not changed for a long time, and return the file's path."""
    return Path(write_session(config_home.project(), SESSION, conversation(2), mtime=1_700_000_000))


def test_rename_shows_the_old_and_the_new_title(
    old_session: Path, cli: Cli, document: Document
) -> None:
    """``rename`` sets a title and prints the old title and the new one.

    Running ``rename`` again writes nothing. The title can be used as a locator.
    """
    data = document("rename", SESSION, "Fix the parser")["data"]
    assert data == {
        "session_id": SESSION,
        "file": str(old_session),
        "old": "prompt 0",
        "new": "Fix the parser",
        "written": True,
    }
    again = document("rename", "Fix the parser", " Fix the parser ")["data"]
    assert (again["old"], again["new"], again["written"]) == (
        "Fix the parser",
        "Fix the parser",
        False,
    )
    assert b"already. Nothing was written." in cli("rename", SESSION, "Fix the parser").stdout
    shown = cli("rename", SESSION, "Other").stdout.decode().split("\n")
    assert shown[:2] == ["new title  Other", "old title  Fix the parser"]


def test_rename_sets_and_clears_a_tag(old_session: Path, cli: Cli, document: Document) -> None:
    """``rename --tag`` sets a tag, which ``info`` shows, and ``--no-tag`` removes it.

    Without a tag, ``--no-tag`` writes nothing.
    """
    assert document("rename", SESSION, "--tag", "experiment")["data"]["written"]
    assert document("info", SESSION)["data"]["tag"] == "experiment"
    cleared = document("rename", SESSION, "--no-tag")["data"]
    assert (cleared["old"], cleared["new"], cleared["written"]) == ("experiment", "", True)
    assert b"The session's tag is none already" in cli("rename", SESSION, "--no-tag").stdout


def test_rename_refuses_a_title_of_another_session(
    old_session: Path, config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``rename`` refuses a title that another session has and names this session.

    With ``--force`` it sets the title.
    """
    write_session(
        config_home.project(),
        OTHER_ID,
        [*conversation(1, session_id=OTHER_ID), custom_title("Mine", OTHER_ID)],
    )
    error = document("rename", SESSION, "Mine", code=1)["error"]
    assert error["code"] == "title-taken"
    assert OTHER_ID in error["message"]
    assert document("rename", SESSION, "Mine", "--force")["data"]["written"]
    assert cli("info", "Mine").returncode == 2


def test_rename_mentions_an_open_session(config_home: ConfigHome, cli: Cli) -> None:
    """If a session is open, ``rename`` sets its title, and a note recommends the client's ``/rename``."""
    write_session(config_home.project(), SESSION, conversation(1))
    done = cli("rename", SESSION, "New")
    assert done.returncode == 0
    assert b"note: A client may have the session open" in done.stderr
