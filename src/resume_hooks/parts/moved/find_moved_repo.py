"""Find the new path of a session's missing folder, using commits and files that the session mentions.

This module only reads files. It limits the number of folders to examine, the number of bytes to
read from the transcript, and the time for git. The user must judge the result, because what a
transcript mentions proves nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, canonical_path
from resume_hooks.sessions.project_folder import MovedFolder
from resume_hooks.sessions.session_files import all_sessions
from resume_hooks.system.git_view import GitView
from resume_hooks.system.git_worktrees import find_main_checkout, list_worktrees
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import open_transcript

MAX_TAIL_BYTES = 4 * 1024 * 1024
"""Number of bytes at the end of a transcript that are searched for mentions of commits and files.
"""

MAX_GIT_SECONDS = 2.0
"""Maximum number of seconds that all git commands may take together."""

MAX_GIT_QUERY_SECONDS = 0.3
"""Maximum number of seconds for one git command."""

MAX_SUGGESTED_FOLDERS = 5
"""Maximum number of folders to suggest."""

MAX_EXAMINED_FOLDERS = 300
"""Maximum number of folders to examine."""

MAX_SIBLING_FOLDERS = 100
"""Maximum number of folders that are examined next to the missing folder."""

MAX_MENTIONS = 200
"""Maximum number of mentioned commits that are searched for, and also of mentioned files."""

_COMMIT_ID_PATTERN = re.compile(
    rb"\[[^\s\[\]\"]{1,200} (?:\(root-commit\) )?([0-9a-f]{7,40})\]|(?<![0-9a-f])([0-9a-f]{40})(?![0-9a-f])"
)
"""Matches a commit id in the output of ``git commit``, or a complete commit id."""

_FILE_PATH_FIELD_PATTERN = re.compile(
    rb'"(?:file_path|filePath|notebook_path)":("(?:[^"\\]|\\.){1,4096}")'
)


class FolderMentions(NamedTuple):
    """The commits and files of a folder that a session mentions.

    ``commits`` are commit ids, newest first. ``files`` are paths relative to ``folder``.
    """

    folder: str
    commits: tuple[str, ...]
    files: tuple[str, ...]


def find_likely_new_folders(
    session_path: str, missing_folder: str, current_folder: str, where: Where
) -> list[MovedFolder]:
    """Return the likely new paths of ``missing_folder``, the folder of the session at ``session_path``, best first."""
    known_folders = list_folders_of_sessions(session.path for session in all_sessions(where))
    candidates = [
        current_folder,
        *find_main_checkout(missing_folder, where),
        *list_sibling_folders(missing_folder),
        *known_folders,
    ]
    return find_candidates_for_moved_folder(
        read_folder_mentions(session_path, missing_folder), candidates, where
    )[:MAX_SUGGESTED_FOLDERS]


def read_folder_mentions(path: str, folder: str) -> FolderMentions:
    """Return the commits and files of ``folder`` that the end of the transcript at ``path`` mentions.

    Raise SessionNotFound if the transcript cannot be read.
    """
    with open_transcript(path) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - MAX_TAIL_BYTES))
        text = stream.read(MAX_TAIL_BYTES)
    commits = dict.fromkeys(
        (m.group(1) or m.group(2)).decode() for m in _COMMIT_ID_PATTERN.finditer(text)
    )
    start, files = folder.rstrip(os.sep) + os.sep, dict[str, None]()
    for match in _FILE_PATH_FIELD_PATTERN.finditer(text):
        with contextlib.suppress(ValueError):
            file_path = str(json.loads(match[1]))
            if file_path.startswith(start) and "\0" not in file_path:
                relative = os.path.normpath(file_path[len(start) :])
                if not relative.startswith(".."):  # Skip a path that leads outside the folder.
                    files[relative] = None
    return FolderMentions(
        folder, tuple(reversed(commits))[:MAX_MENTIONS], tuple(reversed(files))[:MAX_MENTIONS]
    )


def find_candidates_for_moved_folder(
    mentions: FolderMentions, folders: Iterable[str], where: Where
) -> list[MovedFolder]:
    """Return the folders to which the old folder may have been moved, most likely first.

    A folder is returned in three cases: it contains one of the mentioned commits, it contains at
    least half of the mentioned files, or the git repository that contains it lists the old folder
    as a worktree.
    """
    deadline = time.monotonic() + MAX_GIT_SECONDS
    old_folder = canonical_path(mentions.folder)
    likely_folders = []
    for root, has_old_worktree in _find_candidate_roots(
        folders, old_folder, find_main_checkout(old_folder, where)
    ):
        folder = _find_folder_in_repository(root, old_folder, mentions.files)
        if mentions.commits:
            commits = _find_commits(root, mentions.commits, where, deadline)
        else:
            commits = ()
        file_count = _count_existing_files(folder, mentions.files)
        has_enough_files = 2 * file_count >= len(mentions.files) > 0
        if commits or has_old_worktree or has_enough_files:
            likely_folders.append(
                MovedFolder(folder, commits, file_count, len(mentions.files), has_old_worktree)
            )
    likely_folders.sort(
        key=lambda likely_folder: (
            len(likely_folder.commits),
            likely_folder.existing_used_file_count,
            likely_folder.is_own_worktree,
        ),
        reverse=True,
    )
    return list(
        {likely_folder.folder: likely_folder for likely_folder in reversed(likely_folders)}.values()
    )[::-1]


def list_folders_of_sessions(session_paths: Iterable[str]) -> Iterator[str]:
    """Yield the folders in which sessions were started, at most one for each project folder.

    ``session_paths`` are the paths of the sessions' transcripts. Folders that no longer exist are
    left out.
    """
    for ends in read_one_session_per_folder(session_paths, MAX_EXAMINED_FOLDERS):
        if os.path.isabs(ends.cwd) and "\0" not in ends.cwd and os.path.isdir(ends.cwd):
            yield ends.cwd


def read_one_session_per_folder(
    session_paths: Iterable[str], max_folders: int | None = None
) -> Iterator[HeadTail]:
    """Yield the head and tail of one session in each project folder, for at most ``max_folders`` folders."""
    first_paths: dict[str, str] = {}
    for path in session_paths:
        first_paths.setdefault(os.path.dirname(path), path)
    for path in islice(first_paths.values(), max_folders):
        with contextlib.suppress(SessionNotFound):  # The session was deleted after it was listed.
            yield HeadTail(path)


class _CandidateRoot(NamedTuple):
    """A folder in which the moved repository may be.

    ``has_old_worktree`` says whether git lists the session's old folder as a worktree of the
    repository in this folder.
    """

    path: str
    has_old_worktree: bool


def _find_candidate_roots(
    folders: Iterable[str], old_folder: str, main_checkouts: Sequence[str]
) -> Iterator[_CandidateRoot]:
    """Yield the folders to examine. If a folder is in a repository, yield the repository's root instead."""
    seen_roots: set[str] = set()
    for folder in folders:
        worktrees = list_worktrees(folder)
        roots = []
        for worktree in worktrees:
            if os.path.lexists(os.path.join(worktree, ".git")):
                roots.append(worktree)
        for worktree in roots or worktrees[:1]:
            if (
                worktree not in seen_roots
                and len(seen_roots) < MAX_EXAMINED_FOLDERS
                and worktree != old_folder
                and os.path.isdir(worktree)
            ):
                seen_roots.add(worktree)
                yield _CandidateRoot(
                    worktree,
                    old_folder in worktrees
                    or any(main_checkout in worktrees for main_checkout in main_checkouts),
                )


