"""The client's own settings, from the weakest level to the strongest. Read-only.

A damaged file counts as empty.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from resume_hooks.paths import Where, read_object

KEPT_DAYS = "cleanupPeriodDays"

DEFAULT_KEPT_DAYS = 30  # days after its last write that the client keeps a transcript by default
LEAST_WINDOW = 100_000  # tokens; clients take no smaller window to compact at
MAX_KEPT_DAYS = 1_000_000  # days that a calendar can still add; more is for ever


def settings_files(cwd: str, where: Where) -> list[str]:
    """The client's settings files from the weakest level to the strongest: user, project, local, managed."""
    return [
        os.path.join(where.config, "settings.json"),
        os.path.join(cwd, ".claude", "settings.json"),
        os.path.join(cwd, ".claude", "settings.local.json"),
        os.path.join(_managed_folder(), "managed-settings.json"),
    ]


def policy_file(where: Where) -> str:
    """The file of an organization's policy that is in force on this machine; ``""`` for none.

    Any managed setting makes one (2.1.332): the file of the machine, one of the folder beside it,
    or what the client fetched for a Team or Enterprise account. Under a policy the client skips
    what modules of plugins answer when it compacts, and for its classic hooks.
    """
    folder = _managed_folder()
    try:
        more = sorted(os.listdir(os.path.join(folder, "managed-settings.d")))
    except OSError:
        more = []
    parts = []
    for name in more:
        if name.endswith(".json"):
            parts.append(os.path.join(folder, "managed-settings.d", name))
    files = [
        os.path.join(folder, "managed-settings.json"),
        *parts,
        os.path.join(where.config, "remote-settings.json"),
    ]
    return next((path for path in files if read_object(path)), "")


def _managed_folder() -> str:
    """Where an administrator puts settings that bind everybody on the machine."""
    folders = {
        "darwin": "/Library/Application Support/ClaudeCode",
        "win32": "C:\\Program Files\\ClaudeCode",
    }
    return folders.get(sys.platform, "/etc/claude-code")


def compaction_window(cwd: str, model: str, where: Where) -> int:
    """Tokens that a client started in ``cwd`` takes for the window of a ``model`` by its settings; 0: the model's own.

    As 2.1.330 reads them: a model's own row, which /autocompact writes, goes before the file's; the
    variable first.
    """
    named = where.environ.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")
    if named.isdecimal():
        return int(named)
    found = 0
    for path in settings_files(cwd, where):
        row = read_object(path)
        rows = row.get("modelSettings")
        if isinstance(rows, dict):
            own = []
            for key, each in rows.items():
                if f"{model}-".startswith(f"{key}-"):
                    own.append(each)
        else:
            own = []
        said = []
        for each in own:
            if isinstance(each, dict) and "autoCompactWindow" in each:
                said.append(each["autoCompactWindow"])
        value = said[0] if said else row.get("autoCompactWindow")
        if value == "auto" or (isinstance(value, int) and value >= LEAST_WINDOW):
            found = 0 if value == "auto" else int(value)
    return found


class Retention(NamedTuple):
    """How long a client keeps transcripts: ``days`` after their last write, None for ever, by the settings ``path``."""

    days: int | None
    path: str


def client_retention(cwd: str, where: Where) -> Retention:
    """The ``cleanupPeriodDays`` of a client started in ``cwd``.

    It applies to the transcripts of all folders.

    The strongest level that has it decides. For ever if any has something else than a whole number
    from 1: clients do not clean up then (2.1.112, 2.1.329; 2.1.42 took 0 for "for ever").
    """
    found = Retention(DEFAULT_KEPT_DAYS, "")
    for path in settings_files(cwd, where):
        days = read_object(path).get(KEPT_DAYS)
        if days is None:
            continue
        if not isinstance(days, int) or days is True or days < 1:
            return Retention(None, path)
        found = Retention(min(days, MAX_KEPT_DAYS), path)
    return found


def kept_days(cwd: str, where: Where) -> int | None:
    """Days that a client started in ``cwd`` keeps transcripts after their last write.

    None for ever.
    """
    return client_retention(cwd, where).days


def managed_days() -> tuple[str, int]:
    """The managed settings file of this machine, and the days that it keeps sessions; 0 if it does not say."""
    path = settings_files("", Where())[-1]
    days = read_object(path).get(KEPT_DAYS)
    return path, min(days, MAX_KEPT_DAYS) if isinstance(
        days, int
    ) and days is not True and days > 0 else 0
