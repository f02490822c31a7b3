"""Find the rollouts (.jsonl files) in a CODEX_HOME, and group them by thread.

A thread that was rewound has several rollouts. A rollout is either in ``sessions``, which has a
folder for each day, or directly in ``archived_sessions``. Symbolic links are not followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.transcripts.lines import can_decompress
from resume_hooks.parts.codex.transcripts.meta import RolloutName, parse_rollout_name, read_meta
from resume_hooks.transcripts.records import get_string, parse_record

SESSIONS_FOLDER, ARCHIVED_FOLDER = "sessions", "archived_sessions"
# The maximum depth of folders below ``sessions``. Codex uses three levels: year, month and day.
MAX_FOLDER_DEPTH = 4
# The working directory is first searched for in this number of bytes at the beginning of a file.
# Old clients may write long fields before the working directory.
HEAD_BYTE_COUNT = 8 * 1024

_CWD_FIELD_PATTERN = re.compile(rb'"cwd":"(?:[^"\\]|\\.)*+"')


class Rollout(NamedTuple):
    """A file that has the name of a rollout and is not empty."""

    path: str
    name: RolloutName
    file_status: os.stat_result


class Rollouts:
    """The rollouts that a CODEX_HOME contained when it was scanned.

    ``threads`` maps each thread id to the newest rollout of the thread. ``compressed_count`` is the
    number of compressed rollouts that this Python cannot read.
    """

    def __init__(self, codex_home: str) -> None:
        self.compressed_count = 0
        self.threads: dict[str, Rollout] = {}
        self._files: dict[str, str] = {}
        # After sorting, the compressed version of a file follows the uncompressed version.
        for rollout in sorted(
            _find_rollouts(codex_home),
            key=lambda listed_rollout: os.path.basename(listed_rollout.path),
        ):
            name = rollout.name
            if name.is_compressed and name.rollout_id in self._files:
                continue  # Codex has decompressed this file and is about to remove the compressed version.
            if name.is_compressed and not can_decompress():
                self.compressed_count += 1
                continue
            self._files[name.rollout_id] = rollout.path
            self.threads[name.thread_id] = rollout

    def find_path(self, rollout_id: str) -> str | None:
        """Return the path of the rollout with this id, or None if it does not exist.

        The rollout id is the last id in the name of the file.
        """
        return self._files.get(rollout_id)


def is_archived(path: str) -> bool:
    """Check whether a rollout is in the folder of archived sessions."""
    return os.path.basename(os.path.dirname(path)) == ARCHIVED_FOLDER


def read_thread_cwd(path: str) -> str:
    """Return the working directory in which a thread was started, or ``""`` if it is unknown."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD_BYTE_COUNT)
        match = _CWD_FIELD_PATTERN.search(head)
        if match:
            cwd = get_string(parse_record(b"{%s}" % match[0]) or {}, "cwd")
        else:
            cwd = ""
        return cwd or read_meta(path).cwd
    except (OSError, SessionNotFound, NotATranscript):
        return ""


def _find_rollouts(codex_home: str) -> Iterator[Rollout]:
    pending_folders = [
        (os.path.join(codex_home, SESSIONS_FOLDER), MAX_FOLDER_DEPTH),
        (os.path.join(codex_home, ARCHIVED_FOLDER), 0),
    ]
    while pending_folders:
        folder, depth = pending_folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if depth and entry.is_dir(follow_symlinks=False):
                        pending_folders.append((entry.path, depth - 1))
                    elif (name := parse_rollout_name(entry.name)) and (
                        rollout := _build_rollout(entry, name)
                    ):
                        yield rollout
        except OSError:
            continue  # The folder does not exist, or it was deleted after it was listed.


def _build_rollout(entry: os.DirEntry[str], name: RolloutName) -> Rollout | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if status.st_size and stat.S_ISREG(status.st_mode):
        return Rollout(entry.path, name, status)
    return None
