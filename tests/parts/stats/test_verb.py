"""Tests of the verb ``stats``: its projects, its times, its text and its JSON."""

from __future__ import annotations

import pytest

from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    call,
    conversation,
    iso_time,
    session_id,
    system,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.cli.test_output import RunVerb, assert_colour_is_printed, verb_output

__all__ = ["verb_output"]


NOTICE_COMMAND = "trap 'exit 0' EXIT; . \"$CLAUDE_PLUGIN_ROOT/hooks/notice\" 2>/dev/null"


@pytest.fixture
def sessions_of_two_projects(config_home: ConfigHome) -> None:
    """Write a session of the current folder and a session of another project."""
    here = str(config_home.root / "here")
    rows = [{**row, "cwd": here} for row in conversation(2)]
    rows.append(
        system(
            "stop_hook_summary",
            uuid="s",
            ts=9,
            hookInfos=[{"command": NOTICE_COMMAND, "durationMs": 12}],
        )
    )
    write_session(config_home.project(here), SESSION, rows)
    other = session_id(2)
    write_session(config_home.project("/elsewhere"), other, conversation(5, session_id=other))


@pytest.mark.usefixtures("sessions_of_two_projects")
def test_stats_cover_one_project_or_all(cli: Cli, document: Document) -> None:
    """``stats`` covers the current project, ``--all`` all projects, and ``--project`` the named project."""
    data = document("stats")["data"]
    assert (data["sessions"], data["months"][0]["turns"]) == (1, 2)
    assert data["hooks"] == [
        {"event": "Stop", "ours": True, "times": 1, "median_ms": 12, "p95_ms": 12}
    ]
    assert document("stats", "--all")["data"]["months"][0]["turns"] == 7
    assert document("stats", "--all")["data"]["read"] == 0
    assert cli("stats", "--project", "/nowhere").stdout.startswith(
        b"0 sessions of /nowhere with a turn or an answer"
    )


@pytest.mark.usefixtures("sessions_of_two_projects")
def test_stats_accepts_a_date_or_the_current_month(document: Document) -> None:
    """``stats --since`` counts from a date, and ``--month`` from the first day of the current month."""
    assert document("stats", "--all", "--since", "2026-01-31")["data"]["sessions"] == 2
    assert document("stats", "--all", "--since", "2026-02-01")["data"]["sessions"] == 0
    assert document("stats", "--month")["data"]["since"].endswith("-01")


@pytest.mark.usefixtures("sessions_of_two_projects")
def test_stats_print_tables_that_fit_a_terminal(cli: Cli) -> None:
    """``stats`` prints tables of at most 100 columns, without empty tables."""
    text = cli("stats", "--all").stdout.decode()
    assert text.startswith("2 sessions of every project with a turn or an answer\n")
    assert "MONTH    SESSIONS  TURNS  REQUESTS" in text
    assert "Stop  ours       1   12 ms  12 ms" in text
    assert "SAVED" not in text
    assert "Size of the plugin's folder: " in text
    assert max(map(len, text.split("\n"))) <= 100


def records_of_continued_handoff(parent: str, handoff_id: str, request_tokens: int) -> list[Record]:
    """Return a handoff that a user continued, with a first request of ``request_tokens`` tokens."""
    made = {
        "parent_session_id": parent,
        "continuation_type": "handoff",
        "continued_at": iso_time(9),
        "context_tokens": 300,
    }
    return [
        {"continue_metadata": made},
        user("opening", uuid="o", session_id=handoff_id, ts=9, isCompactSummary=True),
        user("go on", uuid="p", parent="o", session_id=handoff_id, ts=20),
        assistant("yes", uuid="q", parent="p", session_id=handoff_id, ts=21, tokens=request_tokens),
    ]


def test_savings_cover_only_measured_children(config_home: ConfigHome, cli: Cli) -> None:
    """The sums of savings include only children with a known parent. Other children are counted as used."""
    folder = config_home.project()
    write_session(folder, SESSION, conversation(3))
    for number, parent in ((2, SESSION), (3, session_id(9))):
        name = session_id(number)
        write_session(folder, name, records_of_continued_handoff(parent, name, 410))
    lines = cli("stats", "--all").stdout.decode().splitlines()
    (place,) = [place for place, line in enumerate(lines) if "MEASURED" in line]
    assert lines[place].split()[2:] == [
        "KIND",
        "MADE",
        "USED",
        "MEASURED",
        "BEFORE",
        "AFTER",
        "SAVED",
    ]
    assert lines[place + 1].split()[1:] == ["handoff", "2", "2", "1", "1,500", "400", "1,100"]


def test_stats_print_the_calls_before_the_first_edit(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``stats`` prints the number of calls before the first edit."""
    rows = [
        assistant([call(name, name)], uuid=name, ts=1, tokens=100) for name in ("Read", "Write")
    ]
    write_session(config_home.project(), SESSION, rows)
    row = {"kind": "start", "times": 1, "edited": 1, "median": 1, "p75": 1}
    assert document("stats", "--all")["data"]["stretches"] == [row]
    assert (
        "start                   1       1             1     1"
        in cli("stats", "--all").stdout.decode()
    )


@pytest.mark.parametrize(
    "words", [["--since", "soon"], ["--since", "3d", "--month"], ["--all", "--project", "."]]
)
def test_contradictory_stats_options_are_refused(cli: Cli, words: list[str]) -> None:
    """``stats`` refuses contradictory or invalid options."""
    assert cli("stats", *words).returncode == 2


def test_stats_print_no_control_characters(config_home: ConfigHome, cli: Cli) -> None:
    """If a child's first line states its kind with control characters, ``stats`` does not print them."""
    said = {
        "parent_session_id": session_id(9),
        "continuation_type": "\x1b[31mtrim\u202e",
        "continued_at": "2026-01-31",
    }
    rows = [{"continue_metadata": said}, user("x", uuid="u", ts=9)]
    write_session(config_home.project(), SESSION, rows)
    assert b"\x1b" not in cli("stats", "--all", environ={"FORCE_COLOR": "0"}).stdout


def test_stats_print_color_on_request(verb_output: RunVerb) -> None:
    """``stats`` prints colors on a terminal. To a pipe, it prints them only on request."""
    assert_colour_is_printed(verb_output, ["stats", "--all"])
