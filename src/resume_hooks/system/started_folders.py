"""The repositories that sessions were started in, as each first start noted them: what they were, once they are gone.

A note is a small file of three lines: the folder, the first record of git's log there (of a linked worktree where it
belongs), and a remote. hooks/new-folder writes it; nothing but files is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.paths import Where, is_private, open_regular, read_regular

PREFIX = "folder-"
LONGEST = 16_384  # bytes of a note, or of what is looked at in a repository
MOST_LINE, MOST_REMOTE = 2_000, 1_000  # bytes of the second and of the third line
_LINKED = "gitdir:"
_URL = re.compile(rb"^\s+url = (.+)$", re.MULTILINE)
_PASSWORD = re.compile(r"(?<=://)[^/]*@")


class StartedFolder(NamedTuple):
    """A folder as it was noted: ``git`` is the second line, ``remote`` the third."""

    path: str
    git: str
    remote: str

    @property
    def common(self) -> str:
        """The git folder that a linked worktree shares with its main one; ``""`` of anything else."""
        if not self.git.startswith(_LINKED):
            return ""
        own = os.path.join(self.path, self.git.removeprefix(_LINKED).strip())
        return os.path.dirname(os.path.dirname(os.path.normpath(own)))

    @property
    def is_there(self) -> bool:
        """Whether the repository is still in the folder."""
        return os.path.lexists(os.path.join(self.path, ".git"))


def started_folders(where: Where) -> Iterator[StartedFolder]:
    """Every folder that was noted; what is damaged is none."""
    home = os.path.join(where.state, "pending")
    try:
        names = sorted(os.listdir(home)) if is_private(home, where) else []
    except OSError:
        return
    for name in names:
        if name.startswith(PREFIX):
            try:
                path, git, remote, *_ = os.fsdecode(read_regular(os.path.join(home, name), LONGEST)).split("\n")
            except (OSError, ValueError):
                continue
            if os.path.isabs(path) and "\0" not in path:
                yield StartedFolder(path, git, _PASSWORD.sub("", remote))


def as_started(folder: str) -> StartedFolder:
    """What a start would note of a folder now."""
    git = os.path.join(folder, ".git")
    first = _beginning(git if os.path.isfile(git) else os.path.join(git, "logs", "HEAD")).partition(b"\n")[0]
    url = _URL.search(_beginning(os.path.join(git, "config")))
    remote = os.fsdecode(url[1][:MOST_REMOTE]) if url else ""
    return StartedFolder(folder, os.fsdecode(first[:MOST_LINE]), _PASSWORD.sub("", remote))


def _beginning(path: str) -> bytes:
    try:
        with open_regular(path) as stream:
            return stream.read(LONGEST)
    except (OSError, ValueError):
        return b""
