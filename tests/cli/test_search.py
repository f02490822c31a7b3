"""Tests of ``search`` on the command line. It prints a text of a limited length or a document."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from resume_hooks.search.hits import strength_of_confidence
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.cli.test_main import output_on_terminal
from tests.search.asking import write_talk
from tests.search.index.probe import uuid_of_text


@pytest.fixture
def home_with_three_sessions(config_home: ConfigHome) -> ConfigHome:
    """Write two sessions in the current folder and one in another folder."""
    here = str(config_home.root / "here")
    write_talk(config_home, 1, "why did we drop redis?", "because of the timeouts", cwd=here)
    write_talk(
        config_home,
        2,
        "is redis back?",
        "no, redis is gone",
        custom_title("The cache", session_id(2)),
        cwd=here,
    )
    write_talk(config_home, 3, "redis elsewhere", "yes")
    return config_home


def test_search_prints_sessions_and_hits(cli: Cli, home_with_three_sessions: ConfigHome) -> None:
    """For each session, ``search`` prints a command that resumes it; for each hit, one that reads it."""
    done = cli("search", "redis", "-drop")
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().rstrip("\n").split("\n")
    assert lines[0].startswith("resume-hooks search: redis -drop · 1 turn · without drop · ")
    assert lines[2] == f"The cache · {session_id(2)}"
    assert (
        lines[3]
        == f"  resume: cd {home_with_three_sessions.root}/here && claude --resume {session_id(2)}"
    )
    assert lines[-3].startswith("  strong · 00000002:")
    assert lines[-1].startswith("    read: resume-hooks read 00000002:")


def test_search_prints_the_command_for_more_hits(
    cli: Cli, home_with_three_sessions: ConfigHome
) -> None:
    """The output of ``search`` ends with the command that prints more hits.

    If the query is long, the output shows only the options of this command.
    """
    lines = cli("search", "redis or why", "--all", "--limit", "1").stdout.decode().splitlines()
    assert (
        lines[-1]
        == "2 more turns: resume-hooks search 'redis or why' --all --limit 3 --max-chars 0"
    )
    assert (
        cli("search", "redis", "x" * 200, "--limit", "1")
        .stdout.decode()
        .splitlines()[-1]
        .endswith("turn: --limit 2 --max-chars 0")
    )


def test_options_choose_the_scope_of_a_search(
    document: Document, home_with_three_sessions: ConfigHome
) -> None:
    """Options choose the scope of ``search``, and the document names the scope.

    The scope is this project, another project, all projects, one session or a lineage.
    """
    for words, scope, sessions in [
        ([], str(home_with_three_sessions.root / "here"), {1, 2}),
        (["--project", CWD], CWD, {3}),
        (["--project", "../here"], str(home_with_three_sessions.root / "here"), {1, 2}),
        (["--all"], "all", {1, 2, 3}),
        (["--session", session_id(3)], "session", {3}),
        (["--lineage", "00000001"], "lineage", {1}),
    ]:
        data = document("search", "redis", *words)["data"]
        assert {int(hit["session_id"][:8], 16) for hit in data["hits"]} == sessions
        assert data["scope"] == scope
        assert data["total"] == len(data["hits"])


def test_search_finds_hits_in_a_lineage(
    document: Document, home_with_three_sessions: ConfigHome
) -> None:
    """``search --lineage`` finds hits in a session and its ancestors; "." means the current session."""
    folder = Path(home_with_three_sessions.config, "projects").glob("*here*")
    metadata = {
        "continue_metadata": {"parent_session_id": session_id(1), "parent_session_file": ""}
    }
    asked = user(
        "and redis now?",
        uuid=uuid_of_text("now"),
        session_id=SESSION,
        cwd=str(home_with_three_sessions.root / "here"),
    )
    write_session(next(folder), SESSION, [metadata, asked])
    data = document("search", "redis", "--lineage", ".")["data"]
    assert {hit["session_id"] for hit in data["hits"]} == {SESSION, session_id(1)}
    data = document("search", "redis", "--session", ".")["data"]
    assert {hit["session_id"] for hit in data["hits"]} == {SESSION}


def test_search_finds_hits_in_a_subagent(
    document: Document, home_with_three_sessions: ConfigHome
) -> None:
    """``search --session SESSION/AGENT`` searches a sub-agent."""
    (path,) = Path(home_with_three_sessions.config, "projects").glob(f"*/{session_id(3)}.jsonl")
    said = user(
        "redis of the agent", uuid=uuid_of_text("a"), session_id=session_id(3), isSidechain=True
    )
    write_session(path.with_suffix("") / "subagents", "agent-a1", [said])
    data = document("search", "redis", "--session", f"{session_id(3)}/agent-a1")["data"]
    assert [hit["reference"] for hit in data["hits"]] == [f"{session_id(3)}/agent-a1:0"]


def test_the_json_document_of_search_has_every_field(
    document: Document, home_with_three_sessions: ConfigHome
) -> None:
    """The JSON document of ``search`` has every field, with full references and commands for a shell."""
    found = document("search", "timeouts", "redis", "quux")
    data = found["data"]
    assert (data["query"], data["also"], found["warnings"]) == ("timeouts redis quux", [], [])
    assert data["how"] == "no match for quux"
    hit = data["hits"][0]
    assert (hit["words"], hit["missing"]) == (["timeouts", "redis"], ["quux"])
    assert (hit["strength"], hit["found_by"]) == (strength_of_confidence(hit["confidence"]), [])
    assert hit["reference"] == f"{hit['session_id']}:{0 if hit['role'] == 'prompt' else 1}"
    assert hit["commands"] == {
        "read": f"resume-hooks read {hit['reference']}",
        "resume": f"cd {home_with_three_sessions.root}/here && claude --resume {hit['session_id']}",
        "handoff": f"resume-hooks handoff {hit['session_id']}",
    }


def test_hits_name_the_wordings_that_found_them(
    cli: Cli, document: Document, home_with_three_sessions: ConfigHome
) -> None:
    """Each hit contains the numbers of the wordings that found it.

    The wordings are numbered in the order in which the user typed them.
    """
    words = ("search", "drop redis", "--or", "because of timeouts", "--or", "is it back")
    data = document(*words)["data"]
    assert (data["query"], data["also"]) == ("drop redis", ["because of timeouts", "is it back"])
    assert [(hit["session_id"], hit["found_by"]) for hit in data["hits"]] == [
        (session_id(1), [1, 2]),
        (session_id(2), [1, 3]),
    ]
    shown = cli(*words).stdout.decode()
    assert shown.startswith(
        "resume-hooks search: (1) drop redis (2) because of timeouts (3) is it back · 2 turns · "
    )
    assert " · found by (1) (2)\n" in shown


def test_a_search_without_hits_is_not_a_failure(
    cli: Cli, document: Document, home_with_three_sessions: ConfigHome
) -> None:
    """A search without hits says that nothing was found and exits with code 0.

    If there are no sessions at all, it prints a different message.
    """
    done = cli("search", "quux")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Nothing found (no match for quux)." in done.stdout
    assert done.stdout.startswith(
        b"resume-hooks search: nothing close: ask again in other words \xc2\xb7 quux \xc2\xb7 "
    )
    data = document("search", "quux")["data"]
    assert data["nothing_close"] is True
    assert not document("search", "redis")["data"]["nothing_close"]
    found = document("search", "redis", "--project", "/nowhere")
    assert (found["data"]["hits"], found["warnings"]) == (
        [],
        ["There are no sessions to search"],
    )
    assert (
        b"to search: --all looks in every project."
        in cli("search", "redis", "--project", "/nowhere").stdout
    )


@pytest.mark.parametrize(
    "time_text", ["9999y", "0001-01-01", "9999-12-31", "12h", "2026-01-31T09:30:00+02:00", "6m"]
)
def test_search_accepts_dates_times_and_durations(
    document: Document, home_with_three_sessions: ConfigHome, time_text: str
) -> None:
    """``search`` accepts dates, times and durations for ``--since`` and ``--until``."""
    assert document("search", "redis", "--since", time_text)["ok"]
    assert document("search", "--until", time_text)["ok"]


def test_quoted_options_are_search_words(
    document: Document, home_with_three_sessions: ConfigHome
) -> None:
    """If an option is quoted, ``search`` treats it as search words, even at the beginning of a query."""
    for words in (['"--redis"'], ["--redis back then"], ["back", '"redis"']):
        assert document("search", *words)["ok"]


@pytest.mark.parametrize("budget", [1, 40, 150, 400, 1_000, 3_000])
def test_the_budget_of_a_search_includes_every_character(
    cli: Cli, home_with_three_sessions: ConfigHome, budget: int
) -> None:
    """With ``--max-chars``, the output has at most that many characters, including the last line break."""
    done = cli("search", "redis", "--all", "--max-chars", str(budget))
    assert 0 < len(done.stdout.decode()) <= budget or budget == 1


def test_search_accepts_bytes_that_are_not_utf_8(
    cli: Cli, home_with_three_sessions: ConfigHome
) -> None:
    """``search`` accepts words that are not UTF-8, but they match nothing."""
    done = cli(
        "search", "redis", os.fsdecode(b"\xff\xfe"), "--branch", os.fsdecode(b"\xff"), "--json"
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["ok"]


def test_search_works_without_a_state_folder(
    cli: Cli, home_with_three_sessions: ConfigHome
) -> None:
    """If the state folder cannot be written to, ``search`` uses a temporary index and prints a note."""
    (home_with_three_sessions.root / "file").write_text("")
    done = cli(
        "search",
        "redis",
        environ={"RESUME_HOOKS_HOME": str(home_with_three_sessions.root / "file" / "state")},
    )
    assert done.returncode == 0
    assert b"00000002:" in done.stdout
    assert b"A temporary index was used" in done.stderr


STYLE_SEQUENCE_PATTERN = re.compile(r"\x1b\[[0-9;]*m")


def test_search_highlights_only_on_a_terminal(
    home_with_three_sessions: ConfigHome, cli: Cli
) -> None:
    """``search`` highlights the found words on a terminal, but not in a pipe or with NO_COLOR.

    It never prints escape sequences that a transcript contains.
    """
    write_talk(home_with_three_sessions, 4, "\x1b[31mthe quux\x1b[2J is here", "ok")
    shown = output_on_terminal(home_with_three_sessions, "search", "quux", "--all").decode()
    assert "\x1b[33m\x1b[1mquux\x1b[0m" in shown
    assert set(STYLE_SEQUENCE_PATTERN.findall(shown)) == {"\x1b[1m", "\x1b[33m", "\x1b[0m"}
    assert "\x1b" not in STYLE_SEQUENCE_PATTERN.sub("", shown)
    assert b"\x1b" not in output_on_terminal(
        home_with_three_sessions, "search", "quux", "--all", NO_COLOR="1"
    )
    assert b"\x1b" not in cli("search", "quux", "--all").stdout


def test_search_does_not_find_its_own_output(
    cli: Cli, home_with_three_sessions: ConfigHome
) -> None:
    """``search`` does not find tool results that contain the output of this program."""
    shown = cli("search", "redis").stdout.decode()
    results = [{"type": "tool_result", "tool_use_id": "t", "content": shown}]
    output = user(results, uuid=uuid_of_text("own"), session_id=session_id(5))
    write_talk(home_with_three_sessions, 5, *conversation(1), output)
    data = json.loads(cli("search", "redis", "--all", "--json").stdout)["data"]
    assert session_id(5) not in {hit["session_id"] for hit in data["hits"]}
