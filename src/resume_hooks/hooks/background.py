"""The hook that runs in the background after a session's start: archive sessions, update the index.

The process ends when the work is done, when its time is up, or when the client ends. A headless
client may end before its sessions are archived. In that case the process continues until its time
is up.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from resume_hooks import questions, seam
from resume_hooks.archive import link_sessions
from resume_hooks.archive.retention.ancestors import archive_parents, archive_pending_sessions
from resume_hooks.archive.vault import policy, trash
from resume_hooks.clock import DAY
from resume_hooks.derive.child import claims
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import expiring_sessions, hook_replies, hook_state
from resume_hooks.paths import Where, is_session_id
from resume_hooks.storage.state_file import is_process_running
from resume_hooks.system.processes import find_client_pid

MAX_INPUT_BYTES = 1024 * 1024
MAX_WORK_SECONDS = 20.0  # the number of seconds after which no new work begins
# the number of seconds after which no new work begins in a headless run; the client may delete old
# sessions 5 seconds after its start
MAX_HEADLESS_WORK_SECONDS = 4.0
RETRY_SECONDS = 60 * 60  # the number of seconds until work that failed is tried again

MAX_INDEX_SECONDS = 240.0
"""Number of seconds after which indexing stops. The client would end the hook after 300 seconds."""

HOOK_NICENESS = 10
_VAULT_NOTE_NAME = "vault.json"
_INDEX_NOTE_NAME = "indexed.json"


def main() -> None:
    """Do the background work for the event on stdin. Print nothing and raise no exception."""
    event = hook_replies.read_stdin(MAX_INPUT_BYTES)
    if event is None or not is_session_id(hook_replies.text_field(event, "session_id")):
        return
    with contextlib.suppress(OSError, AttributeError):  # Windows has no os.nice.
        os.nice(HOOK_NICENESS)
    with contextlib.suppress(OSError, ResumeHooksError):
        archive_in_background(event)
    # A module is missing if the plugin's venv was installed for an earlier version.
    with contextlib.suppress(OSError, ResumeHooksError, ModuleNotFoundError):
        update_index()
    with contextlib.suppress(ModuleNotFoundError):
        run_parts_in_background()


def archive_in_background(event: dict[str, Any]) -> None:
    """Archive the sessions that the start had no time to archive, and link every session to the vault.

    Once a day also archive the parents of sessions and remove copies beyond the vault's size limit.
    Raise OSError or ResumeHooksError.
    """
    is_headless = hook_replies.is_headless()
    if is_headless:
        is_time_up = _make_stop_condition(MAX_HEADLESS_WORK_SECONDS, None)
    else:
        is_time_up = _make_stop_condition(MAX_WORK_SECONDS, find_client_pid())
    expiring_sessions.archive_expiring_sessions(event, is_time_up, is_at_start=False)
    archive_pending_sessions(Where(), is_time_up)
    claims.remove_sidecars_of_killed_commands(Where())
    with contextlib.suppress(OSError):
        link_sessions.link_all_sessions(Where(), is_time_up)
    note, now = hook_state.read_note(_VAULT_NOTE_NAME), time.time()
    next_run, last_run, archived_until = (
        note[key] if hook_state.is_valid_timestamp(note.get(key)) else 0
        for key in ("look", "made", "seen")
    )
    if is_headless or last_run <= now < next_run or not hook_state.claim_note(_VAULT_NOTE_NAME):
        return
    try:
        is_complete = archive_parents(
            Where(), archived_until if archived_until <= now else 0, is_time_up
        )
        policy.apply_policy(Where())
        trash.pack_deleted_sessions(Where(), is_time_up)
        next_run = now + (DAY if is_complete else RETRY_SECONDS)
        hook_state.write_note(
            _VAULT_NOTE_NAME,
            {
                "look": int(next_run),
                "made": int(now),
                "seen": int(now if is_complete else archived_until),
            },
        )
    finally:
        hook_state.release_note(_VAULT_NOTE_NAME)


def update_index() -> None:
    """Update the search index, unless another process is updating it.

    Then write a note with three fields. Everything that was written up to the time ``made`` is
    indexed. The next update starts after the time ``look``. ``wait`` is true if the index could not
    be written. Raise OSError or ResumeHooksError.
    """
    if hook_replies.is_headless():
        return
    # Imported late, because archiving must work even if this module is missing.
    from resume_hooks.search.index.connect import update_stored_index

    started, seconds_to_next, is_failed = int(time.time()), DAY, False
    try:
        if update_stored_index(
            Where(), _make_stop_condition(MAX_INDEX_SECONDS, find_client_pid())
        ).remaining_file_count:
            return
    except ResumeHooksError:
        seconds_to_next, is_failed = RETRY_SECONDS, True
    hook_state.write_note(
        _INDEX_NOTE_NAME, {"look": started + seconds_to_next, "made": started, "wait": is_failed}
    )
    os.utime(hook_state.note_path(_INDEX_NOTE_NAME), (started, started))


def run_parts_in_background() -> None:
    """Run the background work of the installed parts. Do nothing in a headless run."""
    if hook_replies.is_headless():
        return
    for do_work_after_start in seam.find_answers(questions.do_work_after_start):
        do_work_after_start(Where(), _make_stop_condition(MAX_INDEX_SECONDS, find_client_pid()))


def _make_stop_condition(seconds: float, client_id: int | None) -> Callable[[], bool]:
    """Return a function that checks whether ``seconds`` seconds have passed or the client has ended."""
    deadline = time.monotonic() + seconds
    return lambda: (
        time.monotonic() > deadline or (client_id is not None and not is_process_running(client_id))
    )
