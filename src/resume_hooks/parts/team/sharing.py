"""Who may see a session, and that nobody may any more. Only its owner asks for that.

The database holds him to it.
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
"""The folder of sessions that are to be forgotten once the server can be reached, an empty file each."""

_HERE = b"here"
"""What stands in such a file where only what this machine pushed is to go.

Else all of one's machines' does.
"""


class Reach(NamedTuple):
    """Whose a project is, and how many members beside oneself read what is shared with it."""

    owner: str
    others: int


def reach_of(project: str, db: Database) -> Reach | None:
    """Whom a project reaches that one is in, by its name; None for any other. TeamFailed."""
    query = "select login::text, others::text from team.project_reach(%s)"
    return db.row(query, (project,), Form(Reach, (rows.login, rows.count)))


def share_session(session: TeamSession, whom: str, until: datetime | None, db: Database) -> None:
    """Let others see a session: ``team``, ``project`` (its own), or a member's login, until an instant. TeamFailed."""
    kind, name = {"team": ("t", ""), "project": ("p", session.project)}.get(whom, ("g", whom))
    db.run("select team.share(%s, %s, %s, %s)", (session.session_id, kind, name, until))


def unshare_session(session: TeamSession, db: Database) -> None:
    """Make a session private again, to everybody. TeamFailed."""
    db.run("select team.share(%s, 'm', '', null)", (session.session_id,))


def forget_on_server(session_id: str, db: Database, where: Where) -> int:
    """Have the server forget a session on all one's machines, for good; how many copies it had.

    TeamFailed.
    """
    copies = db.value("select team.forget(%s)::text", (session_id,), rows.count)
    note_forgotten(session_id, where)
    return copies or 0


def note_deleted(session_id: str, where: Where) -> str:
    """Have a session that was deleted here forgotten at the next push.

    What to tell, ``""`` where nothing was sent.
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
    return f"The team still has it until: resume-hooks team forget {session_id}, or the next push."


def note_scrubbed(session_id: str, where: Where) -> str:
    """Have what the server has of a scrubbed session replaced at the next push; what to tell.

    Where the session's file is gone, and only a copy of it was scrubbed, the server's goes.
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
        f"What the team has of {session_id} from this machine goes with: resume-hooks team "
        "push --all"
    )


def has_queued(where: Where) -> bool:
    """Whether something that was deleted here is to be forgotten."""
    return os.path.isdir(queue := os.path.join(team_folder(where), _QUEUE)) and bool(
        os.listdir(queue)
    )


def forget_queued(db: Database, where: Where) -> list[str]:
    """Have everything forgotten that was deleted here; the ids."""
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
            elif find_session(session_id, where) is None:  # else it was restored since
                forget_on_server(session_id, db, where)
                gone.append(session_id)
            removal.remove_if_possible(note, where.state)
    return gone


def remove_gone(db: Database, where: Where) -> list[str]:
    """Have what was deleted or scrubbed here, or expired, go from the server; the ids."""
    return [*forget_queued(db, where), *_remove(*expiring(where), db, where)]


def expiring(where: Where) -> tuple[list[str], int]:
    """What this machine pushed and has no more, where an employer lets sessions go, and the days."""
    days = managed_retention()[1]
    if not days:
        return [], 0
    here = {each.session_id for each in all_sessions(where)} | {
        each.session_id for each in all_archived(where)
    }
    return sorted(pushed_here(where) - here), days


def _remove(sessions: list[str], days: int, db: Database, where: Where) -> list[str]:
    """Have the server remove what this machine pushed of sessions, as far as they are so old.

    The ids of those.
    """
    if not sessions:
        return []
    values = (sessions, required(where).machine, days)
    told = db.rows(
        "select gone from team.expire(%s, %s, %s) gone", values, Form(str, (rows.parse_session_id,))
    )
    gone = [
        session_id for session_id in told if session_id in sessions
    ]  # it has no say in any other
    for session_id in gone:
        removal.remove_if_possible(session_folder(session_id, where), where.state)
    return gone
