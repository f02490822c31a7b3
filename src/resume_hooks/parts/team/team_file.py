"""Read the team that this machine has joined, and record failed pushes.

The joined team is recorded in the file ``team/team.json`` in the state folder. The installer and
the session-start hook use this module without the engine, so this module needs only the standard
library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import datetime, timezone
from typing import NamedTuple, Optional, Tuple

from resume_hooks.paths import Where, is_state_folder_in_project, read_json_object
from resume_hooks.storage import removal, state_file
from resume_hooks.system.invocation import shell_command

TEAM_FOLDER, TEAM_FILE, TEAM_FILE_VERSION = "team", "team.json", 1
PUSH_ENABLED_FILE_NAME = "push"
"""The name of an empty file that exists if this machine pushes its turns to a team.

The file's modification time is the time of the last attempt to push. To decide whether to push a
turn, a hook only checks whether this file exists.
"""

_LAST_PUSH_FILE_NAME = "last"
"""The name of an empty file whose modification time is the time of the last successful push."""

FAILURE_FILE, UNREPORTED_FILE = "failing.json", "untold"
"""The names of two files about failed pushes.

The first file contains the reason for the failure. The second file is empty, and exists until a
session start has reported the failure. The hook's shell script only checks whether the second file
exists.
"""

MIN_FAILURE_SECONDS_BEFORE_REPORT = 24 * 60 * 60
"""The number of seconds for which the server must be unreachable before a session start reports it.
"""


class Team(NamedTuple):
    """The joined team.

    ``service`` is its libpq service, ``login`` the user's name on the server, ``machine`` the id of
    this machine, and ``projects`` the names of the pushed projects.
    """

    service: str
    login: str
    machine: str
    projects: Tuple[str, ...]


class PushFailure(NamedTuple):
    """A record of failed pushes.

    ``start_time`` is the time of the first failure, in epoch seconds. ``waiting_session_count`` is
    the number of unsent sessions. ``reason`` says why the push failed, and ``remedy`` says what the
    user can do about it. ``is_reported`` is true once a report of the failure has been left for the
    next session start.
    """

    start_time: int
    waiting_session_count: int
    reason: str
    remedy: str
    is_reported: bool

    @property
    def report_sentence(self) -> str:
        """The sentence that reports the failure to the user."""
        start_text = datetime.fromtimestamp(self.start_time, timezone.utc).strftime(
            "%Y-%m-%d %H:%M"
        )
        if self.waiting_session_count == 1:
            waiting_text = "1 session has been waiting"
        else:
            waiting_text = f"{self.waiting_session_count:,} sessions have been waiting"
        return f"{waiting_text} to be pushed to the team since {start_text} UTC: {self.reason}"


def find_team_folder(where: Where) -> str:
    """Return the path of the folder with the files of the team."""
    return os.path.join(where.state, TEAM_FOLDER)


def read_team(where: Where) -> Optional[Team]:
    """Return the joined team, or None if no team was joined.

    Also return None if the state folder is inside the project, because the project's own settings
    may have set this folder, so it cannot be trusted.
    """
    row = read_json_object(os.path.join(find_team_folder(where), TEAM_FILE))
    service, login, machine = (row.get(key) for key in ("service", "login", "machine"))
    if row.get("version") != TEAM_FILE_VERSION or not all(
        isinstance(text, str) and text for text in (service, login, machine)
    ):
        return None
    if is_state_folder_in_project(where):
        return None
    projects = row.get("projects")
    return Team(
        str(service),
        str(login),
        str(machine),
        tuple(map(str, projects if isinstance(projects, list) else ())),
    )


def read_push_failure(where: Where) -> Optional[PushFailure]:
    """Return the recorded push failure, or None if none is recorded."""
    row = read_json_object(os.path.join(find_team_folder(where), FAILURE_FILE))
    try:
        start_time, sessions = int(row["since"]), int(row["sessions"])
        datetime.fromtimestamp(start_time, timezone.utc)
        return PushFailure(
            start_time, sessions, str(row["why"]), str(row["remedy"]), row["told"] is True
        )
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def record_push_failure(
    error: Tuple[str, str], unsent_count: int, where: Where, *, report_at_once: bool
) -> None:
    """Record the reason for a failed push, and what the user can do about it.

    ``error`` is a pair of the reason and the remedy, and ``unsent_count`` is the number of unsent
    sessions. If ``report_at_once`` is true, the next session start reports the failure. Otherwise,
    session starts report it only if pushes have failed for ``MIN_FAILURE_SECONDS_BEFORE_REPORT``.
    Each failure is reported only once. Raise OSError if the failure cannot be recorded.
    """
    previous_failure, now = read_push_failure(where), int(time.time())
    failure = PushFailure(
        min(previous_failure.start_time, now) if previous_failure else now,
        unsent_count,
        *error,
        is_reported=bool(previous_failure and previous_failure.is_reported),
    )
    if not failure.is_reported and (
        report_at_once or now - failure.start_time >= MIN_FAILURE_SECONDS_BEFORE_REPORT
    ):
        state_file.replace_state_file(
            os.path.join(find_team_folder(where), UNREPORTED_FILE), b"", where
        )
        failure = failure._replace(is_reported=True)
    fields = {
        "since": failure.start_time,
        "sessions": failure.waiting_session_count,
        "why": failure.reason,
        "remedy": failure.remedy,
        "told": failure.is_reported,
    }
    state_file.replace_state_file(
        os.path.join(find_team_folder(where), FAILURE_FILE),
        json.dumps(fields).encode() + b"\n",
        where,
    )


def record_push(where: Where) -> None:
    """Record the time of a successful push, and remove the record of a failure."""
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            os.path.join(find_team_folder(where), _LAST_PUSH_FILE_NAME), b"", where
        )
    for name in (UNREPORTED_FILE, FAILURE_FILE):
        removal.remove_if_possible(os.path.join(find_team_folder(where), name), where.state)


def format_last_push(where: Where) -> str:
    """Return the time of the last successful push, or ``"never"``."""
    try:
        timestamp = os.stat(os.path.join(find_team_folder(where), _LAST_PUSH_FILE_NAME)).st_mtime
    except OSError:
        return "never"
    return f"{datetime.fromtimestamp(timestamp, timezone.utc):%Y-%m-%d %H:%M} UTC"


def report_push_failure(where: Where) -> str:
    """Return a sentence about a failed push that must be reported now, or ``""`` if there is none.

    Later session starts will not report the failure again.
    """
    try:
        removal.remove_file(os.path.join(find_team_folder(where), UNREPORTED_FILE), where.state)
    except OSError:
        return ""
    failure = read_push_failure(where)
    if failure:
        return f"{failure.report_sentence}; what to do: {shell_command('doctor')}"
    return ""
