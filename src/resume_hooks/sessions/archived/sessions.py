"""Archived sessions, of which the vault's copy alone is left, as the session files that everything else reads.

A copy lies at a path of its own, which may go again. What others hear of is where the client had
the session: its project folder is where children of it are written, and its old path is what they
name.
"""

from __future__ import annotations

import os

from resume_hooks.errors import OnlyArchived
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.agents.registry import original_path
from resume_hooks.sessions.archived.layout import path_below_project, session_in
from resume_hooks.sessions.archived.manifest import ArchivedSession, archived_of_id
from resume_hooks.sessions.session_files import SessionFile, session_file


def is_archived_copy(path: str, where: Where) -> bool:
    """Whether ``path`` is that of an archived copy."""
    return bool(session_in(path, where))


def project_folder_of(path: str, where: Where) -> str:
    """The project folder that the session at ``path`` belongs to.

    Of an archived copy the one where it lay.
    """
    archived = _archived_at(path, where)
    if archived:
        return os.path.join(where.projects, archived.project)
    return os.path.dirname(os.path.abspath(path))


def own_path(path: str, where: Where) -> str:
    """Where its client has or had what lies at ``path``: of a copy the place of the original, else ``path`` itself."""
    archived = _archived_at(path, where)
    if archived:
        return os.path.join(where.projects, archived.project, path_below_project(path, where))
    return original_path(path, where)


def archived_session_of(session_id: str, where: Where) -> ArchivedSession | None:
    """What is archived of a session that lies in no project folder any more; None for any other."""
    archived = archived_of_id(session_id, where)
    if archived is None or find_session(session_id, where):
        return None
    return archived


def archived_session_file(archived: ArchivedSession, where: Where) -> SessionFile:
    """A archived session as a file that can be read.

    SessionNotFound, WriteFailed where that can't be done.
    """
    # What unpacks takes 10 ms to load, which only a session that is gone has to wait for.
    from resume_hooks.sessions.archived.unpack import unpacked_transcript as path_of

    return session_file(path_of(archived, where))


def archive_facts(path: str, where: Where) -> dict[str, object]:
    """Whether the session at ``path`` is an archived copy, and since when: as documents tell it."""
    archived = _archived_at(path, where)
    return {
        "kept": archived is not None,
        "form": "packed" if archived else None,
        "kept_at": archived.archived_at if archived else None,
    }


def require_own(session: SessionFile, where: Where) -> None:
    """Raise OnlyArchived for a session of which the archived copy alone is left: that is never changed."""
    if is_archived_copy(session.path, where):
        raise only_archived_left(session.session_id)


def only_archived_left(session_id: str) -> OnlyArchived:
    """The failure of changing, or going on in, a session of which the archived copy alone is left."""
    return OnlyArchived(
        (
            f"The client's file of {session_id} is gone; only the archived copy is left, and "
            "that stays as it is"
        ),
        f"Restore it first: resume-hooks restore {session_id}",
    )


def _archived_at(path: str, where: Where) -> ArchivedSession | None:
    session_id = session_in(path, where)
    if session_id:
        return archived_of_id(session_id, where)
    return None
