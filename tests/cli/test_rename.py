"""rename: what it prints, what it refuses, and that a dry run writes nothing."""

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

OTHER = session_id(2)


@pytest.fixture
def path(config_home: ConfigHome) -> Path:
    """A session that was last written long ago."""
    return Path(write_session(config_home.project(), SESSION, conversation(2), mtime=1_700_000_000))


def test_rename(path: Path, cli: Cli, document: Document) -> None:
    """Old and new title; a second time nothing changes, and the title is a locator."""
    data = document("rename", SESSION, "Fix the parser")["data"]
    assert data == {
        "session_id": SESSION,
        "file": str(path),
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


def test_tag_and_clear(path: Path, cli: Cli, document: Document) -> None:
    """``info`` shows a tag, and no removed tag; removing a missing tag changes nothing."""
    assert document("rename", SESSION, "--tag", "experiment")["data"]["written"]
    assert document("info", SESSION)["data"]["tag"] == "experiment"
    cleared = document("rename", SESSION, "--no-tag")["data"]
    assert (cleared["old"], cleared["new"], cleared["written"]) == ("experiment", "", True)
    assert b"Its tag is none already" in cli("rename", SESSION, "--no-tag").stdout


def test_a_taken_title(path: Path, config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """It is refused with 1, and the error names its session; ``--force`` sets it."""
    write_session(
        config_home.project(),
        OTHER,
        [*conversation(1, session_id=OTHER), custom_title("Mine", OTHER)],
    )
    error = document("rename", SESSION, "Mine", code=1)["error"]
    assert error["code"] == "title-taken"
    assert OTHER in error["message"]
    assert document("rename", SESSION, "Mine", "--force")["data"]["written"]
    assert cli("info", "Mine").returncode == 2


def test_a_live_session_is_noted(config_home: ConfigHome, cli: Cli) -> None:
    """The title is set; the note recommends the client's own command."""
    write_session(config_home.project(), SESSION, conversation(1))
    done = cli("rename", SESSION, "New")
    assert done.returncode == 0
    assert b"note: A client may have it open" in done.stderr
