"""The new place of a session's folder that is gone: folders with the commits and files that the session worked on.

Read-only, and bounded: so many folders, so much of the transcript, ``PATIENCE`` for git in all. A
transcript gives evidence for a person to judge, nothing more.
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

REACH = 4 * 1024 * 1024
"""Bytes at the end of a transcript that are searched for traces."""

PATIENCE = 2.0
"""Seconds that git has for all questions together."""

ONE_ANSWER = 0.3
"""Seconds that git has for one."""

MOST = 5
"""Most folders that are offered."""

FOLDERS = 300
"""Most folders that are looked at."""

SIBLINGS = 100
"""Most folders that are looked at beside the one that is gone."""

TRACES = 200
"""Most commits, and files, that are looked for."""

_COMMIT = re.compile(
    rb"\[[^\s\[\]\"]{1,200} (?:\(root-commit\) )?([0-9a-f]{7,40})\]|(?<![0-9a-f])([0-9a-f]{40})(?![0-9a-f])"
)
"""A commit as ``git commit`` prints it, or a whole id."""

_FILE = re.compile(rb'"(?:file_path|filePath|notebook_path)":("(?:[^"\\]|\\.){1,4096}")')


class Traces(NamedTuple):
    """Traces of a session's ``folder``: ids of commits, newest first, and files, relative to it."""

    folder: str
    commits: tuple[str, ...]
    files: tuple[str, ...]


def homes_of_session(path: str, folder: str, here: str, where: Where) -> list[MovedFolder]:
    """The likely new places of the lost ``folder`` of the session at ``path``, the likeliest first."""
    known = neighbour_folders(one.path for one in all_sessions(where))
    likely = [here, *main_checkout(folder, where), *sibling_folders(folder), *known]
    return likely_folders(read_traces(path, folder), likely, where)[:MOST]


def read_traces(path: str, folder: str) -> Traces:
    """Traces of the ``folder`` at the end of the transcript at ``path``.

    SessionNotFound if it can't be read.
    """
    with open_transcript(path) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - REACH))
        text = stream.read(REACH)
    commits = dict.fromkeys((m.group(1) or m.group(2)).decode() for m in _COMMIT.finditer(text))
    start, files = folder.rstrip(os.sep) + os.sep, dict[str, None]()
    for match in _FILE.finditer(text):
        with contextlib.suppress(ValueError):
            named = str(json.loads(match[1]))
            if named.startswith(start) and "\0" not in named:
                relative = os.path.normpath(named[len(start) :])
                if not relative.startswith(".."):  # one that leaves the folder again
                    files[relative] = None
    return Traces(folder, tuple(reversed(commits))[:TRACES], tuple(reversed(files))[:TRACES])


def likely_folders(found: Traces, folders: Iterable[str], where: Where) -> list[MovedFolder]:
    """The folders with evidence, the likeliest first: among ``folders`` and their worktrees."""
    deadline = time.monotonic() + PATIENCE
    old = canonical_path(found.folder)
    likely = []
    for root, worktree in _roots_to_look_at(folders, old, main_checkout(old, where)):
        folder = _place_in_repository(root, old, found.files)
        if found.commits:
            known = _commits_in_repository(root, found.commits, where, deadline)
        else:
            known = ()
        files = _count_files_in(folder, found.files)
        enough = 2 * files >= len(found.files) > 0
        if known or worktree or enough:
            likely.append(MovedFolder(folder, known, files, len(found.files), worktree))
    likely.sort(key=lambda place: (len(place.commits), place.files, place.worktree), reverse=True)
    return list({place.folder: place for place in reversed(likely)}.values())[::-1]


def neighbour_folders(paths: Iterable[str]) -> Iterator[str]:
    """The existing folders that the sessions at ``paths`` were started in, one for each project folder."""
    for ends in first_session_of_projects(paths, FOLDERS):
        if os.path.isabs(ends.cwd) and "\0" not in ends.cwd and os.path.isdir(ends.cwd):
            yield ends.cwd


def first_session_of_projects(paths: Iterable[str], most: int | None = None) -> Iterator[HeadTail]:
    """The ends of the first session at ``paths`` of each project folder, for ``most`` folders."""
    first: dict[str, str] = {}
    for path in paths:
        first.setdefault(os.path.dirname(path), path)
    for path in islice(first.values(), most):
        with contextlib.suppress(SessionNotFound):  # deleted since it was listed
            yield HeadTail(path)


def _roots_to_look_at(
    folders: Iterable[str], old: str, mains: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    """Folders to look at, of a repository its root.

    Each with whether the old folder is known as its worktree.
    """
    seen: set[str] = set()
    for folder in folders:
        trees = list_worktrees(folder)
        roots = []
        for tree in trees:
            if os.path.lexists(os.path.join(tree, ".git")):
                roots.append(tree)
        for tree in roots or trees[:1]:
            if tree not in seen and len(seen) < FOLDERS and tree != old and os.path.isdir(tree):
                seen.add(tree)
                yield tree, old in trees or any(main in trees for main in mains)


def sibling_folders(old: str) -> list[str]:
    """Folders beside one that is gone, where a renamed one may stand, or below its nearest existing ancestor."""
    above = os.path.dirname(canonical_path(old))
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    try:
        with os.scandir(above) as entries:
            found = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return found[:SIBLINGS]


def _place_in_repository(root: str, old: str, files: tuple[str, ...]) -> str:
    """The place of the old folder in a repository: the root, or the folder below it that the old path ends with."""
    parts = old.strip(os.sep).split(os.sep)
    ends = (os.path.join(root, *parts[start:]) for start in range(1, len(parts)))
    below = [folder for folder in ends if os.path.isdir(folder)]
    if os.path.basename(root) == parts[-1]:
        wanted = [root, *below]
    else:
        wanted = [*below, root]
    return max(wanted, key=lambda folder: _count_files_in(folder, files))  # the first of equals


def _count_files_in(folder: str, files: tuple[str, ...]) -> int:
    return sum(os.path.isfile(os.path.join(folder, file)) for file in files)


def _commits_in_repository(
    root: str, commits: tuple[str, ...], where: Where, deadline: float
) -> tuple[str, ...]:
    """The commits that a repository holds; empty where git does not answer in time."""
    if not os.path.lexists(os.path.join(root, ".git")):
        return ()
    asked = "".join(f"{commit}^{{commit}}\n" for commit in commits).encode()
    until = min(deadline, time.monotonic() + ONE_ANSWER)
    told = b""
    with contextlib.suppress(OSError), GitView(root, where, until) as view:
        told = view.output(view.start("cat-file", "--batch-check"), until, asked) or b""
    rows = told.split(b"\n")[: len(commits)]
    return tuple(
        commit
        for commit, row in zip(commits, rows, strict=False)
        if row.split(b" ")[1:2] == [b"commit"]
    )
