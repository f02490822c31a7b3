"""Tests of ``sessions``, which prints a table or a document."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.system.text import text_width
from tests.builders import (
    CWD,
    ConfigHome,
    Record,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document


def write_aged_session(
    home: ConfigHome, number: int, *further_records: Record, cwd: str = CWD, age: float = 3_600
) -> str:
    """Write a session with two turns that was changed ``age`` seconds ago, and return its path."""
    name = session_id(number)
    records = [{**record, "cwd": cwd} for record in conversation(2, session_id=name)]
    return write_session(
        home.project(cwd), name, [*records, *further_records], mtime=time.time() - age
    )


def printed_lines(cli: Cli, *words: str, **options: Any) -> list[str]:
    """Run ``sessions`` and return the lines of its output."""
    done = cli("sessions", *words, **options)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_sessions_prints_a_line_for_each_session(config_home: ConfigHome, cli: Cli) -> None:
    """``sessions`` prints a line for each session, with its id at the start and remarks at the end."""
    write_aged_session(config_home, 1, custom_title("Fix the parser"))
    write_aged_session(
        config_home, 2, {"type": "tag", "tag": "draft"}, custom_title("Older"), age=3 * 86_400
    )
    head, first, second = printed_lines(cli, "--project", CWD)
    assert head.split() == ["ID", "AGE", "LEFT", "SIZE", "TURNS", "USED", "TITLE"]
    assert first.split()[:3] == ["00000001", "1h", "29d"]
    assert first.endswith("2    1%  Fix the parser  main")
    assert second.split()[:3] == ["00000002", "3d", "26d"]
    assert second.endswith("Older  #draft · main")
    shown = cli("info", first.split()[0])
    assert session_id(1) in shown.stdout.decode()


@pytest.mark.parametrize("columns", [80, 40, 200, 1])
def test_the_table_fits_the_terminal(config_home: ConfigHome, cli: Cli, columns: int) -> None:
    """``sessions`` cuts titles and remarks at the end so that each line fits the terminal."""
    write_aged_session(
        config_home, 1, custom_title("\u4fee\u6b63" * 40), {"type": "tag", "tag": "x" * 60}
    )
    write_aged_session(
        config_home,
        2,
        custom_title("word " * 16),
        {"type": "agent-name", "agentName": "y" * 90},
        age=90,
    )
    printed = printed_lines(cli, "--project", CWD, environ={"COLUMNS": str(columns)})
    assert max(map(text_width, printed)) <= max(columns, 75)
    assert all(word in "\n".join(printed) for word in ("word", "\u4fee\u6b63"))
    assert "\x1b" not in "".join(printed)


def test_a_pipe_gets_whole_titles(config_home: ConfigHome, cli: Cli) -> None:
    """In a pipe, ``sessions`` prints whole titles."""
    write_aged_session(config_home, 1, custom_title("word " * 16))
    assert printed_lines(cli, "--project", CWD)[1].count("word") == 16


def test_the_table_removes_control_characters(config_home: ConfigHome, cli: Cli) -> None:
    """``sessions`` removes control characters and other characters that hide or reorder text."""
    write_aged_session(
        config_home, 1, custom_title("a\x1b[2J\u202eb\nc"), {"type": "tag", "tag": "\x9b31mred\x07"}
    )
    (_, row) = printed_lines(cli, "--project", CWD)
    assert row.endswith("ab c  #red · main")


def test_the_table_shows_a_dash_for_unknown_numbers(config_home: ConfigHome, cli: Cli) -> None:
    """``sessions`` prints a dash for an unknown number of tokens and for a session that never expires."""
    write_session(
        config_home.project(), session_id(1), [user("hello", uuid="u")], mtime=time.time() - 90
    )
    (config_home.config / "settings.json").write_text('{"cleanupPeriodDays": 0}', encoding="utf-8")
    (_, row) = printed_lines(cli, "--project", CWD)
    assert row.split()[1:3] == ["1m", "-"]
    assert row.split()[6] == "-"


def test_sessions_reports_an_empty_list(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """Without sessions, ``sessions`` prints a message that names ``--all``, and exits with code 0."""
    assert printed_lines(cli, "--project", "/nowhere") == [
        "There are no sessions of /nowhere. --all lists the sessions of every project.",
    ]
    assert printed_lines(cli, "--all") == ["There are no sessions anywhere."]
    write_aged_session(config_home, 1)
    assert printed_lines(cli, "--all", "--offset", "5") == [
        "After the first 5, there are no sessions anywhere."
    ]
    assert document("sessions", "--project", "/nowhere")["data"]["sessions"] == []


def test_sessions_does_not_follow_a_linked_project(
    config_home: ConfigHome, cli: Cli, tmp_path: Path
) -> None:
    """``sessions`` does not follow a link in place of a project's folder, and a note mentions the link."""
    folder = os.path.dirname(write_aged_session(config_home, 1))
    os.rename(folder, tmp_path / "moved")
    os.symlink(tmp_path / "moved", folder)
    done = cli("sessions", "--all")
    assert done.stdout.decode() == "There are no sessions anywhere.\n"
    assert done.stderr.decode().startswith(
        f"note: {folder} is a symbolic link, and links are not followed"
    )


