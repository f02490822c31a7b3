"""checkpoint and rewind in the shell: the mark, its receipt, the child, and when nothing is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import SESSION, ConfigHome, assistant, conversation, custom_title, line, user, write_session
from tests.cli.conftest import Cli, Document


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """A session of two turns."""
    return Path(write_session(config_home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]))


def explore(parent: Path) -> None:
    """Somebody goes on in the session."""
    with parent.open("ab") as stream:
        stream.write(line(user("EXPLORE", uuid="x", parent="r3", ts=50)) + b"\n")
        stream.write(line(assistant("EXPLORED", uuid="y", parent="x", ts=51, tokens=9_000)) + b"\n")


def test_set_show_clear(document: Document, cli: Cli, parent: Path) -> None:
    """Each says which checkpoint it is about; clearing twice is no failure."""
    assert document("checkpoint", SESSION, "--show")["data"]["checkpoint"] is None
    found = document("checkpoint", SESSION, "-g", "try it")["data"]
    assert (found["written"], found["active"], found["replaced"]) == (True, True, None)
    row = found["checkpoint"]
    assert (row["uuid"], row["reference"], row["goal"]) == ("r3", f"{SESSION}:3", "try it")
    assert document("checkpoint", SESSION, "--show")["data"]["checkpoint"] == row
    text = cli("checkpoint", SESSION, "--show").stdout.decode()
    assert "try it" in text
    assert f"resume-hooks rewind {SESSION} --report TEXT" in text
    assert document("checkpoint", SESSION, "--clear", "--dry-run")["data"]["written"] is False
    cleared = document("checkpoint", SESSION, "--clear")["data"]
    assert (cleared["written"], cleared["active"], cleared["checkpoint"]) == (True, False, row)
    assert document("checkpoint", SESSION, "--clear")["data"]["written"] is False
    assert b"No active checkpoint." in cli("checkpoint", SESSION, "--show").stdout


def test_a_second_one_needs_a_yes(document: Document, parent: Path) -> None:
    """An expected failure that names the old goal; the same again is nothing to do."""
    document("checkpoint", SESSION, "-g", "old")
    assert document("checkpoint", SESSION, "-g", "old")["data"]["written"] is False
    explore(parent)
    error = document("checkpoint", SESSION, "-g", "new", code=1)["error"]
    assert "'old'" in error["message"]
    assert "--yes" in error["remedy"]
    found = document("checkpoint", SESSION, "-g", "new", "--yes")["data"]
    assert (found["checkpoint"]["uuid"], found["replaced"]["goal"]) == ("y", "old")


def test_a_dry_run_marks_nothing(document: Document, parent: Path) -> None:
    """It says what would be marked."""
    found = document("checkpoint", SESSION, "--dry-run")["data"]
    assert (found["written"], found["checkpoint"]["uuid"]) == (False, "r3")
    assert document("checkpoint", SESSION, "--show")["data"]["checkpoint"] is None


@pytest.mark.parametrize("words", [("--show", "--clear"), ("--show", "-g", "x"), ("--clear", "--yes")])
def test_options_that_exclude_each_other(cli: Cli, parent: Path, words: tuple[str, ...]) -> None:
    """A usage error."""
    done = cli("checkpoint", SESSION, *words)
    assert done.returncode == 2
    assert b"exclude each other" in done.stderr


def test_rewind(document: Document, cli: Cli, parent: Path) -> None:
    """The receipt; the report comes from the command line or from standard input; the mark is used up."""
    document("checkpoint", SESSION, "-g", "try it")
    explore(parent)
    raw = parent.read_bytes()
    shown = document("rewind", SESSION, "--report", "slower", "--dry-run")["data"]
    assert (shown["written"], shown["rewind"]["first_left_out"]) == (False, f"{SESSION}:5")
    assert sorted(parent.parent.iterdir()) == [parent]
    data = document("rewind", SESSION, "--report", "-", stdin="slöwer\n".encode())["data"]
    assert (data["kind"], data["written"], data["title"]) == ("rewind", True, "Fix the parser · back")
    assert data["rewind"] == {
        "checkpoint": f"{SESSION}:3",
        "goal": "try it",
        "started_at": data["rewind"]["started_at"],
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
    done = cli("rewind", SESSION, "--report", "slower")
    assert (done.returncode, done.stderr.decode().split("\n")[0]) == (1, "resume-hooks: No active checkpoint.")
    assert document("rewind", SESSION, "--report", "x", code=1)["error"]["code"] == "no-checkpoint"


def test_rewind_in_words(cli: Cli, parent: Path) -> None:
    """What is left out, what is not rewound, and how to go on."""
    cli("checkpoint", SESSION)
    explore(parent)
    text = cli("rewind", SESSION, "--report", "slower").stdout.decode()
    for part in ("not in the new session, still in the old one: 11111111:5 to 11111111:6", "not rewound", "/resume "):
        assert part in text


@pytest.mark.parametrize("report", ["", " \n", "\u200b", "\x1b[31m"])
def test_an_empty_report(cli: Cli, document: Document, parent: Path, report: str) -> None:
    """In the exact words, as a usage error; also from standard input."""
    cli("checkpoint", SESSION)
    assert document("rewind", SESSION, "--report", report, code=2)["error"]["message"] == "Report cannot be empty."
    assert b"Report cannot be empty." in cli("rewind", SESSION, "--report", "-", stdin=report.encode()).stderr
    assert cli("rewind", SESSION).returncode == 2


def test_a_report_that_is_too_long(document: Document, cli: Cli, parent: Path) -> None:
    """From standard input, of which no more is read than that."""
    cli("checkpoint", SESSION)
    error = document("rewind", SESSION, "--report", "-", stdin=b"r" * 3_000_000, code=2)["error"]
    assert "more than 500,000" in error["message"]
    assert document("checkpoint", SESSION, "--show")["data"]["active"] is True


def test_sub_agents(document: Document, config_home: ConfigHome, parent: Path) -> None:
    """By name and by path, for both verbs, in the exact words."""
    folder = parent.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    path = folder / "agent-a1b2c3.jsonl"
    path.write_bytes(b"".join(line({**record, "isSidechain": True}) + b"\n" for record in conversation(1)))
    for locator in (f"{SESSION}/agent-a1b2c3", str(path)):
        for words in (("checkpoint", locator), ("rewind", locator, "--report", "x")):
            error = document(*words, code=2)["error"]
            assert (error["code"], error["message"]) == ("in-subagent", "Checkpoint not available in subagents.")


def test_another_folder(document: Document, parent: Path, tmp_path: Path) -> None:
    """The child goes there, with a warning."""
    document("checkpoint", SESSION)
    explore(parent)
    found = document("rewind", SESSION, "--report", "x", "--output-dir", str(tmp_path))
    assert os.path.dirname(found["data"]["file"]) == str(tmp_path)
    assert "--resume will not find it" in found["warnings"][0]


def test_slash_bodies(cli: Cli, parent: Path) -> None:
    """Where no hook fires, the bodies of the commands do the same."""
    assert "checkpoint set" in cli("slash", "checkpoint", SESSION, stdin=b"try it").stdout.decode()
    explore(parent)
    text = cli("slash", "rewind", SESSION, stdin=b"slower\n\nso we stay\n").stdout.decode()
    assert text.startswith("rewound")
    assert "report: slower so we stay" in text
