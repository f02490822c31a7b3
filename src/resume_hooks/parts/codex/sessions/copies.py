"""Manage copies of Codex threads in the format of Claude Code's transcripts.

When a thread is read, its copy is created, or updated if the thread has changed. The copies are
private files in the state folder, in project folders like those of Claude Code. A thread may have
several rollouts (.jsonl files). The first line of a copy contains the path and the state of the
newest of these. If that rollout has been deleted, the copy is removed. If the copies together
exceed a size limit, the least recently used ones are removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import chain

import orjson

from resume_hooks.errors import SessionNotFound, WriteFailed
from resume_hooks.parts.codex.sessions.ends import RolloutEnds
from resume_hooks.parts.codex.transcripts.as_records import build_first_record, convert_lines
from resume_hooks.parts.codex.transcripts.lines import TITLE_KEY, read_first_lines
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.parts.codex.transcripts.segments import (
    RolloutFinder,
    ThreadSegment,
    find_readable_segments,
    read_segment_lines,
)
from resume_hooks.paths import TRANSCRIPT_SUFFIX, Where, project_key
from resume_hooks.storage import removal
from resume_hooks.storage.hard_links import choose_files_to_remove
from resume_hooks.storage.state_file import replace_state_file
from resume_hooks.transcripts import records
from resume_hooks.transcripts.metadata_records import CUSTOM_TITLE, make_label_record
from resume_hooks.transcripts.records import Record, get_string

MAX_COPIES_BYTES = 1024**3
"""The maximum total size of all copies in bytes. If the copies are larger, the least recently used
ones are removed."""

# The version of the format of copies. A copy with another version is created again.
COPY_FORMAT_VERSION = 5
MAX_FIRST_LINE_BYTES = 64 * 1024  # Maximum number of bytes in the first line of a copy.


class ThreadCopies:
    """The folder with the copies of an agent's threads."""

    def __init__(self, folder: str, agent: str, where: Where) -> None:
        self._folder = folder
        self._root = removal.find_folder_limiting_removal(folder, where.state)
        self._agent = agent
        self._where = where

    def contains_path(self, path: str) -> bool:
        """Check whether a path is inside the folder of copies."""
        return os.path.abspath(path).startswith(os.path.join(self._folder, ""))

    def read_original_path(self, path: str) -> str:
        """Return the path of the newest file of the thread whose copy is ``path``.

        Return ``""`` if the copy cannot be read.
        """
        return get_string(_read_first_record(path), "file")

    def build_copy_path(self, cwd: str, thread_id: str) -> str:
        """Return the path of a thread's copy. The copy may not exist yet."""
        return os.path.join(
            self._folder, project_key(cwd) if cwd else "unknown", f"{thread_id}{TRANSCRIPT_SUFFIX}"
        )

    def update_copy(
        self, rollout_path: str, find_rollout: RolloutFinder, thread_name: str = ""
    ) -> str:
        """Create or update the copy of the thread whose newest file is ``rollout_path``, and return its path.

        Raise SessionNotFound or NotATranscript if the thread cannot be read, and WriteFailed if the
        copy cannot be written.
        """
        first_line, meta = read_first_lines(rollout_path)[0], read_meta(rollout_path)
        path, thread_name = (
            self.build_copy_path(meta.cwd, meta.thread_id),
            thread_name or get_string(first_line.record, TITLE_KEY),
        )
        segments, incompleteness_reason = find_readable_segments(rollout_path, find_rollout)
        segment_stats = [(segment.path, os.stat(segment.path)) for segment in segments]
        state = repr(
            [
                COPY_FORMAT_VERSION,
                thread_name,
                *((path, status.st_size, status.st_mtime_ns) for path, status in segment_stats),
            ]
        )
        if get_string(_read_first_record(path), "state") != state:
            first_fields = build_first_record(meta, first_line.record, self._agent) | {
                "file": rollout_path,
                "state": state,
            }
            if window_tokens := self._find_context_window_size(segments, find_rollout):
                first_fields["context_window"] = window_tokens
            encoded_records = (
                orjson.dumps(record) + b"\n"
                for record in _build_copy_records(
                    first_fields, segments, meta.thread_id, incompleteness_reason, thread_name
                )
            )
            try:
                self.remove_excess_copies()
                replace_state_file(path, encoded_records, self._where)
            except OSError as error:
                raise WriteFailed(
                    f"{path} could not be written: {error.strerror or error}",
                    (
                        "Sessions of other agents are read through copies, such as this file. Check the free "
                        "space and the state folder."
                    ),
                ) from error
        with contextlib.suppress(OSError):
            os.utime(path)
        return path

    def _find_context_window_size(
        self, segments: list[ThreadSegment], find_rollout: RolloutFinder
    ) -> int:
        """Return the size of the model's context window in tokens, or 0 if no file contains it.

        The size is read from the newest file of the thread that contains one. If there is no such
        file, as in a new fork, the file of the thread's parent is read.
        """
        for segment in reversed(segments):
            if window_tokens := RolloutEnds(segment.path, self._agent).context_window_tokens:
                return window_tokens
        forked_from = segments[-1].meta.forked_from_id
        parent = find_rollout(forked_from) if forked_from else None
        if parent is None:
            return 0
        try:
            return RolloutEnds(parent, self._agent).context_window_tokens
        except SessionNotFound:  # The file was deleted after it was listed.
            return 0

    def remove_copy(self, path: str) -> None:
        """Remove a copy. It is created again when its thread is read."""
        removal.remove_if_possible(path, self._root)

    def remove_excess_copies(self) -> None:
        """Remove the copies of deleted threads. If the others exceed the size limit, remove some of them too.

        The least recently used copies are removed first.
        """
        remaining_copies = []
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
                file_status = os.lstat(path)
                if not os.path.lexists(self.read_original_path(path)):
                    removal.remove_file(path, self._root)
                else:
                    remaining_copies.append((file_status.st_mtime, path, file_status.st_size))
        for path in choose_files_to_remove(
            remaining_copies,
            sum(copy_bytes for _, _, copy_bytes in remaining_copies) - MAX_COPIES_BYTES,
        ):
            self.remove_copy(path)


def _build_copy_records(
    first_record: Record,
    segments: list[ThreadSegment],
    thread_id: str,
    incompleteness_reason: str,
    thread_name: str,
) -> Iterator[Record]:
    yield first_record
    if incompleteness_reason:
        text = f"The earlier conversation is missing: {incompleteness_reason}."
        notice = {
            "type": records.SYSTEM,
            "subtype": "informational",
            "content": text,
            "level": "warning",
        }
        yield {
            "parentUuid": None,
            "isSidechain": False,
            **notice,
            "timestamp": segments[0].meta.created_at,
        }
    yield from convert_lines(chain.from_iterable(map(read_segment_lines, segments)), thread_id)
    if thread_name:
        yield make_label_record(CUSTOM_TITLE, thread_name, thread_id)


def _read_first_record(path: str) -> Record:
    try:
        with open(path, "rb") as stream:
            return records.parse_record(stream.readline(MAX_FIRST_LINE_BYTES)) or {}
    except OSError:
        return {}
