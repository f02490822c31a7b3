"""The project of a folder: the repository it lies in with all that was started below it, and its other worktrees.

Read from git's own files, and from the notes of first starts, which tell of repositories that are
gone; no program is run. A note is a small file of three lines: the folder, the first record of
git's log there (of a linked worktree where it belongs), and a remote. hooks/new-folder writes it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from resume_hooks import paths
from resume_hooks.paths import (
    MAX_KEY,
    Where,
    canonical,
    is_private,
    open_regular,
    project_key,
    read_regular,
)
from resume_hooks.system.invocation import quote_word

PREFIX = "folder-"
LONGEST = 16_384  # bytes of a note, or of what is looked at in a repository
MOST_LINE, MOST_REMOTE = 2_000, 1_000  # bytes of the second and of the third line
_LINKED = "gitdir:"
_URL = re.compile(rb"^\s+url = (.+)$", re.MULTILINE)
_PASSWORD = re.compile(r"(?<=://)[^/]*@")

MOST_REFS = 16 * 1024 * 1024  # bytes of packed branches that are looked through
LONGEST_FILE = 4_096  # bytes of a ``.git`` file that is read


class StartedFolder(NamedTuple):
    """A folder as it was noted: ``git`` is the second line, ``remote`` the third."""

    path: str
    git: str
    remote: str

    @property
    def common(self) -> str:
        """The git folder that a linked worktree shares with its main one; ``""`` for anything else."""
        if not self.git.startswith(_LINKED):
            return ""
        own = os.path.join(self.path, self.git.removeprefix(_LINKED).strip())
        return os.path.dirname(os.path.dirname(os.path.normpath(own)))

    @property
    def is_there(self) -> bool:
        """Whether the repository is still in the folder."""
        return os.path.lexists(os.path.join(self.path, ".git"))


def started_folders(where: Where) -> Iterator[StartedFolder]:
    """Every folder that was noted; damaged notes are skipped."""
    home = os.path.join(where.state, "pending")
    try:
        if is_private(home, where):
            names = sorted(os.listdir(home))
        else:
            names = []
    except OSError:
        return
    for name in names:
        if name.startswith(PREFIX):
            try:
                path, git, remote, *_ = os.fsdecode(
                    read_regular(os.path.join(home, name), LONGEST)
                ).split("\n")
            except (OSError, ValueError):
                continue
            if os.path.isabs(path) and "\0" not in path:
                yield StartedFolder(path, git, _PASSWORD.sub("", remote))


def describe_folder(folder: str) -> StartedFolder:
    """What a start would note of a folder now."""
    git = os.path.join(folder, ".git")
    first = _first_bytes(
        git if os.path.isfile(git) else os.path.join(git, "logs", "HEAD")
    ).partition(b"\n")[0]
    url = _URL.search(_first_bytes(os.path.join(git, "config")))
    remote = os.fsdecode(url[1][:MOST_REMOTE]) if url else ""
    return StartedFolder(folder, os.fsdecode(first[:MOST_LINE]), _PASSWORD.sub("", remote))


def _first_bytes(path: str) -> bytes:
    try:
        with open_regular(path) as stream:
            return stream.read(LONGEST)
    except (OSError, ValueError):
        return b""


@dataclass(frozen=True)
class Project:
    """Working directories, folders ``within`` which all belongs to it too, and ``names`` of project folders."""

    folders: tuple[str, ...]
    within: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @cached_property
    def _keys(self) -> frozenset[str]:
        """The beginnings of project folder names; each costs system calls."""
        return frozenset(project_key(folder)[:MAX_KEY] for folder in self.folders)

    def holds(self, started: Iterable[str], name: str) -> bool:
        """Whether a session in the project folder ``name``, started in one of these directories, is of this project.

        Keys collide and may fit several folders: what stands in the file decides, as far as it fits
        the name.
        """
        if name in self.names:
            return True
        known = [cwd for cwd in started if cwd]
        if any(cwd.startswith(folder + os.sep) for cwd in known for folder in self.within):
            return True
        if name[:MAX_KEY] not in self._keys:
            return False
        fitting = []
        for cwd in known:
            if project_key(cwd)[:MAX_KEY] == name[:MAX_KEY]:
                fitting.append(cwd)
        return not fitting or any(canonical(cwd) in self.folders for cwd in fitting)

    def folder_names(self, where: Where, known: Callable[[], list[str]] | None = None) -> list[str]:
        """The names of the project folders that may hold its sessions, among those that ``known`` lists."""
        there = known or (lambda: [os.path.basename(path) for path in paths.all_folders(where)])
        keyed = (name for cwd in self.folders for name in paths.project_names(cwd, where, there))
        starts = tuple(f"{project_key(folder)[:MAX_KEY]}-" for folder in self.within)
        below = (name for name in there() if starts and name.startswith(starts))
        return list(dict.fromkeys([*self.names, *keyed, *below]))


def project_of_folder(cwd: str, where: Where) -> Project:
    """The project of a folder: its repository with all that was started below it, and the other worktrees.

    The folder that a variable names holds the sessions of every project: it is all of this one's,
    too.
    """
    folders = (*worktrees(cwd), *removed_worktrees(cwd, where))
    home = canonical(
        os.path.expanduser("~")
    )  # kept in a repository by some, with every project below it
    roots = (
        folder
        for folder in folders
        if folder != home and os.path.lexists(os.path.join(folder, ".git"))
    )
    named = paths.named_folder(where)
    return Project(folders, tuple(roots), tuple(named))


def worktrees(cwd: str) -> tuple[str, ...]:
    """A folder, the root of the repository it lies in, and that repository's other worktrees.

    Runs no program.
    """
    root = root_above(canonical(cwd))
    if not root:
        return (canonical(cwd),)
    common = _common_folder(os.path.join(root, ".git"))
    found = (canonical(cwd), root, *_main_folder(common), *_linked_folders(common))
    return tuple(dict.fromkeys(folder for folder in found if folder))


def removed_worktrees(cwd: str, where: Where) -> tuple[str, ...]:
    """The linked worktrees of a folder's repository that are gone by now, as starts in them noted."""
    common = git_folder(cwd)
    noted, real = started_folders(where) if common else (), cache(canonical)
    gone = (one for one in noted if real(one.common) == real(common) and not one.is_there)
    return tuple(dict.fromkeys(canonical(one.path) for one in gone))


