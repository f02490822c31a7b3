"""Tests of turns: the records that start a turn, and the ranges of turns that a user types."""

from __future__ import annotations

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.transcripts.turns import TURN_HELP, opens_turn, parse_turns
from tests.builders import assistant, summary, tool_result, user


def test_only_a_prompt_starts_a_turn() -> None:
    """Answers, results, summaries and texts that the client inserted start no turn."""
    assert opens_turn(user("go", uuid="u"))
    assert opens_turn({"type": "user", "message": {"content": "of a plain export"}})
    for record in (
        assistant("done", uuid="a"),
        tool_result("c", uuid="u", parent=None),
        summary("all of it", uuid="u", parent=None),
        user("inserted", uuid="u", isMeta=True),
        user("of a sub-agent", uuid="u", isSidechain=True),
        {},
    ):
        assert not opens_turn(record)


def test_prompts_of_a_sub_agent_start_turns() -> None:
    """In a sub-agent's file, a prompt starts a turn although it is marked as a side chain."""
    assert opens_turn(user("look", uuid="u", isSidechain=True), is_subagent=True)
    assert not opens_turn(assistant("seen", uuid="a", isSidechain=True), is_subagent=True)


@pytest.mark.parametrize(
    ("text", "count", "numbers"),
    [
        ("7", 9, [7]),
        ("12-15", 20, [12, 13, 14, 15]),
        ("3-", 5, [3, 4, 5]),
        ("4-99", 5, [4, 5]),
        ("last", 5, [5]),
        (" -3 ", 5, [3, 4, 5]),
        ("-9", 2, [1, 2]),
        ("0", 5, [0]),
        ("0-2", 5, [0, 1, 2]),
        ("0", 0, [0]),
    ],
)
def test_turn_ranges_are_parsed(text: str, count: int, numbers: list[int]) -> None:
    """A range is a single turn, several turns, all turns from one to the end, or the last turns.

    A range beyond the end is shortened.
    """
    assert list(parse_turns(text).list_turn_numbers(count)) == numbers


@pytest.mark.parametrize(
    "text",
    ["", "x", "-", "-0", "1-2-3", "5-3", "1,2", "٣", "12345678", "last-3", "1 - 2", "\x1b[31m"],
)
def test_invalid_turn_ranges_are_refused(text: str) -> None:
    """An invalid range raises ``UsageError`` with the valid forms."""
    with pytest.raises(UsageError) as caught:
        parse_turns(text)
    assert caught.value.remedy == TURN_HELP
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "count", "expected_remedy"),
    [
        ("6", 5, "It has turns 1 to 5."),
        ("last", 0, "The session has no turns; --turns 0 shows its records."),
    ],
)
def test_missing_turns_are_reported(text: str, count: int, expected_remedy: str) -> None:
    """A turn that does not exist raises ``UsageError``. The error's remedy says which turns exist."""
    with pytest.raises(UsageError) as caught:
        parse_turns(text).list_turn_numbers(count)
    assert caught.value.remedy == expected_remedy
