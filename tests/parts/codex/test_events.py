"""When a compaction that Codex begins of itself is surely that of a trigger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.parts.codex.events import follows_trigger
from resume_hooks.paths import Where
from tests.parts.codex import rollouts
from tests.parts.codex.rollouts import OTHER, THREAD, Line

TURN = "01a00000-0000-7000-8000-0000000000aa"
AT = 1_795_917_887


def began(turn: str = TURN, at: int = AT, by: str = "user") -> Line:
    """The line of a turn that begins."""
    return rollouts.event(
        "task_started", turn_id=turn, started_at=at, turn_attribution={"turn_trigger": by}
    )


def history_entry(text: str, at: int = AT, thread: str = THREAD) -> dict[str, Any]:
    """Return the history entry of a prompt."""
    return {"session_id": thread, "ts": at, "text": text}


BEFORE = [
    rollouts.meta(),
    began("t0", AT - 60),
    rollouts.message_line("user", "x"),
    rollouts.token_count_line(250_000),
]
WORK = rollouts.message_line("user", "go on")

CASES = {
    "a trigger": (
        [began()],
        [history_entry("x", AT - 60), history_entry(">handoff write the test")],
        True,
    ),
    "sent in another session meanwhile": (
        [began()],
        [history_entry(">session"), history_entry("y", AT, OTHER)],
        True,
    ),
    "a prompt": ([began()], [history_entry(">session", AT - 60), history_entry("go on")], False),
    "a quotation": ([began()], [history_entry(">resume the work")], False),
    "a trigger that was sent earlier": ([began()], [history_entry(">session", AT - 9)], False),
    "a prompt and a trigger at once": (
        [began()],
        [history_entry("go on", AT - 1), history_entry(">session")],
        False,
    ),
    "nothing is kept": ([began()], [], False),
    "in the middle of a turn": ([began(), WORK], [history_entry(">session")], False),
    "a turn that nobody asked for": ([began(by="goal")], [history_entry(">session")], False),
    "a turn right after the trigger's": (
        [began("t1"), began()],
        [history_entry(">session")],
        False,
    ),
    "another turn": ([began("t1")], [history_entry(">session")], False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_compaction_is_stopped_for_a_trigger_alone(case: str, tmp_path: Path) -> None:
    """Any other compaction continues."""
    lines, typed, stopped = CASES[case]
    home = tmp_path / ".codex"
    rollout = rollouts.write(home, [*BEFORE, *lines])
    (home / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in typed))
    event = {
        "session_id": THREAD,
        "turn_id": TURN,
        "transcript_path": str(rollout),
        "trigger": "auto",
    }
    assert follows_trigger(event, Where({"HOME": str(tmp_path)})) is stopped
