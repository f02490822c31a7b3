"""Share, unshare and forget sessions on the server. Only the owner can do that.

The database enforces it.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from typing import NamedTuple

from resume_hooks.parts.team import rows
from resume_hooks.parts.team.connect import TeamFailed, refusals
from resume_hooks.parts.team.cursor import (
    cursor_of,
    keep_cursor,
    note_forgotten,
    pushed_here,
    session_folder,
)
from resume_hooks.parts.team.membership import required
from resume_hooks.parts.team.rows import Database, Form
from resume_hooks.parts.team.sessions import TeamSession
from resume_hooks.parts.team.team_file import joined_team, team_folder
from resume_hooks.paths import Where, find_session, is_session_id, read_regular
from resume_hooks.sessions.archived.manifest import all_archived
from resume_hooks.sessions.locate import all_sessions
from resume_hooks.storage import removal, state_file
from resume_hooks.system.claude_settings import managed_retention

_QUEUE = "forget"
"""The folder of sessions to be forgotten at the next connection, one file each."""

_HERE = b"here"
"""The content of such a file if only the copy from this machine must be removed.

Otherwise the copies of all your machines are removed.
"""


class Reach(NamedTuple):
    """A project's owner, and the number of other members who can read sessions shared with it."""

    owner: str
    others: int


def reach_of(project: str, db: Database) -> Reach | None:
    """Return the reach of a project that you belong to, or None for any other project. Raise TeamFailed."""
    query = "select login::text, others::text from team.project_reach(%s)"
    return db.row(query, (project,), Form(Reach, (rows.login, rows.count)))


def share_session(session: TeamSession, whom: str, until: datetime | None, db: Database) -> None:
    """Share a session with ``team``, its ``project`` or a member's login, until an optional time. Raise TeamFailed."""
    kind, name = {"team": ("t", ""), "project": ("p", session.project)}.get(whom, ("g", whom))
    db.run("select team.share(%s, %s, %s, %s)", (session.session_id, kind, name, until))


def unshare_session(session: TeamSession, db: Database) -> None:
    """Make a session private again. Raise TeamFailed."""
    db.run("select team.share(%s, 'm', '', null)", (session.session_id,))


def forget_on_server(session_id: str, db: Database, where: Where) -> int:
    """Make the server forget a session of all your machines for good, and return the number of removed copies.

    Raise TeamFailed.
    """
    copies = db.value("select team.forget(%s)::text", (session_id,), rows.count)
    note_forgotten(session_id, where)
    return copies or 0


def note_deleted(session_id: str, where: Where) -> str:
    """Queue a session that was deleted here to be forgotten at the next push.

    Return a note for the user, or ``""`` if nothing was pushed.
    """
    if (
        joined_team(where) is None
        or not is_session_id(session_id)
        or not cursor_of(session_id, where).row
    ):
        return ""
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            os.path.join(team_folder(where), _QUEUE, session_id), b"", where
        )
    return f"The team has it until the next push, or until: resume-hooks team forget {session_id}"


def note_scrubbed(session_id: str, where: Where) -> str:
    """Queue the server's copy of a scrubbed session to be replaced at the next push, and return a note for the user.

    If only an archived copy was scrubbed and the session's file is gone, the server's copy is
    removed.
    """
    cursor = cursor_of(session_id, where)
    if joined_team(where) is None or not is_session_id(session_id) or not cursor.row:
        return ""
    if find_session(session_id, where) is None:
        with contextlib.suppress(OSError):
            state_file.replace_state_file(
                os.path.join(team_folder(where), _QUEUE, session_id), _HERE, where
            )
    else:
        keep_cursor(session_id, cursor._replace(drop=True, places={}), where)
    return (
        f"To replace the team's copy of {session_id} from this machine: resume-hooks team "
        "push --all"
    )


def has_queued(where: Where) -> bool:
    """Check whether deleted sessions wait to be forgotten."""
    return os.path.isdir(queue := os.path.join(team_folder(where), _QUEUE)) and bool(
        os.listdir(queue)
    )


def forget_queued(db: Database, where: Where) -> list[str]:
    """Make the server forget the queued sessions, and return their ids."""
    queue = os.path.join(team_folder(where), _QUEUE)
    try:
        waiting = []
        for name in sorted(os.listdir(queue)):
            if is_session_id(name):
                waiting.append(name)
    except OSError:
        return []
    gone: list[str] = []
    for session_id in waiting:
        note = os.path.join(queue, session_id)
        with contextlib.suppress(TeamFailed), refusals():
            if read_regular(note, len(_HERE)) == _HERE:
                gone += _remove([session_id], 0, db, where)
            elif find_session(session_id, where) is None:  # otherwise the session was restored
                forget_on_server(session_id, db, where)
                gone.append(session_id)
            removal.remove_if_possible(note, where.state)
    return gone


def remove_gone(db: Database, where: Where) -> list[str]:
    """Remove deleted, scrubbed and expired sessions from the server, and return their ids."""
    return [*forget_queued(db, where), *_remove(*expiring(where), db, where)]


def expiring(where: Where) -> tuple[list[str], int]:
    """Return the pushed sessions that this machine no longer has, and the employer's retention period in days."""
    days = managed_retention()[1]
    if not days:
        return [], 0
    here = {each.session_id for each in all_sessions(where)} | {
        each.session_id for each in all_archived(where)
    }
    return sorted(pushed_here(where) - here), days


def _remove(sessions: list[str], days: int, db: Database, where: Where) -> list[str]:
    """Remove this machine's copies of sessions from the server if they are old enough.

    Return the ids of the removed sessions.
    """
    if not sessions:
        return []
    values = (sessions, required(where).machine, days)
    told = db.rows(
        "select gone from team.expire(%s, %s, %s) gone", values, Form(str, (rows.parse_session_id,))
    )
    gone = [
        session_id for session_id in told if session_id in sessions
    ]  # ignore sessions that we did not ask about
    for session_id in gone:
        removal.remove_if_possible(session_folder(session_id, where), where.state)
    return gone
