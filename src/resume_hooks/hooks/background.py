"""The async hook after a session's start: finish archiving, apply the vault's limits, update the index.

It is not a daemon. It ends when its work is done, its time is up, or the client has ended. A
headless client may end before its sessions are archived, so the hook does not wait for its end.
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
from resume_hooks.storage.state_file import is_process_running
from resume_hooks.system.processes import client_pid

MAX_INPUT = 1024 * 1024
LIMIT = 20.0  # seconds after which no new work begins
# the limit of a headless run, which may delete old sessions 5 seconds after its start
HEADLESS_LIMIT = 4.0
AGAIN = 60 * 60  # seconds until failed work is tried again

INDEX_LIMIT = 240.0
"""Seconds until indexing stops; the client ends the hook after 300."""

NICE = 10
_STAMP = "vault.json"
_INDEXED = "indexed.json"


def main() -> None:
    """Handle the event on stdin; never raises, and prints nothing."""
    event = reply.read_stdin(MAX_INPUT)
    if event is None or not is_session_id(reply.field(event, "session_id")):
        return
    with contextlib.suppress(OSError, AttributeError):  # not available on Windows
        os.nice(NICE)
    with contextlib.suppress(OSError, ResumeHooksError):
        archive_in_background(event)
    with contextlib.suppress(
        OSError, ResumeHooksError, ModuleNotFoundError
    ):  # ModuleNotFoundError: the venv is older than this version
        update_index()
    with contextlib.suppress(ModuleNotFoundError):
        run_parts_in_background()


def archive_in_background(event: dict[str, Any]) -> None:
    """Archive the sessions that the start skipped, and link every session.

    Once a day, also archive ancestors and apply the vault's limits. Raise OSError or
    ResumeHooksError.
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
    """Bring the search index up to date, unless another command is updating it.

    Raise OSError or ResumeHooksError.

    The note's ``made`` is the time up to which everything is indexed. ``wait`` means that the index
    could not be written, so the next update must not start before ``look``.
    """
    if reply.is_headless():
        return
    from resume_hooks.search.index.connect import (
        bring_up_to_date,
    )  # archiving must work without this module

    begun, pause, wait = int(time.time()), DAY, False
    try:
        if bring_up_to_date(Where(), _stop_condition(INDEX_LIMIT, client_pid())).behind:
            return
    except ResumeHooksError:
        pause, wait = AGAIN, True
    hook_state.write_note(_INDEXED, {"look": begun + pause, "made": begun, "wait": wait})
    os.utime(hook_state.note_path(_INDEXED), (begun, begun))


def run_parts_in_background() -> None:
    """Run the parts' background work; do nothing in a headless run."""
    if reply.is_headless():
        return
    for work_after_start in seam.answers(questions.work_after_start):
        work_after_start(Where(), _stop_condition(INDEX_LIMIT, client_pid()))


def _stop_condition(seconds: float, client: int | None) -> Callable[[], bool]:
    """Return a function that checks whether ``seconds`` have passed or the client has ended."""
    until = time.monotonic() + seconds
    return lambda: (
        time.monotonic() > until or (client is not None and not is_process_running(client))
    )
