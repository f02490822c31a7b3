"""Decide whether sessions may be archived.

That depends on the setting ``vault``, on an employer's retention, and on the account's data rules.
The user is informed before the first copy is made. Copies are due seven days before the client
deletes a session, so there is time to wait for the user's answer. During this time hard links
preserve the sessions (``archive/link_sessions``). If the user has not answered after
``MAX_ANSWER_WAIT_DAYS`` days, the copies are made, and the user is informed of them. Only a client that
runs modules can ask the user. With other clients, the user is informed only after the first copy.

This module imports few others, because making a child waits for it.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple

from resume_hooks import clock, questions, settings
from resume_hooks.archive import data_rules
from resume_hooks.clock import DAY
from resume_hooks.errors import VaultOff
from resume_hooks.paths import Where
from resume_hooks.seam import find_answers
from resume_hooks.sessions.archived.layout import vault_folder
from resume_hooks.storage.state_file import create_marker
from resume_hooks.system.claude_settings import read_managed_retention, read_retention_days
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

VAULT_OFF_REASON = "the setting 'vault' is off"
MANAGED_RETENTION_REASON = (
    "according to {path}, sessions are deleted after {days}, and nothing is archived for longer"
)

MAX_QUICK_ARCHIVE_BYTES = 1024 * 1024
"""The maximum number of bytes to pack while the user waits."""


class ArchivingPermission(NamedTuple):
    """Whether sessions may be archived. If not, ``reason`` says why, worded as the end of a sentence."""

    is_allowed: bool
    reason: str = ""


def check_archiving_allowed(where: Where) -> ArchivingPermission:
    """Check whether sessions may be archived, that is, kept longer than the client keeps them."""
    if rules_reason := data_rules.find_reason_not_to_copy(where):
        return ArchivingPermission(is_allowed=False, reason=rules_reason)
    path, days = read_managed_retention()
    if days:
        reason = MANAGED_RETENTION_REASON.format(path=path, days=format_count(days, "day"))
        return ArchivingPermission(is_allowed=False, reason=reason)
    if settings.vault_limit(where) is None:
        return ArchivingPermission(is_allowed=False, reason=VAULT_OFF_REASON)
    return ArchivingPermission(is_allowed=True)


def require_archiving_allowed(where: Where) -> None:
    """Raise VaultOff if sessions may not be archived."""
    is_allowed, reason = check_archiving_allowed(where)
    if not is_allowed:
        if reason == VAULT_OFF_REASON:
            remedy = "Switch the vault on: resume-hooks config vault on"
        else:
            remedy = "Ask who manages this machine."
        raise VaultOff(f"Nothing was archived: {reason}", remedy)


MAX_ANSWER_WAIT_DAYS = 5
"""The number of days to wait for the user's answer before sessions are archived without it."""

USER_INFORMED_MARKER_FILE = "vault-told"
"""The name of a file in the state folder. It exists once the user has been informed that
sessions were archived."""

CLIENT_CAN_ASK_MARKER_FILE = os.path.join("pending", "can-ask")
"""The name of a file that ``hooks/offered`` writes when a client that can ask the user questions
has started."""

NOTICE_GIVEN_MARKER_FILE = os.path.join("pending", "vault-asked")
"""The name of a file that exists once the notice that sessions will be archived has been given.
It prevents a second notice."""

WAIT_START_MARKER_FILE = os.path.join("pending", "vault-waiting")
"""The name of a marker file. Its modification time is the time at which archiving was first
postponed until the user answers."""


def is_archiving_notice_due(where: Where) -> bool:
    """Check whether the user must be informed before the first session is archived.

    This is the case if all of these hold: a client can ask the user, the user has neither been
    informed nor chosen a setting, the account's data rules and the employer leave the choice to the
    user, and the time to wait is not over.
    """
    if os.path.lexists(os.path.join(where.state, USER_INFORMED_MARKER_FILE)) or not os.path.exists(
        os.path.join(where.state, CLIENT_CAN_ASK_MARKER_FILE)
    ):
        return False
    with contextlib.suppress(OSError):
        if (
            os.lstat(os.path.join(where.state, WAIT_START_MARKER_FILE)).st_mtime
            < time.time() - MAX_ANSWER_WAIT_DAYS * DAY
        ):
            return False
    is_decided = data_rules.read_data_rules(where) or read_managed_retention()[1]
    return settings.load_settings(where)["vault"].source == "default" and not is_decided


def must_archiving_wait(where: Where) -> bool:
    """Check whether archiving must wait for the user's answer. If so, record when the wait began."""
    with contextlib.suppress(OSError):
        if is_archiving_notice_due(where):
            _create_marker_file(WAIT_START_MARKER_FILE, where)
            return True
    return False


def format_waiting_notice(where: Where) -> str:
    """Return a sentence that says how long archiving waits, or ``""`` if it does not wait."""
    if not is_archiving_notice_due(where):
        return ""
    end_text = f"{MAX_ANSWER_WAIT_DAYS} days after archiving was first due"
    with contextlib.suppress(OSError):
        wait_start = os.lstat(os.path.join(where.state, WAIT_START_MARKER_FILE)).st_mtime
        wait_end = clock.timestamp_from_epoch(wait_start + MAX_ANSWER_WAIT_DAYS * DAY)
        end_text = f"from {clock.format_minute(wait_end)} UTC on"
    return (
        f"Archiving waits for your answer. If you do not answer, sessions are archived {end_text}."
    )


def claim_first_notice(where: Where) -> bool:
    """Check whether the notice about future copies is due, and mark it as given.

    Raises OSError if the state folder cannot be written.
    """
    return _create_marker_file(NOTICE_GIVEN_MARKER_FILE, where)


def make_first_archive_notice(where: Where, cwd: str = "/") -> str:
    """Return the notice to show once the first session has been archived.

    Return ``""`` if the notice was shown before, or if archiving waits for the user's answer.
    """
    try:
        if is_archiving_notice_due(where) or not _create_marker_file(
            USER_INFORMED_MARKER_FILE, where
        ):
            return ""
    except OSError:
        return ""
    days = read_retention_days(cwd, where)
    if days is None:
        period = "for as long as the client keeps them, and beyond"
    else:
        period = f"beyond the client's {format_count(days, 'day')}"
    off_command = shell_command("config vault off")
    notice = (
        f"Transcripts are now archived {period}, in {vault_folder(where)}. "
        f"To switch this off, run this in a shell: {off_command}"
    )
    lines = [notice]
    for note_on_lost_sessions in find_answers(questions.note_on_lost_sessions):
        lines.append(note_on_lost_sessions(where))
    return " · ".join(filter(None, lines))


def _create_marker_file(name: str, where: Where) -> bool:
    return create_marker(os.path.join(where.state, name), where)
