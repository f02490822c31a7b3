"""Record the ancestors that must be archived later, each as an empty file ``keep-<session id>``.

The files are in the folder ``pending`` of the state folder. A file is written if the engine is not
installed yet or if archiving would take too long. When the next session starts, the file is found,
and the ``async`` hook archives the session. This module uses only the standard library and runs on
Python 3.9.
"""

from __future__ import annotations

import os

from resume_hooks.paths import Where, is_private_folder, is_session_id
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import create_marker

PENDING_FILE_PREFIX = "keep-"
PENDING_FOLDER = "pending"


def record_pending_session(session_id: str, where: Where) -> None:
    """Record that a session must be archived. Raises OSError if the state folder is not writable."""
    create_marker(_pending_file_path(session_id, where), where)


def list_pending_sessions(where: Where) -> list[str]:
    """Return the ids of the sessions to archive later, sorted."""
    folder = os.path.join(where.state, PENDING_FOLDER)
    try:
        names = os.listdir(folder) if is_private_folder(folder, where) else []
    except OSError:
        return []
    ids = (
        name[len(PENDING_FILE_PREFIX) :] for name in names if name.startswith(PENDING_FILE_PREFIX)
    )
    return sorted(session_id for session_id in ids if is_session_id(session_id))


def remove_pending_session(session_id: str, where: Where) -> None:
    """Remove a session's file in ``pending``, because the session was archived or no longer exists."""
    path = _pending_file_path(session_id, where)
    removal.remove_if_possible(path, where.state)


def _pending_file_path(session_id: str, where: Where) -> str:
    return os.path.join(where.state, PENDING_FOLDER, f"{PENDING_FILE_PREFIX}{session_id}")
