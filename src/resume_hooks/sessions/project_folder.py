"""Where a session is at home: the folder that the client must be started in to find it."""

from __future__ import annotations

import contextlib
import os

from resume_hooks.paths import Where, project_key, project_names
from resume_hooks.sessions.archived.sessions import project_folder_of
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import mapping, string

WORKTREE = "worktreeSession"
"""What a client notes of a worktree that it made; once it is removed, the session lies with those of the original."""


def home_folder(ends: HeadTail, where: Where) -> str:
    """The folder that the client must be started in to find a session: the one its project folder is named after."""
    key = os.path.basename(project_folder_of(ends.path, where))
    records = (*ends.first_records, *ends.last_records)
    seen = [folder for r in records if (folder := string(r, "cwd"))]
    seen += [folder for r in records if (folder := string(mapping(r, WORKTREE), "originalCwd"))]
    here = _here(where)  # where transcripts were moved, the folder that they were moved to
    return next((folder for folder in dict.fromkeys([*seen, here]) if is_keyed(folder, key)), ends.cwd) or here


def _here(where: Where) -> str:
    """The current folder; ``""`` where it was deleted. What starts us need not tell it."""
    with contextlib.suppress(OSError):
        return where.environ.get("PWD") or os.getcwd()
    return ""


def project_folder(home: str, where: Where) -> str:
    """The folder in which today's client keeps new sessions of a working directory, whether it is there or not."""
    return os.path.join(where.projects, project_names(home, where, known=list)[0])


def is_keyed(folder: str, key: str) -> bool:
    """Whether a project folder's name is made of a working directory."""
    try:
        return project_key(folder) == key
    except ValueError:
        return False  # a NUL or a lone surrogate: no folder is called so
