"""``/plan <what is to be done>`` is a prompt wherever prompts are told: the client keeps it as a command of its own."""

from __future__ import annotations

import pytest

from tests.builders import SESSION, ConfigHome, assistant, session_id, user, write_session
from tests.cli.conftest import Cli, Document

WORDS = "move the zeppelin into a hangar"
PLAN = (
    "<command-name>/plan</command-name>\n            <command-message>plan</command-message>\n"
    f"            <command-args>{WORDS}</command-args>"
)


@pytest.fixture(autouse=True)
def _session(config_home: ConfigHome) -> None:
    """Return a session that begins with such a prompt, and continues."""
    rows = [
        user(PLAN, uuid="p0"),
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


def test_it_opens_a_turn(document: Document) -> None:
    """This holds in an outline and in a session's counts."""
    turns = document("outline", SESSION)["data"]["turns"]
    assert [(turn["number"], turn["first_words"]) for turn in turns] == [
        (1, f"/plan {WORDS}"),
        (2, "do it"),
    ]
    assert document("info", SESSION)["data"]["turns"] == 2


def test_it_names_a_session(document: Document) -> None:
    """That has no title."""
    (row,) = document("sessions", "--all")["data"]["sessions"]
    assert row["title"] == f"/plan {WORDS}"


def test_it_is_found_as_a_prompt(document: Document) -> None:
    """It belongs to its turn."""
    (hit,) = document("search", "zeppelin", "--all", "--role", "prompt")["data"]["hits"]
    assert (hit["turn"], hit["reference"]) == (1, f"{SESSION}:0")


def test_it_is_reported_once(cli: Cli, config_home: ConfigHome) -> None:
    """A handoff and an export have it in the typed words."""
    told = cli("handoff", SESSION, "--print").stdout.decode()
    assert told.partition("talk, oldest first:")[2].count(f"/plan {WORDS}") == 1
    path = config_home.root / "told.md"
    assert cli("export", SESSION, "-o", str(path)).returncode == 0
    text = path.read_text()
    assert f"/plan {WORDS}" in text
    assert "command-args" not in text


def test_less_than_three_words_ask_nothing(document: Document, config_home: ConfigHome) -> None:
    """For example ``/plan open``, which opens the plan."""
    other = session_id(7)
    rows = [
        user(PLAN.replace(WORDS, "open it"), uuid="q0", session_id=other),
        user("go", uuid="q1", parent="q0"),
    ]
    write_session(config_home.project(), other, rows)
    assert [
        turn["first_words"]
        for turn in document("outline", other)["data"]["turns"]
        if turn["number"]
    ] == ["go"]
