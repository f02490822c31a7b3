"""Open the index, update it, rebuild it if it is damaged, and report its state.

If the index cannot be stored (because the disk is read-only or full, or because a newer version
wrote the index), a temporary index in memory is used. Only one command can write the index at a
time. Other commands wait briefly, and then search the index as it is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.errors import IndexDamaged, IndexUnusable, ResumeHooksError
from resume_hooks.paths import Where, is_private_folder, make_private_folder
from resume_hooks.search.index.archived_transcripts import ArchivedSessions
from resume_hooks.search.index.changed_files import (
    FileSearch,
    FileWork,
    UnindexedFile,
    UpdateOutcome,
    find_changed_and_deleted_files,
)
from resume_hooks.search.index.database import (
    INDEX_VERSION,
    converted_sqlite_errors,
    index_file_path,
    open_database,
    open_index_read_only,
    open_temporary_index,
    remove_index,
    words_folder,
)
from resume_hooks.search.index.postings import INDEX_NAMES, Postings
from resume_hooks.sessions.agents.registry import belongs_to_other_agent, list_all_transcripts
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.storage import removal
from resume_hooks.storage.locks import lock_descriptor
from resume_hooks.storage.state_file import PRIVATE_MODE
from resume_hooks.system import programs
from resume_hooks.system.text import format_count

if TYPE_CHECKING:
    from resume_hooks.search.index.unindexed_files import FileWords
    from resume_hooks.search.index.update import IsTimeUp, ProgressCallback

MAX_LOCK_WAIT_SECONDS = (
    10.0  # maximum number of seconds to wait while another command writes the index
)

MIN_UNINDEXED_BYTES_FOR_DIRECT_SEARCH = 32 * 1024 * 1024
"""If more bytes than this must be indexed, a search first searches the unindexed files directly.

