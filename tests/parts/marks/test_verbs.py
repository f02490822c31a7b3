"""Tests of ``mark`` and ``back`` in the shell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    line,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session of two turns and return its path."""
    return Path(
        write_session(
            config_home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]
        )
    )


def continue_session(parent: Path) -> None:
    """Append a turn to the session."""
    with parent.open("ab") as stream:
        stream.write(line(user("EXPLORE", uuid="x", parent="r3", ts=50)) + b"\n")
        stream.write(line(assistant("EXPLORED", uuid="y", parent="x", ts=51, tokens=9_000)) + b"\n")


def test_mark_sets_shows_and_clears_a_mark(document: Document, cli: Cli, parent: Path) -> None:
    """``mark`` sets a mark, ``--show`` shows it, and ``--clear`` deletes it."""
    assert document("mark", SESSION, "--show")["data"]["mark"] is None
    found = document("mark", SESSION, "-g", "try it")["data"]
    assert (found["written"], found["active"], found["replaced"]) == (True, True, None)
    row = found["mark"]
    assert (row["uuid"], row["reference"], row["goal"]) == ("r3", f"{SESSION}:3", "try it")
    assert document("mark", SESSION, "--show")["data"]["mark"] == row
    text = cli("mark", SESSION, "--show").stdout.decode()
    assert "try it" in text
    assert f"resume-hooks back {SESSION} --report TEXT" in text
    assert document("mark", SESSION, "--clear", "--dry-run")["data"]["written"] is False
    cleared = document("mark", SESSION, "--clear")["data"]
    assert (cleared["written"], cleared["active"], cleared["mark"]) == (True, False, row)
    assert document("mark", SESSION, "--clear")["data"]["written"] is False
    assert b"No active mark." in cli("mark", SESSION, "--show").stdout


def test_a_second_mark_needs_yes(document: Document, parent: Path) -> None:
    """``mark`` refuses to replace another mark without ``--yes``. Repeating the same mark changes nothing."""
    document("mark", SESSION, "-g", "old")
    assert document("mark", SESSION, "-g", "old")["data"]["written"] is False
    continue_session(parent)
    error = document("mark", SESSION, "-g", "new", code=1)["error"]
    assert "'old'" in error["message"]
    assert "--yes" in error["remedy"]
    found = document("mark", SESSION, "-g", "new", "--yes")["data"]
    assert (found["mark"]["uuid"], found["replaced"]["goal"]) == ("y", "old")


def test_a_dry_run_sets_no_mark(document: Document, parent: Path) -> None:
    """``mark --dry-run`` shows the mark without setting it."""
    found = document("mark", SESSION, "--dry-run")["data"]
    assert (found["written"], found["mark"]["uuid"]) == (False, "r3")
    assert document("mark", SESSION, "--show")["data"]["mark"] is None


@pytest.mark.parametrize(
    "words", [("--show", "--clear"), ("--show", "-g", "x"), ("--clear", "--yes")]
)
def test_contradictory_mark_options_are_refused(
    cli: Cli, parent: Path, words: tuple[str, ...]
) -> None:
    """``mark`` refuses contradictory options."""
    done = cli("mark", SESSION, *words)
    assert done.returncode == 2
    assert b"can't be combined" in done.stderr


