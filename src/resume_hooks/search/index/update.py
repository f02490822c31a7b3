"""Bringing the index up to date: what changed on disk is read and written; the cost grows with what changed.

A record belongs to the session that it was first said in, so originals are read before what was derived from them.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

from resume_hooks.paths import Where
from resume_hooks.search.index.archived import ArchivedSessions, briefly_opened, read_at
from resume_hooks.search.index.database import IndexDamaged
from resume_hooks.search.index.extract import HELPERS
from resume_hooks.search.index.read_transcript import Batch, ReadJob, ReadPosition
from resume_hooks.search.index.worker_pool import readings
from resume_hooks.search.index.writing import Writer
from resume_hooks.sessions import transcript_files
from resume_hooks.sessions.archived.manifest import find
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.transcripts.provenance import read_parent

COMMIT = 192 * 1024 * 1024
"""Bytes read after which what was found is made to last; each time makes one more list of words to be merged."""

LARGE = 64 * 1024 * 1024  # bytes read in one go after which SQLite's log is folded into the index at once
MOSTLY_GONE = 20_000  # rows from which on an index that is mostly of what is gone is built anew

Progress = Callable[[int, int], None]  # called with the bytes that were read and those that there are to read


class UpdateOutcome(NamedTuple):
    """What an update came to: files and bytes read, and files that it did not get to."""

    files: int = 0
    size: int = 0
    behind: int = 0


class FileWork(NamedTuple):
    """A file to be read; ``file_id`` is 0 for one that the index does not know yet.

    ``same``: it is the one that was read, which only lies elsewhere now, so that nothing of it is read.
    """

    file: TranscriptFile
    file_id: int
    same: bool = False


Known = dict[str, tuple[int, int, int, int]]  # what the index knows of a file by its path: id, inode, size, time


def changes(
    db: sqlite3.Connection, files: Iterable[TranscriptFile], shelf: ArchivedSessions | None = None
) -> tuple[list[FileWork], list[int]]:
    """The files to be read, those of the vaulted sessions on the ``shelf`` too, and the ids of files that are gone."""
    rows = db.execute("SELECT path, id, inode, size, mtime FROM files")
    known = {path: (file_id, inode, size, mtime) for path, file_id, inode, size, mtime in rows}
    work = []
    for file in files:
        file_id, *state = known.pop(file.path, (0,))
        if state != [file.inode, file.size, file.mtime]:
            work.append(FileWork(file, file_id, bool(file_id) and _is_same(state, file)))
    if shelf and shelf.states:
        work += _shelved(db, known, shelf)
    return work, [row[0] for row in known.values()]


def _shelved(db: sqlite3.Connection, known: Known, shelf: ArchivedSessions) -> Iterator[FileWork]:
    """The work on vaulted sessions; what is known of them is taken from ``known``."""
    rows = db.execute("SELECT session, path FROM files ORDER BY session")
    paths: dict[str, list[str]] = {}
    for session_id, path in rows:
        if session_id in shelf.states and path in known:
            paths.setdefault(session_id, []).append(path)
    for session_id, state in shelf.states.items():
        own = paths.get(session_id, [])
        if own and all(known[path][1] == state and known[path][3] for path in own):
            for path in own:
                del known[path]
            continue
        for file in shelf.files(session_id):
            file_id, *before = known.pop(file.path, (0,))
            if before != [state, file.size, file.mtime]:
                yield FileWork(file, file_id, bool(file_id) and _is_same(before, file))


def _is_same(known: Sequence[int], file: TranscriptFile) -> bool:
    """Whether a file was only put into the vault, renewed there or brought back: its size and time are what they were.

    One that is marked to be read again, with no inode, is none.
    """
    inode, *state = known
    return bool(inode) and (inode < 0 or file.inode < 0) and state == [file.size, file.mtime]


def update(
    db: sqlite3.Connection,
    work: Sequence[FileWork],
    gone: Collection[int],
    *,
    where: Where,
    limit: float = float("inf"),
    progress: Progress | None = None,
) -> UpdateOutcome:
    """Read what changed and write it. After ``limit`` seconds the rest is left for the next time.

    IndexDamaged where most of what it holds is of files that are gone: it is then to be built anew.
    """
    deadline = time.monotonic() + limit
    try:
        with db:
            db.execute("BEGIN IMMEDIATE")
            outcome = _Update(db, where, progress).run(work, gone, deadline)
    except sqlite3.OperationalError:
        with contextlib.suppress(sqlite3.Error):  # on a full disk the log would keep the room that it took
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raise
    if outcome.size >= LARGE:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else the log stays as large as what was written
    return outcome


def unsettled(db: sqlite3.Connection) -> bool:
    """Whether files are marked to be read again, since what they were copied from changed."""
    return db.execute("SELECT 1 FROM files WHERE inode=0 AND offset>0").fetchone() is not None


class _Update:
    def __init__(self, db: sqlite3.Connection, where: Where, progress: Progress | None) -> None:
        self._db = db
        self._where = where
        self._writer = Writer(db)
        self._progress = progress or (lambda _done, _total: None)
        self._uncommitted = 0

    def run(self, work: Sequence[FileWork], gone: Collection[int], deadline: float) -> UpdateOutcome:
        if gone:
            self._writer.drop(gone)
        for item in work:
            if item.same:
                self._writer.settled_at(item.file_id, item.file)
        left = [item for item in work if not item.same]
        total, done, files, waiting = sum(map(self._size, left)), 0, 0, len(left)
        with contextlib.closing(self._readings(left)) as results:
            for item, batch in results:
                done += self._take(item, batch) if item.file_id else 0
                ended = not item.file_id or batch is None or not batch.more
                files, waiting = files + (ended and bool(item.file_id)), waiting - ended
                self._progress(min(done, total), total)
                if time.monotonic() > deadline:
                    break
        self._writer.settle()
        if self._writer.forgot:
            self._refuse_leftovers()
        return UpdateOutcome(files, done, waiting)

    def _size(self, item: FileWork) -> int:
        """Bytes of a file that are to be read."""
        return max(1, item.file.size - self._position(item).offset)

    def _position(self, item: FileWork) -> ReadPosition:
        """How far a file was read; the start of one that is new, or another one by now."""
        if not item.file_id or self._writer.replaced(item.file_id, item.file):
            return ReadPosition()
        return self._writer.place(item.file_id)

    def _readings(self, work: Sequence[FileWork]) -> Generator[tuple[FileWork, Batch | None]]:
        """What is read of each file; of one of which nothing is to be read, None, and its id is then 0.

        Packed sessions come first, one at a time; they are ancestors as a rule.
        """
        by_session: dict[str, list[FileWork]] = {}
        for item in work:
            if item.file.inode < 0:
                by_session.setdefault(item.file.session_id, []).append(item)
        others = [(item, item.file.path) for item in work if item.file.inode >= 0]
        for session_id, items in by_session.items():
            archived = find(session_id, self._where)
            if archived is None:
                others += [(item, item.file.path) for item in items]  # it went just now, which shows there
                continue
            with briefly_opened(archived, self._where) as folder:
                at = [(item, read_at(item.file, folder) if folder else item.file.path) for item in items]
                if folder is None or not folder.startswith(archived.folder):  # unpacked for now
                    yield from self._read(at)
                    continue
            others += at
        yield from self._read(others)

    def _read(self, work: Sequence[tuple[FileWork, str]]) -> Generator[tuple[FileWork, Batch | None]]:
        """What is read of these files, each at the path that is given for it."""
        entered = list(starmap(self._entered, _originals_first(work)))
        yield from ((item, None) for item, _ in entered if not item.file_id)
        known = {path: item for item, path in entered if item.file_id}
        jobs = [
            (ReadJob(path, self._position(item), bool(item.file.agent)), self._size(item))
            for path, item in known.items()
        ]
        with contextlib.closing(readings(jobs)) as results:
            for job, batch in results:
                yield known[job.path], batch

    def _entered(self, item: FileWork, path: str, parent: str) -> tuple[FileWork, str]:
        """A file with its id in the index, and where it is read; the id is 0 for one of which nothing is read."""
        file, writer = item.file, self._writer
        file_id = item.file_id or writer.add(file, file.session_id, parent)
        if not file.agent:
            return item._replace(file_id=file_id), path
        session_id = file.session_id or transcript_files.owning_session(path)
        hidden = transcript_files.agent_type(path) in HELPERS
        writer.assign(file_id, session_id, hidden=hidden)
        if hidden or not session_id:
            if writer.place(file_id).offset:
                writer.forget([file_id])
            writer.remember(file_id, file)
            return item._replace(file_id=0), path
        return item._replace(file_id=file_id), path

    def _take(self, item: FileWork, batch: Batch | None) -> int:
        """Write what was read; returns the bytes."""
        if batch is None:
            self._writer.drop([item.file_id])
            return 0
        # Of what is kept and was read in part the time is left out: its inode says that it is as it was.
        file = item.file._replace(mtime=0) if batch.more and item.file.inode < 0 else item.file
        self._writer.write(item.file_id, file, batch)
        size = batch.place.offset - batch.start
        self._uncommitted += size
        if self._uncommitted >= COMMIT:
            self._writer.settle()
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")
            self._uncommitted = 0
        return size

    def _refuse_leftovers(self) -> None:
        (written,) = self._db.execute("SELECT next FROM about").fetchone()
        (left,) = self._db.execute("SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM copies)").fetchone()
        if written > MOSTLY_GONE and written > 2 * left:
            raise IndexDamaged("Most of what the index holds is of files that are gone")


def _originals_first(work: Iterable[tuple[FileWork, str]]) -> list[tuple[FileWork, str, str]]:
    """Files, where they are read, and their parents' ids, in the order in which they came to be as far as that is told.

    A fork that the client made names no parent; it is then taken for younger if it was written to later.
    """
    named = [(item, path, "" if item.file.agent else _parent_of(path)) for item, path in work]
    parents = {item.file.session_id: parent for item, _, parent in named if parent}
    return sorted(named, key=lambda row: (_depth(row[0], parents), row[0].file.mtime))


def _depth(item: FileWork, parents: Mapping[str, str]) -> int:
    """How many of the files lie between one and its first ancestor; hostile ones may name each other."""
    seen: set[str] = set()
    session_id = "" if item.file.agent else item.file.session_id
    while (parent := parents.get(session_id, "")) and session_id not in seen:
        seen.add(session_id)
        session_id = parent
    return len(seen)


def _parent_of(path: str) -> str:
    try:
        parent = read_parent(path)
    except OSError:
        return ""
    return parent.session_id if parent else ""
