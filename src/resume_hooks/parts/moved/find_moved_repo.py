"""Find the new path of a session's missing folder by the commits and files that the session worked on.

This module only reads files. It limits the number of folders, the bytes of the transcript, and the
total time for git. A transcript only gives evidence that a person must judge.
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
from resume_hooks.system.git_worktrees import list_worktrees, main_checkout
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import open_transcript

TAIL_BYTES = 4 * 1024 * 1024
"""The number of bytes at the end of a transcript that are searched for traces."""

GIT_SECONDS = 2.0
"""The maximum total number of seconds for all git commands."""

GIT_QUERY_SECONDS = 0.3
"""The maximum number of seconds for one git command."""

MOST_SUGGESTED = 5
"""The maximum number of suggested folders."""

MOST_FOLDERS = 300
"""The maximum number of folders to examine."""

MOST_SIBLINGS = 100
"""The maximum number of siblings of the missing folder to examine."""

MOST_TRACES = 200
"""The maximum number of commits to search for. The same maximum applies to files."""

_COMMIT = re.compile(
    rb"\[[^\s\[\]\"]{1,200} (?:\(root-commit\) )?([0-9a-f]{7,40})\]|(?<![0-9a-f])([0-9a-f]{40})(?![0-9a-f])"
)
"""A commit in the output of ``git commit``, or a full commit id."""

_FILE = re.compile(rb'"(?:file_path|filePath|notebook_path)":("(?:[^"\\]|\\.){1,4096}")')


class Traces(NamedTuple):
    """The traces of a session's ``folder``: commit ids, newest first, and paths of files relative to the folder."""

    folder: str
    commits: tuple[str, ...]
    files: tuple[str, ...]


def homes_of_session(
    path: str, folder: str, current_folder: str, where: Where
) -> list[MovedFolder]:
    """Return the likely new paths of the missing ``folder`` of the session at ``path``, best first."""
    known_folders = session_folders(session.path for session in all_sessions(where))
    candidates = [
        current_folder,
        *main_checkout(folder, where),
        *sibling_folders(folder),
        *known_folders,
    ]
    return find_likely_folders(read_traces(path, folder), candidates, where)[:MOST_SUGGESTED]


def read_traces(path: str, folder: str) -> Traces:
    """Return the traces of ``folder`` at the end of the transcript at ``path``.

    Raise SessionNotFound if it cannot be read.
    """
    with open_transcript(path) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL_BYTES))
        text = stream.read(TAIL_BYTES)
    commits = dict.fromkeys((m.group(1) or m.group(2)).decode() for m in _COMMIT.finditer(text))
    start, files = folder.rstrip(os.sep) + os.sep, dict[str, None]()
    for match in _FILE.finditer(text):
        with contextlib.suppress(ValueError):
            file_path = str(json.loads(match[1]))
            if file_path.startswith(start) and "\0" not in file_path:
                relative = os.path.normpath(file_path[len(start) :])
                if not relative.startswith(".."):  # skip a path that leads outside the folder
                    files[relative] = None
    return Traces(
        folder, tuple(reversed(commits))[:MOST_TRACES], tuple(reversed(files))[:MOST_TRACES]
    )


def find_likely_folders(traces: Traces, folders: Iterable[str], where: Where) -> list[MovedFolder]:
    """Return the ``folders``, or their worktrees, for which there is evidence, best first."""
    deadline = time.monotonic() + GIT_SECONDS
    old = canonical_path(traces.folder)
    likely = []
    for root, worktree in _candidate_roots(folders, old, main_checkout(old, where)):
        folder = _find_place_in_repository(root, old, traces.files)
        if traces.commits:
            commits = _find_commits(root, traces.commits, where, deadline)
        else:
            commits = ()
        files = _count_files_in(folder, traces.files)
        has_enough_files = 2 * files >= len(traces.files) > 0
        if commits or worktree or has_enough_files:
            likely.append(MovedFolder(folder, commits, files, len(traces.files), worktree))
    likely.sort(
        key=lambda likely_folder: (
            len(likely_folder.commits),
            likely_folder.files,
            likely_folder.is_own_worktree,
        ),
        reverse=True,
    )
    return list(
        {likely_folder.folder: likely_folder for likely_folder in reversed(likely)}.values()
    )[::-1]


