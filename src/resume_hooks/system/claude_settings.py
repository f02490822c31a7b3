"""Read the client's own settings. A damaged settings file is treated like an empty file."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from resume_hooks.paths import Where, read_json_object

RETENTION_KEY = "cleanupPeriodDays"

# Number of days from the last write to a transcript until the client deletes it, unless a setting
# changes this number.
DEFAULT_RETENTION_DAYS = 30
MIN_WINDOW_TOKENS = 100_000  # clients ignore a compaction window with fewer tokens
# The maximum retention in days. With a larger number, dates could not be computed.
MAX_RETENTION_DAYS = 1_000_000


def settings_files(cwd: str, where: Where) -> list[str]:
    """Return the paths of the client's settings files, from the lowest precedence to the highest.

    The files contain the settings of the user, of the project, of the user for this project, and of
    the administrator.
    """
    return [
        os.path.join(where.config, "settings.json"),
        os.path.join(cwd, ".claude", "settings.json"),
        os.path.join(cwd, ".claude", "settings.local.json"),
        os.path.join(_find_managed_folder(), "managed-settings.json"),
    ]


def find_policy_file(where: Where) -> str:
    """Return the path of the settings file with which an organization manages this machine, or ``""``.

    The file may be the administrator's file, a file in the folder next to it, or the settings that
    the client fetched for a Team or Enterprise account. If there is one of these files (measured
    with 2.1.332), the client does not let plugin modules compact a session, and ignores the answers
    of classic hooks to a compaction.
    """
    folder = _find_managed_folder()
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


def _find_managed_folder() -> str:
    """Return the folder with the administrator's settings for all users of this machine."""
    folders = {
        "darwin": "/Library/Application Support/ClaudeCode",
        "win32": "C:\\Program Files\\ClaudeCode",
    }
    return folders.get(sys.platform, "/etc/claude-code")


def read_compaction_window(cwd: str, model: str, where: Where) -> int:
    """Return the size in tokens of the window after which the client compacts, or 0.

    0 means that the model's own window is used. As in Claude Code 2.1.330, the environment variable
    comes first, then the setting for this model, which /autocompact writes, and then the setting
    for all models.
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
    """How long the client keeps a transcript.

    ``days`` is the number of days after the last write, or None if the client never deletes
    transcripts. ``settings_path`` is the settings file that sets the number, or ``""`` for the
    default.
    """

    days: int | None
    settings_path: str


def read_client_retention(cwd: str, where: Where) -> Retention:
    """Return the setting ``cleanupPeriodDays`` of a client that starts in ``cwd``.

    The client applies the setting to the transcripts of all folders. The settings file with the
    highest precedence that contains the setting decides. If the value in any of the files is not a
    whole number above 0, the client deletes no transcripts (2.1.112, 2.1.329; in 2.1.42 only 0 had
    this meaning).
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
    """Return the number of days after the last write for which a client keeps a transcript.

    ``cwd`` is the folder in which the client starts. Return None if the client never deletes
    transcripts.
    """
    return read_client_retention(cwd, where).days


def read_managed_retention() -> tuple[str, int]:
    """Return the path of the administrator's settings file, and its ``cleanupPeriodDays`` (0: not set)."""
    path = settings_files("", Where())[-1]
    days = read_json_object(path).get(RETENTION_KEY)
    return path, min(days, MAX_RETENTION_DAYS) if isinstance(
        days, int
    ) and days is not True and days > 0 else 0
