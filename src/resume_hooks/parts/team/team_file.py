"""Read ``team/team.json`` in the state folder, which names the joined team, and record why pushes fail.

Standard library, Python 3.9: the installer and the session-start hook use this module without the
engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import datetime, timezone
from typing import NamedTuple, Optional, Tuple

from resume_hooks.paths import Where, is_state_in_project, read_json_object
from resume_hooks.storage import removal, state_file
from resume_hooks.system.invocation import shell_command

TEAM_FOLDER, TEAM_FILE, TEAM_FILE_VERSION = "team", "team.json", 1
PUSH_MARK_FILE = "push"
"""A file that exists if turns are pushed. Its modification time is the time of the last attempt.

Hooks only check this file.
"""

_LAST_PUSH_FILE = "last"
"""An empty file whose modification time is the time of the last successful push."""

FAILURE_FILE, UNREPORTED_FILE = "failing.json", "untold"
"""The file with the reason why pushes fail, and a mark file for a failure that the next start must report.

The hook's shell script checks for the mark file.
"""

LONG_FAILURE_SECONDS = 24 * 60 * 60
"""The number of seconds after which a session start reports an unreachable server."""


class Team(NamedTuple):
    """The joined team: its libpq ``service``, our ``login``, this machine's id, and the keys of the pushed projects."""

    service: str
    login: str
    machine: str
    projects: Tuple[str, ...]


class PushFailure(NamedTuple):
    """A push failure: its start (epoch seconds), the number of waiting sessions, the reason and the remedy."""

    since: int
    sessions: int
    why: str
    remedy: str
    told: bool

    @property
    def sentence(self) -> str:
        """The failure as a sentence for the user."""
        start_text = datetime.fromtimestamp(self.since, timezone.utc).strftime("%Y-%m-%d %H:%M")
        if self.sessions == 1:
            waiting_text = "1 session waits"
        else:
            waiting_text = f"{self.sessions:,} sessions wait"
        return f"{waiting_text} to be pushed to the team since {start_text} UTC: {self.why}"


def team_folder_path(where: Where) -> str:
    """Return our folder for the team."""
    return os.path.join(where.state, TEAM_FOLDER)


def read_team(where: Where) -> Optional[Team]:
    """Return the joined team, or None if there is none or if a project's own settings chose the state folder."""
    row = read_json_object(os.path.join(team_folder_path(where), TEAM_FILE))
    service, login, machine = (row.get(key) for key in ("service", "login", "machine"))
    if row.get("version") != TEAM_FILE_VERSION or not all(
        isinstance(text, str) and text for text in (service, login, machine)
    ):
        return None
    if is_state_in_project(where):
        return None
    projects = row.get("projects")
    return Team(
        str(service),
        str(login),
        str(machine),
        tuple(map(str, projects if isinstance(projects, list) else ())),
    )


def read_failure(where: Where) -> Optional[PushFailure]:
    """Return why pushes fail, or None if no failure is recorded."""
    row = read_json_object(os.path.join(team_folder_path(where), FAILURE_FILE))
    try:
        start_time, sessions = int(row["since"]), int(row["sessions"])
        datetime.fromtimestamp(start_time, timezone.utc)
        return PushFailure(
            start_time, sessions, str(row["why"]), str(row["remedy"]), row["told"] is True
        )
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def record_failure(
    error: Tuple[str, str], sessions: int, where: Where, *, report_at_once: bool
) -> None:
    """Record the reason for a failed push and its remedy.

    The next session start reports the failure once, immediately or when it has lasted long enough.
    Raise OSError.
    """
    previous_failure, now = read_failure(where), int(time.time())
    failure = PushFailure(
        min(previous_failure.since, now) if previous_failure else now,
        sessions,
        *error,
        told=bool(previous_failure and previous_failure.told),
    )
    if not failure.told and (report_at_once or now - failure.since >= LONG_FAILURE_SECONDS):
        state_file.replace_state_file(
            os.path.join(team_folder_path(where), UNREPORTED_FILE), b"", where
        )
        failure = failure._replace(told=True)
    state_file.replace_state_file(
        os.path.join(team_folder_path(where), FAILURE_FILE),
        json.dumps(failure._asdict()).encode() + b"\n",
        where,
    )


def record_push(where: Where) -> None:
    """Record a successful push, and remove the record of a failure."""
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            os.path.join(team_folder_path(where), _LAST_PUSH_FILE), b"", where
        )
    for name in (UNREPORTED_FILE, FAILURE_FILE):
        removal.remove_if_possible(os.path.join(team_folder_path(where), name), where.state)


def format_last_push(where: Where) -> str:
    """Return the time of the last successful push, or ``"never"``."""
    try:
        timestamp = os.stat(os.path.join(team_folder_path(where), _LAST_PUSH_FILE)).st_mtime
    except OSError:
        return "never"
    return f"{datetime.fromtimestamp(timestamp, timezone.utc):%Y-%m-%d %H:%M} UTC"


def report_push_failure(where: Where) -> str:
    """Return the failure that this session start must report. Later starts do not report it again.

    Return ``""`` if there is none.
    """
    try:
        removal.remove_file(os.path.join(team_folder_path(where), UNREPORTED_FILE), where.state)
    except OSError:
        return ""
    failure = read_failure(where)
    if failure:
        return f"{failure.sentence}; what to do: {shell_command('doctor')}"
    return ""