If fewer bytes must be indexed, indexing them takes no longer than a direct search.
"""

_BACKGROUND_UPDATE_SCRIPT = (
    "import sys; sys.path[:0] = sys.argv[1:]; from resume_hooks.search.index.connect import "
    "run_background_update; run_background_update()"
)
MAX_BACKGROUND_UPDATE_SECONDS = 240.0  # the time limit of the background process in seconds
BACKGROUND_NICENESS = 10
# Minimum number of seconds for indexing after the unindexed files were searched directly.
MIN_INDEXING_SECONDS = 0.3

# The device and the inode of a file. They change if the file is replaced.
FileIdentity = tuple[int, int]


class OpenIndex(NamedTuple):
    """An index that is ready for a search.

    ``notes`` are sentences about problems with the index, and ``was_rebuilt`` means that the index
    was damaged and has been rebuilt. ``unindexed_files`` are the files in the search's scope whose
    current content is not in the index.
    """

    db: sqlite3.Connection
    postings: Postings
    update_outcome: UpdateOutcome
    notes: list[str]
    was_rebuilt: bool = False
    unindexed_files: tuple[UnindexedFile, ...] = ()


@contextlib.contextmanager
def open_index(
    where: Where,
    *,
    max_seconds: float = float("inf"),
    progress: ProgressCallback | None = None,
    folder_names: Collection[str] | None = None,
    rebuild: bool = False,
    must_be_stored: bool = False,
    file_search: FileSearch | None = None,
) -> Iterator[OpenIndex]:
    """Yield the index of this config home, updated for at most ``max_seconds`` seconds.

    The index is closed after the block.

    If the index cannot be stored and ``must_be_stored`` is true, raise IndexUnusable or
    IndexDamaged. If ``must_be_stored`` is false, yield a temporary index of the project folders in
    ``folder_names``, or of all folders if ``folder_names`` is None.

    If many bytes are not indexed yet, the files are searched for the words of ``file_search``, and
    those that contain the most words are indexed first. If ``file_search`` is given, a background
    process indexes the remaining files afterwards.
    """
    task = _UpdateTask(
        where,
        _Deadline(max_seconds),
        progress,
        min(MAX_LOCK_WAIT_SECONDS, max_seconds),
        file_search,
    )
    if must_be_stored and not task.has_no_files_to_index:
        index = _open_stored_index(task, rebuild=rebuild)
    else:
        index = _open_usable_index(task, folder_names, rebuild=rebuild)
    try:
        with converted_sqlite_errors():
            yield index
    except IndexDamaged as error:
        # Some damage is found only when a search reads the damaged page. Deleting the index makes
        # the next search rebuild it.
        with contextlib.suppress(IndexUnusable):
            delete_index(where)
        error.remedy = "Run the command again: the index is then rebuilt."
        raise
    finally:
        index.db.close()
        if file_search:
            index_in_background(index, where)


def update_stored_index(where: Where, is_time_up: IsTimeUp) -> UpdateOutcome:
    """Index changed files until ``is_time_up`` returns true, so that the next search need not index them.

    Do nothing if another command is updating the index. Raise IndexUnusable if the index cannot be
    stored.
    """
    task = _UpdateTask(where, is_time_up)
    if task.has_no_files_to_index:
        return UpdateOutcome()
    index = _open_stored_index(task)
    index.db.close()
    return index.update_outcome


def index_in_background(index: OpenIndex, where: Where) -> None:
    """Start a background process that indexes the remaining files and then exits."""
    if not index.update_outcome.remaining_file_count:
        return
    import subprocess  # The import takes 4 ms, and only this function needs it.

    # A shell starts the process in the background and exits. The process is then not our child, so
    # a program that waits for all of our child processes does not wait for it.
    command = [
        "/bin/sh",
        "-c",
        '"$@" </dev/null >/dev/null 2>&1 &',
        "sh",
        sys.executable,
        "-I",
        "-c",
        _BACKGROUND_UPDATE_SCRIPT,
    ]
    # If the process does not start, the next search indexes the files.
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        programs.run_program(  # The process runs our own code, so it gets our whole environment.
            [*command, *filter(None, sys.path)],
            where.environ,
            environ=where.environ,
            timeout=5,
            start_new_session=True,
        )


def run_background_update() -> None:
    """Index the remaining files with low priority. This is the main function of the background process."""
    with contextlib.suppress(OSError, AttributeError):  # Windows has no os.nice.
        os.nice(BACKGROUND_NICENESS)
    with contextlib.suppress(ResumeHooksError):
        update_stored_index(Where(), _Deadline(MAX_BACKGROUND_UPDATE_SECONDS))


def delete_index(where: Where) -> None:
    """Delete the index with all its words. The next search builds a new index.

    Raise IndexUnusable if the index cannot be deleted.
    """
    _remove_index_if_unchanged(where, _file_identity(index_file_path(where)))


class _Deadline:
    """The time limit of an update."""

    def __init__(self, max_seconds: float) -> None:
        self._end = time.monotonic() + max_seconds

    def __call__(self) -> bool:
        return time.monotonic() > self._end

    def extend_by(self, seconds: float) -> None:
        self._end = max(self._end, time.monotonic() + seconds)


class _UpdateTask:
    """The files to index, and the time limit for indexing them."""

    def __init__(
        self,
        where: Where,
        is_time_up: IsTimeUp,
        progress: ProgressCallback | None = None,
        lock_seconds: float = 0.0,
        file_search: FileSearch | None = None,
    ) -> None:
        self.file_search = file_search
        self.path = index_file_path(where)
        self.where = where
        self.files = list_all_transcripts(where)
        self.archived_sessions = ArchivedSessions(where, self.files)
        self.is_time_up = is_time_up
        self.progress = progress
        self.lock_seconds = lock_seconds

    @property
    def has_no_files_to_index(self) -> bool:
        """Whether there are no files to index, so that no state folder has to be created."""
        return (
            not self.files and not self.archived_sessions.states and not os.path.lexists(self.path)
        )

    def update_index(self, index: OpenIndex, *, is_writable: bool = True) -> OpenIndex:
        """Update an index until the time is over, and add a note if some files are still missing from it.

        If ``is_writable`` is false, only add the note.
        """
        # Both imports are needed only if files have changed.
        from resume_hooks.search.index.unindexed_files import relevance_by_file
        from resume_hooks.search.index.update import update_files

        work, deleted_ids = find_changed_and_deleted_files(
            index.db, self.files, self.archived_sessions
        )
        if sum(item.byte_count for item in work) > MIN_UNINDEXED_BYTES_FOR_DIRECT_SEARCH:
            words_by_path = self._find_words_in_files(work)
        else:
            words_by_path = {}
        if is_writable:
            if words_by_path and isinstance(self.is_time_up, _Deadline):
                self.is_time_up.extend_by(MIN_INDEXING_SECONDS)
            relevances = relevance_by_file(words_by_path)
            work = [item._replace(relevance=relevances.get(item.file.path, 0.0)) for item in work]
            where, is_time_up = self.where, self.is_time_up
            outcome = update_files(
                index.db,
                index.postings,
                work,
                deleted_ids,
                where=where,
                is_time_up=is_time_up,
                progress=self.progress,
            )
            file_count = format_count(outcome.remaining_file_count, "file")
            remaining_text = f"{file_count} ({format_bytes(outcome.remaining_byte_count)})"
            note = f"Not indexed yet: {remaining_text}. To index all: resume-hooks doctor --index update"
        else:
            outcome = UpdateOutcome(remaining_file_count=len(work) + len(deleted_ids))
            note = (
                f"Another command is updating the index; {format_count(len(work), 'file')} may be "
                "missing from it"
            )
        if not outcome.remaining_file_count:
            return index._replace(update_outcome=outcome)
        if is_writable:
            remaining_work = find_changed_and_deleted_files(
                index.db, self.files, self.archived_sessions
            )[0]
        else:
            remaining_work = work
        unread_files = (
            tuple(self._find_unindexed_files(remaining_work, words_by_path))
            if self.file_search
            else ()
        )
        return index._replace(
            update_outcome=outcome, notes=[*index.notes, note], unindexed_files=unread_files
        )

    def _find_words_in_files(self, work: Iterable[FileWork]) -> dict[str, FileWords]:
        """Return the words of the search that each file in scope contains. The keys are the files' paths."""
        if self.file_search is None:
            return {}
        from resume_hooks.search.index.unindexed_files import (
            RawWordSearch,  # Imported here because it is needed only if files have changed.
        )

        words = RawWordSearch(self.file_search.terms)
        words_by_path: dict[str, FileWords] = {}
        for item in work:
            if (
                not item.is_unchanged
                and item.file.inode > 0
                and self.file_search.is_in_scope(item.file)
            ):
                file_words = words.find_words_in_file(
                    item.file.path, item.read_job.start_position.offset
                )
                if file_words is not None:
                    words_by_path[item.file.path] = file_words
        return words_by_path

    def _find_unindexed_files(
        self, work: Sequence[FileWork], words_by_path: Mapping[str, FileWords]
    ) -> Iterator[UnindexedFile]:
        """Yield the files in scope whose current content is not in the index, the most relevant files first."""
        from resume_hooks.search.index.unindexed_files import (
            relevance_by_file,  # Imported here because it is needed only if files have changed.
        )

        words_by_path = {
            **words_by_path,
            **self._find_words_in_files(
                item for item in work if item.file.path not in words_by_path
            ),
        }
        relevances = relevance_by_file(words_by_path)
        for item in sorted(
            work, key=lambda item: (-relevances.get(item.file.path, 0.0), -item.file.mtime_ns)
        ):
            if (
                not item.is_unchanged
                and self.file_search
                and self.file_search.is_in_scope(item.file)
            ):
                words = words_by_path.get(item.file.path)
                yield UnindexedFile(item.file, words.term_numbers if words else None)


