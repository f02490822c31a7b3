"""Update the index: read the changed files and write their words.

An update's duration grows with the number of changes. Files are independent, so they can be read in
any order. The newest files are read first, because most searches are about them and there may not
be time for all files.

Before the update begins, the table marks all of its files as doubtful. A file's mark is removed,
and the position up to which it was read is recorded, only after its words are durable. If an update
is killed, the next update reads the doubtful files from the start, so that none of their old words
remain in the index.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence

from resume_hooks.errors import IndexDamaged
from resume_hooks.paths import Where
from resume_hooks.search.index.archived_transcripts import (
    path_of_copy_in_folder,
    temporarily_unpacked_folder,
)
from resume_hooks.search.index.changed_files import FileWork, UpdateOutcome
from resume_hooks.search.index.extract import SEARCH_AGENT_NAMES
from resume_hooks.search.index.postings import Postings
from resume_hooks.search.index.read_transcript import Part, read_jobs
from resume_hooks.sessions import transcript_files
from resume_hooks.sessions.agents.registry import belongs_to_other_agent, readable_path
from resume_hooks.sessions.archived.manifest import find_archived
from resume_hooks.sessions.transcript_files import TranscriptFile

BYTES_PER_COMMIT = 192 * 1024 * 1024
"""The update commits whenever it has read this number of bytes."""

# Number of bytes of other agents' sessions that are converted together.
BYTES_PER_BATCH = 128 * 1024 * 1024

# If more bytes than this must be read, the update uses more memory for writing.
LARGE_UPDATE_BYTES = 8 * 1024 * 1024

IsTimeUp = Callable[[], bool]  # returns true if the time for an update is over

# A function that takes the number of bytes read so far and the total number of bytes to read.
ProgressCallback = Callable[[int, int], None]


def update_files(
    db: sqlite3.Connection,
    postings: Postings,
    work: Sequence[FileWork],
    deleted_ids: Collection[int],
    *,
    where: Where,
    is_time_up: IsTimeUp = lambda: False,
    progress: ProgressCallback | None = None,
) -> UpdateOutcome:
    """Read and index the changed files until the time is over. Leave the remaining files unread."""
    with contextlib.closing(_FileUpdate(db, postings, where, progress)) as file_update:
        return file_update.update_files(work, deleted_ids, is_time_up)


class _FileUpdate:
    def __init__(
        self,
        db: sqlite3.Connection,
        postings: Postings,
        where: Where,
        progress: ProgressCallback | None,
    ) -> None:
        self._db = db
        self._postings = postings
        self._where = where
        self._progress = progress or (lambda _done, _total: None)
        self._uncommitted_bytes = 0
        self._dropped_ids: list[int] = []

    def close(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._postings.finish_update()

    def update_files(
        self, work: Sequence[FileWork], deleted_ids: Collection[int], is_time_up: IsTimeUp
    ) -> UpdateOutcome:
        remaining = sorted(
            (item for item in work if not item.is_unchanged),
            key=lambda item: (-item.relevance, -item.file.mtime_ns),
        )
        remaining, certain_ids = self._mark_changing_files_as_doubtful(remaining, deleted_ids)
        total = sum(item.byte_count for item in remaining)
        bytes_done, finished_files, seen_files = 0, 0, 0
        self._db.execute("BEGIN IMMEDIATE")
        self._postings.begin_update(is_large=total > LARGE_UPDATE_BYTES)
        for item in work:
            if item.is_unchanged:
                values = (item.file.inode, item.file.folder, item.file_id)
                self._db.execute("UPDATE files SET inode=?, folder=? WHERE id=?", values)
        with contextlib.closing(self._read_all_files(remaining)) as results:
            for item, part in results:
                part_bytes = self._write_part(item, part) if item.file_id else 0
                is_finished = not item.file_id or part is None or not part.has_more
                bytes_done, finished_files, seen_files = (
                    bytes_done + part_bytes,
                    finished_files + (is_finished and bool(item.file_id)),
                    seen_files + is_finished,
                )
                self._progress(min(bytes_done, total), total)
                if is_time_up():
                    break
        self._finish_update(deleted_ids, certain_ids)
        return UpdateOutcome(
            finished_files, bytes_done, len(remaining) - seen_files, max(0, total - bytes_done)
        )

    def _mark_changing_files_as_doubtful(
        self, work: Sequence[FileWork], deleted_ids: Collection[int]
    ) -> tuple[list[FileWork], list[int]]:
        """Mark as doubtful the files that will change.

        Return the work with a file id for each file, and the ids of the files that were not
        doubtful before. If an earlier update was interrupted, also verify the checksums of
        tantivy's files. Raise IndexDamaged if the index should be rebuilt.
        """
        if self._postings.is_mostly_deleted:
            raise IndexDamaged("Most of the index describes deleted files")
        self._db.execute("BEGIN IMMEDIATE")
        doubtful_ids = set()
        for (number,) in self._db.execute("SELECT id FROM files WHERE doubt"):
            doubtful_ids.add(number)
        if doubtful_ids:
            self._postings.verify_files()
        numbered_work = []
        for item in work:
            numbered_work.append(
                item._replace(file_id=item.file_id or self._insert_file(item.file))
            )
        changed_ids = [*(item.file_id for item in numbered_work), *deleted_ids]
        self._db.executemany(
            "UPDATE files SET doubt=1 WHERE id=?", ((number,) for number in changed_ids)
        )
        self._db.execute("COMMIT")
        return numbered_work, [number for number in changed_ids if number not in doubtful_ids]

    def _finish_update(self, deleted_ids: Collection[int], certain_ids: Iterable[int]) -> None:
        """Delete the words of removed files, and remove the mark from doubtful files that were not read.

        Files that have no words in the index are also deleted from the table.
        """
        for number in self._dropped_ids:
            self._postings.delete_file(number)
        for number in deleted_ids:
            self._delete_file_and_words(number)
        self._db.executemany(
            "UPDATE files SET doubt=0 WHERE id=?", ((number,) for number in certain_ids)
        )
        self._db.execute("DELETE FROM files WHERE inode=0 AND NOT doubt")
        self._commit_words_and_table()

    def _read_all_files(self, work: Sequence[FileWork]) -> Generator[tuple[FileWork, Part | None]]:
        """Yield each part of each file, or None for a file that was deleted.

        If a file must not be indexed, the FileWork that is yielded for it has the file id 0. Claude
        Code's files come first, then other agents' sessions in batches, and finally the archived
        sessions, which are unpacked one at a time.
        """
        packed_files: dict[str, list[FileWork]] = {}
        local_files, foreign_files = [], []
        for item in work:
            if item.file.inode < 0 and belongs_to_other_agent(item.file.path, self._where):
                foreign_files.append(item)
            elif item.file.inode < 0:
                packed_files.setdefault(item.file.session_id, []).append(item)
            else:
                local_files.append((item, item.file.path))
        yield from self._read_files(local_files)
        for batch in _split_into_batches(foreign_files):
            with contextlib.ExitStack() as opened_copies:
                paths = []
                for item in batch:
                    paths.append(
                        opened_copies.enter_context(readable_path(item.file.path, self._where))
                    )
                yield from self._read_files(list(zip(batch, paths, strict=True)))
        for session_id, items in packed_files.items():
            archived = find_archived(session_id, self._where)
            # The archived copy has just been deleted. The later attempt to read it raises the
            # error.
            if archived is None:
                yield from self._read_files([(item, item.file.path) for item in items])
                continue
            with temporarily_unpacked_folder(archived, self._where) as folder:
                yield from self._read_files(
                    [
                        (
                            item,
                            path_of_copy_in_folder(folder, item.file.path, session_id)
                            if folder
                            else item.file.path,
                        )
                        for item in items
                    ]
                )

    def _read_files(
        self, work: Sequence[tuple[FileWork, str]]
    ) -> Generator[tuple[FileWork, Part | None]]:
        """Yield each part of these files. Each file is read from the path that is given with it."""
        work_and_paths = [(self._record_session(item, path), path) for item, path in work]
        for item, _ in work_and_paths:
            if not item.file_id:
                yield (item, None)
        items_by_path = {}
        for item, path in work_and_paths:
            if item.file_id:
                items_by_path[path] = item
        jobs = []
        for path, item in items_by_path.items():
            jobs.append((item.read_job._replace(path=path, file_id=item.file_id), item.byte_count))
        with contextlib.closing(read_jobs(jobs)) as results:
            for job, part in results:
                yield items_by_path[job.path], part

    def _record_session(self, item: FileWork, path: str) -> FileWork:
        """Record the session to which a sub-agent's file belongs.

        Return the work unchanged. If the file must not be indexed, return the work with the file id
        0.
        """
        file = item.file
        if not file.agent_name:
            return item
        session_id = file.session_id or transcript_files.read_owning_session_id(path)
        is_hidden = transcript_files.read_subagent_type(path) in SEARCH_AGENT_NAMES
        # The session and the type of a sub-agent are unknown until its file contains a record.
        self._db.execute(
            "UPDATE files SET session=?, hidden=? WHERE id=?",
            (session_id, int(is_hidden), item.file_id),
        )
        if is_hidden or not session_id:
            self._dropped_ids.append(item.file_id)
            values = (file.inode, file.size, file.mtime_ns, item.file_id)
            self._db.execute(
                "UPDATE files SET inode=?, size=?, mtime=?, place='', doubt=0 WHERE id=?", values
            )
            return item._replace(file_id=0)
        return item

    def _insert_file(self, file: TranscriptFile) -> int:
        row = self._db.execute(
            "INSERT INTO files VALUES(NULL,?,?,?,?,0,0,0,0,0,'',0,'','','',0,1)",
            (file.path, file.session_id, file.agent_name, file.folder),
        )
        return row.lastrowid or 0

    def _write_part(self, item: FileWork, part: Part | None) -> int:
        """Index a part of a file, and return the number of the part's bytes."""
        if part is None:
            self._delete_file_and_words(item.file_id)
            return 0
        file = item.file
        if part.part_number == 0:
            self._postings.delete_file(item.file_id)
            values = (part.parent_id, item.file_id)
            self._db.execute("UPDATE files SET parent=?, cwd='', entrypoint='' WHERE id=?", values)
        self._postings.replace_part(item.file_id, part.part_number, part.documents)
        size, mtime = file.size, file.mtime_ns
        # If part of the file is still unread, store a size or time that does not match the file, so
        # that the next update checks the file again.
        if part.has_more or part.is_torn:
            size, mtime = (
                min(file.size - 1, part.end_offset),
                0 if part.has_more and file.inode < 0 else mtime,
            )
        self._db.execute(
            "UPDATE files SET doubt=?, inode=?, size=?, mtime=?, end=?, checked=?, place=?, turns=?,"
            " cwd=iif(cwd='', ?, cwd), entrypoint=iif(entrypoint='', ?, entrypoint) WHERE id=?",
            (
                part.has_more,
                file.inode,
                size,
                mtime,
                part.end_offset,
                part.checksum,
                json.dumps(part.next_position),
                part.turn_count,
                part.cwd,
                part.entrypoint,
                item.file_id,
            ),
        )
        part_bytes = part.end_offset - part.start_position.offset
        self._uncommitted_bytes += part_bytes
        if self._uncommitted_bytes >= BYTES_PER_COMMIT:
            self._commit_words_and_table()
            self._db.execute("BEGIN IMMEDIATE")
        return part_bytes

    def _delete_file_and_words(self, file_id: int) -> None:
        self._postings.delete_file(file_id)
        self._db.execute("DELETE FROM files WHERE id=?", (file_id,))

    def _commit_words_and_table(self) -> None:
        """Commit the words and then the table, so that the table never lists a file without its words."""
        self._postings.commit()
        self._db.execute("COMMIT")
        self._uncommitted_bytes = 0


def _split_into_batches(work: Iterable[FileWork]) -> Iterator[list[FileWork]]:
    """Yield batches of files to convert together. Each batch contains enough work for several processes."""
    batch: list[FileWork] = []
    for item in work:
        batch.append(item)
        if sum(queued_item.file.size for queued_item in batch) >= BYTES_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