def test_back_writes_a_child_and_uses_up_the_mark(
    document: Document, cli: Cli, parent: Path
) -> None:
    """``back`` writes a child and deletes the mark.

    The option ``--report`` gives the report. With the value ``-``, it is read from standard input.
    """
    document("mark", SESSION, "-g", "try it")
    continue_session(parent)
    raw = parent.read_bytes()
    shown = document("back", SESSION, "--report", "slower", "--dry-run")["data"]
    assert (shown["written"], shown["back"]["first_left_out"]) == (False, f"{SESSION}:5")
    assert sorted(parent.parent.iterdir()) == [parent]
    data = document("back", SESSION, "--report", "-", stdin="slöwer\n".encode())["data"]
    assert (data["kind"], data["written"], data["title"]) == ("back", True, "Fix the parser · back")
    assert data["back"] == {
        "mark": f"{SESSION}:3",
        "goal": "try it",
        "started_at": data["back"]["started_at"],
        "left": None,
        "resolved": True,
        "report_characters": 6,
        "first_left_out": f"{SESSION}:5",
        "last_left_out": f"{SESSION}:6",
    }
    content = Path(data["file"]).read_text()
    assert "slöwer" in content
    assert "EXPLORE" not in content
    assert parent.read_bytes() == raw
    done = cli("back", SESSION, "--report", "slower")
    assert (done.returncode, done.stderr.decode().split("\n")[0]) == (
        1,
        "resume-hooks: No active mark.",
    )
    assert document("back", SESSION, "--report", "x", code=1)["error"]["code"] == "no-mark"


def test_back_prints_a_receipt(cli: Cli, parent: Path) -> None:
    """The receipt of ``back`` lists the omitted records and the command that continues the child."""
    cli("mark", SESSION)
    continue_session(parent)
    text = cli("back", SESSION, "--report", "slower").stdout.decode()
    for part in (
        "left out of the new session, but still in the old one: 11111111:5 to 11111111:6",
        "stay as they are",
        "/resume ",
    ):
        assert part in text


@pytest.mark.parametrize("report", ["", " \n", "\u200b", "\x1b[31m"])
def test_an_empty_report_is_a_usage_error(
    cli: Cli, document: Document, parent: Path, report: str
) -> None:
    """``back`` refuses an empty report, whether it comes from the option or from standard input."""
    cli("mark", SESSION)
    assert (
        document("back", SESSION, "--report", report, code=2)["error"]["message"]
        == "The report cannot be empty."
    )
    assert (
        b"The report cannot be empty."
        in cli("back", SESSION, "--report", "-", stdin=report.encode()).stderr
    )
    assert cli("back", SESSION).returncode == 2


def test_an_overlong_report_is_a_usage_error(document: Document, cli: Cli, parent: Path) -> None:
    """``back`` refuses a report of more than 500,000 characters and keeps the mark."""
    cli("mark", SESSION)
    error = document("back", SESSION, "--report", "-", stdin=b"r" * 3_000_000, code=2)["error"]
    assert "more than 500,000" in error["message"]
    assert document("mark", SESSION, "--show")["data"]["active"] is True


def test_sub_agents_are_refused(document: Document, config_home: ConfigHome, parent: Path) -> None:
    """``mark`` and ``back`` refuse a sub-agent, by name and by path."""
    folder = parent.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    path = folder / "agent-a1b2c3.jsonl"
    path.write_bytes(
        b"".join(line({**record, "isSidechain": True}) + b"\n" for record in conversation(1))
    )
    for locator in (f"{SESSION}/agent-a1b2c3", str(path)):
        for words in (("mark", locator), ("back", locator, "--report", "x")):
            error = document(*words, code=2)["error"]
            assert (error["code"], error["message"]) == ("in-subagent", "A sub-agent has no marks")


def test_back_can_write_to_another_folder(document: Document, parent: Path, tmp_path: Path) -> None:
    """``back --output-dir`` writes the child to the given folder.

    A warning says that the client will not find the child.
    """
    document("mark", SESSION)
    continue_session(parent)
    found = document("back", SESSION, "--report", "x", "--output-dir", str(tmp_path))
    assert os.path.dirname(found["data"]["file"]) == str(tmp_path)
    assert "--resume will not find it" in found["warnings"][0]


def test_the_verb_slash_does_the_same_as_the_triggers(cli: Cli, parent: Path) -> None:
    """The verb ``slash`` does the same as the triggers. The client's commands call this verb."""
    assert "mark set" in cli("slash", "mark", SESSION, stdin=b"try it").stdout.decode()
    continue_session(parent)
    text = cli("slash", "back", SESSION, stdin=b"slower\n\nso we stay\n").stdout.decode()
    assert text.startswith("back")
    assert "report: slower so we stay" in text
