"""Find a session's home folder, in which the client must be started to find the session."""

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

WORKTREE_FIELD_NAME = "worktreeSession"
"""The client's field with details of a worktree that the client created.

After the worktree is removed, the client stores the session in the project folder that belongs to
the original working folder.
"""

# Number of seconds to wait for another command that copies or imports sessions into the same
# folder.
MAX_SECONDS_TO_WAIT_FOR_CREATION_LOCK = 300.0

SHORT_COMMIT_ID_DIGITS = 7  # number of digits of a commit's id in git's short form


class MovedFolder(NamedTuple):
    """A folder that may be the new location of a session's folder, with the evidence for this.

    ``commits`` are commits in the folder's repository that the session mentions.
    ``used_file_count`` is the number of files that the session worked on, and
    ``existing_used_file_count`` is the number of these files that exist in the folder.
    """

    folder: str
    commits: tuple[str, ...] = ()
    existing_used_file_count: int = 0
    used_file_count: int = 0
    is_own_worktree: bool = False

    @property
    def evidence(self) -> str:
        """The evidence, worded as the predicate of a sentence about the folder."""
        evidence = []
        if self.commits:
            if len(self.commits) > 1:
                more = f" and {format_count(len(self.commits) - 1, 'other')}"
            else:
                more = ""
            evidence.append(
                f"contains the commit {self.commits[0][:SHORT_COMMIT_ID_DIGITS]}{more} that the session mentions"
            )
        if self.existing_used_file_count:
            evidence.append(
                f"has {self.existing_used_file_count} of the {format_count(self.used_file_count, 'file')} "
                "that the session worked on"
            )
        if self.is_own_worktree:
            evidence.append("belongs to the repository of which the old folder was a worktree")
        return ", ".join(evidence)


def home_folder_of_session(ends: HeadTail, where: Where) -> str:
    """Return a session's home folder.

    A session may record several folders. Its home folder is the one whose name corresponds to the
    name of the session's project folder.
    """
    key = os.path.basename(project_folder_of_session(ends.path, where))
    records = (*ends.first_records, *ends.last_records)
    recorded_folders = [folder for record in records if (folder := get_string(record, "cwd"))]
    recorded_folders += [
        folder
        for record in records
        if (folder := get_string(get_mapping(record, WORKTREE_FIELD_NAME), "originalCwd"))
    ]
    # The user may have moved the transcripts to the project folder of the current folder.
    current_folder = _current_folder(where)
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
    """Return the current folder, or ``""`` if it was deleted and PWD is not set."""
    with contextlib.suppress(OSError):
        return where.environ.get("PWD") or os.getcwd()
    return ""


def project_folder(working_folder: str, where: Where) -> str:
    """Return the project folder for a working directory.

    The folder may not exist. Its name is the one that current clients use.
    """
    return os.path.join(
        where.projects, project_folder_names(working_folder, where, list_existing_names=list)[0]
    )


@contextlib.contextmanager
def lock_session_creation(home: str, where: Where) -> Iterator[None]:
    """Prevent other commands from creating sessions in a working directory during the block.

    If the lock is not available within ``MAX_SECONDS_TO_WAIT_FOR_CREATION_LOCK``, or if the state folder
    is read-only, the block runs without the lock. Two commands may then create the same session
    twice.
    """
    lock_path = os.path.join(where.state, "one-maker", project_key(home))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ResumeHooksError):
            stack.enter_context(
                lock_folder(
                    lock_path,
                    where,
                    "Another command is creating sessions",
                    "No lock:",
                    MAX_SECONDS_TO_WAIT_FOR_CREATION_LOCK,
                )
            )
        yield
    # The folder is not empty if another command has a lock in it.
    with contextlib.suppress(OSError):
        removal.remove_empty_folder(os.path.dirname(lock_path), where.state)


def has_project_key(folder: str, key: str) -> bool:
    """Check whether ``key`` is the name of the project folder for a working directory."""
    # A folder's name that contains a NUL character or an unpaired surrogate raises ValueError. No
    # real folder has such a name.
    with contextlib.suppress(ValueError):
        return project_key(folder) == key
    return False