def _open_usable_index(
    task: _UpdateTask, folder_names: Collection[str] | None, *, rebuild: bool
) -> OpenIndex:
    """Return the stored index. If it cannot be used, return a temporary index of some project folders.

    These are the folders in ``folder_names``, or all folders if it is None.
    """
    if task.has_no_files_to_index:
        return OpenIndex(open_temporary_index(), Postings(None), UpdateOutcome(), [])
    try:
        return _open_stored_index(task, rebuild=rebuild)
    except (IndexUnusable, IndexDamaged) as error:
        note = f"{error.message.rstrip('.')}. A temporary index was used"
    if folder_names is not None:
        task.files = [file for file in task.files if file.folder in folder_names]
        task.archived_sessions.keep_only_folders(folder_names)
    index = OpenIndex(open_temporary_index(), Postings(None), UpdateOutcome(), [note])
    with _close_on_error(index):
        return task.update_index(index)


def _open_stored_index(task: _UpdateTask, *, rebuild: bool = False) -> OpenIndex:
    """Open the stored index and return it. If it is damaged, rebuild it first.

    With ``rebuild``, rebuild it in any case. Raise IndexUnusable or IndexDamaged on failure.
    """
    identity = _file_identity(task.path)
    if rebuild:
        _remove_index_if_unchanged(task.where, identity)
    try:
        return _open_updated_index(task)
    except IndexDamaged:
        _remove_index_if_unchanged(task.where, identity)
        return _open_updated_index(task)._replace(was_rebuilt=True)


