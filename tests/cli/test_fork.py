"""fork in the shell: where it is cut, where it is at home, its receipt, and what is refused."""

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
from tests.search.index.probe import uid


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """A session of two turns, a call and its result. Lines 0 to 6."""
    rows = [
        *conversation(2),
        tool_use("c", uuid=uid(1), parent="r3", ts=5),
        tool_result("c", uuid=uid(2), parent=uid(1), ts=6),
        custom_title("Fix the parser"),
    ]
    return Path(write_session(config_home.project(), SESSION, rows))


def files(parent: Path) -> int:
    """The number of sessions in the project."""
    return len(list(parent.parent.glob("*.jsonl")))


def test_a_whole_fork(document: Document, cli: Cli, parent: Path) -> None:
    """The receipt, as a document and in words."""
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
    assert files(parent) == 2


CUTS = {
    "a line": (("--at", "1"), 1, 1),
    "a reference": (("--at", f"{SESSION[:8]}:1"), 1, 1),
    "a message": (("--at", "msg_r1"), 1, 1),
    "a turn": (("--turn", "1"), 1, 1),
    "from the end": (("--turn", "-2"), 1, 1),
    "an instant": (("--before", "2026-01-31T09:30:02Z"), 1, 1),
    "all": (("--before", "1h"), 5, 2),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_cut(document: Document, parent: Path, name: str) -> None:
    """Each form of a position; the document names the position."""
    words, record, turn = CUTS[name]
    found = document("fork", SESSION, *words)
    cut = found["data"]["cut"]
    assert (cut["reference"], cut["turn"], cut["moved"]) == (f"{SESSION}:{record}", turn, False)
    assert found["warnings"] == []


def test_a_place_that_moved(document: Document, cli: Cli, parent: Path) -> None:
    """It is reported, in the document and on stderr."""
    found = document("fork", SESSION, "--at", uid(1))
    assert found["data"]["cut"]["moved"] is True
    assert found["warnings"] == [
        "The cut moved forward to record 5, so that no tool call is split."
    ]
    done = cli("fork", SESSION, "--at", uid(1))
    assert b"note: The cut moved forward to record 5" in done.stderr
    assert b"the last record kept is 5, in turn 2" in done.stdout


def test_a_reference_names_the_session(document: Document, parent: Path) -> None:
    """A separate session is then unnecessary; a different one is refused."""
    assert document("fork", "--at", f"{SESSION}:1")["data"]["parent_session_id"] == SESSION
    write_session(parent.parent, session_id(7), [user("another", uuid="x")])
    error = document("fork", session_id(7), "--at", f"{SESSION}:1", code=2)["error"]
    assert "another session" in error["message"]


def test_another_home(document: Document, cli: Cli, parent: Path, tmp_path: Path) -> None:
    """--home names a folder, --here is the current one; the command leads there."""
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
    assert files(parent) == 1


def test_which_session_is_taken_unnamed(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """The parent, with a notice, while its child has no new prompt."""
    rows = [{**record, "cwd": str(config_home.root / "here")} for record in conversation(2)]
    write_session(config_home.project(str(config_home.root / "here")), SESSION, rows)
    assert cli("info").stderr == b""
    child = document("fork")["data"]["session_id"]
    done = cli("info", "--json")
    assert SESSION.encode() in done.stdout
    assert (
        done.stderr.decode()
        == f"This is about prompt 0 · {SESSION}, not {child}, its child without a prompt.\n"
    )
    assert cli("info", SESSION).stderr == b""
