"""Tests that an automatic compaction in Codex is stopped only if a trigger started it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.parts.codex.events import is_compaction_caused_by_trigger
from resume_hooks.paths import Where
from tests.parts.codex import rollouts
from tests.parts.codex.rollouts import OTHER_THREAD_ID, THREAD_ID, Line

TURN_ID = "01a00000-0000-7000-8000-0000000000aa"
TURN_START_SECOND = 1_795_917_887


def turn_start_line(
    turn_id: str = TURN_ID, start_second: int = TURN_START_SECOND, starter: str = "user"
) -> Line:
    """Return the line that marks the start of a turn."""
    return rollouts.event_line(
        "task_started",
        turn_id=turn_id,
        started_at=start_second,
        turn_attribution={"turn_trigger": starter},
    )


def history_entry(
    text: str, second: int = TURN_START_SECOND, thread_id: str = THREAD_ID
) -> dict[str, Any]:
    """Return the entry for a prompt in Codex's history."""
    return {"session_id": thread_id, "ts": second, "text": text}


EARLIER_TURN_LINES = [
    rollouts.meta_line(),
    turn_start_line("t0", TURN_START_SECOND - 60),
    rollouts.message_line("user", "x"),
    rollouts.token_count_line(250_000),
]
PROMPT_LINE = rollouts.message_line("user", "go on")

COMPACTION_CASES = {
    "a trigger": (
        [turn_start_line()],
        [history_entry("x", TURN_START_SECOND - 60), history_entry(">handoff write the test")],
        True,
    ),
    "sent in another session meanwhile": (
        [turn_start_line()],
        [history_entry(">session"), history_entry("y", TURN_START_SECOND, OTHER_THREAD_ID)],
        True,
    ),
    "a prompt": (
        [turn_start_line()],
        [history_entry(">session", TURN_START_SECOND - 60), history_entry("go on")],
        False,
    ),
    "a quotation": ([turn_start_line()], [history_entry(">resume the work")], False),
    "a trigger that was sent earlier": (
        [turn_start_line()],
        [history_entry(">session", TURN_START_SECOND - 9)],
        False,
    ),
    "a prompt and a trigger at once": (
        [turn_start_line()],
        [history_entry("go on", TURN_START_SECOND - 1), history_entry(">session")],
        False,
    ),
    "nothing is kept": ([turn_start_line()], [], False),
    "in the middle of a turn": (
        [turn_start_line(), PROMPT_LINE],
        [history_entry(">session")],
        False,
    ),
    "a turn that nobody asked for": (
        [turn_start_line(starter="goal")],
        [history_entry(">session")],
        False,
    ),
    "a turn right after the trigger's": (
        [turn_start_line("t1"), turn_start_line()],
        [history_entry(">session")],
        False,
    ),
    "another turn": ([turn_start_line("t1")], [history_entry(">session")], False),
}


@pytest.mark.parametrize("case", COMPACTION_CASES)
def test_only_a_trigger_stops_a_compaction(case: str, tmp_path: Path) -> None:
    """A compaction is stopped only if the turn certainly began with a trigger."""
    lines, typed, stopped = COMPACTION_CASES[case]
    home = tmp_path / ".codex"
    rollout = rollouts.write_rollout(home, [*EARLIER_TURN_LINES, *lines])
    (home / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in typed))
    event = {
        "session_id": THREAD_ID,
        "turn_id": TURN_ID,
        "transcript_path": str(rollout),
        "trigger": "auto",
    }
    assert is_compaction_caused_by_trigger(event, Where({"HOME": str(tmp_path)})) is stopped
