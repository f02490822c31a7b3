"""Query the current state of git in a session's folder.

The queries are read-only and run while the transcript is read.

Invariant: git gets at most ``MAX_GIT_SECONDS``, takes no lock, and leaves no process behind. It
does not run programs that the repository configures, because it is called through a ``GitView``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from types import TracebackType
from typing import NamedTuple, Self

from resume_hooks.paths import Where, open_regular
from resume_hooks.system.git_view import GitView
from resume_hooks.system.git_worktrees import repository_root
from resume_hooks.system.text import format_count, plain_line, quote_name

# The maximum number of seconds that git has to answer, counted from the start of the query.
MAX_GIT_SECONDS = 0.3

NO_QUERY_NOTE = "not asked"
NO_ANSWER_NOTE = "no answer"
NEEDS_FORCE_PUSH_NOTE = "rewritten after it was pushed: needs a force-push"
MAX_BRANCH_CHARACTERS = 80  # At most this many characters of a branch's name are shown.
# A branch's earlier tips are searched for in this many bytes at the end of the branch's reflog.
MAX_REFLOG_BYTES = 1 << 20

_GIT_STATUS_ARGUMENTS = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z")
_COMMIT_COUNT_ARGUMENTS = ("rev-list", "--count", "--since={since}", "HEAD", "--")
_UPSTREAM_TIP_ARGUMENTS = ("rev-parse", "--verify", "--quiet", "@{upstream}^{commit}")

# The number of spaces before the path in a row of ``git status``, by the row's prefix.
_SPACE_COUNTS_BEFORE_PATH = {
    b"1 ": 8,
    b"2 ": 9,
    b"u ": 10,
    b"? ": 1,
}


# In a row with one of these prefixes, the letter after the prefix is the file's state in the index.
_TRACKED_FILE_ROW_PREFIXES = (b"1 ", b"2 ")


class RepositoryState(NamedTuple):
    """The current state of a repository. ``description`` is one line for the reader.

    ``dirty_paths`` are the paths with uncommitted changes, including new files, relative to
    ``root_folder``. ``staged_paths``, ``untracked_paths`` and ``conflicting_paths`` are subsets of
    ``dirty_paths``. ``branch`` is ``""`` if no branch is checked out. ``ahead_count`` and
    ``behind_count`` are the numbers of commits by which the branch is ahead of and behind its
    upstream, or 0 if there is no upstream. ``is_rewritten`` means that the tip of the upstream was
    once the tip of this branch but is no longer its ancestor, so that a push must be forced.
    """

    description: str
    root_folder: str = ""
    dirty_paths: frozenset[str] = frozenset()
    branch: str = ""
    ahead_count: int = 0
    behind_count: int = 0
    is_rewritten: bool = False
    staged_paths: frozenset[str] = frozenset()
    untracked_paths: frozenset[str] = frozenset()
    conflicting_paths: frozenset[str] = frozenset()


class _GitStatus(NamedTuple):
    """The parsed output of ``git status``.

    ``ahead_count`` and ``behind_count`` are the numbers of commits by which the branch differs from
    its upstream.
    """

    ahead_count: int
    behind_count: int
    dirty_paths: frozenset[str]
    staged_paths: frozenset[str]
    untracked_paths: frozenset[str]
    conflicting_paths: frozenset[str]


class GitQuery:
    """A context manager that runs queries to git in parallel.

    ``collect_answers`` returns the answers that arrive in time.
    """

    def __init__(self, folder: str, start_time: str, where: Where) -> None:
        self._deadline = time.monotonic() + MAX_GIT_SECONDS
        self._exit_stack = contextlib.ExitStack()
        self._runs: list[subprocess.Popen[bytes]] = []
        self._view: GitView | None = None
        is_folder = os.path.isabs(folder) and os.path.isdir(folder)
        if is_folder:
            self._root = repository_root(os.path.normpath(folder))
        else:
            self._root = ""
        # A thread reads git's settings and then starts the queries, so that the caller need not
        # wait.
        self._query_thread = threading.Thread(
            target=self._start_queries, args=(start_time, where), daemon=True
        )
        self._query_thread.start()

    def _start_queries(self, start_time: str, where: Where) -> None:
        """Start the queries without waiting for them."""
        if not self._root:
            return
        with contextlib.suppress(OSError):  # Git may be missing or too slow.
            view = self._exit_stack.enter_context(GitView(self._root, where, self._deadline))
            if not view.is_bare:
                # Git would have to read file contents to detect renames.
                rename_options = ["--no-renames"] if view.is_partial else []
                count_arguments = [
                    word.format(since=start_time) for word in _COMMIT_COUNT_ARGUMENTS
                ]
                self._runs = [
                    view.start_git(*_GIT_STATUS_ARGUMENTS, *rename_options),
                    view.start_git(*count_arguments),
                ]
                if view.has_upstream:
                    self._runs.append(view.start_git(*_UPSTREAM_TIP_ARGUMENTS))
            self._view = view

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._query_thread.join()  # The thread does not wait longer than git's time limit.
        self._exit_stack.close()

    def collect_answers(self) -> RepositoryState:
        """Return the answers that git gave in time, and stop the queries that are still running."""
        if not self._root:
            return RepositoryState("")
        self._query_thread.join()
        view = self._view
        if view is None:
            return RepositoryState(NO_QUERY_NOTE)
        outputs = [view.read_output(run, self._deadline) for run in self._runs]
        if not outputs or outputs[0] == b"":
            return RepositoryState(NO_ANSWER_NOTE)
        status, count, *upstream = outputs
        if status is None:
            return RepositoryState(NO_QUERY_NOTE)
        parsed = _parse_status(status)
        tip = upstream[0].strip() if upstream and upstream[0] else b""
        is_rewritten = parsed.behind_count > 0 and bool(tip) and _was_branch_tip(view.reflog, tip)
        branch = plain_line(os.fsencode(view.branch).decode("utf-8", "replace"))
        state = RepositoryState(
            "",
            self._root,
            parsed.dirty_paths,
            branch,
            parsed.ahead_count,
            parsed.behind_count,
            is_rewritten,
            parsed.staged_paths,
            parsed.untracked_paths,
            parsed.conflicting_paths,
        )
        return state._replace(description=_describe_state(state, (count or b"").strip()))


def _parse_status(status: bytes) -> _GitStatus:
    """Parse the rows of ``git status``."""
    ahead, behind = 0, 0
    dirty: set[str] = set()
    staged: set[str] = set()
    untracked: set[str] = set()
    conflicting: set[str] = set()
    rows = iter(status.split(b"\0"))
    for row in rows:
        if row.startswith(b"# branch.ab "):
            ahead, behind = (abs(int(count)) for count in row[12:].split())
        elif row[:2] in _SPACE_COUNTS_BEFORE_PATH:
            path = os.fsdecode(row.split(b" ", _SPACE_COUNTS_BEFORE_PATH[row[:2]])[-1])
            dirty.add(path)
            if row[:2] == b"? ":
                untracked.add(path)
            elif row[:2] == b"u ":
                conflicting.add(path)
            elif row[:2] in _TRACKED_FILE_ROW_PREFIXES and row[2:3] != b".":
                staged.add(path)
            if row[:2] == b"2 ":
                next(rows, None)  # Skip the former name of a renamed file.
    return _GitStatus(
        ahead,
        behind,
        frozenset(dirty),
        frozenset(staged),
        frozenset(untracked),
        frozenset(conflicting),
    )


def _was_branch_tip(reflog_path: str, commit: bytes) -> bool:
    """Check whether a commit was once the tip of the branch with this reflog."""
    try:
        with open_regular(reflog_path) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - MAX_REFLOG_BYTES))
            lines = stream.read(MAX_REFLOG_BYTES).split(b"\n")
    except (OSError, ValueError):
        return False
    return any(commit in line.split(b" ", 2)[:2] for line in lines)


def _describe_state(state: RepositoryState, commit_count: bytes) -> str:
    parts = [
        f"branch {quote_name(state.branch[:MAX_BRANCH_CHARACTERS])}"
        if state.branch
        else "no branch (detached)"
    ]
    if commit_count.isdigit():
        parts.append(f"{format_count(int(commit_count), 'commit')} since the session began")
    if state.ahead_count:
        parts.append(f"{format_count(state.ahead_count, 'commit')} ahead of its upstream")
    if state.behind_count:
        parts.append(
            f"{state.behind_count} behind"
            if state.ahead_count
            else f"{format_count(state.behind_count, 'commit')} behind its upstream"
        )
    if state.is_rewritten:
        parts.append(NEEDS_FORCE_PUSH_NOTE)
    parts.append(f"{len(state.dirty_paths)} uncommitted" if state.dirty_paths else "clean")
    return ", ".join(parts)