def main_checkout(folder: str, where: Where) -> list[str]:
    """The main checkout of a linked worktree that is gone, as starts there noted it.

    None where it is gone, too.
    """
    noted = []
    for one in started_folders(where):
        if one.common and canonical(one.path) == canonical(folder):
            noted.append(one.common)
    return [main for common in noted[:1] for main in _main_folder(common) if os.path.isdir(main)]


def command_to_rebuild(folder: str, branch: str, where: Where) -> str:
    """The command that makes a linked worktree anew that is gone; ``""`` where none was there, or its repository is."""
    for main in main_checkout(folder, where):
        git = os.path.join(main, ".git")
        branch = "" if branch.startswith("-") else branch
        refs = b""
        with contextlib.suppress(OSError):
            refs = paths.read_regular(os.path.join(git, "packed-refs"), MOST_REFS)
        packed = f" refs/heads/{branch}\n".encode() in refs
        there = packed or os.path.lexists(os.path.join(git, "refs", "heads", branch))
        if branch and not there:
            how = ["-b", branch, folder]
        else:
            how = [folder, *([branch] if branch else [])]
        return " ".join(map(quote_word, ["git", "-C", main, "worktree", "add", *how]))
    return ""


def git_folder(cwd: str) -> str:
    """The git folder that all worktrees of a folder's repository share; ``""`` outside of any."""
    root = root_above(canonical(cwd))
    if root:
        return _common_folder(os.path.join(root, ".git"))
    return ""


def git_folders(root: str) -> tuple[str, str]:
    """The git folder of the worktree at ``root``, and the one that all worktrees of its repository share."""
    git = os.path.join(root, ".git")
    return _git_folder_of_worktree(git), _common_folder(git)


def root_above(folder: str) -> str:
    """The root of the repository that a folder lies in, by its path as it is given; ``""`` for none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder


def _git_folder_of_worktree(git: str) -> str:
    """The git folder of one worktree, to which a linked one's ``.git``, a file, leads."""
    if os.path.isdir(git):
        return git
    line = _first_line(git)
    if not line.startswith(_LINKED):
        return git
    return os.path.join(os.path.dirname(git), line.removeprefix(_LINKED).strip())


def _common_folder(git: str) -> str:
    """The git folder that all worktrees share, to which that of a linked one leads."""
    own = _git_folder_of_worktree(git)
    if own == git:
        return own
    return os.path.normpath(os.path.join(own, _first_line(os.path.join(own, "commondir"))))


def _main_folder(common: str) -> Iterator[str]:
    """The worktree that a git folder lies in; a bare repository and a submodule have none there."""
    parent = os.path.dirname(common)
    beside = os.path.join(parent, ".git")
    if beside == common or (
        os.path.isfile(beside) and canonical(_common_folder(beside)) == canonical(common)
    ):
        yield canonical(parent)


def _linked_folders(common: str) -> Iterator[str]:
    linked = os.path.join(common, "worktrees")
    try:
        names = sorted(os.listdir(linked))
    except (OSError, ValueError):
        return
    for name in names:
        if git := _first_line(os.path.join(linked, name, "gitdir")):
            yield canonical(os.path.dirname(os.path.join(linked, name, git)))


def _first_line(path: str) -> str:
    try:
        return os.fsdecode(paths.read_regular(path, LONGEST_FILE).partition(b"\n")[0]).strip()
    except (OSError, ValueError):
        return ""
