"""Find the rollouts in a CODEX_HOME and group them by thread, because a rewound thread has several files.

``sessions`` has one folder per day, ``archived_sessions`` has no subfolders. Symbolic links are not
followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.transcripts.lines import can_unpack
from resume_hooks.parts.codex.transcripts.meta import RolloutName, parse_rollout_name, read_meta
from resume_hooks.transcripts.records import parse, string

SESSIONS, ARCHIVED = "sessions", "archived_sessions"
MAX_DEPTH = 4  # the maximum folder depth below ``sessions``: year, month, day and one spare level
HEAD_BYTES = (
    8 * 1024
    # the number of bytes at the start of a file that normally contain its working directory; old
    # clients may write long fields before it
)

_FOLDER = re.compile(rb'"cwd":"(?:[^"\\]|\\.)*+"')


class Rollout(NamedTuple):
    """A non-empty file with the name of a rollout."""

    path: str
    name: RolloutName
    status: os.stat_result


class Rollouts:
    """A snapshot of the rollouts in a CODEX_HOME; ``threads`` maps each thread id to its newest file.

    ``packed`` is the number of compressed files that this Python cannot read.
    """

    def __init__(self, home: str) -> None:
        self.packed = 0
        self.threads: dict[str, Rollout] = {}
        self._files: dict[str, str] = {}
        for rollout in sorted(
            _find_rollouts(home), key=lambda listed: os.path.basename(listed.path)
        ):  # A compressed file sorts after its uncompressed version.
            name = rollout.name
            if name.packed and name.rollout_id in self._files:
                continue  # Codex has uncompressed this file and will remove it.
            if name.packed and not can_unpack():
                self.packed += 1
                continue
            self._files[name.rollout_id] = rollout.path
            self.threads[name.thread_id] = rollout

    def path_of(self, rollout_id: str) -> str | None:
        """Return the path of the rollout with this id, which is the last id in the file's name."""
        return self._files.get(rollout_id)


def is_archived(path: str) -> bool:
    """Check whether a rollout is in Codex's folder of archived sessions."""
    return os.path.basename(os.path.dirname(path)) == ARCHIVED


def thread_folder(path: str) -> str:
    """Return the working directory in which a thread was started, or ``""`` if unknown."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD_BYTES)
        match = _FOLDER.search(head)
        if match:
            cwd = string(parse(b"{%s}" % match[0]) or {}, "cwd")
        else:
            cwd = ""
        return cwd or read_meta(path).cwd
    except (OSError, SessionNotFound, NotATranscript):
        return ""


def _find_rollouts(home: str) -> Iterator[Rollout]:
    pending = [(os.path.join(home, SESSIONS), MAX_DEPTH), (os.path.join(home, ARCHIVED), 0)]
    while pending:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if depth and entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, depth - 1))
                    elif (name := parse_rollout_name(entry.name)) and (
                        rollout := _rollout_of_entry(entry, name)
                    ):
                        yield rollout
        except OSError:
            continue  # The folder does not exist, or was deleted after it was listed.


def _rollout_of_entry(entry: os.DirEntry[str], name: RolloutName) -> Rollout | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if status.st_size and stat.S_ISREG(status.st_mode):
        return Rollout(entry.path, name, status)
    return None
