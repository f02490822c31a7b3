"""The push after a turn and at a session's end, where a team was joined: of the session that it was.

Turns' ends push at most once a minute. One that comes sooner waits for that in the background, whatever becomes of its
client: so what was said is on the server a minute later, or a moment after the end.
"""

from __future__ import annotations

import contextlib
import os
import time

from resume_hooks.errors import SessionOpen
from resume_hooks.hooks import reply
from resume_hooks.hooks.background import MAX_INPUT, NICE
from resume_hooks.parts.team import team_file
from resume_hooks.parts.team.background import AWAY, due_in, push_behind
from resume_hooks.paths import Where, is_session_id
from resume_hooks.storage.locks import locked_folder

LIMIT = 240.0
"""Seconds after which nothing more is begun."""

AFTER_END = (1.0, 4.0, 10.0)
"""Seconds before each look at what an end left: the client writes its last records after it, or a push still ran."""


def main() -> None:
    """Handle the event on stdin; never raises, and prints nothing."""
    event = reply.read_stdin(MAX_INPUT)
    session_id = reply.field(event, "session_id") if event is not None else ""
    if event is None or not is_session_id(session_id):
        return
    with contextlib.suppress(OSError, AttributeError):  # Windows has no such call
        os.nice(NICE)
    where, until = Where(), time.monotonic() + LIMIT
    if reply.field(event, "hook_event_name") == "SessionEnd":
        for pause in AFTER_END:
            time.sleep(pause)
            push_behind(where, lambda: time.monotonic() > until, str(session_id), pause=-AWAY)
        return
    waiting = os.path.join(team_file.folder(where), "waiting", str(session_id))
    with contextlib.suppress(SessionOpen):  # another turn's end waits already, and sends this one's, too
        if pause := due_in(where):
            with locked_folder(waiting, where, "Another turn's end waits", "Could not wait in"):
                time.sleep(pause)
        push_behind(where, lambda: time.monotonic() > until, str(session_id))
