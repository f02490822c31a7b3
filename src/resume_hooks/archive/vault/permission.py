"""What may be archived, by the setting ``vault`` and an employer's. Loads little: who makes a child waits for it."""

from __future__ import annotations

from resume_hooks import settings
from resume_hooks.errors import VaultOff
from resume_hooks.paths import Where
from resume_hooks.system.claude_settings import managed_days
from resume_hooks.system.text import counted

OFF = "the setting 'vault' is off"
MANAGED = "{path} has sessions deleted after {days}, and nothing is archived beyond that"

MOST_BYTES = 1024 * 1024
"""Bytes that are packed while somebody waits."""


def allowed(where: Where) -> tuple[bool, str]:
    """Whether sessions may be archived beyond the client's period, and if not why, as the end of a sentence."""
    path, days = managed_days()
    if days:
        return False, MANAGED.format(path=path, days=counted(days, "day"))
    if settings.vault_room(where) is None:
        return False, OFF
    return True, ""


def require_allowed(where: Where) -> None:
    """Raise VaultOff where sessions may not be archived."""
    may, why = allowed(where)
    if not may:
        remedy = "Switch it on: resume-hooks config vault on" if why == OFF else "Ask who manages this machine."
        raise VaultOff(f"Nothing was archived: {why}", remedy)
