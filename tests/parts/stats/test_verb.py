"""``stats`` as it is typed: scopes, times, text and document."""

from __future__ import annotations

import pytest

from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    call,
    conversation,
    instant,
    session_id,
    system,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.cli.test_output import Told, assert_styled, verb_output

__all__ = ["verb_output"]


NOTICE = "trap 'exit 0' EXIT; . \"$CLAUDE_PLUGIN_ROOT/hooks/notice\" 2>/dev/null"


@pytest.fixture
def sessions(config_home: ConfigHome) -> None:
    """One of the folder that verbs run in, one of another project."""
    here = str(config_home.root / "here")
    rows = [{**row, "cwd": here} for row in conversation(2)]
    rows.append(
        system(
            "stop_hook_summary", uuid="s", ts=9, hookInfos=[{"command": NOTICE, "durationMs": 12}]
        )
    )
    write_session(config_home.project(here), SESSION, rows)
    other = session_id(2)
    write_session(config_home.project("/elsewhere"), other, conversation(5, session_id=other))


@pytest.mark.usefixtures("sessions")
def test_this_project_or_all(cli: Cli, document: Document) -> None:
    """The folder's by default, another one's, everything."""
    data = document("stats")["data"]
    assert (data["sessions"], data["months"][0]["turns"]) == (1, 2)
    assert data["hooks"] == [
        {"event": "Stop", "ours": True, "times": 1, "median_ms": 12, "p95_ms": 12}
    ]
    assert document("stats", "--all")["data"]["months"][0]["turns"] == 7
    assert document("stats", "--all")["data"]["read"] == 0
    assert cli("stats", "--project", "/nowhere").stdout.startswith(
        b"0 sessions with a turn or an answer of /nowhere"
    )


@pytest.mark.usefixtures("sessions")
def test_from_a_day_on(document: Document) -> None:
    """A date, or so far back; the months before are omitted."""
    assert document("stats", "--all", "--since", "2026-01-31")["data"]["sessions"] == 2
    assert document("stats", "--all", "--since", "2026-02-01")["data"]["sessions"] == 0
    assert document("stats", "--month")["data"]["since"].endswith("-01")


@pytest.mark.usefixtures("sessions")
def test_as_text(cli: Cli) -> None:
    """Tables that fit a terminal, without what there is nothing of."""
    text = cli("stats", "--all").stdout.decode()
    assert text.startswith("2 sessions with a turn or an answer of every project\n")
    assert "MONTH    SESSIONS  TURNS  REQUESTS" in text
    assert "Stop  ours       1   12 ms  12 ms" in text
    assert "SAVED" not in text
    assert "Our folder: " in text
    assert max(map(len, text.split("\n"))) <= 100


def a_used_child(parent: str, name: str, tokens: int) -> list[Record]:
    """A handoff of a session in which somebody continued; its first own request had so many tokens."""
    made = {
        "parent_session_id": parent,
        "continuation_type": "handoff",
        "continued_at": instant(9),
        "context_tokens": 300,
    }
    return [
        {"continue_metadata": made},
        user("opening", uuid="o", session_id=name, ts=9, isCompactSummary=True),
        user("go on", uuid="p", parent="o", session_id=name, ts=20),
        assistant("yes", uuid="q", parent="p", session_id=name, ts=21, tokens=tokens),
    ]


def test_of_how_many_children_savings_are(config_home: ConfigHome, cli: Cli) -> None:
    """Of two that were used, one has a parent whose size is known: the sums are those of that one."""
    folder = config_home.project()
    write_session(folder, SESSION, conversation(3))
    for number, parent in ((2, SESSION), (3, session_id(9))):
        name = session_id(number)
        write_session(folder, name, a_used_child(parent, name, 410))
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


def test_first_edits_as_text(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """Of two calls the second one writes."""
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
def test_contradictory_options(cli: Cli, words: list[str]) -> None:
    """They are a usage error."""
    assert cli("stats", *words).returncode == 2


def test_hostile_words_reach_no_terminal(config_home: ConfigHome, cli: Cli) -> None:
    """A kind out of a first line is shown without its controls."""
    said = {
        "parent_session_id": session_id(9),
        "continuation_type": "\x1b[31mtrim\u202e",
        "continued_at": "2026-01-31",
    }
    rows = [{"continue_metadata": said}, user("x", uuid="u", ts=9)]
    write_session(config_home.project(), SESSION, rows)
    assert b"\x1b" not in cli("stats", "--all", environ={"FORCE_COLOR": "0"}).stdout


def test_colour_where_it_is_wanted(verb_output: Told) -> None:
    """On a terminal, and in a pipe that asks for it."""
    assert_styled(verb_output, ["stats", "--all"])
