"""The team that was joined, as ``team/team.json`` of the state folder names it, and why its push does not run.

Standard library, Python 3.9: the installer and a session's start ask before there is an engine.
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

FOLDER, FILE, VERSION = "team", "team.json", 1
PUSHES = "push"
"""An empty file in that folder: turns' ends push. Its time is that of their last try.

Hooks look at nothing else.
"""

_LAST = "last"
"""An empty file of the time at which a push ran last, whoever asked for it."""

FAILING, UNTOLD = "failing.json", "untold"
"""What keeps a push from running, and that the next start is to say so.

The shell looks for the latter.
"""

LONG = 24 * 60 * 60
"""Seconds after which a start says that the server can't be reached."""


class Team(NamedTuple):
    """What was joined: the libpq ``service``, our ``login`` there, this machine's id, the keys of projects to push."""

    service: str
    login: str
    machine: str
    projects: Tuple[str, ...]


class Failing(NamedTuple):
    """Since when, in seconds of the epoch, turns' ends push nothing, how many sessions wait, why, and what to do."""

    since: int
    sessions: int
    why: str
    remedy: str
    told: bool

    @property
    def sentence(self) -> str:
        """The same for people."""
        since = datetime.fromtimestamp(self.since, timezone.utc).strftime("%Y-%m-%d %H:%M")
        if self.sessions == 1:
            waits = "1 session waits"
        else:
            waits = f"{self.sessions:,} sessions wait"
        return f"{waits} to be pushed to the team since {since} UTC: {self.why}"


def team_folder(where: Where) -> str:
    """Our folder for the team."""
    return os.path.join(where.state, FOLDER)


def joined_team(where: Where) -> Optional[Team]:
    """The team that was joined; None for none, and where the project says which."""
    row = read_json_object(os.path.join(team_folder(where), FILE))
    service, login, machine = (row.get(key) for key in ("service", "login", "machine"))
    if row.get("version") != VERSION or not all(
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


def failing(where: Where) -> Optional[Failing]:
    """What keeps turns' ends from pushing; None where nothing is known to."""
    row = read_json_object(os.path.join(team_folder(where), FAILING))
    try:
        since, sessions = int(row["since"]), int(row["sessions"])
        datetime.fromtimestamp(since, timezone.utc)
        return Failing(since, sessions, str(row["why"]), str(row["remedy"]), row["told"] is True)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def note_failing(error: Tuple[str, str], sessions: int, where: Where, *, at_once: bool) -> None:
    """Remember why a push failed and what helps.

    Have the next start say it, once: now, or when it lasts. OSError.
    """
    known, now = failing(where), int(time.time())
    row = Failing(
        min(known.since, now) if known else now, sessions, *error, told=bool(known and known.told)
    )
    if not row.told and (at_once or now - row.since >= LONG):
        state_file.replace_state_file(os.path.join(team_folder(where), UNTOLD), b"", where)
        row = row._replace(told=True)
    state_file.replace_state_file(
        os.path.join(team_folder(where), FAILING), json.dumps(row._asdict()).encode() + b"\n", where
    )


def note_pushed(where: Where) -> None:
    """Remember that a push ran; forget what kept one from it."""
    with contextlib.suppress(OSError):
        state_file.replace_state_file(os.path.join(team_folder(where), _LAST), b"", where)
    for name in (UNTOLD, FAILING):
        removal.remove_if_possible(os.path.join(team_folder(where), name), where.state)


def last_push(where: Where) -> str:
    """When a push ran last; ``"never"`` where none did."""
    try:
        at = os.stat(os.path.join(team_folder(where), _LAST)).st_mtime
    except OSError:
        return "never"
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M} UTC"


def unpushed(where: Where) -> str:
    """What the team is not sent, and why, for the start that asks; no later one says it again.

    ``""`` for nothing.
    """
    try:
        removal.remove_file(os.path.join(team_folder(where), UNTOLD), where.state)
    except OSError:
        return ""
    known = failing(where)
    if known:
        return f"{known.sentence}; what to do: {shell_command('doctor')}"
    return ""
