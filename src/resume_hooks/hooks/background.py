"""The async hook after a session's start: archive what the start had no time for, and apply the vault's limits.

It is no daemon: it ends with its work, when its time is over, or when the client has left; a headless one may leave
before its sessions are kept, and so does not count.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from resume_hooks.archive.retention.ancestors import archive_parents, archive_pending
from resume_hooks.archive.vault import policy
from resume_hooks.clock import DAY
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import expiring_sessions, hook_state, reply
from resume_hooks.paths import Where, is_session_id
from resume_hooks.storage.state_file import process_runs
from resume_hooks.system.processes import client_pid

MAX_INPUT = 1024 * 1024
LIMIT = 20.0
"""Seconds after which nothing more is begun."""

HEADLESS_LIMIT = 4.0
"""The same for a headless run, which may sweep 5 seconds after its start."""

AGAIN = 60 * 60
"""Seconds after which the look for ancestors goes on where there were more."""

NICE = 10
_STAMP = "vault.json"


def main() -> None:
    """Handle the event on stdin; never raises, and prints nothing."""
    event = reply.read_stdin(MAX_INPUT)
    if event is None or not is_session_id(reply.field(event, "session_id")):
        return
    with contextlib.suppress(OSError, ResumeHooksError):
        os.nice(NICE)
        catch_up(event)


def catch_up(event: dict[str, Any]) -> None:
    """Keep what was left, then once a day look for ancestors, pack, and let go. OSError, ResumeHooksError."""
    headless = reply.is_headless()
    is_over = _watch(HEADLESS_LIMIT, None) if headless else _watch(LIMIT, client_pid())
    expiring_sessions.archived(event, is_over, waiting=False)
    archive_pending(Where(), is_over)
    last, now = hook_state.find(_STAMP), time.time()
    look, made, seen = (last[key] if hook_state.is_instant(last.get(key)) else 0 for key in ("look", "made", "seen"))
    if headless or made <= now < look or not hook_state.begin(_STAMP):
        return
    try:
        all_seen = archive_parents(Where(), seen if seen <= now else 0, is_over)
        policy.apply(Where())
        look = now + (DAY if all_seen else AGAIN)
        hook_state.keep(_STAMP, {"look": int(look), "made": int(now), "seen": int(now if all_seen else seen)})
    finally:
        hook_state.end(_STAMP)


def _watch(seconds: float, client: int | None) -> Callable[[], bool]:
    """Tells whether time is over: after so many seconds, or once a client is gone."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until or (client is not None and not process_runs(client))