def list_sibling_folders(old_folder: str) -> list[str]:
    """Return the folders next to a missing folder.

    If the parent of the missing folder is also missing, return the folders in its nearest existing
    ancestor.
    """
    ancestor = os.path.dirname(canonical_path(old_folder))
    while not os.path.isdir(ancestor):
        ancestor = os.path.dirname(ancestor)
    try:
        with os.scandir(ancestor) as entries:
            siblings = sorted(
                entry.path for entry in entries if entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []
    return siblings[:MAX_SIBLING_FOLDERS]


def _find_folder_in_repository(root: str, old_folder: str, files: tuple[str, ...]) -> str:
    """Return the path in a repository that corresponds to the old folder.

    This is a subfolder whose path ends like the path of the old folder, or else the root of the
    repository. If there are several such subfolders, the one that contains the most ``files`` is
    returned.
    """
    parts = old_folder.strip(os.sep).split(os.sep)
    suffix_folders = (os.path.join(root, *parts[start:]) for start in range(1, len(parts)))
    subfolders = [folder for folder in suffix_folders if os.path.isdir(folder)]
    if os.path.basename(root) == parts[-1]:
        candidates = [root, *subfolders]
    else:
        candidates = [*subfolders, root]
    # If several folders have the same number of files, max returns the first of them.
    return max(candidates, key=lambda folder: _count_existing_files(folder, files))


def _count_existing_files(folder: str, files: tuple[str, ...]) -> int:
    return sum(os.path.isfile(os.path.join(folder, file)) for file in files)


def _find_commits(
    root: str, commits: tuple[str, ...], where: Where, deadline: float
) -> tuple[str, ...]:
    """Return the commits that exist in a repository, or () if git does not answer in time."""
    if not os.path.lexists(os.path.join(root, ".git")):
        return ()
    queries = "".join(f"{commit}^{{commit}}\n" for commit in commits).encode()
    query_deadline = min(deadline, time.monotonic() + MAX_GIT_QUERY_SECONDS)
    output = b""
    with contextlib.suppress(OSError), GitView(root, where, query_deadline) as view:
        output = (
            view.read_output(view.start_git("cat-file", "--batch-check"), query_deadline, queries)
            or b""
        )
    rows = output.split(b"\n")[: len(commits)]
    return tuple(
        commit
        for commit, row in zip(commits, rows, strict=False)
        if row.split(b" ")[1:2] == [b"commit"]
    )
