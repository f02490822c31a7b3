"""Open sessions that exist only in the vault as ordinary session files.

The archived copy is unpacked to a temporary path. Callers that make a child must not use this path.
They use the former path of the client's file: the child is written to the project folder of that
file and refers to that path.
"""

from __future__ import annotations

import os

from resume_hooks.errors import OnlyArchived
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.agents.registry import original_path
from resume_hooks.sessions.archived.layout import path_below_project, session_id_of_copy
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived
from resume_hooks.sessions.session_files import SessionFile, session_file


def is_archived_copy(path: str, where: Where) -> bool:
    """Check whether ``path`` is in the vault or among the unpacked files."""
    return bool(session_id_of_copy(path, where))


def project_folder_of_session(path: str, where: Where) -> str:
    """Return the project folder of the session at ``path``.

    For an archived copy, return the project folder in which the client stored the original file.
    """
    archived = _find_archived_session_of_copy(path, where)
    if archived:
        return os.path.join(where.projects, archived.project)
    return os.path.dirname(os.path.abspath(path))


def client_path(path: str, where: Where) -> str:
    """Return the path of the client's file if ``path`` is an archived copy, or else ``path`` itself."""
    archived = _find_archived_session_of_copy(path, where)
    if archived:
        return os.path.join(where.projects, archived.project, path_below_project(path, where))
    return original_path(path, where)


def find_only_archived(session_id: str, where: Where) -> ArchivedSession | None:
    """Return the archived session with this id, or None if there is none.

    Also return None if the session is in a project folder.
    """
    archived = find_archived(session_id, where)
    if archived is None or find_session(session_id, where):
        return None
    return archived


def open_archived(archived: ArchivedSession, where: Where) -> SessionFile:
    """Unpack an archived session and return it as a session file.

    Raise SessionNotFound or WriteFailed on failure.
    """
    # Imported here because the import takes 10 ms, and only a session that exists only in the vault
    # needs it.
    from resume_hooks.sessions.archived.unpack import unpacked_transcript as path_of

    return session_file(path_of(archived, where))


def archive_fields(path: str, where: Where) -> dict[str, object]:
    """Return the fields of a JSON answer that describe whether a session is an archived copy."""
    archived = _find_archived_session_of_copy(path, where)
    return {
        "kept": archived is not None,
        "form": "packed" if archived else None,
        "kept_at": archived.archived_at if archived else None,
    }


def require_client_file(session: SessionFile, where: Where) -> None:
    """Raise OnlyArchived if the client's file is gone. The archived copy must not be changed."""
    if is_archived_copy(session.path, where):
        raise make_no_client_file_error(session.session_id)


def make_no_client_file_error(session_id: str) -> OnlyArchived:
    """Return the error for a session of which only the archived copy is left.

    A verb that needs the client's file raises this error.
    """
    return OnlyArchived(
        (
            f"The client's file of {session_id} no longer exists. Only its archived copy "
            "is left, and archived copies are never changed"
        ),
        f"Restore it first: resume-hooks restore {session_id}",
    )


def _find_archived_session_of_copy(path: str, where: Where) -> ArchivedSession | None:
    session_id = session_id_of_copy(path, where)
    if session_id:
        return find_archived(session_id, where)
    return None
