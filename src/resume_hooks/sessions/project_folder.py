"""The home folder of a session: the folder in which the client must be started to find it."""

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
"""The client's field about a worktree that it created.

After the worktree's removal, the session is stored with those of the original folder.
"""

# seconds to wait for another command that copies or imports sessions into the same folder
PATIENCE = 300.0

SHORT_COMMIT = 7  # digits of a commit's id, as in git's short form


class MovedFolder(NamedTuple):
    """A folder that a session's folder may have become, and the evidence."""

    folder: str
    commits: tuple[str, ...] = ()
    files: int = 0
    of_files: int = 0
    worktree: bool = False

    @property
    def why(self) -> str:
        """The evidence, as the end of a sentence about the folder."""
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
    """Return the folder in which the client must be started to find a session, by its project folder's name."""
    key = os.path.basename(project_folder_of(ends.path, where))
    records = (*ends.first_records, *ends.last_records)
    seen = [folder for r in records if (folder := string(r, "cwd"))]
    seen += [folder for r in records if (folder := string(mapping(r, WORKTREE), "originalCwd"))]
    here = _here(where)  # for transcripts that were moved, the folder that they were moved to
    return (
        next((folder for folder in dict.fromkeys([*seen, here]) if is_keyed(folder, key)), ends.cwd)
        or here
    )


def _here(where: Where) -> str:
    """Return the current folder, or ``""`` if it was deleted. The starting program may not set PWD."""
    with contextlib.suppress(OSError):
        return where.environ.get("PWD") or os.getcwd()
    return ""


def project_folder(home: str, where: Where) -> str:
    """Return the project folder that current clients use for a working directory; it may not exist."""
    return os.path.join(where.projects, project_folder_names(home, where, list_names=list)[0])


@contextlib.contextmanager
def only_maker(home: str, where: Where) -> Iterator[None]:
    """Keep other commands of ours from creating missing sessions in a working directory during the block.

    Without the lock after ``TITLE_LOCK_SECONDS`` seconds, or with a read-only state folder, run the block
    anyway. Then there may be two copies of a session.
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
    """Check whether a project folder's name is the key of a working directory."""
    # a NUL or a lone surrogate, which no folder's name contains
    with contextlib.suppress(ValueError):
        return project_key(folder) == key
    return False
