"""Tests that every verb treats ``/plan <task>`` as a prompt.

The client stores such a prompt as a command.
"""

from __future__ import annotations

import pytest

from tests.builders import SESSION, ConfigHome, assistant, session_id, user, write_session
from tests.cli.conftest import Cli, Document

PLAN_TASK = "move the zeppelin into a hangar"
PLAN_PROMPT = (
    "<command-name>/plan</command-name>\n            <command-message>plan</command-message>\n"
    f"            <command-args>{PLAN_TASK}</command-args>"
)


@pytest.fixture(autouse=True)
def write_session_with_plan_prompt(config_home: ConfigHome) -> None:
    """Write a session whose first prompt is ``/plan`` with a task."""
    rows = [
        user(PLAN_PROMPT, uuid="p0"),
        user(
            "<local-command-stdout>Enabled plan mode</local-command-stdout>",
            uuid="p1",
            parent="p0",
            ts=1,
        ),
        assistant("Here is a plan.", uuid="a2", parent="p1", ts=2, tokens=5_000),
        user("do it", uuid="p3", parent="a2", ts=60),
        assistant("Done.", uuid="a4", parent="p3", ts=61, tokens=5_100),
    ]
    write_session(config_home.project(), SESSION, rows)


def test_a_plan_prompt_begins_a_turn(document: Document) -> None:
    """``outline`` and ``info`` count ``/plan <task>`` as the beginning of a turn."""
    turns = document("outline", SESSION)["data"]["turns"]
    assert [(turn["number"], turn["first_words"]) for turn in turns] == [
        (1, f"/plan {PLAN_TASK}"),
        (2, "do it"),
    ]
    assert document("info", SESSION)["data"]["turns"] == 2


def test_a_plan_prompt_is_the_title_of_an_untitled_session(document: Document) -> None:
    """If a session has no title, its first prompt ``/plan <task>`` is used as the title."""
    (row,) = document("sessions", "--all")["data"]["sessions"]
    assert row["title"] == f"/plan {PLAN_TASK}"


def test_search_finds_a_plan_prompt(document: Document) -> None:
    """``search --role prompt`` finds ``/plan <task>`` as the prompt of its turn."""
    (hit,) = document("search", "zeppelin", "--all", "--role", "prompt")["data"]["hits"]
    assert (hit["turn"], hit["reference"]) == (1, f"{SESSION}:0")


def test_a_plan_prompt_appears_once_in_a_handoff_and_an_export(
    cli: Cli, config_home: ConfigHome
) -> None:
    """A handoff and an export contain ``/plan <task>`` once, without the client's markup."""
    told = cli("handoff", SESSION, "--print").stdout.decode()
    assert told.partition("talk, oldest first:")[2].count(f"/plan {PLAN_TASK}") == 1
    path = config_home.root / "told.md"
    assert cli("export", SESSION, "-o", str(path)).returncode == 0
    text = path.read_text()
    assert f"/plan {PLAN_TASK}" in text
    assert "command-args" not in text


def test_plan_with_fewer_than_three_words_is_not_a_prompt(
    document: Document, config_home: ConfigHome
) -> None:
    """``/plan`` with fewer than three words, for example ``/plan open``, is not a prompt."""
    other = session_id(7)
    rows = [
        user(PLAN_PROMPT.replace(PLAN_TASK, "open it"), uuid="q0", session_id=other),
        user("go", uuid="q1", parent="q0"),
    ]
    write_session(config_home.project(), other, rows)
    assert [
        turn["first_words"]
        for turn in document("outline", other)["data"]["turns"]
        if turn["number"]
    ] == ["go"]
