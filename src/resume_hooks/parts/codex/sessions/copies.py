"""Manage copies of threads in our record format. Reading a thread creates its copy or updates an outdated one.

The copies are private. They are stored in the state folder, in project folders like those of Claude
Code. A copy's first line names the original and its state. If the original is deleted, its copy is
removed. If the copies exceed a size limit, the least recently used ones are removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import chain

import orjson

from resume_hooks.errors import SessionNotFound, WriteFailed
from resume_hooks.parts.codex.sessions.ends import RolloutEnds
from resume_hooks.parts.codex.transcripts.as_records import as_records, first_record
from resume_hooks.parts.codex.transcripts.lines import TITLE_KEY, read_first_lines
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.parts.codex.transcripts.segments import (
    Finder,
    ThreadFile,
    find_readable_segments,
    segment_lines,
)
from resume_hooks.paths import TRANSCRIPT_SUFFIX, Where, project_key
from resume_hooks.storage import removal
from resume_hooks.storage.move import least_recently_used
from resume_hooks.storage.state_file import replace_state_file
from resume_hooks.transcripts import records
from resume_hooks.transcripts.bookkeeping import CUSTOM_TITLE, make_label_record
from resume_hooks.transcripts.records import Record, string

MAX_COPIES = 1024**3
"""The maximum total size of the copies in bytes; above it, the least recently used copies are
removed."""

FORMAT_VERSION = 3  # the version of the copies' format; copies in another version are recreated
MAX_FIRST_LINE = 64 * 1024  # the maximum size of a copy's first line in bytes


class ThreadCopies:
    """A folder with the copies of an agent's threads."""

    def __init__(self, folder: str, agent: str, where: Where) -> None:
        self._folder = folder
        self._root = removal.removal_root(folder, where.state)
        self._agent = agent
        self._where = where

    def holds(self, path: str) -> bool:
        """Check whether a path is inside the folder of copies."""
        return os.path.abspath(path).startswith(os.path.join(self._folder, ""))

    def original(self, path: str) -> str:
        """Return the newest rollout of a copy's thread, or ``""`` if the copy cannot be read."""
        return string(_read_first_record(path), "file")

    def path_of(self, cwd: str, thread_id: str) -> str:
        """Return the path for a thread's copy, even if the copy does not exist."""
        return os.path.join(
            self._folder, project_key(cwd) if cwd else "unknown", f"{thread_id}{TRANSCRIPT_SUFFIX}"
        )

    def update_copy(self, rollout: str, find: Finder, name: str = "") -> str:
        """Return the path of an up-to-date copy of the thread whose newest file is ``rollout``.

        Raise SessionNotFound or NotATranscript if the thread cannot be read, and WriteFailed if the
        copy cannot be written.
        """
        first, meta = read_first_lines(rollout)[0], read_meta(rollout)
        path, name = self.path_of(meta.cwd, meta.thread_id), name or string(first.record, TITLE_KEY)
        parts, missing = find_readable_segments(rollout, find)
        stats = [(part.path, os.stat(part.path)) for part in parts]
        state = repr(
            [
                FORMAT_VERSION,
                name,
                *((path, status.st_size, status.st_mtime_ns) for path, status in stats),
            ]
        )
        if string(_read_first_record(path), "state") != state:
            first_fields = first_record(meta, first.record, self._agent) | {
                "file": rollout,
                "state": state,
            }
            if window := self._window(parts, find):
                first_fields["context_window"] = window
            pieces = (
                orjson.dumps(record) + b"\n"
                for record in _copy_records(first_fields, parts, meta.thread_id, missing, name)
            )
            try:
                self.make_room()
                replace_state_file(path, pieces, self._where)
            except OSError as error:
                raise WriteFailed(
                    f"{path} could not be written: {error.strerror or error}",
                    (
                        "Sessions of other agents are read through copies in that folder. Check the free "
                        "space and the state folder."
                    ),
                ) from error
        with contextlib.suppress(OSError):
            os.utime(path)
        return path

    def _window(self, parts: list[ThreadFile], find: Finder) -> int:
        """Return the model's context window in tokens, from the newest file that reports it, or 0 if none does.

        A new fork does not report a window yet, so its parent's window is used.
        """
        for part in reversed(parts):
            if window := RolloutEnds(part.path, self._agent).window:
                return window
        forked_from = parts[-1].meta.forked_from
        parent = find(forked_from) if forked_from else None
        if parent is None:
            return 0
        try:
            return RolloutEnds(parent, self._agent).window
        except SessionNotFound:  # deleted after it was listed
            return 0

    def discard(self, path: str) -> None:
        """Remove a copy. It can be recreated at any time."""
        removal.remove_if_possible(path, self._root)

    def make_room(self) -> None:
        """Remove the copies of deleted threads, then the least recently used copies until the size limit is met."""
        remaining = []
        paths: list[str] = []
        with contextlib.suppress(OSError):
            for project in os.scandir(self._folder):
                if project.is_dir(follow_symlinks=False):
                    paths += (
                        entry.path
                        for entry in os.scandir(project.path)
                        if entry.name.endswith(TRANSCRIPT_SUFFIX)
                    )
        for path in paths:
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                if not os.path.lexists(self.original(path)):
                    removal.remove_file(path, self._root)
                else:
                    remaining.append((status.st_mtime, path, status.st_size))
        for path in least_recently_used(
            remaining, sum(size for _, _, size in remaining) - MAX_COPIES
        ):
            self.discard(path)


def _copy_records(
    first: Record, parts: list[ThreadFile], thread_id: str, missing: str, name: str
) -> Iterator[Record]:
    yield first
    if missing:
        text = f"What was said before is not there: {missing}."
        note = {
            "type": records.SYSTEM,
            "subtype": "informational",
            "content": text,
            "level": "warning",
        }
        yield {"parentUuid": None, "isSidechain": False, **note, "timestamp": parts[0].meta.created}
    yield from as_records(chain.from_iterable(map(segment_lines, parts)), thread_id)
    if name:
        yield make_label_record(CUSTOM_TITLE, name, thread_id)


def _read_first_record(path: str) -> Record:
    try:
        with open(path, "rb") as stream:
            return records.parse(stream.readline(MAX_FIRST_LINE)) or {}
    except OSError:
        return {}
