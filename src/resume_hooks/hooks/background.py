"""The async hook after a session's start: archive what the start had no time for, apply the vault's limits, index.

It is not a daemon: it ends with its work, when its time is over, or when the client has left. A
headless client may leave before its sessions are archived, so its end is not waited for.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from resume_hooks import questions, seam
from resume_hooks.archive import hold_sessions
from resume_hooks.archive.retention.ancestors import archive_parents, archive_pending
from resume_hooks.archive.vault import policy, trash
from resume_hooks.clock import DAY
from resume_hooks.derive.child import claims
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import expiring_sessions, hook_state, reply
from resume_hooks.paths import Where, is_session_id
from resume_hooks.storage.state_file import process_runs
from resume_hooks.system.processes import client_pid

MAX_INPUT = 1024 * 1024
LIMIT = 20.0  # seconds after which nothing more is begun
HEADLESS_LIMIT = 4.0  # the same for a headless run, which may sweep 5 seconds after its start
AGAIN = 60 * 60  # seconds after which what could not be done is tried again

INDEX_LIMIT = 240.0
"""Seconds after which no more is read into the search index; the client ends the hook after 300."""

NICE = 10
_STAMP = "vault.json"
_INDEXED = "indexed.json"


def main() -> None:
    """Handle the event on stdin; never raises, and prints nothing."""
    event = reply.read_stdin(MAX_INPUT)
    if event is None or not is_session_id(reply.field(event, "session_id")):
        return
    with contextlib.suppress(OSError, AttributeError):  # Windows has no such call
        os.nice(NICE)
    with contextlib.suppress(OSError, ResumeHooksError):
        archive_in_background(event)
    with contextlib.suppress(
        OSError, ResumeHooksError, ModuleNotFoundError
    ):  # a venv from before an update
        update_index()
    with contextlib.suppress(ModuleNotFoundError):
        run_parts_in_background()


def archive_in_background(event: dict[str, Any]) -> None:
    """Archive what the start left, link every session, and once a day archive ancestors and apply the vault's limits.

    Raises OSError, ResumeHooksError.
    """
    headless = reply.is_headless()
    if headless:
        is_over = _stop_condition(HEADLESS_LIMIT, None)
    else:
        is_over = _stop_condition(LIMIT, client_pid())
    expiring_sessions.archive_soon_deleted(event, is_over, waiting=False)
    archive_pending(Where(), is_over)
    claims.sweep_claims(Where())
    with contextlib.suppress(OSError):
        hold_sessions.hold_sessions(Where(), is_over)
    last, now = hook_state.read_note(_STAMP), time.time()
    look, made, seen = (
        last[key] if hook_state.is_instant(last.get(key)) else 0 for key in ("look", "made", "seen")
    )
    if headless or made <= now < look or not hook_state.claim_note(_STAMP):
        return
    try:
        all_seen = archive_parents(Where(), seen if seen <= now else 0, is_over)
        policy.apply_policy(Where())
        trash.pack_deleted(Where(), is_over)
        look = now + (DAY if all_seen else AGAIN)
        hook_state.write_note(
            _STAMP, {"look": int(look), "made": int(now), "seen": int(now if all_seen else seen)}
        )
    finally:
        hook_state.release_note(_STAMP)


def update_index() -> None:
    """Bring the search index up to date, unless another command is at it.

    OSError, ResumeHooksError.

    The stamp names the time up to which everything is indexed; with ``wait`` nothing is done before
    ``look``, since the index could not be written.
    """
    if reply.is_headless():
        return
    from resume_hooks.search.index.connect import (
        bring_up_to_date,
    )  # what keeps sessions must do without

    begun, pause, wait = int(time.time()), DAY, False
    try:
        if bring_up_to_date(Where(), _stop_condition(INDEX_LIMIT, client_pid())).behind:
            return
    except ResumeHooksError:
        pause, wait = AGAIN, True
    hook_state.write_note(_INDEXED, {"look": begun + pause, "made": begun, "wait": wait})
    os.utime(hook_state.note_path(_INDEXED), (begun, begun))


def run_parts_in_background() -> None:
    """Have the parts do work that can wait until a start is over; nothing in a headless run."""
    if reply.is_headless():
        return
    for work_after_start in seam.answers(questions.work_after_start):
        work_after_start(Where(), _stop_condition(INDEX_LIMIT, client_pid()))


def _stop_condition(seconds: float, client: int | None) -> Callable[[], bool]:
    """A function that returns whether ``seconds`` are over, or the client has ended."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until or (client is not None and not process_runs(client))
