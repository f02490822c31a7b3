"""Ancestors that are to be kept later: an empty file each, ``keep-<session id>``, in ``pending`` of the state folder.

Where the engine is not there yet, or a copy would take too long just then, the next session's start
finds them, and the hook that nobody waits for keeps them. Standard library, Python 3.9.
"""

from __future__ import annotations

import os

from resume_hooks.paths import Where, is_private_folder, is_session_id
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import create_marker

PREFIX = "keep-"
PENDING = "pending"


def add_pending(session_id: str, where: Where) -> None:
    """Note that a session is to be kept. OSError where the state folder can't be written."""
    create_marker(_note_path(session_id, where), where)


def pending_ids(where: Where) -> list[str]:
    """The ids of the sessions that are to be kept, sorted."""
    folder = os.path.join(where.state, PENDING)
    try:
        names = os.listdir(folder) if is_private_folder(folder, where) else []
    except OSError:
        return []
    ids = (name[len(PREFIX) :] for name in names if name.startswith(PREFIX))
    return sorted(session_id for session_id in ids if is_session_id(session_id))


def remove_pending(session_id: str, where: Where) -> None:
    """A session is kept now, or there is nothing left to keep."""
    path = _note_path(session_id, where)
    removal.remove_if_possible(path, where.state)


def _note_path(session_id: str, where: Where) -> str:
    return os.path.join(where.state, PENDING, f"{PREFIX}{session_id}")
