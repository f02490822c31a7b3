"""The chooser on a terminal, with a session of which prompts are left."""

from __future__ import annotations

import json

from tests.builders import session_id
from tests.cli.desk import Desk


def test_a_session_of_which_prompts_are_left(desk: Desk) -> None:
    """Marked in the list; chosen or named, it is said what is left and what goes on from it."""
    said = {"display": "why does the zebra loop", "timestamp": 1_700_000_000_000, "project": str(desk.project)}
    line = json.dumps({**said, "pastedContents": {}, "sessionId": session_id(7)})
    (desk.home.config / "history.jsonl").write_text(f"{line}\n")
    screen = desk.run("resume", "zebra")
    screen.wait_for(r"> prompts only · why does the zebra loop")
    screen.key("Enter")
    screen.wait_for("Only its prompts are left")
    screen.wait_for("handoff " + r"\s*".join(session_id(7)))  # wherever the terminal breaks a long line
    assert screen.ended() == 2
    named = desk.run("resume", session_id(7))
    named.wait_for("Only its prompts are left")
    assert named.ended() == 2