def _open_updated_index(task: _UpdateTask) -> OpenIndex:
    """Return the index on disk. If no other command is updating it, update it first.

    Another command may replace the table while we open the table and the words. The words would
    then belong to the new table, so both are opened again.
    """
    identity = _file_identity(task.path)
    index = _open_database_and_postings(task.where, is_writing=False)
    with _close_on_error(index):
        # If no file has changed, the index can be read without waiting for the lock.
        if not any(find_changed_and_deleted_files(index.db, task.files, task.archived_sessions)):
            index.postings.load_latest_commit()
            if _file_identity(task.path) == identity:
                return index
    index.db.close()
    with _exclusive_lock(task.path, task.lock_seconds) as has_lock:
        while True:
            identity = _file_identity(task.path)
            index = _open_database_and_postings(task.where, is_writing=has_lock)
            with _close_on_error(index):
                index = task.update_index(index, is_writable=has_lock)
                index.postings.load_latest_commit()
            if has_lock or _file_identity(task.path) == identity:
                return index
            index.db.close()


def _open_database_and_postings(where: Where, *, is_writing: bool) -> OpenIndex:
    """Return the table of files and the index of words. If the table is empty, the index is empty too.

    The index of words is created only if ``is_writing``. Another command may delete the table after
    it is opened here and before the index is opened. The index would then belong to a newer table,
    so both are opened again.
    """
    while True:
        identity = _file_identity(index_file_path(where))
        db = open_database(where)
        index = OpenIndex(db, Postings(None), UpdateOutcome(), [])
        with _close_on_error(index):
            has_files = db.execute("SELECT 1 FROM files").fetchone() is not None
            if has_files or is_writing:
                index = index._replace(postings=_open_postings(where, is_new=not has_files))
        if is_writing or identity in (None, _file_identity(index_file_path(where))):
            return index
        db.close()


def _open_postings(where: Where, *, is_new: bool) -> Postings:
    """Open the indexed words on disk. If ``is_new``, first delete the existing words.

    Raise IndexUnusable if the folder belongs to another user.
    """
    folder = words_folder(where)
    try:
        make_private_folder(folder, where)
        for index_name in INDEX_NAMES:
            level_folder = os.path.join(folder, index_name)
            if is_new and os.path.lexists(level_folder):
                removal.remove_permanently(level_folder, where.state)
            make_private_folder(level_folder, where)
    except OSError as error:
        raise IndexUnusable(
            f"{folder} can't be used: {error.strerror}", "Check free space and the state folder."
        ) from error
    return Postings(folder, is_new=is_new)


@contextlib.contextmanager
def _close_on_error(index: OpenIndex) -> Iterator[None]:
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(index.db.close)
        with converted_sqlite_errors():
            yield
        cleanup.pop_all()


def _file_identity(path: str) -> FileIdentity | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove_index_if_unchanged(where: Where, identity: FileIdentity | None) -> None:
    """Delete the index file if it still has this identity. If another command has replaced it, keep it.

    First wait until no other command is writing the index. Otherwise, that command could write the
    words of the deleted index into its replacement. Raise IndexUnusable if the index cannot be
    deleted.
    """
    path = index_file_path(where)
    if identity is None and not os.path.lexists(words_folder(where)):
        return
    if not is_private_folder(os.path.dirname(path), where):
        raise IndexUnusable(
            f"{path} is not in a folder of our own", "See what is wrong: resume-hooks doctor."
        )
    try:
        with _exclusive_lock(path, MAX_LOCK_WAIT_SECONDS) as has_lock:
            if not has_lock:
                raise IndexUnusable(
                    "Another command is updating the index",
                    "Run the command again once the other command has ended.",
                )
            if _file_identity(path) == identity:
                remove_index(where)
    except OSError as error:
        raise IndexUnusable(
            f"{path} can't be removed: {error.strerror}", "Check free space and the state folder."
        ) from error