def session_folders(paths: Iterable[str]) -> Iterator[str]:
    """Yield the existing folders in which sessions were started, one for each project folder."""
    for ends in first_session_of_projects(paths, MOST_FOLDERS):
        if os.path.isabs(ends.cwd) and "\0" not in ends.cwd and os.path.isdir(ends.cwd):
            yield ends.cwd


def first_session_of_projects(paths: Iterable[str], most: int | None = None) -> Iterator[HeadTail]:
    """Yield the ends of the first session in each project folder, for at most ``most`` folders."""
    first: dict[str, str] = {}
    for path in paths:
        first.setdefault(os.path.dirname(path), path)
    for path in islice(first.values(), most):
        with contextlib.suppress(SessionNotFound):  # deleted after it was listed
            yield HeadTail(path)


def _candidate_roots(
    folders: Iterable[str], old: str, mains: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    """Yield the folders to examine. For a repository, yield its root.

    Each folder has a flag that is true if git knows the old folder as its worktree.
    """
    seen_roots: set[str] = set()
    for folder in folders:
        trees = list_worktrees(folder)
        roots = []
        for tree in trees:
            if os.path.lexists(os.path.join(tree, ".git")):
                roots.append(tree)
        for tree in roots or trees[:1]:
            if (
                tree not in seen_roots
                and len(seen_roots) < MOST_FOLDERS
                and tree != old
                and os.path.isdir(tree)
            ):
                seen_roots.add(tree)
                yield tree, old in trees or any(main in trees for main in mains)


def sibling_folders(old: str) -> list[str]:
    """Return the siblings of a missing folder, or the folders in its nearest existing ancestor."""
    ancestor = os.path.dirname(canonical_path(old))
    while not os.path.isdir(ancestor):
        ancestor = os.path.dirname(ancestor)
    try:
        with os.scandir(ancestor) as entries:
            siblings = sorted(
                entry.path for entry in entries if entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []
    return siblings[:MOST_SIBLINGS]


def _find_place_in_repository(root: str, old: str, files: tuple[str, ...]) -> str:
    """Return the old folder's path in a repository: the root, or a subfolder that ends like the old path."""
    parts = old.strip(os.sep).split(os.sep)
    ends = (os.path.join(root, *parts[start:]) for start in range(1, len(parts)))
    below = [folder for folder in ends if os.path.isdir(folder)]
    if os.path.basename(root) == parts[-1]:
        candidates = [root, *below]
    else:
        candidates = [*below, root]
    # if several folders are equal, max returns the first
    return max(candidates, key=lambda folder: _count_files_in(folder, files))


def _count_files_in(folder: str, files: tuple[str, ...]) -> int:
    return sum(os.path.isfile(os.path.join(folder, file)) for file in files)


def _find_commits(
    root: str, commits: tuple[str, ...], where: Where, deadline: float
) -> tuple[str, ...]:
    """Return the commits that exist in a repository, or () if git does not answer in time."""
    if not os.path.lexists(os.path.join(root, ".git")):
        return ()
    queries = "".join(f"{commit}^{{commit}}\n" for commit in commits).encode()
    until = min(deadline, time.monotonic() + GIT_QUERY_SECONDS)
    output = b""
    with contextlib.suppress(OSError), GitView(root, where, until) as view:
        output = view.output(view.start("cat-file", "--batch-check"), until, queries) or b""
    rows = output.split(b"\n")[: len(commits)]
    return tuple(
        commit
        for commit, row in zip(commits, rows, strict=False)
        if row.split(b" ")[1:2] == [b"commit"]
    )
