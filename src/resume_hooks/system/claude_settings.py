"""The client's own settings, read-only, from the lowest precedence to the highest.

A damaged file counts as empty.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from resume_hooks.paths import Where, read_json_object

RETENTION_KEY = "cleanupPeriodDays"

# the default number of days after its last write until the client deletes a transcript
DEFAULT_RETENTION_DAYS = 30
MIN_WINDOW_TOKENS = (
    100_000  # the minimum number of tokens; clients reject a smaller window for compaction
)
# the largest number of days that dates can be computed with; it means for ever
MAX_RETENTION_DAYS = 1_000_000


def settings_files(cwd: str, where: Where) -> list[str]:
    """Return the client's settings files from the lowest precedence to the highest: user, project, local, managed."""
    return [
        os.path.join(where.config, "settings.json"),
        os.path.join(cwd, ".claude", "settings.json"),
        os.path.join(cwd, ".claude", "settings.local.json"),
        os.path.join(_managed_folder(), "managed-settings.json"),
    ]


def find_policy_file(where: Where) -> str:
    """Return the file of the organization's policy that applies to this machine, or ``""``.

    Any managed setting makes a policy (2.1.332): the machine's file, a file in the folder next to
    it, or the settings that the client fetched for a Team or Enterprise account. Under a policy,
    the client ignores compaction by plugins' modules and the answers of its classic hooks to a
    compaction.
    """
    folder = _managed_folder()
    try:
        extra_names = sorted(os.listdir(os.path.join(folder, "managed-settings.d")))
    except OSError:
        extra_names = []
    extra_files = []
    for name in extra_names:
        if name.endswith(".json"):
            extra_files.append(os.path.join(folder, "managed-settings.d", name))
    files = [
        os.path.join(folder, "managed-settings.json"),
        *extra_files,
        os.path.join(where.config, "remote-settings.json"),
    ]
    return next((path for path in files if read_json_object(path)), "")


def _managed_folder() -> str:
    """Return the folder of an administrator's settings for all users of the machine."""
    folders = {
        "darwin": "/Library/Application Support/ClaudeCode",
        "win32": "C:\\Program Files\\ClaudeCode",
    }
    return folders.get(sys.platform, "/etc/claude-code")


def read_compaction_window(cwd: str, model: str, where: Where) -> int:
    """Return the window in tokens that settings define for a ``model`` in ``cwd``, or 0 for the model's own window.

    The order is that of Claude Code 2.1.330: the environment variable, then the row of the model,
    which /autocompact writes, then the value for all models in the settings file.
    """
    variable = where.environ.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")
    if variable.isdecimal():
        return int(variable)
    window = 0
    for path in settings_files(cwd, where):
        settings = read_json_object(path)
        rows = settings.get("modelSettings")
        if isinstance(rows, dict):
            model_rows = []
            for key, each in rows.items():
                if f"{model}-".startswith(f"{key}-"):
                    model_rows.append(each)
        else:
            model_rows = []
        model_windows = []
        for each in model_rows:
            if isinstance(each, dict) and "autoCompactWindow" in each:
                model_windows.append(each["autoCompactWindow"])
        value = model_windows[0] if model_windows else settings.get("autoCompactWindow")
        if value == "auto" or (isinstance(value, int) and value >= MIN_WINDOW_TOKENS):
            window = 0 if value == "auto" else int(value)
    return window


class Retention(NamedTuple):
    """How long a client keeps transcripts: ``days`` after their last write (None: for ever).

    ``path`` is the settings file that decides.
    """

    days: int | None
    path: str


def read_client_retention(cwd: str, where: Where) -> Retention:
    """Return ``cleanupPeriodDays`` of a client started in ``cwd``.

    The setting applies to the transcripts of all folders.

    The level of highest precedence that sets the value decides. If any level has anything except a
    whole number from 1, transcripts are kept for ever, because clients do not clean up in this case
    (2.1.112, 2.1.329; in 2.1.42, 0 meant for ever).
    """
    retention = Retention(DEFAULT_RETENTION_DAYS, "")
    for path in settings_files(cwd, where):
        days = read_json_object(path).get(RETENTION_KEY)
        if days is None:
            continue
        if not isinstance(days, int) or days is True or days < 1:
            return Retention(None, path)
        retention = Retention(min(days, MAX_RETENTION_DAYS), path)
    return retention


def read_retention_days(cwd: str, where: Where) -> int | None:
    """Return the number of days that a client started in ``cwd`` keeps a transcript after its last write.

    Return None if it keeps transcripts for ever.
    """
    return read_client_retention(cwd, where).days


def read_managed_retention() -> tuple[str, int]:
    """Return the path of this machine's managed settings file, and the retention that it sets in days (0: none)."""
    path = settings_files("", Where())[-1]
    days = read_json_object(path).get(RETENTION_KEY)
    return path, min(days, MAX_RETENTION_DAYS) if isinstance(
        days, int
    ) and days is not True and days > 0 else 0
