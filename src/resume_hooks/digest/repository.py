"""What git says now of the folder that a session worked in. Read-only, asked while the transcript is read.

Invariant: git gets ``PATIENCE`` and no more, takes no lock, and runs no program that a repository's settings name.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from typing import NamedTuple

PATIENCE = 0.1
"""Seconds that git has, from when it was asked."""

NOT_ASKED = "not asked"
_SAFE = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.hooksPath=/dev/null",
)
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "XDG_CONFIG_HOME", "SYSTEMROOT")


class State(NamedTuple):
    """A repository now: one ``line`` for people, and the paths with changes that are not committed, from its root."""

    line: str
    root: str = ""
    dirty: frozenset[str] = frozenset()


class Question:
    """Questions to git that run beside us; ``answer`` collects what came in time."""

    def __init__(self, folder: str, since: str, environ: Mapping[str, str]) -> None:
        self._asked = time.monotonic()
        self._runs: list[subprocess.Popen[bytes]] = []
        env = {**{key: environ[key] for key in _PASSED if key in environ}, "GIT_TERMINAL_PROMPT": "0"}
        self._root = _root_of(folder)
        for words in (
            ("status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z"),
            ("rev-list", "--count", f"--since={since}", "HEAD", "--"),
        ):
            if not self._root:
                break
            try:
                run = subprocess.Popen(  # noqa: S603 - a fixed program, no shell, the folder by its own option
                    ["git", "-C", folder, *_SAFE, *words],  # noqa: S607 - the user's git
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                break
            self._runs.append(run)

    def answer(self) -> State:
        """What git said within its time; whoever is not done by then is ended."""
        outputs = [self._output(run) for run in self._runs]
        status, count = [*outputs, b"", b""][:2]
        return _state(self._root, status, count.strip()) if status else State(NOT_ASKED if self._runs else "")

    def _output(self, run: subprocess.Popen[bytes]) -> bytes:
        try:
            found, _ = run.communicate(timeout=max(0.001, self._asked + PATIENCE - time.monotonic()))
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            return b""
        return found if run.returncode == 0 else b""


def _root_of(folder: str) -> str:
    """The folder that holds the repository which ``folder`` lies in, ``""`` for none."""
    at = os.path.abspath(folder)
    while not os.path.lexists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return ""
        at = above
    return at if os.path.isdir(folder) else ""


def _state(root: str, status: bytes, count: bytes) -> State:
    branch, upstream, dirty = "", "", set()
    rows = iter(status.split(b"\0"))
    for row in rows:
        if row.startswith(b"# branch.head "):
            branch = os.fsdecode(row[14:])
        elif row.startswith(b"# branch.ab "):
            upstream = os.fsdecode(row[12:])
        elif row[:2] in {b"1 ", b"2 ", b"u ", b"? "}:
            dirty.add(os.fsdecode(row.split(b" ", {b"1 ": 8, b"2 ": 9, b"u ": 10, b"? ": 1}[row[:2]])[-1]))
            if row[:2] == b"2 ":
                next(rows, None)  # the name that it had before
    ahead, _, behind = upstream.partition(" ")
    parts = [f"branch {branch}" if branch != "(detached)" else "no branch (detached)"]
    if count.isdigit():
        parts.append(f"{int(count)} commit{'s' if int(count) != 1 else ''} since the session began")
    if ahead.strip("+0"):
        parts.append(f"{ahead.strip('+')} not pushed")
    if behind.strip("-0"):
        parts.append(f"{behind.strip('-')} behind")
    parts.append(f"{len(dirty)} uncommitted" if dirty else "clean")
    return State(", ".join(parts), root, frozenset(dirty))
