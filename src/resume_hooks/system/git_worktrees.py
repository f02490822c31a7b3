"""Find the project of a folder.

The project consists of the folder's repository, the folders below it, and the repository's other
worktrees. This information comes from git's own files. For deleted repositories, it comes from
notes about the first start in each folder. No program is run.

hooks/new-folder writes a note when a client starts in a folder. A note is a small file with three
lines: the folder, the first record of git's log in the folder (or, for a linked worktree, the path
of its git folder), and a remote.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import NamedTuple

from resume_hooks import paths
from resume_hooks.paths import (
    MAX_PROJECT_KEY_CHARACTERS,
    Where,
    canonical_path,
    is_private_folder,
    open_regular,
    project_key,
    read_regular_file,
)
from resume_hooks.system.invocation import quote_word

FOLDER_NOTE_PREFIX = "folder-"
# maximum number of bytes to read from a note or from a file of a repository
MAX_READ_BYTES = 16_384
# maximum number of bytes in the second and in the third line of a note
MAX_GIT_LINE_BYTES, MAX_REMOTE_BYTES = 2_000, 1_000
_GIT_FOLDER_LINK_PREFIX = "gitdir:"
_REMOTE_URL_PATTERN = re.compile(rb"^\s+url = (.+)$", re.MULTILINE)
_URL_PASSWORD_PATTERN = re.compile(r"(?<=://)[^/]*@")

# The maximum number of bytes that are read from git's file of packed branches.
MAX_PACKED_REFS_BYTES = 16 * 1024 * 1024
MAX_WORKTREES = 500  # maximum number of linked worktrees to read, because a repository can list any number of them
MAX_GIT_FILE_BYTES = 4_096  # maximum number of bytes to read from a ``.git`` file


class FolderNote(NamedTuple):
    """A note about a folder.

    ``git_identity`` is its second line, which identifies the repository or the linked worktree, and
    ``remote_url`` is its third line.
    """

    path: str
    git_identity: str
    remote_url: str

    @property
    def common_git_folder(self) -> str:
        """The git folder that a linked worktree shares with the main worktree.

        If the folder is not a linked worktree, the result is ``""``.
        """
        if not self.git_identity.startswith(_GIT_FOLDER_LINK_PREFIX):
            return ""
        own = os.path.join(
            self.path, self.git_identity.removeprefix(_GIT_FOLDER_LINK_PREFIX).strip()
        )
        return os.path.dirname(os.path.dirname(os.path.normpath(own)))

    @property
    def has_repository(self) -> bool:
        """Whether the folder still contains a repository."""
        return os.path.lexists(os.path.join(self.path, ".git"))


def read_folder_notes(where: Where) -> Iterator[FolderNote]:
    """Yield the notes of all folders. Damaged notes are skipped."""
    home = os.path.join(where.state, "pending")
    try:
        if is_private_folder(home, where):
            names = sorted(os.listdir(home))
        else:
            names = []
    except OSError:
        return
    for name in names:
        if name.startswith(FOLDER_NOTE_PREFIX):
            try:
                path, git, remote, *_ = os.fsdecode(
                    read_regular_file(os.path.join(home, name), MAX_READ_BYTES)
                ).split("\n")
            except (OSError, ValueError):
                continue
            if os.path.isabs(path) and "\0" not in path:
                yield FolderNote(path, git, _URL_PASSWORD_PATTERN.sub("", remote))


def make_folder_note(folder: str) -> FolderNote:
    """Return the note that ``hooks/new-folder`` would now write for a folder."""
    git = os.path.join(folder, ".git")
    first_bytes = _read_first_bytes(
        git if os.path.isfile(git) else os.path.join(git, "logs", "HEAD")
    ).partition(b"\n")[0]
    url = _REMOTE_URL_PATTERN.search(_read_first_bytes(os.path.join(git, "config")))
    remote = os.fsdecode(url[1][:MAX_REMOTE_BYTES]) if url else ""
    return FolderNote(
        folder, os.fsdecode(first_bytes[:MAX_GIT_LINE_BYTES]), _URL_PASSWORD_PATTERN.sub("", remote)
    )


def _read_first_bytes(path: str) -> bytes:
    try:
        with open_regular(path) as stream:
            return stream.read(MAX_READ_BYTES)
    except (OSError, ValueError):
        return b""


class Project:
    """A project: its working directories ``folders``, and the ``names`` of its project folders.

    Every folder below one of the ``root_folders`` also belongs to the project.
    """

    def __init__(
        self,
        folders: tuple[str, ...],
        root_folders: tuple[str, ...] = (),
        names: tuple[str, ...] = (),
    ) -> None:
        self.folders = folders
        self.root_folders = root_folders
        self.names = names

    @cached_property
    def _shortened_project_keys(self) -> frozenset[str]:
        """The names of the project folders for the working directories, cut to the length used in comparisons."""
        return frozenset(
            project_key(folder)[:MAX_PROJECT_KEY_CHARACTERS] for folder in self.folders
        )

    def contains_session(self, start_folders: Iterable[str], project_folder_name: str) -> bool:
        """Check whether a session in the project folder ``project_folder_name`` belongs to this project.

        ``start_folders`` are the folders in which the session started. Several working directories
        may have project folders with the same name. If the project folder of a start folder is
        called ``project_folder_name``, only the start folders decide.
        """
        if project_folder_name in self.names:
            return True
        folders = [cwd for cwd in start_folders if cwd]
        if any(cwd.startswith(folder + os.sep) for cwd in folders for folder in self.root_folders):
            return True
        if project_folder_name[:MAX_PROJECT_KEY_CHARACTERS] not in self._shortened_project_keys:
            return False
        matching_folders = []
        for cwd in folders:
            if (
                project_key(cwd)[:MAX_PROJECT_KEY_CHARACTERS]
                == project_folder_name[:MAX_PROJECT_KEY_CHARACTERS]
            ):
                matching_folders.append(cwd)
        return not matching_folders or any(
            canonical_path(cwd) in self.folders for cwd in matching_folders
        )

    def folder_names(
        self, where: Where, list_known_names: Callable[[], list[str]] | None = None
    ) -> list[str]:
        """Return the names of the existing project folders that may contain the project's sessions.

        ``list_known_names`` lists the names of all existing project folders (default: read them
        from the disk).
        """
        list_existing_names = list_known_names or (
            lambda: [os.path.basename(path) for path in paths.all_project_folders(where)]
        )
        key_names = (
            name
            for cwd in self.folders
            for name in paths.project_folder_names(cwd, where, list_existing_names)
        )
        prefixes = tuple(
            f"{project_key(folder)[:MAX_PROJECT_KEY_CHARACTERS]}-" for folder in self.root_folders
        )
        names_below = (
            name for name in list_existing_names() if prefixes and name.startswith(prefixes)
        )
        return list(dict.fromkeys([*self.names, *key_names, *names_below]))


def project_of_folder(cwd: str, where: Where) -> Project:
    """Return the project of a folder.

    The project consists of the folder's repository, the folders below it, and the repository's
    other worktrees. The project folder named by ``CLAUDE_CODE_PROJECT_DIR_NAME`` contains sessions
    of all projects, so it also belongs to this project.
    """
    folders = (*list_worktrees(cwd), *list_removed_worktrees(cwd, where))
    # Some users have a repository in their home folder, with all their projects below it.
    home = canonical_path(os.path.expanduser("~"))
    roots = (
        folder
        for folder in folders
        if folder != home and os.path.lexists(os.path.join(folder, ".git"))
    )
    variable_names = paths.list_project_folder_name_from_variable(where)
    return Project(folders, tuple(roots), tuple(variable_names))


def list_worktrees(cwd: str) -> tuple[str, ...]:
    """Return a folder, the root of its repository, and the repository's other worktrees.

    The worktrees are found without running a program.
    """
    root = repository_root(canonical_path(cwd))
    if not root:
        return (canonical_path(cwd),)
    common = _read_common_folder(os.path.join(root, ".git"))
    folders = (
        canonical_path(cwd),
        root,
        *_yield_main_worktree(common),
        *_yield_linked_worktrees(common),
    )
    return tuple(dict.fromkeys(folder for folder in folders if folder))


def list_removed_worktrees(cwd: str, where: Where) -> tuple[str, ...]:
    """Return the deleted linked worktrees of a folder's repository, according to the folders' notes."""
    common = common_git_folder(cwd)
    notes, resolve = read_folder_notes(where) if common else (), cache(canonical_path)
    removed_notes = (
        note
        for note in notes
        if resolve(note.common_git_folder) == resolve(common) and not note.has_repository
    )
    return tuple(dict.fromkeys(canonical_path(note.path) for note in removed_notes))


def find_main_checkout(folder: str, where: Where) -> list[str]:
    """Return the main worktree of a deleted linked worktree, according to the folder's note.

    The result is empty if there is no such note, or if the main worktree was also deleted.
    """
    common_folders = []
    for note in read_folder_notes(where):
        if note.common_git_folder and canonical_path(note.path) == canonical_path(folder):
            common_folders.append(note.common_git_folder)
    return [
        main
        for common in common_folders[:1]
        for main in _yield_main_worktree(common)
        if os.path.isdir(main)
    ]


def command_to_recreate_worktree(folder: str, branch: str, where: Where) -> str:
    """Return the command that recreates a deleted linked worktree.

    Return ``""`` if ``folder`` was not a linked worktree.
    """
    for main in find_main_checkout(folder, where):
        git = os.path.join(main, ".git")
        branch = "" if branch.startswith("-") else branch
        refs = b""
        with contextlib.suppress(OSError):
            refs = paths.read_regular_file(os.path.join(git, "packed-refs"), MAX_PACKED_REFS_BYTES)
        is_packed = f" refs/heads/{branch}\n".encode() in refs
        branch_exists = is_packed or os.path.lexists(os.path.join(git, "refs", "heads", branch))
        if branch and not branch_exists:
            arguments = ["-b", branch, folder]
        else:
            arguments = [folder, *([branch] if branch else [])]
        return " ".join(map(quote_word, ["git", "-C", main, "worktree", "add", *arguments]))
    return ""


def common_git_folder(cwd: str) -> str:
    """Return the git folder that all worktrees of a folder's repository share.

    Return ``""`` if the folder is not in a repository.
    """
    root = repository_root(canonical_path(cwd))
    if root:
        return _read_common_folder(os.path.join(root, ".git"))
    return ""


def worktree_git_folders(root: str) -> tuple[str, str]:
    """Return the git folder of the worktree at ``root``, and the git folder that all worktrees share."""
    git = os.path.join(root, ".git")
    return _git_folder_of_worktree(git), _read_common_folder(git)


def repository_root(folder: str) -> str:
    """Return the root of the repository that contains a folder, or ``""``.

    Symbolic links in the path are not resolved.
    """
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder


def _git_folder_of_worktree(git_path: str) -> str:
    """Return the git folder of a worktree. ``git_path`` is the path of the worktree's ``.git``.

    In a linked worktree, ``.git`` is a file that names the git folder.
    """
    if os.path.isdir(git_path):
        return git_path
    line = _read_first_line(git_path)
    if not line.startswith(_GIT_FOLDER_LINK_PREFIX):
        return git_path
    return os.path.join(
        os.path.dirname(git_path), line.removeprefix(_GIT_FOLDER_LINK_PREFIX).strip()
    )


def _read_common_folder(git_path: str) -> str:
    """Return the git folder that all worktrees share. ``git_path`` is the path of a worktree's ``.git``.

    In a linked worktree, the worktree's own git folder names the shared git folder.
    """
    own = _git_folder_of_worktree(git_path)
    if own == git_path:
        return own
    return os.path.normpath(os.path.join(own, _read_first_line(os.path.join(own, "commondir"))))


def _yield_main_worktree(common_folder: str) -> Iterator[str]:
    """Yield the main worktree of a git folder, if there is one.

    Nothing is yielded for bare repositories and submodules.
    """
    parent = os.path.dirname(common_folder)
    git_path = os.path.join(parent, ".git")
    if git_path == common_folder or (
        os.path.isfile(git_path)
        and canonical_path(_read_common_folder(git_path)) == canonical_path(common_folder)
    ):
        yield canonical_path(parent)


def _yield_linked_worktrees(common_folder: str) -> Iterator[str]:
    linked = os.path.join(common_folder, "worktrees")
    try:
        names = sorted(os.listdir(linked))
    except (OSError, ValueError):
        return
    for name in names[:MAX_WORKTREES]:
        if git := _read_first_line(os.path.join(linked, name, "gitdir")):
            yield canonical_path(os.path.dirname(os.path.join(linked, name, git)))


def _read_first_line(path: str) -> str:
    """Return the first line of a file, or ``""`` if the line cannot be read or cannot be a path."""
    try:
        line = os.fsdecode(
            paths.read_regular_file(path, MAX_GIT_FILE_BYTES).partition(b"\n")[0]
        ).strip()
    except (OSError, ValueError):
        return ""
    if "\0" in line:
        return ""
    return line
