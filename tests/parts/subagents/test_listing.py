"""Tests of ``sessions --subagents``, which lists each sub-agent with its session and task."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.parts.subagents.as_session import read_inline_subagents
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    session_bytes,
    session_id,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.needs import corpus
from tests.parts.subagents.test_children import (
    SUBAGENT_NAME,
    make_subagent_records,
    session_with_subagent,
)

INLINE_TRANSCRIPT = "d-kimuson__claude-code-viewer/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl"


def make_inline_subagent_records(
    number: int, task: str, **fields: object
) -> list[dict[str, object]]:
    """Return a sub-agent's records in the file of its session, as client 1.0.108 writes them."""
    first, second = f"{number:08x}-1", f"{number:08x}-2"
    rows = [user(task, uuid=first, ts=20), assistant("found", uuid=second, parent=first, ts=21)]
    return [{**row, "isSidechain": True, "version": "1.0.108", **fields} for row in rows]


def test_sub_agents_are_listed_with_their_tasks(
    config_home: ConfigHome, document: Document, cli: Cli
) -> None:
    """``sessions --subagents`` lists the sub-agents of the project, newest first, with their tasks.

    A sub-agent's records are in a folder of the session, beside the session's file, or in this
    file.
    """
    path = session_with_subagent(config_home)
    path.with_suffix(".meta.json").write_text('{"agentType":"Explore"}')
    os.utime(path, (2_000_000_000, 2_000_000_000))
    beside = config_home.project() / "agent-a1.jsonl"
    beside.write_bytes(session_bytes(make_subagent_records(sessionId=SESSION)))
    os.utime(beside, (1_900_000_000, 1_900_000_000))
    old = [{**row, "version": "1.0.108"} for row in conversation(1, session_id=session_id(2))]
    write_session(
        config_home.project(),
        session_id(2),
        [*old, *make_inline_subagent_records(7, "read the docs"), old[-1]],
    )
    write_session(
        config_home.project("/elsewhere"), session_id(3), conversation(1, session_id=session_id(3))
    )
    found = document("sessions", "--subagents", "--project", CWD)["data"]
    rows = [(row["locator"], row["kind"], row["asked"]) for row in found["subagents"]]
    assert rows == [
        (f"{SESSION}/{SUBAGENT_NAME}", "Explore", "find the leak"),
        (f"{SESSION}/agent-a1", "", "find the leak"),
        (f"{session_id(2)}/agent-00000007", "", "read the docs"),
    ]
    assert (found["sessions"], found["more"]) == ([], False)
    page = document("sessions", "--subagents", "--all", "--limit", "1", "--offset", "1")["data"]
    assert [row["locator"] for row in page["subagents"]] == [rows[1][0]]
    assert page["more"]
    text = cli("sessions", "--subagents", "--project", CWD).stdout.decode()
    assert f"{SESSION}/{SUBAGENT_NAME}" in text
    assert "handoff SUB-AGENT" in text
    assert document("fork", rows[2][0])["data"]["title"] == "read the docs · fork"


@pytest.mark.parametrize("session_option", ["--archived", "--expiring", "--helpers"])
def test_session_options_are_refused_for_sub_agents(
    document: Document, session_option: str
) -> None:
    """``--subagents`` refuses options that only apply to sessions."""
    error = document("sessions", "--subagents", session_option, code=2)["error"]
    assert error["message"] == f"--subagents and {session_option} can't be combined"
    error = document("sessions", "--subagents", "--agent", "prompts", code=2)["error"]
    assert error["message"] == "Sub-agents of prompts can't be listed"


def test_an_empty_list_of_sub_agents_suggests_all(cli: Cli) -> None:
    """An empty list of sub-agents suggests ``--all``."""
    assert (
        b"No sub-agent of these sessions has a transcript on this machine. Use --all"
        in cli("sessions", "--subagents").stdout
    )


def test_two_sub_agents_in_one_file_have_separate_records(config_home: ConfigHome) -> None:
    """If one file has the records of two sub-agents, the records are separated by their links or ids."""
    first, second = (
        make_inline_subagent_records(1, "one"),
        make_inline_subagent_records(2, "two", agentId="abc"),
    )
    hostile = make_inline_subagent_records(3, "three", agentId="../[x]\n" + "y" * 300)
    torn = {**first[1], "uuid": "x", "parentUuid": "gone"}
    rows = [*conversation(1), first[0], second[0], first[1], torn, second[1], hostile[0]]
    found = read_inline_subagents(write_session(config_home.project(), SESSION, rows))
    assert [(one.name, one.task, sorted(one.line_numbers)) for one in found] == [
        ("agent-00000001", "one", [2, 4, 5]),
        ("agent-abc", "two", [3, 6]),
        (f"agent-x{'y' * 99}", "three", [7]),
    ]


def test_the_sub_agents_of_a_real_old_session_are_found(config_home: ConfigHome) -> None:
    """The sub-agents in the file of a real old session are found with all their records."""
    path = Path(corpus() / INLINE_TRANSCRIPT)
    found = read_inline_subagents(str(path))
    aside = [
        number
        for number, line in enumerate(path.read_bytes().split(b"\n"))
        if b'"isSidechain":true' in line
    ]
    assert len(found) == 5
    assert all(one.task for one in found)
    assert sorted(number for one in found for number in one.line_numbers) == aside
