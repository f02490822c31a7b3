"""Tests of ``fork`` on the command line: its cut, its folder, its receipt, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.search.index.probe import uuid_of_text


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session with two turns, a call and its result, and return its path.

    The session's file has the lines 0 to 6.
    """
    rows = [
        *conversation(2),
        tool_use("c", uuid=uuid_of_text(1), parent="r3", ts=5),
        tool_result("c", uuid=uuid_of_text(2), parent=uuid_of_text(1), ts=6),
        custom_title("Fix the parser"),
    ]
    return Path(write_session(config_home.project(), SESSION, rows))


def count_sessions_beside(parent: Path) -> int:
    """Return the number of sessions in the project."""
    return len(list(parent.parent.glob("*.jsonl")))


def test_a_fork_copies_the_whole_session(document: Document, cli: Cli, parent: Path) -> None:
    """``fork`` copies the whole session, and prints a receipt as a document or as text."""
    data = document("fork", SESSION)["data"]
    assert (data["kind"], data["written"], data["cut"], data["title"]) == (
        "fork",
        True,
        None,
        "Fix the parser · fork",
    )
    assert all(check["ok"] for check in data["checks"])
    assert data["commands"]["in_client"] == f"/resume {data['session_id']}"
    text = cli("fork", SESSION, "--dry-run").stdout.decode()
    assert "would write" in text
    assert "Fix the parser · fork 2" in text
    assert count_sessions_beside(parent) == 2


CUTS_BY_NAME = {
    "a line": (("--at", "1"), 1, 1),
    "a reference": (("--at", f"{SESSION[:8]}:1"), 1, 1),
    "a message": (("--at", "msg_r1"), 1, 1),
    "a turn": (("--turn", "1"), 1, 1),
    "from the end": (("--turn", "-2"), 1, 1),
    "an instant": (("--before", "2026-01-31T09:30:02Z"), 1, 1),
    "all": (("--before", "1h"), 5, 2),
}


@pytest.mark.parametrize("name", CUTS_BY_NAME)
def test_a_fork_ends_at_the_given_position(document: Document, parent: Path, name: str) -> None:
    """A fork ends at the given position, whatever its form, and the document names this position."""
    words, record, turn = CUTS_BY_NAME[name]
    found = document("fork", SESSION, *words)
    cut = found["data"]["cut"]
    assert (cut["reference"], cut["turn"], cut["moved"]) == (f"{SESSION}:{record}", turn, False)
    assert found["warnings"] == []


def test_a_fork_reports_a_moved_cut(document: Document, cli: Cli, parent: Path) -> None:
    """If a cut would split a tool call, ``fork`` moves the cut.

    It reports this in the document and on stderr.
    """
    found = document("fork", SESSION, "--at", uuid_of_text(1))
    assert found["data"]["cut"]["moved"] is True
    assert found["warnings"] == [
        "The cut moved forward to record 5, so that no tool call is split."
    ]
    done = cli("fork", SESSION, "--at", uuid_of_text(1))
    assert b"note: The cut moved forward to record 5" in done.stderr
    assert b"the last record kept is 5, in turn 2" in done.stdout


def test_fork_at_a_reference_needs_no_session(document: Document, parent: Path) -> None:
    """``fork --at REFERENCE`` needs no session argument, because the reference names the session.

    If a different session is given too, ``fork`` refuses.
    """
    assert document("fork", "--at", f"{SESSION}:1")["data"]["parent_session_id"] == SESSION
    write_session(parent.parent, session_id(7), [user("another", uuid="x")])
    error = document("fork", session_id(7), "--at", f"{SESSION}:1", code=2)["error"]
    assert "a different session" in error["message"]


def test_a_fork_can_belong_to_a_different_folder(
    document: Document, cli: Cli, parent: Path, tmp_path: Path
) -> None:
    """``fork --home`` and ``fork --here`` make a fork that belongs to a different folder.

    The printed command first changes to that folder.
    """
    new = tmp_path / "new home"
    new.mkdir()
    data = document("fork", SESSION, "--home", str(new))["data"]
    assert data["kind"] == "rehome"
    assert data["commands"]["shell"] == f"cd '{new}' && claude --resume {data['session_id']}"
    assert document("fork", SESSION, "--here", cwd=new, code=0)["data"]["commands"][
        "shell"
    ].startswith(f"cd '{new}'")
    assert (
        f"{new} (was /home/user/proj)" in cli("fork", SESSION, "--home", str(new)).stdout.decode()
    )
    assert count_sessions_beside(parent) == 1


def test_the_default_session_is_the_parent_of_an_empty_child(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """If the newest session is a child without a prompt, its parent is the default session.

    A notice says which session is used and why.
    """
    rows = [{**record, "cwd": str(config_home.root / "here")} for record in conversation(2)]
    write_session(config_home.project(str(config_home.root / "here")), SESSION, rows)
    assert cli("info").stderr == b""
    child = document("fork")["data"]["session_id"]
    done = cli("info", "--json")
    assert SESSION.encode() in done.stdout
    assert (
        done.stderr.decode()
        == f"Using prompt 0 · {SESSION}, not its child {child}, which has no new prompt yet.\n"
    )
    assert cli("info", SESSION).stderr == b""
