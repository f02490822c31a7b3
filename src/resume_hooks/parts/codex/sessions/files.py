"""The rollouts of a CODEX_HOME, grouped to threads: a thread that was rewound has several files.

``sessions`` holds a folder a day, ``archived_sessions`` none. Symbolic links are not followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.transcripts.lines import can_unpack
from resume_hooks.parts.codex.transcripts.meta import RolloutName, parse_name, read_meta
from resume_hooks.transcripts.records import parse, string

SESSIONS, ARCHIVED = "sessions", "archived_sessions"
DEPTH = 4  # folders below ``sessions`` in which rollouts are looked for: year, month, day, and one to spare
HEAD = (
    8 * 1024
)  # bytes of a first line that hold its folder, unless an old client wrote much before it

_FOLDER = re.compile(rb'"cwd":"(?:[^"\\]|\\.)*+"')


class Rollout(NamedTuple):
    """A file with the name of a rollout, and something in it."""

    path: str
    name: RolloutName
    status: os.stat_result


class Rollouts:
    """What lies in a CODEX_HOME now: ``threads`` are the newest file of each, by its id.

    ``packed`` counts the compressed files that can't be read here.
    """

    def __init__(self, home: str) -> None:
        self.packed = 0
        self.threads: dict[str, Rollout] = {}
        self._files: dict[str, str] = {}
        for found in sorted(
            _rollouts_below(home), key=lambda one: os.path.basename(one.path)
        ):  # a packed one comes last
            name = found.name
            if name.packed and name.rollout_id in self._files:
                continue  # it was unpacked, and not yet removed
            if name.packed and not can_unpack():
                self.packed += 1
                continue
            self._files[name.rollout_id] = found.path
            self.threads[name.thread_id] = found

    def path_of(self, rollout_id: str) -> str | None:
        """The file of a rollout, by the last id in its name."""
        return self._files.get(rollout_id)


def is_archived(path: str) -> bool:
    """Whether a rollout lies where Codex moves those that the user archives."""
    return os.path.basename(os.path.dirname(path)) == ARCHIVED


def folder_of(path: str) -> str:
    """The working directory that a thread was started in; ``""`` where it can't be told."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD)
        match = _FOLDER.search(head)
        if match:
            told = string(parse(b"{%s}" % match[0]) or {}, "cwd")
        else:
            told = ""
        return told or read_meta(path).cwd
    except (OSError, SessionNotFound, NotATranscript):
        return ""


def _rollouts_below(home: str) -> Iterator[Rollout]:
    waiting = [(os.path.join(home, SESSIONS), DEPTH), (os.path.join(home, ARCHIVED), 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if depth and entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth - 1))
                    elif (name := parse_name(entry.name)) and (
                        found := _rollout_of_entry(entry, name)
                    ):
                        yield found
        except OSError:
            continue  # none, or gone since it was listed


def _rollout_of_entry(entry: os.DirEntry[str], name: RolloutName) -> Rollout | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if status.st_size and stat.S_ISREG(status.st_mode):
        return Rollout(entry.path, name, status)
    return None
