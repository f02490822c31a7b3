"""Find the files that changed since the last update, and the position from which to read each file.

A search loads the modules that read transcripts and write the index only if a file has changed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from resume_hooks.errors import IndexDamaged
from resume_hooks.search.index.archived_transcripts import ArchivedSessions
from resume_hooks.sessions.transcript_files import TranscriptFile


class ReadPosition(NamedTuple):
    """The reader's state at the start of a part of a file.

    ``offset``, ``line_count``, ``turn_count`` and ``part_number`` are the numbers of bytes, lines,
    turns and parts before this position. ``last_record_time`` is the time of the last record before
    it, in seconds since the epoch. ``open_calls`` are the ids and tools of calls that have no
    answer yet. ``copy_detector_times`` are the two times of ``transcripts.transcript.CopyDetector``.
    """

    offset: int = 0
    line_count: int = 0
    turn_count: int = 0
    part_number: int = 0
    last_record_time: int = 0
    open_calls: tuple[tuple[str, str], ...] = ()
    copy_detector_times: tuple[str, str] = ("", "")


class ReadJob(NamedTuple):
    """A file to read, and the position to read from.

    If the checksum of the bytes before ``end_offset`` is no longer ``checksum``, the file must be
    read from its beginning. ``file_id`` is the file's number in the index.
    """

    path: str
    is_subagent: bool
    file_id: int = 0
    start_position: ReadPosition = ReadPosition()
    end_offset: int = 0
    checksum: int = 0


class UpdateOutcome(NamedTuple):
    """The numbers of files and bytes that an update has read, and of those that it has not read yet."""

    read_file_count: int = 0
    read_byte_count: int = 0
    remaining_file_count: int = 0
    remaining_byte_count: int = 0


class FileWork(NamedTuple):
    """A file to read and the position to start from.

    ``file_id`` is 0 for a file that is not in the index. ``is_unchanged`` means that the file's
    content is not read again, because only its inode or its folder has changed. Files with a higher
    ``relevance`` are read first.
    """

    file: TranscriptFile
    read_job: ReadJob
    file_id: int = 0
    is_unchanged: bool = False
    relevance: float = 0.0

    @property
    def byte_count(self) -> int:
        """The number of bytes to read."""
        return max(1, self.file.size - self.read_job.start_position.offset)


class _IndexedFile(NamedTuple):
    """The entry of a file in the index.

    If an update of the file was interrupted, ``inode`` is 0 and ``last_part_json`` is empty.
    """

    file_id: int
    inode: int
    size: int
    mtime: int
    last_part_json: str
    end_offset: int
    checksum: int


TermForms = tuple[tuple[str, ...], ...]
"""The indexed forms of a term: a tuple for each of its tokens, with the whole token and then its
parts."""


class FileSearch(NamedTuple):
    """The words of a search, and a function that checks whether a file may be in the search's scope."""

    terms: tuple[TermForms, ...]
    is_in_scope: Callable[[TranscriptFile], bool]


class UnindexedFile(NamedTuple):
    """A file that is missing from the index or has changed since it was indexed.

    ``term_numbers`` identify the query's terms that occur in the file. They are None if these terms
    are unknown.
    """

    file: TranscriptFile
    term_numbers: frozenset[int] | None


def find_changed_and_deleted_files(
    db: sqlite3.Connection,
    files: Iterable[TranscriptFile],
    archived_sessions: ArchivedSessions | None = None,
) -> tuple[list[FileWork], list[int]]:
    """Return the files to read and the ids of indexed files that were deleted.

    The files to read include the changed sessions of ``archived_sessions``.
    """
    rows = db.execute(
        "SELECT path, id, iif(doubt, 0, inode), size, mtime, iif(doubt, '', place), end, "
        "checked FROM files"
    )
    rows_by_path = {row[0]: row[1:] for row in rows}
    file_work: list[FileWork] = []
    present_paths = set()
    # Every search runs this loop for thousands of files, so it must be fast for unchanged files.
    for file in files:
        present_paths.add(file.path)
        row = rows_by_path.pop(file.path, None)
        if row is None:
            file_work += _plan_file_work(file, None)
        elif row[1:4] != (file.inode, file.size, file.mtime_ns):
            file_work += _plan_file_work(file, _IndexedFile(*row))
    missing_files = {path: _IndexedFile(*row) for path, row in rows_by_path.items()}
    if archived_sessions and archived_sessions.states:
        file_work += (
            item
            for item in _find_changed_archived_files(db, missing_files, archived_sessions)
            if item.file.path not in present_paths
        )
    return file_work, [row.file_id for row in missing_files.values()]


def _find_changed_archived_files(
    db: sqlite3.Connection,
    missing_files: dict[str, _IndexedFile],
    archived_sessions: ArchivedSessions,
) -> Iterator[FileWork]:
    """Yield the changed files of archived sessions.

    Also remove all files of these sessions from ``missing_files``.
    """
    paths: dict[str, list[str]] = {}
    for session_id, path in db.execute("SELECT session, path FROM files ORDER BY session"):
        if session_id in archived_sessions.states and path in missing_files:
            paths.setdefault(session_id, []).append(path)
    for session_id, state in archived_sessions.states.items():
        session_paths = paths.get(session_id, [])
        if session_paths and all(
            missing_files[path].inode == state and missing_files[path].mtime
            for path in session_paths
        ):
            for path in session_paths:
                del missing_files[path]
            continue
        for file in archived_sessions.files_of_session(session_id):
            yield from _plan_file_work(file, missing_files.pop(file.path, None))


def _plan_file_work(file: TranscriptFile, indexed_file: _IndexedFile | None) -> Iterator[FileWork]:
    """Yield the work that must be done for a file, or no work if the file is unchanged.

    The file counts as changed if its inode, its size or its time differs. None of them is enough
    alone. If a file moves to or from the vault, or is archived again, its size and time stay the
    same. If a file only grows, its inode stays the same. A file that is rewritten in place also
    keeps its inode, and sometimes its size and its last bytes.
    """
    job = ReadJob(file.path, bool(file.agent_name))
    if indexed_file is None:
        yield FileWork(file, job)
    elif indexed_file[1:4] != (file.inode, file.size, file.mtime_ns):
        is_vaulted = indexed_file.inode < 0 or file.inode < 0
        is_same = (
            bool(indexed_file.inode)
            and is_vaulted
            and (indexed_file.size, indexed_file.mtime) == (file.size, file.mtime_ns)
        )
        # A negative inode number means that the file is in the vault.
        moved_across_vault = (indexed_file.inode < 0) != (file.inode < 0)
        if (
            indexed_file.last_part_json
            and (moved_across_vault or indexed_file.inode == file.inode)
            and file.size > indexed_file.size
        ):
            job = job._replace(
                start_position=_parse_read_position(indexed_file.last_part_json),
                end_offset=indexed_file.end_offset,
                checksum=indexed_file.checksum,
            )
        yield FileWork(file, job, indexed_file.file_id, is_same)


def _parse_read_position(text: str) -> ReadPosition:
    """Parse the position of a file's last part, as stored in the index."""
    try:
        *numbers, calls, copied = json.loads(text)
        offset, lines, turns, part, seconds = map(int, numbers)
        open_calls = tuple((str(call_id), str(tool)) for call_id, tool in calls)
        copied_until, latest_time = map(str, copied)
        return ReadPosition(
            max(0, offset), lines, turns, part, seconds, open_calls, (copied_until, latest_time)
        )
    except (TypeError, ValueError) as error:
        raise IndexDamaged(f"The index contains an invalid position: {error}") from error
