"""Where a session is at home: the folder that the client must be started in to find it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, project_folder_names, project_key
from resume_hooks.sessions.archived.sessions import project_folder_of
from resume_hooks.storage import removal
from resume_hooks.storage.locks import lock_folder
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import mapping, string

WORKTREE = "worktreeSession"
"""What a client notes of a worktree that it made.

Once it is removed, the session lies with those of the original.
"""

PATIENCE = 300.0  # seconds that another command is waited for which copies or imports sessions into the same folder

SHORT_COMMIT = 7  # digits of a commit's id as git prints it


class MovedFolder(NamedTuple):
    """A folder that a session's may have become, and what speaks for it."""

    folder: str
    commits: tuple[str, ...] = ()
    files: int = 0
    of_files: int = 0
    worktree: bool = False

    @property
    def why(self) -> str:
        """What speaks for it, as the end of a sentence about the folder."""
        said = []
        if self.commits:
            if len(self.commits) > 1:
                more = f" and {format_count(len(self.commits) - 1, 'other')}"
            else:
                more = ""
            said.append(
                f"holds the commit {self.commits[0][:SHORT_COMMIT]}{more} that the session saw"
            )
        if self.files:
            said.append(
                f"has {self.files} of the {format_count(self.of_files, 'file')} that it worked on"
            )
        if self.worktree:
            said.append("is of the repository that it was a worktree of")
        return ", ".join(said)


def home_folder(ends: HeadTail, where: Where) -> str:
    """The folder that the client must be started in to find a session: the one its project folder is named after."""
    key = os.path.basename(project_folder_of(ends.path, where))
    records = (*ends.first_records, *ends.last_records)
    seen = [folder for r in records if (folder := string(r, "cwd"))]
    seen += [folder for r in records if (folder := string(mapping(r, WORKTREE), "originalCwd"))]
    here = _here(where)  # where transcripts were moved, the folder that they were moved to
    return (
        next((folder for folder in dict.fromkeys([*seen, here]) if is_keyed(folder, key)), ends.cwd)
        or here
    )


def _here(where: Where) -> str:
    """The current folder; ``""`` where it was deleted. What starts us need not tell it."""
    with contextlib.suppress(OSError):
        return where.environ.get("PWD") or os.getcwd()
    return ""


def project_folder(home: str, where: Where) -> str:
    """The folder in which today's client keeps new sessions of a working directory, whether it is there or not."""
    return os.path.join(where.projects, project_folder_names(home, where, list_names=list)[0])


@contextlib.contextmanager
def only_maker(home: str, where: Where) -> Iterator[None]:
    """While the block runs no other command of ours looks for what it lacks in a working directory, and makes it.

    Without the lock after ``PATIENCE`` seconds, or in a state folder that can't be written, the
    block runs as well: there may be two of a copy then.
    """
    place = os.path.join(where.state, "one-maker", project_key(home))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ResumeHooksError):
            stack.enter_context(
                lock_folder(place, where, "Another command is at it", "No lock:", PATIENCE)
            )
        yield
    with contextlib.suppress(OSError):  # another command's lock is in it
        removal.remove_empty(os.path.dirname(place), where.state)


def is_keyed(folder: str, key: str) -> bool:
    """Whether a project folder's name is made of a working directory."""
    with contextlib.suppress(ValueError):  # a NUL or a lone surrogate: no folder is called so
        return project_key(folder) == key
    return False
