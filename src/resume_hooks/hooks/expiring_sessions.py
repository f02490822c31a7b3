"""Archive the sessions that the client will soon delete. The user is told before the first copy.

A project's note ``due-<project folder>.json`` contains a time. The shell starts this module only
after that time. Another note, ``later-...``, says that a session's start left no time to
archive some sessions. The background hook or the next start then archives them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from resume_hooks import settings
from resume_hooks.archive.retention import expiring, pending
from resume_hooks.archive.retention.expiring import ArchiveBatch, archive_sessions_before_expiry
from resume_hooks.archive.vault import permission
from resume_hooks.archive.vault.policy import take_pending_removal_announcement
from resume_hooks.hooks import hook_replies, hook_state
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.sessions.archived.layout import vault_folder
from resume_hooks.sessions.held_links import links_without_client_file
from resume_hooks.system.claude_settings import read_retention_days
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

# The time limit in seconds for archiving when a session starts, because the client waits. If
# archiving a session has begun, it is completed.
MAX_ARCHIVING_SECONDS = 0.03

DUE_PREFIX, LATER_PREFIX = "due", "later"
"""Prefixes of the names of the two notes: one for the sessions that a start must archive, and one
for the sessions that it had no time to archive."""

_ALLOWED_FOLDER_NAME_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
)


def archive_and_describe_at_start(event: dict[str, Any]) -> str:
    """Archive the sessions that expire soon, and return the line to show. Stop at the time limit.

    Return ``""`` if there is nothing to show or the run is headless. Raise OSError if the state
    folder can't be written.
    """
    progress = archive_expiring_sessions(event, _Deadline(MAX_ARCHIVING_SECONDS), is_at_start=True)
    if progress is None or hook_replies.is_headless():
        return ""
    remaining_text = (
        f", {progress.remaining_count:,} more will follow" if progress.remaining_count else ""
    )
    count_text = f"{progress.archived_count:,} session{'' if progress.archived_count == 1 else 's'}"
    if progress.archived_count:
        archived_text = f"archived {count_text} that the client will soon delete{remaining_text}"
    else:
        archived_text = ""
    if os.path.isdir(vault_folder(Where())):
        first_archive_text = permission.make_first_archive_notice(Where())
    else:
        first_archive_text = ""
    return " · ".join(
        filter(
            None, (archived_text, first_archive_text, take_pending_removal_announcement(Where()))
        )
    )


def archive_expiring_sessions(
    event: dict[str, Any], is_time_up: Callable[[], bool], *, is_at_start: bool
) -> ArchiveBatch | None:
    """Archive sessions that expire soon until ``is_time_up`` returns True, and write the project's notes.

    Return None if another process is archiving. Raise OSError if the state folder can't be written.
    """
    project = os.path.basename(os.path.dirname(hook_replies.text_field(event, "transcript_path")))
    if not project or not _ALLOWED_FOLDER_NAME_CHARACTERS.issuperset(project):
        return None
    note_name = f"{DUE_PREFIX}-{project}.json"
    make_private_folder(Where().state, Where())
    make_private_folder(os.path.dirname(hook_state.note_path(note_name)), Where())
    if not hook_state.claim_note(note_name):
        return None
    try:
        started = time.time()
        progress = archive_sessions_before_expiry(
            project, client_start_folder(event), Where(), is_time_up, is_user_waiting=is_at_start
        )
        for prefix in (DUE_PREFIX,) if is_at_start else (DUE_PREFIX, LATER_PREFIX):
            hook_state.write_note(
                f"{prefix}-{project}.json",
                {"look": int(progress.next_check_time), "made": int(started)},
            )
        return progress
    finally:
        hook_state.release_note(note_name)


def client_start_folder(event: dict[str, Any]) -> str:
    """Return the folder in which the client was started. The client uses this folder's settings."""
    return (
        os.environ.get("CLAUDE_PROJECT_DIR") or hook_replies.text_field(event, "cwd") or os.getcwd()
    )


class _Deadline:
    """A function that returns True when ``seconds`` seconds have passed since its first call."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = 0.0

    def __call__(self) -> bool:
        self._deadline = self._deadline or time.monotonic() + self._seconds
        return time.monotonic() > self._deadline


VAULT_ANNOUNCEMENT = (
    "Claude Code deletes sessions{age}. A private folder of at most {room} will keep copies of these sessions, and of "
    "those that you handed off, trimmed or forked. {awaited} To begin at the next start of Claude Code, run: {on}; "
    "to keep no copies: {off}"
)


def claim_vault_announcement(event: dict[str, Any], where: Where) -> str:
    """Return the announcement of the vault's first copies. Return ``""`` if none is needed.

    The user sees the announcement only once, and never if the setting ``vault`` was set. Raise
    OSError if the state folder can't be read or written.
    """
    if not permission.is_archiving_notice_due(where):
        return ""
    folder = client_start_folder(event)
    has_sessions_to_copy = (
        pending.list_pending_sessions(where)
        or any(links_without_client_file(where))
        or expiring.forecast_expiry(folder, where).unarchived_count
    )
    if not has_sessions_to_copy or not permission.claim_first_notice(where):
        return ""
    retention = read_retention_days(folder, where)
    return VAULT_ANNOUNCEMENT.format(
        age="" if retention is None else f" after {format_count(retention, 'day')}",
        room=settings.DEFAULT_VAULT_SIZE.replace("G", " GB"),
        awaited=permission.format_waiting_notice(where),
        on=shell_command("config vault on"),
        off=shell_command("config vault off"),
    )
