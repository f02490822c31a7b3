"""The client's own settings, from the weakest level to the strongest. Read-only; a damaged file counts as empty."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from resume_hooks.paths import config_home, read_object

KEPT_DAYS = "cleanupPeriodDays"

DEFAULT_KEPT_DAYS = 30
"""Days after its last write that the client keeps a transcript where no setting says otherwise."""

MAX_KEPT_DAYS = 1_000_000
"""Days that a calendar can still add; more is for ever."""


def settings_files(cwd: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """The client's settings files from the weakest level to the strongest: user, project, local, managed."""
    managed = "/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code"
    return [
        os.path.join(config_home(environ), "settings.json"),
        os.path.join(cwd, ".claude", "settings.json"),
        os.path.join(cwd, ".claude", "settings.local.json"),
        os.path.join(managed, "managed-settings.json"),
    ]


def kept_days(cwd: str, environ: Mapping[str, str] | None = None) -> int | None:
    """Days that a client started in ``cwd`` keeps transcripts after their last write, ``cleanupPeriodDays``.

    The strongest level that says something decides. None where any says what is no whole number from 1: clients do not
    clean up then (2.1.112, 2.1.329; 2.1.42 took 0 for "for ever").
    """
    found: int | None = DEFAULT_KEPT_DAYS
    for path in settings_files(cwd, environ):
        days = read_object(path).get(KEPT_DAYS)
        if days is None:
            continue
        if not isinstance(days, int) or days is True or days < 1:
            return None
        found = min(days, MAX_KEPT_DAYS)
    return found
