"""What may be archived: the setting ``vault``, an employer and the account's rules say it, and first the user is told.

Copies are made seven days before they are needed, so they can wait for a word, and links hold the
sessions meanwhile (``archive/hold_sessions``); after ``PATIENCE_DAYS`` they are made, and that is told.
Where the client runs no modules it is told once they are made. Loads little: who makes a child
waits for it.
"""

from __future__ import annotations

import contextlib
import os
import time

from resume_hooks import clock, questions, settings
from resume_hooks.archive import data_rules
from resume_hooks.clock import DAY
from resume_hooks.errors import VaultOff
from resume_hooks.paths import Where
from resume_hooks.seam import answers
from resume_hooks.sessions.archived.layout import vault_folder
from resume_hooks.storage.state_file import create_marker
from resume_hooks.system.claude_settings import managed_retention, retention_days
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

OFF = "the setting 'vault' is off"
MANAGED = "{path} has sessions deleted after {days}, and nothing is archived beyond that"

MOST_BYTES = 1024 * 1024
"""Bytes that are packed while somebody waits."""


def archiving_allowed(where: Where) -> tuple[bool, str]:
    """Whether sessions may be archived beyond the client's period, and if not why, as the end of a sentence."""
    if ruled := data_rules.reason_against_copies(where):
        return False, ruled
    path, days = managed_retention()
    if days:
        return False, MANAGED.format(path=path, days=format_count(days, "day"))
    if settings.vault_limit(where) is None:
        return False, OFF
    return True, ""


def require_allowed(where: Where) -> None:
    """Raise VaultOff if sessions may not be archived."""
    may, why = archiving_allowed(where)
    if not may:
        if why == OFF:
            remedy = "Switch it on: resume-hooks config vault on"
        else:
            remedy = "Ask who manages this machine."
        raise VaultOff(f"Nothing was archived: {why}", remedy)


PATIENCE_DAYS = 5
"""Days that copies wait."""

STAMP = "vault-told"
"""A file in the state folder: somebody was told of copies that were made."""

CAN_ASK = os.path.join("pending", "can-ask")
"""One that ``hooks/offered`` leaves there: a client that runs modules was started."""

ASKED = os.path.join("pending", "vault-asked")
"""One that keeps it from being told again that copies will be made."""

WAITING = os.path.join("pending", "vault-waiting")
"""One that tells by its time since when copies wait."""


def is_open(where: Where) -> bool:
    """Whether the user is to be told first: there is a client that can, and nobody was told or has chosen.

    Not where an employer has decided, or once the wait is over.
    """
    if os.path.lexists(os.path.join(where.state, STAMP)) or not os.path.exists(
        os.path.join(where.state, CAN_ASK)
    ):
        return False
    with contextlib.suppress(OSError):
        if (
            os.lstat(os.path.join(where.state, WAITING)).st_mtime
            < time.time() - PATIENCE_DAYS * DAY
        ):
            return False
    is_decided = data_rules.rules_in_force(where) or managed_retention()[1]
    return settings.load_settings(where)["vault"].source == "default" and not is_decided


def copies_must_wait(where: Where) -> bool:
    """Whether a copy that is to be made now waits for a word; that is noted."""
    with contextlib.suppress(OSError):
        if is_open(where):
            _leave_note(WAITING, where)
            return True
    return False


def waiting_notice(where: Where) -> str:
    """What to tell while copies may wait: until when; ``""`` where they don't."""
    if not is_open(where):
        return ""
    until = f"{PATIENCE_DAYS} days after the first had to wait"
    with contextlib.suppress(OSError):
        since = os.lstat(os.path.join(where.state, WAITING)).st_mtime
        until = f"from {clock.format_minute(clock.from_epoch(since + PATIENCE_DAYS * DAY))} UTC on"
    return f"Copies wait; without a word of yours they are made {until}."


def claim_first_notice(where: Where) -> bool:
    """Whether nobody was told yet that copies will be made; from now on somebody was.

    OSError where the state folder can't be written.
    """
    return _leave_note(ASKED, where)


def first_archive_line(where: Where, cwd: str = "/") -> str:
    """What to tell when something is archived for the first time; ``""`` ever after, and while copies wait."""
    try:
        if is_open(where) or not _leave_note(STAMP, where):
            return ""
    except OSError:
        return ""
    days = retention_days(cwd, where)
    if days is None:
        period = "for as long as the client keeps them, and beyond"
    else:
        period = f"beyond the client's {format_count(days, 'day')}"
    off = shell_command("config vault off")
    said = (
        f"Transcripts are now archived {period}, in {vault_folder(where)}. Off, in a shell: {off}"
    )
    lines = [said]
    for note_on_lost_sessions in answers(questions.note_on_lost_sessions):
        lines.append(note_on_lost_sessions(where))
    return " · ".join(filter(None, lines))


def _leave_note(name: str, where: Where) -> bool:
    return create_marker(os.path.join(where.state, name), where)
