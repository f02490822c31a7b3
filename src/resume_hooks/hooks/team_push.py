"""The push after a turn, where a team was joined: of the session that the turn was in, at most once a minute."""

from __future__ import annotations

import contextlib
import os
import time

from resume_hooks.hooks import reply
from resume_hooks.hooks.background import MAX_INPUT, NICE
from resume_hooks.paths import Where, is_session_id
from resume_hooks.team.background import push_behind

LIMIT = 240.0
"""Seconds after which nothing more is begun."""


def main() -> None:
    """Handle the event on stdin; never raises, and prints nothing."""
    event = reply.read_stdin(MAX_INPUT)
    session_id = reply.field(event, "session_id") if event is not None else ""
    if not is_session_id(session_id):
        return
    with contextlib.suppress(OSError, AttributeError):  # Windows has no such call
        os.nice(NICE)
    until = time.monotonic() + LIMIT
    push_behind(Where(), lambda: time.monotonic() > until, str(session_id))