def test_sessions_prints_pages(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """``sessions --limit`` prints one page. The last line contains the options that print the next page."""
    for number in range(1, 6):
        write_aged_session(config_home, number, age=number * 100)
    assert (
        printed_lines(cli, "--all", "--limit", "2")[-1]
        == "To see more: --offset 2, or --limit 0 for all."
    )
    assert len(printed_lines(cli, "--all", "--limit", "0")) == 6
    page = document("sessions", "--all", "--limit", "2", "--offset", "2")["data"]
    assert [row["session_id"] for row in page["sessions"]] == [session_id(3), session_id(4)]
    assert (page["scope"], page["offset"], page["more"], page["files"]) == ("all", 2, True, 5)


def test_headless_runs_are_mentioned(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """If headless runs are omitted, the last line of ``sessions`` counts them.

    It also names the option that lists them.
    """
    write_aged_session(config_home, 1)
    for number in (2, 3):
        name = session_id(number)
        once = [
            {**record, "entrypoint": "sdk-cli", "cwd": CWD}
            for record in conversation(1, session_id=name)
        ]
        write_session(config_home.project(), name, once, mtime=time.time() - 3_600)
    assert (
        printed_lines(cli, "--all")[-1]
        == "Not listed: 2 headless runs with a single question; --helpers lists these runs."
    )
    assert document("sessions", "--all")["data"]["helpers"] == 2
    assert (
        len(printed_lines(cli, "--all", "--helpers")),
        document("sessions", "--all", "--helpers")["data"]["helpers"],
    ) == (
        4,
        0,
    )


def test_the_json_document_of_sessions_describes_each_session(
    config_home: ConfigHome, document: Document
) -> None:
    """The JSON document of ``sessions`` has each session's id, file, sizes, remaining days and command."""
    path = write_aged_session(config_home, 1, custom_title("Fix the parser"))
    (row,) = document("sessions", "--project", CWD)["data"]["sessions"]
    assert (row["session_id"], row["session_file"], row["title"]) == (
        session_id(1),
        path,
        "Fix the parser",
    )
    assert row["context"] == {
        "tokens": 1_300,
        "window": 200_000,
        "window_known": True,
        "kind": "measured",
        "reason": "",
        "measured": True,
        "percent": 1,
    }
    assert (row["turns"], row["size"], row["expires_days"], row["open"]) == (
        2,
        os.path.getsize(path),
        29,
        False,
    )
    assert row["commands"]["shell"] == f"cd {CWD} && claude --resume {session_id(1)}"


def test_the_table_names_other_folders(config_home: ConfigHome, cli: Cli) -> None:
    """``sessions --all`` shows the folders of other projects, relative to the home folder."""
    write_aged_session(config_home, 1, cwd=str(config_home.root / "work"))
    (_, row) = printed_lines(cli, "--all")
    assert row.endswith("in work")
    (_, row) = printed_lines(cli, "--project", "~/work")
    assert row.endswith("main")
