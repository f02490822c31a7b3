"""A session's home folder: the client must be started in it to find the session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, project_folder_names, project_key
from resume_hooks.sessions.archived.sessions import project_folder_of_session
from resume_hooks.storage import removal
from resume_hooks.storage.locks import lock_folder
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import get_mapping, get_string

WORKTREE_FIELD = "worktreeSession"
"""The client's field about a worktree that it created.

After the worktree's removal, the session is stored with those of the original folder.
"""

# seconds to wait for another command that copies or imports sessions into the same folder
CREATION_LOCK_SECONDS = 300.0

SHORT_COMMIT_DIGITS = 7  # digits of a commit's id, as in git's short form


class MovedFolder(NamedTuple):
    """A folder that may be the new location of a session's folder, and the evidence."""

    folder: str
    commits: tuple[str, ...] = ()
    files: int = 0
    file_count: int = 0
    is_own_worktree: bool = False

    @property
    def evidence(self) -> str:
        """The evidence, as the end of a sentence about the folder."""
        evidence = []
        if self.commits:
            if len(self.commits) > 1:
                more = f" and {format_count(len(self.commits) - 1, 'other')}"
            else:
                more = ""
            evidence.append(
                f"holds the commit {self.commits[0][:SHORT_COMMIT_DIGITS]}{more} that the session saw"
            )
        if self.files:
            evidence.append(
                f"has {self.files} of the {format_count(self.file_count, 'file')} that it worked on"
            )
        if self.is_own_worktree:
            evidence.append("is of the repository that it was a worktree of")
        return ", ".join(evidence)


def home_folder(ends: HeadTail, where: Where) -> str:
    """Return a session's home folder, according to its project folder's name."""
    key = os.path.basename(project_folder_of_session(ends.path, where))
    records = (*ends.first_records, *ends.last_records)
    recorded_folders = [folder for record in records if (folder := get_string(record, "cwd"))]
    recorded_folders += [
        folder
        for record in records
        if (folder := get_string(get_mapping(record, WORKTREE_FIELD), "originalCwd"))
    ]
    current_folder = _current_folder(
        where
    )  # for transcripts that were moved, the folder that they were moved to
    return (
        next(
            (
                folder
                for folder in dict.fromkeys([*recorded_folders, current_folder])
                if has_project_key(folder, key)
            ),
            ends.cwd,
        )
        or current_folder
    )


def _current_folder(where: Where) -> str:
    """Return the current folder, or ``""`` if it was deleted. The starting program may not set PWD."""
    with contextlib.suppress(OSError):
        return where.environ.get("PWD") or os.getcwd()
    return ""


def project_folder(home: str, where: Where) -> str:
    """Return the project folder that current clients use for a working directory; it may not exist."""
    return os.path.join(where.projects, project_folder_names(home, where, list_names=list)[0])


@contextlib.contextmanager
def lock_session_creation(home: str, where: Where) -> Iterator[None]:
    """Keep other commands of ours from creating missing sessions in a working directory during the block.

    If the lock is still taken after ``CREATION_LOCK_SECONDS`` seconds, or the state folder is
    read-only, run the block anyway. Then there may be two copies of a session.
    """
    lock_path = os.path.join(where.state, "one-maker", project_key(home))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ResumeHooksError):
            stack.enter_context(
                lock_folder(
                    lock_path, where, "Another command is at it", "No lock:", CREATION_LOCK_SECONDS
                )
            )
        yield
    with contextlib.suppress(OSError):  # another command's lock is in it
        removal.remove_empty(os.path.dirname(lock_path), where.state)


def has_project_key(folder: str, key: str) -> bool:
    """Check whether a project folder's name is the key of a working directory."""
    # a NUL or a lone surrogate, which no folder's name contains
    with contextlib.suppress(ValueError):
        return project_key(folder) == key
    return False
