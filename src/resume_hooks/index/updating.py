"""Bringing the index up to date: what changed on disk is read and written; the cost grows with what changed.

A record belongs to the session that it was first said in, so originals are read before what was derived from them.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

from resume_hooks import subagents
from resume_hooks.index.database import IndexDamaged
from resume_hooks.index.files import Found
from resume_hooks.index.readers import readings
from resume_hooks.index.reading import Batch, Job, Place
from resume_hooks.index.texts import HELPERS
from resume_hooks.index.writing import Writer
from resume_hooks.metadata import read_parent

COMMIT = 192 * 1024 * 1024
"""Bytes read after which what was found is made to last; each time makes one more list of words to be merged."""

LARGE = 64 * 1024 * 1024
"""Bytes read in one go after which SQLite's log is folded into the index at once."""

MOSTLY_GONE = 20_000
"""Rows from which on an index that is mostly of what is gone is built anew."""

Progress = Callable[[int, int], None]
"""Called with the bytes that were read and those that there are to read."""


class Outcome(NamedTuple):
    """What an update came to: files and bytes read, and files that it did not get to."""

    files: int = 0
    size: int = 0
    behind: int = 0


class Work(NamedTuple):
    """A file to be read; ``file_id`` is 0 for one that the index does not know yet."""

    found: Found
    file_id: int


def changes(db: sqlite3.Connection, found: Iterable[Found]) -> tuple[list[Work], list[int]]:
    """The files to be read, and the ids of files that are gone."""
    rows = db.execute("SELECT path, id, inode, size, mtime FROM files")
    known = {path: (file_id, inode, size, mtime) for path, file_id, inode, size, mtime in rows}
    work = []
    for file in found:
        file_id, *state = known.pop(file.path, (0,))
        if state != [file.inode, file.size, file.mtime]:
            work.append(Work(file, file_id))
    return work, [row[0] for row in known.values()]


def update(
    db: sqlite3.Connection,
    work: Sequence[Work],
    gone: Collection[int],
    *,
    limit: float = float("inf"),
    progress: Progress | None = None,
) -> Outcome:
    """Read what changed and write it. After ``limit`` seconds the rest is left for the next time.

    IndexDamaged where most of what it holds is of files that are gone: it is then to be built anew.
    """
    deadline = time.monotonic() + limit
    try:
        with db:
            db.execute("BEGIN IMMEDIATE")
            outcome = _Update(db, progress).run(work, gone, deadline)
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
    def __init__(self, db: sqlite3.Connection, progress: Progress | None) -> None:
        self._db = db
        self._writer = Writer(db)
        self._progress = progress or (lambda _done, _total: None)
        self._uncommitted = 0

    def run(self, work: Sequence[Work], gone: Collection[int], deadline: float) -> Outcome:
        if gone:
            self._writer.drop(gone)
        known = {item.found.path: item for item in starmap(self._entered, _originals_first(work))}
        jobs = [(self._job(item), item.found.size) for item in known.values() if item.file_id]
        sizes = [(job, max(1, size - job.place.offset)) for job, size in jobs]
        total, done, files = sum(size for _, size in sizes), 0, 0
        with contextlib.closing(readings(sizes)) as results:
            for job, batch in results:
                done += self._take(known[job.path], batch)
                files += batch is None or not batch.more
                self._progress(min(done, total), total)
                if time.monotonic() > deadline:
                    break
        self._writer.settle()
        if self._writer.forgot:
            self._refuse_leftovers()
        return Outcome(files, done, len(jobs) - files)

    def _entered(self, item: Work, parent: str) -> Work:
        """A file with its id in the index; 0 for one of which nothing is read."""
        found, writer = item.found, self._writer
        file_id = item.file_id or writer.add(found, found.session_id, parent)
        if not found.agent:
            return item._replace(file_id=file_id)
        session_id = found.session_id or subagents.owner(found.path)
        hidden = subagents.kind_of(found.path) in HELPERS
        writer.assign(file_id, session_id, hidden=hidden)
        if hidden or not session_id:
            if writer.place(file_id).offset:
                writer.forget([file_id])
            writer.remember(file_id, found)
            return item._replace(file_id=0)
        return item._replace(file_id=file_id)

    def _job(self, item: Work) -> Job:
        replaced = self._writer.replaced(item.file_id, item.found)
        place = Place() if replaced else self._writer.place(item.file_id)
        return Job(item.found.path, place, bool(item.found.agent))

    def _take(self, item: Work, batch: Batch | None) -> int:
        """Write what was read; returns the bytes."""
        if batch is None:
            self._writer.drop([item.file_id])
            return 0
        self._writer.write(item.file_id, item.found, batch)
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


def _originals_first(work: Iterable[Work]) -> list[tuple[Work, str]]:
    """Files with their parents' ids, in the order in which they came to be, as far as that can be told.

    A fork that the client made names no parent; it is then taken for younger if it was written to later.
    """
    named = [(item, "" if item.found.agent else _parent_of(item.found.path)) for item in work]
    parents = {item.found.session_id: parent for item, parent in named if parent}
    return sorted(named, key=lambda pair: (_depth(pair[0], parents), pair[0].found.mtime))


def _depth(item: Work, parents: Mapping[str, str]) -> int:
    """How many of the files lie between one and its first ancestor; hostile ones may name each other."""
    seen: set[str] = set()
    session_id = "" if item.found.agent else item.found.session_id
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
