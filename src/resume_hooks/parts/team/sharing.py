"""Share, unshare and forget sessions on the server. Only a session's owner can do that.

The database enforces this rule.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from typing import NamedTuple

from resume_hooks.parts.team import rows
from resume_hooks.parts.team.connect import TeamFailed, translate_errors
from resume_hooks.parts.team.cursor import (
    cursor_folder,
    read_cursor,
    read_pushed_ids,
    record_forgotten_session,
    write_cursor,
)
from resume_hooks.parts.team.membership import get_joined_team
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.sessions import TeamSession
from resume_hooks.parts.team.team_file import read_team, team_folder_path
from resume_hooks.paths import Where, find_session, is_session_id, read_regular_file
from resume_hooks.sessions.archived.manifest import list_archived
from resume_hooks.sessions.locate import all_sessions
from resume_hooks.storage import removal, state_file
from resume_hooks.system.claude_settings import read_managed_retention

_FORGET_QUEUE_FOLDER = "forget"
"""The folder with a file for each session that the server must forget at the next connection."""

_ONLY_THIS_MACHINE_MARK = b"here"
"""The content of a session's file if the server must only remove the copy from this machine.

Otherwise the server removes the copies from all your machines.
"""


class ProjectReaders(NamedTuple):
    """A project's owner, and the number of other members who can read sessions that are shared with the project."""

    owner: str
    reader_count: int


def fetch_project_readers(project: str, db: Database) -> ProjectReaders | None:
    """Return the owner and readers of a project, or None if you are not in it. Raise TeamFailed."""
    query = "select login::text, others::text from team.project_reach(%s)"
    return db.fetch_row(
        query, (project,), RowFormat(ProjectReaders, (rows.parse_login, rows.parse_count))
    )


def share_session(
    session: TeamSession, audience: str, until: datetime | None, db: Database
) -> None:
    """Share a session with ``team``, its ``project`` or a member's login, optionally until a time. Raise TeamFailed."""
    kind, name = {"team": ("t", ""), "project": ("p", session.project)}.get(
        audience, ("g", audience)
    )
    db.run_statement("select team.share(%s, %s, %s, %s)", (session.session_id, kind, name, until))


def unshare_session(session: TeamSession, db: Database) -> None:
    """Make a session private again. Raise TeamFailed."""
    db.run_statement("select team.share(%s, 'm', '', null)", (session.session_id,))


def forget_on_server(session_id: str, db: Database, where: Where) -> int:
    """Make the server permanently forget a session from all your machines. Return the number of removed copies.

    Raise TeamFailed.
    """
    copy_count = db.fetch_value("select team.forget(%s)::text", (session_id,), rows.parse_count)
    record_forgotten_session(session_id, where)
    return copy_count or 0


def queue_deletion(session_id: str, where: Where) -> str:
    """Queue a session that was deleted on this machine, so that the next push makes the server forget it.

    Return a note for the user, or ``""`` if the session was never pushed.
    """
    if (
        read_team(where) is None
        or not is_session_id(session_id)
        or not read_cursor(session_id, where).row
    ):
        return ""
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            os.path.join(team_folder_path(where), _FORGET_QUEUE_FOLDER, session_id), b"", where
        )
    return f"The team has it until the next push, or until: resume-hooks team forget {session_id}"


def queue_replacement(session_id: str, where: Where) -> str:
    """Queue a scrubbed session, so that the next push replaces the server's copy. Return a note for the user.

    If only an archived copy was scrubbed and the session itself is deleted, the server's copy is
    removed.
    """
    cursor = read_cursor(session_id, where)
    if read_team(where) is None or not is_session_id(session_id) or not cursor.row:
        return ""
    if find_session(session_id, where) is None:
        with contextlib.suppress(OSError):
            state_file.replace_state_file(
                os.path.join(team_folder_path(where), _FORGET_QUEUE_FOLDER, session_id),
                _ONLY_THIS_MACHINE_MARK,
                where,
            )
    else:
        write_cursor(session_id, cursor._replace(drop=True, places={}), where)
    return (
        f"To replace the team's copy of {session_id} from this machine: resume-hooks team "
        "push --all"
    )


def has_queued_deletions(where: Where) -> bool:
    """Check whether there are queued sessions that the server must forget."""
    return os.path.isdir(
        queue := os.path.join(team_folder_path(where), _FORGET_QUEUE_FOLDER)
    ) and bool(os.listdir(queue))


def forget_queued_sessions(db: Database, where: Where) -> list[str]:
    """Make the server forget the queued sessions, and return their ids."""
    queue = os.path.join(team_folder_path(where), _FORGET_QUEUE_FOLDER)
    try:
        session_ids = []
        for name in sorted(os.listdir(queue)):
            if is_session_id(name):
                session_ids.append(name)
    except OSError:
        return []
    removed_ids: list[str] = []
    for session_id in session_ids:
        queue_entry = os.path.join(queue, session_id)
        try:
            with translate_errors():
                if (
                    read_regular_file(queue_entry, len(_ONLY_THIS_MACHINE_MARK))
                    == _ONLY_THIS_MACHINE_MARK
                ):
                    removed_ids += _remove_from_server([session_id], 0, db, where)
                elif find_session(session_id, where) is None:  # otherwise the session was restored
                    forget_on_server(session_id, db, where)
                    removed_ids.append(session_id)
                removal.remove_if_possible(queue_entry, where.state)
        except TeamFailed:
            if db.is_closed:
                raise
    return removed_ids


def remove_lost_sessions(db: Database, where: Where) -> list[str]:
    """Remove deleted, scrubbed and expired sessions from the server, and return their ids."""
    return [
        *forget_queued_sessions(db, where),
        *_remove_from_server(*find_expired_sessions(where), db, where),
    ]


def find_expired_sessions(where: Where) -> tuple[list[str], int]:
    """Return the pushed sessions that are no longer on this machine, and the employer's retention period in days."""
    days = read_managed_retention()[1]
    if not days:
        return [], 0
    local_ids = {session.session_id for session in all_sessions(where)} | {
        session.session_id for session in list_archived(where)
    }
    return sorted(read_pushed_ids(where) - local_ids), days


def _remove_from_server(sessions: list[str], days: int, db: Database, where: Where) -> list[str]:
    """Remove the copies of sessions that this machine pushed from the server, if they are old enough.

    Return the ids of these sessions.
    """
    if not sessions:
        return []
    values = (sessions, get_joined_team(where).machine, days)
    expired_ids = db.fetch_rows(
        "select gone from team.expire(%s, %s, %s) gone",
        values,
        RowFormat(str, (rows.parse_session_id,)),
    )
    removed_ids = [
        session_id for session_id in expired_ids if session_id in sessions
    ]  # ignore sessions that we did not ask about
    for session_id in removed_ids:
        removal.remove_if_possible(cursor_folder(session_id, where), where.state)
    return removed_ids
