"""Where a mark stands: after the last step of a session that is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.errors import InSubagent, NothingToMark, UsageError
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


def placed(tmp_path: Path, records: list[Record], goal: str = "") -> PlacedMark:
    """The mark that a session of these records would get."""
    return marks.place_mark(locate.session_file(write_session(tmp_path, SESSION, records)), goal)


def test_it_is_at_the_last_word(tmp_path: Path) -> None:
    """The leaf's uuid and its line; the client's later notes are not messages."""
    records = [
        *conversation(2),
        system("informational", uuid="s", parent="r3", ts=9),
        custom_title("x"),
    ]
    found = placed(tmp_path, records, "  try the\nother parser ")
    assert (found.mark.session_id, found.mark.uuid, found.mark.record) == (SESSION, "r3", 3)
    assert found.mark.goal == "try the\nother parser"
    assert not found.is_step_unfinished


BUSY: dict[str, tuple[list[Record], str]] = {
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


@pytest.mark.parametrize("name", BUSY)
def test_while_the_model_works(tmp_path: Path, name: str) -> None:
    """No call is separated from its answer, and no answer is split."""
    more, leaf = BUSY[name]
    found = placed(tmp_path, [*conversation(1), *more])
    assert found.mark.uuid == leaf
    assert found.is_step_unfinished


def test_a_call_that_was_given_up_is_not_a_hindrance(tmp_path: Path) -> None:
    """Interrupted long ago, it waits for nothing any more."""
    lost = [tool_use("c", uuid="t", parent="r1", ts=5), user("stop", uuid="p", parent="t", ts=6)]
    assert placed(tmp_path, [*conversation(1), *lost]).mark.uuid == "p"


def test_an_untouched_child_of_ours_can_be_marked(tmp_path: Path) -> None:
    """Its opening and its card are a valid position."""
    records = [
        summary("[SESSION LINEAGE]", uuid="u", parent=None),
        assistant("card", uuid="a", parent="u", ts=1),
    ]
    assert placed(tmp_path, records).mark.uuid == "a"


COMMAND = [
    user("<command-name>/cost</command-name>", uuid="c", parent="r3", ts=50),
    user("<local-command-stdout>0.10</local-command-stdout>", uuid="o", parent="c", ts=51),
]
"""What a command of the client's own leaves, which no model answers."""


def test_a_command_of_the_clients_own_waits_for_no_answer(tmp_path: Path) -> None:
    """The mark follows it, and the text does not mention an answer."""
    found = placed(tmp_path, [*conversation(2), *COMMAND])
    assert (found.mark.uuid, found.is_step_unfinished) == ("o", False)


@pytest.mark.parametrize(
    "records", [[custom_title("x")], [system("informational", uuid="s")], COMMAND]
)
def test_nothing_was_said(tmp_path: Path, records: list[Record]) -> None:
    """There is no position for a mark."""
    with pytest.raises(NothingToMark, match="no conversation yet"):
        placed(tmp_path, records)


def test_a_call_that_runs_in_the_first_record(tmp_path: Path) -> None:
    """A session that begins with an open call has no complete step."""
    with pytest.raises(NothingToMark):
        placed(tmp_path, [tool_use("c", uuid="t", parent=None)])


def test_sub_agents_are_refused(tmp_path: Path) -> None:
    """By the records and by the name of the file; in the exact words."""
    records = [{**record, "isSidechain": True} for record in conversation(1)]
    with pytest.raises(InSubagent, match=r"^A sub-agent has no marks$"):
        placed(tmp_path, records)
    path = tmp_path / "agent-1a2b3c.jsonl"
    Path(write_session(tmp_path, SESSION, conversation(1))).rename(path)
    with pytest.raises(InSubagent):
        marks.place_mark(locate.session_file(str(path)))


def test_a_goal_has_a_limit(tmp_path: Path) -> None:
    """More is not a goal."""
    assert (
        placed(tmp_path, conversation(1), "g" * MAX_GOAL_CHARACTERS).mark.goal
        == "g" * MAX_GOAL_CHARACTERS
    )
    with pytest.raises(UsageError, match="4,001 characters"):
        placed(tmp_path, conversation(1), "g" * (MAX_GOAL_CHARACTERS + 1))


def test_a_mark_of_a_newer_engine_is_left_alone(config_home: ConfigHome) -> None:
    """It is neither used nor changed."""
    hook_state.write_note(f"mark-{SESSION}.json", {"version": 99, "session_id": SESSION})
    (note,) = (config_home.config / "resume-hooks").rglob(f"mark-{SESSION}.json")
    before = note.read_bytes()
    assert state.find_mark(SESSION) is None
    assert note.read_bytes() == before
