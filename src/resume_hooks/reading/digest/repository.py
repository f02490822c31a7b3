"""What git says now of the folder that a session worked in. Read-only, asked while the transcript is read.

Invariant: git gets ``PATIENCE`` and no more, takes no lock, leaves no process behind, and runs no program that a
repository's own settings name. Of one whose settings name a filter, or include others, git is not asked.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from types import TracebackType
from typing import NamedTuple, Self

from resume_hooks.paths import Where
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.system.git_worktrees import root_above
from resume_hooks.system.subprocesses import kill_group
from resume_hooks.system.text import plain_line

PATIENCE = 0.1  # seconds that git has, from when it was asked

NOT_ASKED = "not asked"
NO_ANSWER = "no answer"
BRANCH = 80  # characters of a branch's name
PIPE = 1 << 18  # bytes that git can tell before anybody listens
SETTINGS = 1 << 20  # bytes of a repository's settings that are looked at

SAFE = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.hooksPath=/dev/null",
)
"""The options with which git takes no lock and runs nothing that a repository names."""

_QUESTIONS = (
    ("status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z"),
    ("rev-list", "--count", "--since={since}", "HEAD", "--"),
)
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "XDG_CONFIG_HOME", "SYSTEMROOT")
_OFFLINE = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""What keeps git from fetching what a partial clone lacks: that would run programs that its settings name."""

_UNSAFE = late(rb"^\s*\[\s*(?:filter|include)|worktreeconfig", re.IGNORECASE | re.MULTILINE)
_FIELDS = {b"1 ": 8, b"2 ": 9, b"u ": 10, b"? ": 1}  # the spaces before the path in a row of git's, by how it begins


class RepositoryState(NamedTuple):
    """A repository now: one ``line`` for people, and the paths with changes that are not committed, from its root."""

    line: str
    root: str = ""
    dirty: frozenset[str] = frozenset()


class GitQuery:
    """Questions to git that run beside us; ``answer`` collects what came in time. Used with ``with``."""

    def __init__(self, folder: str, since: str, where: Where) -> None:
        self._asked = time.monotonic()
        self._runs: list[subprocess.Popen[bytes]] = []
        is_there = os.path.isabs(folder) and os.path.isdir(folder)
        self._root = root_above(os.path.normpath(folder)) if is_there else ""
        if not self._root or not _is_safe(self._root):
            return
        env = offline(where)
        with contextlib.suppress(OSError):  # no git
            for words in _QUESTIONS:
                asked = [word.format(since=since) for word in words]
                run = subprocess.Popen(  # noqa: S603 - a fixed program, no shell, the folder by its own option
                    ["git", "-C", folder, *SAFE, *asked],  # noqa: S607 - the user's git
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    pipesize=PIPE,
                )
                self._runs.append(run)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for run in self._runs:
            _end(run)

    def answer(self) -> RepositoryState:
        """What git said within its time; whoever is not done by then is ended."""
        if not self._root:
            return RepositoryState("")
        outputs = [self._output(run) for run in self._runs]
        if len(outputs) < len(_QUESTIONS) or outputs[0] is None:
            return RepositoryState(NOT_ASKED)
        return _state(self._root, outputs[0], outputs[1] or b"") if outputs[0] else RepositoryState(NO_ANSWER)

    def _output(self, run: subprocess.Popen[bytes]) -> bytes | None:
        """What a run said, ``b""`` if it failed, None if it took too long."""
        try:
            found, _ = run.communicate(timeout=max(0.001, self._asked + PATIENCE - time.monotonic()))
        except subprocess.TimeoutExpired:
            _end(run)
            return None
        return found if run.returncode == 0 else b""


def offline(where: Where) -> dict[str, str]:
    """The environment of a git that is asked: nothing of the user's but where things are, and no network."""
    return {**{key: where.environ[key] for key in _PASSED if key in where.environ}, **_OFFLINE}


def _end(run: subprocess.Popen[bytes]) -> None:
    """End a run with whatever it started. Its pipe is not read to the end: a grandchild may hold that open."""
    if run.poll() is None:
        kill_group(run.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(timeout=PATIENCE)
    if run.stdout is not None:
        run.stdout.close()


def _is_safe(root: str) -> bool:
    """Whether a repository's own settings name no filter, which ``status`` would run, and no other settings."""
    git = os.path.join(root, ".git")
    try:
        if os.path.isfile(git):  # a worktree: the settings are those of the repository that it belongs to
            git = os.path.join(root, _line_of(git).removeprefix("gitdir:").strip())
            shared = os.path.join(git, "commondir")
            git = os.path.join(git, _line_of(shared)) if os.path.isfile(shared) else git
        with open(os.path.join(git, "config"), "rb") as stream:
            return _UNSAFE.search(stream.read(SETTINGS)) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _line_of(path: str) -> str:
    with open(path, "rb") as stream:
        return os.fsdecode(stream.readline(SETTINGS)).strip()


def _state(root: str, status: bytes, count: bytes) -> RepositoryState:
    branch, upstream, dirty = "", "", set()
    rows = iter(status.split(b"\0"))
    for row in rows:
        if row.startswith(b"# branch.head "):
            branch = plain_line(row[14:].decode("utf-8", "replace"))[:BRANCH]
        elif row.startswith(b"# branch.ab "):
            upstream = row[12:].decode("ascii", "replace")
        elif row[:2] in _FIELDS:
            dirty.add(os.fsdecode(row.split(b" ", _FIELDS[row[:2]])[-1]))
            if row[:2] == b"2 ":
                next(rows, None)  # the name that it had before
    return RepositoryState(_line(branch, upstream, len(dirty), count.strip()), root, frozenset(dirty))


def _line(branch: str, upstream: str, dirty: int, count: bytes) -> str:
    ahead, _, behind = upstream.partition(" ")
    parts = [f"branch {branch}" if branch != "(detached)" else "no branch (detached)"]
    if count.isdigit():
        parts.append(f"{int(count)} commit{'s' if int(count) != 1 else ''} since the session began")
    if ahead.strip("+0"):
        parts.append(f"{ahead.strip('+')} not pushed")
    if behind.strip("-0"):
        parts.append(f"{behind.strip('-')} behind")
    parts.append(f"{dirty} uncommitted" if dirty else "clean")
    return ", ".join(parts)
