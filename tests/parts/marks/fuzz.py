"""Fuzz target for the note of a mark: any file is read as a valid mark or ignored."""

from __future__ import annotations

import os

from resume_hooks.hooks import hook_state
from resume_hooks.parts.marks import state
from tests.builders import SESSION, ConfigHome
from tests.fuzz.draws import Draws
from tests.fuzz.targets.state import HANDOFF_LINK, draw_note
from tests.fuzz.targets.target import Target, TryCase


def make_mark_case(home: ConfigHome) -> TryCase:
    """Return a function that writes a random note and reads it as a mark."""
    folder = home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True, mode=0o700)
    path = folder / f"mark-{SESSION}.json"
    honest = {
        "session_id": SESSION,
        "uuid": "u",
        "record": 1,
        "goal": "g",
        "started_at": HANDOFF_LINK.at,
    }

    def try_case(draws: Draws) -> None:
        path.write_bytes(draw_note(draws, {"version": hook_state.NOTE_VERSION, **honest}))
        os.chmod(path, draws.pick((0o600, 0o600, 0o600, 0o666)))
        mark = state.find_mark(SESSION)
        assert mark is None or (mark.session_id == SESSION and isinstance(mark.record, int))

    return try_case


TARGETS = (Target("marks", 200, make_mark_case),)
