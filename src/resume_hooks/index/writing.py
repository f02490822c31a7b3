"""What the index is written by: rows of a file in, rows of a file out. The caller holds the transaction.

Invariant: a file's place and its rows change together, so that whatever interrupts a build, the next one goes on where
it stopped. A record that lies in several sessions has one row, and a copy for each session but the first.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from resume_hooks.index.files import Found
from resume_hooks.index.reading import Batch, Place, Row

ROLES = ("prompt", "reply", "title", "call", "result", "thinking", "summary", "task", "note")
"""Who said something, by the number that stands for it in the index."""

_NUMBERS = {role: number for number, role in enumerate(ROLES)}
_RECORD = "INSERT OR IGNORE INTO records VALUES(?,?,?,?,?,?,?,?,?,?,?)"
_WORDS = "INSERT INTO words(rowid, prompt, reply, input, result) VALUES(?,?,?,?,?)"
_COPY = "INSERT OR REPLACE INTO copies VALUES(?,?,?,?,?,?,?)"
_FILE = (
    "INSERT INTO files(path, session, agent, folder, inode, size, mtime, offset, lines, turns, checked, calls, cwd,"
    " entrypoint, hidden) VALUES(?,?,?,?,0,0,0,0,0,0,0,'[]','','',?)"
)
_PLACE = (
    "UPDATE files SET inode=?, size=?, mtime=?, offset=?, lines=?, turns=?, checked=?, calls=?,"
    " cwd=iif(cwd='', ?, cwd), entrypoint=iif(entrypoint='', ?, entrypoint) WHERE id=?"
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

    def place(self, file_id: int) -> Place:
        """How far a file was read."""
        found = self._db.execute("SELECT offset, lines, turns, checked, calls FROM files WHERE id=?", (file_id,))
        *numbers, calls = found.fetchone()
        return Place(*numbers, tuple((str(call), str(tool)) for call, tool in json.loads(calls)))

    def add(self, found: Found, session_id: str, *, hidden: bool = False) -> int:
        """Take in a file with nothing of it read; returns its id."""
        values = (found.path, session_id, found.agent, found.folder, int(hidden))
        return int(self._db.execute(_FILE, values).lastrowid or 0)

    def write(self, file_id: int, found: Found, batch: Batch) -> None:
        """Add what was read of a file. What was read from the start again takes the place of what was known."""
        if batch.start == 0 and self.place(file_id).offset:
            self.forget(file_id)
        self._insert(file_id, batch.rows)
        self.remember(file_id, found._replace(size=0) if batch.more else found, batch)

    def remember(self, file_id: int, found: Found, batch: Batch | None = None) -> None:
        """Note what the file looked like when it was read, and how far that was."""
        place = batch.place if batch else Place()
        about = (batch.cwd, batch.entrypoint) if batch else ("", "")
        calls = json.dumps(place.calls)
        state = (found.inode, found.size, found.mtime, *place[:4], calls, *about, file_id)
        self._db.execute(_PLACE, state)

    def drop(self, file_id: int) -> None:
        """Take out a file that is gone."""
        self.forget(file_id)
        self._db.execute("DELETE FROM files WHERE id=?", (file_id,))

    def forget(self, file_id: int) -> None:
        """Take out the rows of a file; records that lie whole in another session stay, and are that one's."""
        db, one = self._db, (file_id,)
        db.execute("DELETE FROM copies WHERE file=?", one)
        heirs = db.execute(
            "SELECT c.file, c.line, c.offset, c.length, c.turn, c.record FROM copies c JOIN records r ON r.id=c.record"
            " WHERE r.file=? AND c.stub=0 GROUP BY c.record",
            one,
        ).fetchall()
        db.executemany("UPDATE records SET file=?, line=?, offset=?, length=?, turn=? WHERE id=?", heirs)
        db.executemany("DELETE FROM copies WHERE record=? AND file=?", [(row[5], row[0]) for row in heirs])
        db.execute("DELETE FROM copies WHERE record IN (SELECT id FROM records WHERE file=?)", one)
        db.execute("DELETE FROM records WHERE file=?", one)
        self.forgot = True

    def _insert(self, file_id: int, rows: Sequence[Row]) -> None:
        first = self._next
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

    def _values(self, number: int, file_id: int, row: Row) -> tuple[int | None, ...]:
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
        )

    def _settle(self, file_id: int, again: Iterable[tuple[int, Row]]) -> set[int]:
        """Rows whose key is taken: copies of another session's record, or an id that one file has twice."""
        twice = [(number, row) for number, row in again if not self._is_copy(file_id, row)]
        rows = (self._values(number, file_id, row._replace(key=None)) for number, row in twice)
        self._db.executemany(_RECORD, rows)
        return {number for number, _ in twice}

    def _is_copy(self, file_id: int, row: Row) -> bool:
        """Whether another file has the record; this one's is then noted as a copy of it."""
        owner = self._db.execute("SELECT id, file FROM records WHERE key=?", (row.key,)).fetchone()
        if owner is None or owner[1] == file_id:
            return False
        self._db.execute(_COPY, (owner[0], file_id, row.line, row.offset, row.length, row.turn, int(row.stub)))
        return True

    def _name(self, name: str) -> int:
        """The number that stands for a name of a tool, a branch or a file."""
        if name not in self._names:
            self._db.execute("INSERT OR IGNORE INTO names(name) VALUES(?)", (name,))
            (self._names[name],) = self._db.execute("SELECT id FROM names WHERE name=?", (name,)).fetchone()
        return self._names[name]
