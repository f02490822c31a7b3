"""What the index is written by: rows of a file in, rows of a file out. The caller holds the transaction.

Invariant: a file's place and its rows change together, so that whatever interrupts a build, the next one goes on where
it stopped. A record that lies in several sessions has one row, and a copy for each session but the first. Where the
first is rewritten or gone, its copies take over; sessions that held only stubs of it, and its children, are marked to
be read again, since what they say may now be found nowhere else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence

from resume_hooks.search.index.database import IndexDamaged
from resume_hooks.search.index.read_transcript import Batch, IndexRow, ReadPosition
from resume_hooks.sessions.transcript_files import TranscriptFile

ROLES = ("prompt", "reply", "title", "call", "result", "thinking", "summary", "task", "note")
"""Who said something, by the number that stands for it in the index."""

_NUMBERS = {role: number for number, role in enumerate(ROLES)}
_RECORD = "INSERT OR IGNORE INTO records VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"
_WORDS = "INSERT INTO words(rowid, prompt, reply, input, result) VALUES(?,?,?,?,?)"
_COPY = "INSERT OR REPLACE INTO copies VALUES(?,?,?,?,?,?,?)"
_FILE = (
    "INSERT INTO files(path, session, agent, folder, inode, size, mtime, offset, lines, turns, checked, time, calls,"
    " parent, cwd, entrypoint, hidden) VALUES(?,?,?,?,0,0,0,0,0,0,0,0,'[]',?,'','',?)"
)
_PLACE = (
    "UPDATE files SET inode=?, size=?, mtime=?, offset=?, lines=?, turns=?, checked=?, time=?, calls=?,"
    " cwd=iif(cwd='', ?, cwd), entrypoint=iif(entrypoint='', ?, entrypoint) WHERE id=?"
)


_MARK_CHILDREN = "UPDATE files SET inode=0, size=0 WHERE offset>0 AND parent=?"
"""Marked files differ from whatever is on disk, and so are read again."""

_HEIRS = (
    "SELECT c.file, c.line, c.offset, c.length, c.turn, c.record FROM copies c JOIN records r ON r.id=c.record"
    " WHERE r.file IN (SELECT id FROM temp.leaving) AND c.stub=0 GROUP BY c.record"
)
_MARK_STUBS = (
    "UPDATE files SET inode=0, size=0 WHERE offset>0 AND id IN (SELECT c.file FROM copies c JOIN records r"
    " ON r.id=c.record JOIN temp.leaving l ON l.id=r.file WHERE l.changed)"
)
_MARK_HEIRS = (
    "UPDATE files SET inode=0, size=0 WHERE offset>0 AND parent IN (SELECT f.session FROM files f"
    " JOIN temp.leaving l ON l.id=f.id WHERE l.changed AND f.agent='')"
)


class Writer:
    """Writes to one open index; ``forgot`` tells whether rows were taken out."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._names: dict[str, int] = {}
        self._words: list[tuple[int, bytes, bytes, bytes, bytes]] = []
        (self._next,) = db.execute("SELECT next FROM about").fetchone()
        self.forgot = False

    def settle(self) -> None:
        """Write the words of all rows, before a commit.

        Not after each file: any other statement in between makes FTS5 write out what it gathered, at ten times the
        cost.
        """
        self._db.execute("UPDATE about SET next=?", (self._next,))
        self._db.executemany(_WORDS, self._words)
        self._words.clear()

    def place(self, file_id: int) -> ReadPosition:
        """How far a file was read."""
        row = self._db.execute("SELECT offset, lines, turns, checked, time, calls FROM files WHERE id=?", (file_id,))
        try:
            *numbers, calls = row.fetchone()
            offset, lines, turns, check, time = map(int, numbers)
            waiting = tuple((str(call), str(tool)) for call, tool in json.loads(calls))
        except (TypeError, ValueError) as error:
            raise IndexDamaged(f"The index holds what nobody wrote: {error}") from error
        return ReadPosition(max(0, offset), lines, turns, check, time, waiting)

    def replaced(self, file_id: int, file: TranscriptFile) -> bool:
        """Whether a file is another one than what was read: files that are only appended to keep their inode and grow.

        In-place rewrites keep the time, sometimes the size and the last bytes as well.
        """
        inode, size = self._db.execute("SELECT inode, size FROM files WHERE id=?", (file_id,)).fetchone()
        moved = (inode < 0) != (file.inode < 0)  # into the vault or out of it
        return bool((inode != file.inode and not moved) or file.size <= size)

    def add(self, file: TranscriptFile, session_id: str, parent: str = "") -> int:
        """Take in a file with nothing of it read; returns its id. Children that were read before it are marked."""
        values = (file.path, session_id, file.agent, file.folder, parent, 0)
        file_id = int(self._db.execute(_FILE, values).lastrowid or 0)
        if not file.agent:
            self._db.execute(_MARK_CHILDREN, (session_id,))
        return file_id

    def assign(self, file_id: int, session_id: str, *, hidden: bool) -> None:
        """Note whose a sub-agent is and whether it is left out; both may show only after its first record."""
        self._db.execute("UPDATE files SET session=?, hidden=? WHERE id=?", (session_id, int(hidden), file_id))

    def write(self, file_id: int, file: TranscriptFile, batch: Batch) -> None:
        """Add what was read of a file. What was read from the start again takes the place of what was known."""
        if batch.start == 0 and self.place(file_id).offset:
            self.forget([file_id])
        self._insert(file_id, batch.rows)
        if batch.more or batch.torn:
            file = file._replace(size=min(file.size - 1, batch.place.offset))  # to be looked at again
        self.remember(file_id, file, batch)

    def remember(self, file_id: int, file: TranscriptFile, batch: Batch | None = None) -> None:
        """Note what the file looked like when it was read, and how far that was."""
        place = batch.place if batch else ReadPosition()
        about = (batch.cwd, batch.entrypoint) if batch else ("", "")
        calls = json.dumps(place.calls)
        state = (file.inode, file.size, file.mtime, *place[:5], calls, *about, file_id)
        self._db.execute(_PLACE, state)

    def settled_at(self, file_id: int, file: TranscriptFile) -> None:
        """Note that a file which was read lies elsewhere now, as it was."""
        self._db.execute("UPDATE files SET inode=?, folder=? WHERE id=?", (file.inode, file.folder, file_id))

    def drop(self, file_ids: Collection[int]) -> None:
        """Take out files that are gone, all at once: each time all rows are looked at."""
        self.forget(file_ids)
        self._db.executemany("DELETE FROM files WHERE id=?", ((file_id,) for file_id in file_ids))

    def forget(self, file_ids: Collection[int]) -> None:
        """Take out the rows of files; records that lie whole in another session stay, and are that one's."""
        db = self._db
        db.execute("CREATE TEMP TABLE IF NOT EXISTS leaving(id INTEGER PRIMARY KEY, changed INTEGER NOT NULL)")
        db.execute("DELETE FROM temp.leaving")
        # Of what was itself only marked nothing is marked, or it would never end.
        leaving = "INSERT INTO temp.leaving SELECT id, inode<>0 FROM files WHERE id=?"
        db.executemany(leaving, ((file_id,) for file_id in file_ids))
        db.execute("DELETE FROM copies WHERE file IN (SELECT id FROM temp.leaving)")
        heirs = db.execute(_HEIRS).fetchall()
        db.executemany("UPDATE records SET file=?, line=?, offset=?, length=?, turn=? WHERE id=?", heirs)
        db.executemany("DELETE FROM copies WHERE record=? AND file=?", [(row[5], row[0]) for row in heirs])
        db.execute(_MARK_STUBS)
        db.execute(_MARK_HEIRS)
        db.execute(
            "DELETE FROM copies WHERE record IN (SELECT id FROM records WHERE file IN (SELECT id FROM temp.leaving))"
        )
        db.execute("DELETE FROM records WHERE file IN (SELECT id FROM temp.leaving)")
        db.execute("UPDATE files SET cwd='', entrypoint='' WHERE id IN (SELECT id FROM temp.leaving)")
        self.forgot = True

    def _insert(self, file_id: int, rows: Sequence[IndexRow]) -> None:
        first = self._next
        rows = [row if row.own is None else self._named_first(row) for row in rows]
        new = [row for row in rows if not (row.stub and self._is_copy(file_id, row))]
        self._next += len(new)
        self._db.executemany(_RECORD, (self._values(number, file_id, row) for number, row in enumerate(new, first)))
        written = {number for (number,) in self._db.execute("SELECT id FROM records WHERE id>=?", (first,))}
        if len(written) < len(new):
            again = [(number, row) for number, row in enumerate(new, first) if number not in written]
            written |= self._settle(file_id, again)
        fresh = [(number, row) for number, row in enumerate(new, first) if number in written]
        self._words += ((number, row.prompt, row.reply, row.input, row.result) for number, row in fresh)
        touched = {(self._name(path), number) for number, row in fresh for path in row.files}
        self._db.executemany("INSERT OR IGNORE INTO touched VALUES(?,?)", touched)

    def _values(self, number: int, file_id: int, row: IndexRow) -> tuple[int | None, ...]:
        return (
            number,
            file_id,
            row.line,
            row.offset,
            row.length,
            row.turn,
            row.time,
            _NUMBERS[row.role],
            self._name(row.tool),
            self._name(row.branch),
            None if row.stub else row.key,
            row.digest,
        )

    def _settle(self, file_id: int, again: Iterable[tuple[int, IndexRow]]) -> set[int]:
        """Rows whose key is taken: copies of another session's record, or an id that one file has twice."""
        twice = [(number, row) for number, row in again if not self._is_copy(file_id, row) and row.role != "title"]
        rows = (self._values(number, file_id, row._replace(key=None)) for number, row in twice)
        self._db.executemany(_RECORD, rows)
        return {number for number, _ in twice}

    def _named_first(self, row: IndexRow) -> IndexRow:
        """A forked record under the key that it had at first: a fork of a fork names the fork."""
        alias = self._db.execute("SELECT key FROM aliases WHERE own=?", (row.key,)).fetchone()
        key = alias[0] if alias else row.key
        if row.own != key:  # a fork of ours keeps its ids
            self._db.execute("INSERT OR IGNORE INTO aliases VALUES(?,?)", (row.own, key))
        return row._replace(key=key)

    def _is_copy(self, file_id: int, row: IndexRow) -> bool:
        """Whether another file has the record; this one's is then noted as a copy of it.

        One of the same id that says something else is none: ids are given by whoever writes a file.
        """
        owner = self._db.execute("SELECT id, file, digest FROM records WHERE key=?", (row.key,)).fetchone()
        if owner is None or owner[1] == file_id or (owner[2] != row.digest and not row.stub):
            return False
        self._db.execute(_COPY, (owner[0], file_id, row.line, row.offset, row.length, row.turn, int(row.stub)))
        return True

    def _name(self, name: str) -> int:
        """The number that stands for a name of a tool, a branch or a file."""
        if name not in self._names:
            self._db.execute("INSERT OR IGNORE INTO names(name) VALUES(?)", (name,))
            (self._names[name],) = self._db.execute("SELECT id FROM names WHERE name=?", (name,)).fetchone()
        return self._names[name]
