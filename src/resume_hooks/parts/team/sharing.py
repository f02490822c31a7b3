"""Share, unshare and forget sessions on the server.

The database allows this only for the owner of a session.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from typing import NamedTuple

from resume_hooks.parts.team import rows
from resume_hooks.parts.team.connect import TeamRequestFailed, convert_driver_errors
from resume_hooks.parts.team.cursor import (
    find_upload_progress_folder,
    read_pushed_session_ids,
    read_upload_progress,
    record_forgotten_session,
    write_upload_progress,
)
from resume_hooks.parts.team.membership import get_joined_team
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.sessions import TeamSession
from resume_hooks.parts.team.team_file import find_team_folder, read_team
from resume_hooks.paths import Where, find_session, is_session_id, read_regular_file
from resume_hooks.sessions.archived.manifest import list_archived
from resume_hooks.sessions.locate import all_sessions
from resume_hooks.storage import removal, state_file
from resume_hooks.system.claude_settings import read_managed_retention

_REMOVAL_QUEUE_FOLDER_NAME = "forget"
"""The name of a folder. It contains a file for each session that the next push must remove from the
server."""

_THIS_MACHINE_ONLY_MARKER = b"here"
"""If a queue file contains this text, only this machine's copy of the session is removed.

If the queue file is empty, the copies from all your machines are removed.
"""


class ProjectReaders(NamedTuple):
    """The login of a project's owner, and the number of other members who can read its shared sessions."""

    owner: str
    reader_count: int


def fetch_project_readers(project: str, db: Database) -> ProjectReaders | None:
    """Return the owner of a project and the number of its readers.

    Return None if you are not a member of the project. Raise TeamRequestFailed if the server does
    not answer.
    """
    query = "select login::text, others::text from team.project_reach(%s)"
    return db.fetch_row(
        query, (project,), RowFormat(ProjectReaders, (rows.parse_login, rows.parse_count))
    )


def share_session(
    session: TeamSession, audience: str, until: datetime | None, db: Database
) -> None:
    """Share a session with the team, its project or one member. If ``until`` is given, access ends then.

    ``audience`` is ``"team"``, ``"project"`` or the login of a member. Raise TeamRequestFailed if
    the server refuses.
    """
    kind, name = {"team": ("t", ""), "project": ("p", session.project)}.get(
        audience, ("g", audience)
    )
    db.run_statement("select team.share(%s, %s, %s, %s)", (session.session_id, kind, name, until))


def unshare_session(session: TeamSession, db: Database) -> None:
    """Make a session private again. Raise TeamRequestFailed if the server refuses."""
    db.run_statement("select team.share(%s, 'm', '', null)", (session.session_id,))


def forget_session_and_count_copies(session_id: str, db: Database, where: Where) -> int:
    """Permanently remove the copies of a session that you pushed from any of your machines.

    Return the number of removed copies. The server will never accept the session again. Raise
    TeamRequestFailed if the server does not answer or refuses.
    """
    copy_count = db.fetch_value("select team.forget(%s)::text", (session_id,), rows.parse_count)
    record_forgotten_session(session_id, where)
    return copy_count or 0


def queue_deletion(session_id: str, where: Where) -> str:
    """Queue a session that was deleted on this machine, so that the next push removes it from the server.

    Return a note for the user, or ``""`` if the session was never pushed.
    """
    if (
        read_team(where) is None
        or not is_session_id(session_id)
        or not read_upload_progress(session_id, where).row_id
    ):
        return ""
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            os.path.join(find_team_folder(where), _REMOVAL_QUEUE_FOLDER_NAME, session_id),
            b"",
            where,
        )
    return (
        "The team's server keeps the session until the next push. To remove it now: resume-hooks "
        f"team forget {session_id}"
    )


def queue_replacement_of_server_copy(session_id: str, where: Where) -> str:
    """Queue a scrubbed session, so that the next push replaces the server's copy.

    If the session was deleted and only its archived copy was scrubbed, the next push removes the
    server's copy. Return a note for the user, or ``""`` if the session was never pushed.
    """
    upload_progress = read_upload_progress(session_id, where)
    if read_team(where) is None or not is_session_id(session_id) or not upload_progress.row_id:
        return ""
    if find_session(session_id, where) is None:
        with contextlib.suppress(OSError):
            state_file.replace_state_file(
                os.path.join(find_team_folder(where), _REMOVAL_QUEUE_FOLDER_NAME, session_id),
                _THIS_MACHINE_ONLY_MARKER,
                where,
            )
    else:
        write_upload_progress(
            session_id,
            upload_progress._replace(must_replace_server_copy=True, progress_by_file={}),
            where,
        )
    return (
        f"To replace the team's copy of {session_id} from this machine: resume-hooks team "
        "push --all"
    )


def has_queued_deletions(where: Where) -> bool:
    """Check whether the queue contains sessions that must be removed from the server."""
    return os.path.isdir(
        queue := os.path.join(find_team_folder(where), _REMOVAL_QUEUE_FOLDER_NAME)
    ) and bool(os.listdir(queue))


def forget_queued_sessions(db: Database, where: Where) -> list[str]:
    """Remove the queued sessions from the server, and return their ids."""
    queue = os.path.join(find_team_folder(where), _REMOVAL_QUEUE_FOLDER_NAME)
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
            with convert_driver_errors():
                if (
                    read_regular_file(queue_entry, len(_THIS_MACHINE_ONLY_MARKER))
                    == _THIS_MACHINE_ONLY_MARKER
                ):
                    removed_ids += _remove_from_server([session_id], 0, db, where)
                # The user may have restored the session after its deletion.
                elif find_session(session_id, where) is None:
                    forget_session_and_count_copies(session_id, db, where)
                    removed_ids.append(session_id)
                removal.remove_if_possible(queue_entry, where.state)
        except TeamRequestFailed:
            if db.is_closed:
                raise
    return removed_ids


def remove_queued_sessions_and_expired_sessions(db: Database, where: Where) -> list[str]:
    """Remove queued and expired sessions from the server, and return their ids."""
    return [
        *forget_queued_sessions(db, where),
        *_remove_from_server(*find_expired_ids_and_retention_days(where), db, where),
    ]


def find_expired_ids_and_retention_days(where: Where) -> tuple[list[str], int]:
    """Return the ids of expired sessions, and the number of days in the retention period.

    An expired session is a pushed session that is no longer on this machine. The user's employer
    can set the retention period in the client's managed settings. If none is set, return no ids and
    0.
    """
    retention_days = read_managed_retention()[1]
    if not retention_days:
        return [], 0
    local_ids = {session.session_id for session in all_sessions(where)} | {
        session.session_id for session in list_archived(where)
    }
    return sorted(read_pushed_session_ids(where) - local_ids), retention_days


def _remove_from_server(
    session_ids: list[str], retention_days: int, db: Database, where: Where
) -> list[str]:
    """Remove sessions of this machine from the server if they ended at least ``retention_days`` days ago.

    Return the ids of the removed sessions.
    """
    if not session_ids:
        return []
    values = (session_ids, get_joined_team(where).machine, retention_days)
    expired_ids = db.fetch_rows(
        "select gone from team.expire(%s, %s, %s) gone",
        values,
        RowFormat(str, (rows.parse_session_id,)),
    )
    # Ignore sessions that were not requested.
    removed_ids = [session_id for session_id in expired_ids if session_id in session_ids]
    for session_id in removed_ids:
        removal.remove_if_possible(find_upload_progress_folder(session_id, where), where.state)
    return removed_ids
