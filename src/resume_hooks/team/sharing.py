"""Who may see a session, and that nobody may any more. Only its owner asks for that; the database holds him to it."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime

from resume_hooks.paths import Where, is_session_id
from resume_hooks.storage import state_file
from resume_hooks.storage.team_file import folder, found
from resume_hooks.team.connect import Connection, TeamFailed, refusals
from resume_hooks.team.cursor import cursor_of, keep_cursor, session_folder
from resume_hooks.team.sessions import TeamSession

_QUEUE = "forget"
"""The folder of sessions that are to be forgotten once the server can be reached, an empty file each."""


def share(session: TeamSession, whom: str, until: datetime | None, db: Connection) -> None:
    """Let others see a session: ``team``, ``project`` (its own), or a member's login, until an instant. TeamFailed."""
    kind, name = {"team": ("t", ""), "project": ("p", session.project)}.get(whom, ("g", whom))
    db.execute("select team.share(%s, %s, %s, %s)", (session.session_id, kind, name, until))


def unshare(session: TeamSession, db: Connection) -> None:
    """Make a session private again, to everybody. TeamFailed."""
    db.execute("select team.share(%s, 'm', '', null)", (session.session_id,))


def forget(session_id: str, db: Connection, where: Where) -> int:
    """Have the server forget a session on all one's machines, for good; how many copies it had. TeamFailed."""
    row = db.execute("select team.forget(%s)", (session_id,)).fetchone()
    state_file.discard(session_folder(session_id, where))
    return int(row[0]) if row else 0


def note_deleted(session_id: str, where: Where) -> str:
    """Have a session that was deleted here forgotten at the next push; what to tell, ``""`` where nothing was sent."""
    if found(where) is None or not is_session_id(session_id) or not cursor_of(session_id, where).row:
        return ""
    with contextlib.suppress(OSError):
        state_file.replace(os.path.join(folder(where), _QUEUE, session_id), b"", where)
    return f"The team still has it until: resume-hooks team forget {session_id}, or the next push."


def note_scrubbed(session_id: str, where: Where) -> str:
    """Have what the server has of a scrubbed session replaced at the next push; what to tell."""
    cursor = cursor_of(session_id, where)
    if found(where) is None or not cursor.row:
        return ""
    keep_cursor(session_id, cursor._replace(drop=True, places={}), where)
    return f"What the team has of it goes with: resume-hooks team push {session_id}, or the next push."


def has_queued(where: Where) -> bool:
    """Whether something that was deleted here is to be forgotten."""
    return os.path.isdir(queue := os.path.join(folder(where), _QUEUE)) and bool(os.listdir(queue))


def forget_queued(db: Connection, where: Where) -> list[str]:
    """Have everything forgotten that was deleted here; the ids."""
    queue = os.path.join(folder(where), _QUEUE)
    try:
        waiting = [name for name in sorted(os.listdir(queue)) if is_session_id(name)]
    except OSError:
        return []
    for session_id in waiting:
        with contextlib.suppress(TeamFailed), refusals():
            forget(session_id, db, where)
            state_file.discard(os.path.join(queue, session_id))
    return waiting