@contextlib.contextmanager
def _exclusive_lock(path: str, max_seconds: float) -> Iterator[bool]:
    """Wait for the lock on the index for at most ``max_seconds`` seconds.

    Yield True if we may write the index, or False if another command still holds the lock after the
    wait.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(f"{path}.lock", flags, PRIVATE_MODE)
    except OSError:
        yield True  # If the lock file cannot be created, the index cannot be written either.
        return
    try:
        # If the volume does not support file locks, rely on SQLite's own locks.
        yield (lock_descriptor(descriptor, max_seconds) is not False)
    finally:
        os.close(descriptor)


_COUNT_EXPRESSIONS_SQL = (
    "count(DISTINCT session) FROM files",
    "group_concat(path, char(10)) FROM files WHERE inode<0 AND agent=''",
)


class IndexStatus(NamedTuple):
    """The state of an index.

    ``state`` is "ready", "missing", "damaged" or "newer". The sizes of the index and of the
    transcripts are in bytes.

    ``outdated_file_count`` is the number of files that must be read again or removed from the
    index. ``transcript_count`` is the number of indexed files in the client's folder.
    ``archived_session_count`` is the number of indexed sessions that only the vault contains.
    """

    index_path: str
    state: str
    index_bytes: int
    transcript_count: int
    transcript_bytes: int
    session_count: int
    record_count: int
    outdated_file_count: int
    archived_session_count: int = 0


def index_status(where: Where) -> IndexStatus:
    """Return the state of this config home's index."""
    path, files = index_file_path(where), list_all_transcripts(where)
    transcript_counts = (len(files), sum(file.size for file in files))
    archived_sessions = ArchivedSessions(where, files)
    missing_status = IndexStatus(
        path, "missing", 0, *transcript_counts, 0, 0, len(files) + len(archived_sessions.states)
    )
    if (
        not os.path.isfile(path)
        or os.path.islink(path)
        or not is_private_folder(os.path.dirname(path), where)
    ):
        return missing_status
    try:
        db = open_index_read_only(path)
        try:
            (version,) = db.execute("SELECT version FROM about").fetchone()
            if version != INDEX_VERSION:
                return missing_status._replace(
                    state="newer" if version > INDEX_VERSION else "missing",
                    index_bytes=index_size(where),
                )
            counts = []
            for query in _COUNT_EXPRESSIONS_SQL:
                counts.append(db.execute(f"SELECT {query}").fetchone()[0])
            record_count = count_records(where) if counts[0] else 0
            work, deleted_ids = find_changed_and_deleted_files(db, files, archived_sessions)
        finally:
            db.close()
    except (sqlite3.DatabaseError, IndexDamaged, IndexUnusable, TypeError):
        return missing_status._replace(state="damaged", index_bytes=index_size(where))
    changed_files = sum(not item.is_unchanged for item in work) + len(deleted_ids)
    sessions, vaulted_paths = counts
    vaulted = sum(
        not belongs_to_other_agent(path, where)
        for path in (vaulted_paths or "").split("\n")
        if path
    )
    return IndexStatus(
        path,
        "ready",
        index_size(where),
        *transcript_counts,
        sessions,
        record_count,
        changed_files,
        vaulted,
    )


def count_records(where: Where) -> int:
    """Verify all index files and return the number of records.

    Raise IndexDamaged or IndexUnusable.
    """
    folder = words_folder(where)
    if not is_private_folder(folder, where):
        raise IndexDamaged(f"{folder} is not a resume-hooks folder")
    words = Postings(folder, is_new=False)
    words.verify_files()
    return words.record_count


def index_size(where: Where) -> int:
    """Return the total size in bytes of SQLite's files and of the files with the words."""
    path = index_file_path(where)
    files = [path, f"{path}-wal"]
    for folder, _, names in os.walk(words_folder(where)):
        for name in names:
            files.append(os.path.join(folder, name))
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file))
