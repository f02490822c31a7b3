"""Tests of the position of a mark, which is after the last complete step of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.errors import MarkInSubagent, NothingToMark, UsageError
from resume_hooks.hooks import hook_state
from resume_hooks.parts.marks import state
from resume_hooks.parts.marks import state as marks
from resume_hooks.parts.marks.state import MAX_GOAL_CHARACTERS, PlacedMark
from resume_hooks.sessions import locate
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    call,
    conversation,
    custom_title,
    result,
    summary,
    system,
    tool_result,
    tool_use,
    user,
    write_session,
)


def place_mark(tmp_path: Path, records: list[Record], goal: str = "") -> PlacedMark:
    """Write a session with these records and place a mark in it."""
    return marks.make_mark_at_end(
        locate.session_file(write_session(tmp_path, SESSION, records)), goal
    )


def test_a_mark_is_placed_at_the_last_message(tmp_path: Path) -> None:
    """A mark names the last message by uuid and line, not a later note of the client."""
    records = [
        *conversation(2),
        system("informational", uuid="s", parent="r3", ts=9),
        custom_title("x"),
    ]
    found = place_mark(tmp_path, records, "  try the\nother parser ")
    assert (found.mark.session_id, found.mark.uuid, found.mark.record) == (SESSION, "r3", 3)
    assert found.mark.goal == "try the\nother parser"
    assert not found.is_step_unfinished


SESSIONS_DURING_A_TURN: dict[str, tuple[list[Record], str]] = {
    "a prompt without an answer": ([user("go", uuid="p", parent="r1", ts=5)], "p"),
    "a call that runs": (
        [user("go", uuid="p", parent="r1", ts=5), tool_use("c", uuid="t", parent="p", ts=6)],
        "p",
    ),
    "a call that was answered": (
        [
            user("go", uuid="p", parent="r1", ts=5),
            tool_use("c", uuid="t", parent="p", ts=6),
            tool_result("c", uuid="o", parent="t", ts=7),
        ],
        "o",
    ),
    "one of two calls answered": (
        [
            user("go", uuid="p", parent="r1", ts=5),
            assistant([call("c")], uuid="t", parent="p", ts=6, message_id="m"),
            assistant([call("d")], uuid="v", parent="t", ts=7, message_id="m"),
            user([result("c")], uuid="o", parent="t", ts=8),
        ],
        "p",
    ),
    "words before a call that runs": (
        [
            user("go", uuid="p", parent="r1", ts=5),
            assistant("let me look", uuid="w", parent="p", ts=6, message_id="m"),
            assistant([call("c")], uuid="t", parent="w", ts=7, message_id="m"),
        ],
        "p",
    ),
}


@pytest.mark.parametrize("name", SESSIONS_DURING_A_TURN)
def test_a_mark_during_a_step_is_placed_before_it(tmp_path: Path, name: str) -> None:
    """A mark that is set during a step is placed before that step.

    A call is therefore never separated from its result.
    """
    more, leaf = SESSIONS_DURING_A_TURN[name]
    found = place_mark(tmp_path, [*conversation(1), *more])
    assert found.mark.uuid == leaf
    assert found.is_step_unfinished


def test_an_interrupted_call_does_not_move_a_mark(tmp_path: Path) -> None:
    """A call that was interrupted long ago does not move a mark."""
    lost = [tool_use("c", uuid="t", parent="r1", ts=5), user("stop", uuid="p", parent="t", ts=6)]
    assert place_mark(tmp_path, [*conversation(1), *lost]).mark.uuid == "p"


def test_a_new_child_can_be_marked(tmp_path: Path) -> None:
    """A new child can be marked after its opening and card."""
    records = [
        summary("[SESSION LINEAGE]", uuid="u", parent=None),
        assistant("card", uuid="a", parent="u", ts=1),
    ]
    assert place_mark(tmp_path, records).mark.uuid == "a"


COMMAND_RECORDS = [
    user("<command-name>/cost</command-name>", uuid="c", parent="r3", ts=50),
    user("<local-command-stdout>0.10</local-command-stdout>", uuid="o", parent="c", ts=51),
]
"""Records of a command of the client, which no model answers."""


def test_a_mark_can_follow_a_client_command(tmp_path: Path) -> None:
    """A command of the client is a complete step, although no model answers it.

    A mark after the command is placed after the command's output.
    """
    found = place_mark(tmp_path, [*conversation(2), *COMMAND_RECORDS])
    assert (found.mark.uuid, found.is_step_unfinished) == ("o", False)


@pytest.mark.parametrize(
    "records", [[custom_title("x")], [system("informational", uuid="s")], COMMAND_RECORDS]
)
def test_an_empty_session_cannot_be_marked(tmp_path: Path, records: list[Record]) -> None:
    """``NothingToMark`` is raised for a session without messages."""
    with pytest.raises(NothingToMark, match="no conversation yet"):
        place_mark(tmp_path, records)


def test_an_open_call_in_the_first_record_cannot_be_marked(tmp_path: Path) -> None:
    """``NothingToMark`` is raised for a session that consists of one open call."""
    with pytest.raises(NothingToMark):
        place_mark(tmp_path, [tool_use("c", uuid="t", parent=None)])


def test_a_sub_agent_cannot_be_marked(tmp_path: Path) -> None:
    """``MarkInSubagent`` is raised for a sub-agent, which is recognized by its records or by its file name."""
    records = [{**record, "isSidechain": True} for record in conversation(1)]
    with pytest.raises(MarkInSubagent, match=r"^A sub-agent has no marks$"):
        place_mark(tmp_path, records)
    path = tmp_path / "agent-1a2b3c.jsonl"
    Path(write_session(tmp_path, SESSION, conversation(1))).rename(path)
    with pytest.raises(MarkInSubagent):
        marks.make_mark_at_end(locate.session_file(str(path)))


def test_an_overlong_goal_is_refused(tmp_path: Path) -> None:
    """A goal of more than 4,000 characters is refused."""
    assert (
        place_mark(tmp_path, conversation(1), "g" * MAX_GOAL_CHARACTERS).mark.goal
        == "g" * MAX_GOAL_CHARACTERS
    )
    with pytest.raises(UsageError, match="4,001 characters"):
        place_mark(tmp_path, conversation(1), "g" * (MAX_GOAL_CHARACTERS + 1))


def test_a_mark_of_a_newer_engine_is_ignored(config_home: ConfigHome) -> None:
    """A mark that a newer version stored is ignored and stays in place."""
    hook_state.write_note(f"mark-{SESSION}.json", {"version": 99, "session_id": SESSION})
    (note,) = (config_home.config / "resume-hooks").rglob(f"mark-{SESSION}.json")
    before = note.read_bytes()
    assert state.find_mark(SESSION) is None
    assert note.read_bytes() == before
