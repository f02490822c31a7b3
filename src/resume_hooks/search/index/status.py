"""What the index holds and what it lacks, told without changing it."""

from __future__ import annotations

import os
import sqlite3
from typing import NamedTuple

from resume_hooks.errors import IndexDamaged, IndexUnusable
from resume_hooks.paths import Where, is_private
from resume_hooks.search.index.archived import ArchivedSessions
from resume_hooks.search.index.database import VERSION, index_file, open_read_only, words_folder
from resume_hooks.search.index.postings import Postings
from resume_hooks.search.index.update import changes
from resume_hooks.sessions.agents.registry import all_files, is_foreign

_COUNTS = (
    "count(DISTINCT session) FROM files",
    "group_concat(path, char(10)) FROM files WHERE inode<0 AND agent=''",
)


class Status(NamedTuple):
    """``state`` is ready, missing, damaged or newer; ``behind`` counts files to be read or dropped. Sizes in bytes.

    ``vaulted`` are those of its sessions of which the vault alone has a copy; ``transcripts`` are the client's.
    """

    file: str
    state: str
    size: int
    transcripts: int
    transcripts_size: int
    sessions: int
    records: int
    behind: int
    vaulted: int = 0


def status_of(where: Where) -> Status:
    """The state of the index of this config home."""
    path, files = index_file(where), all_files(where)
    there = (len(files), sum(file.size for file in files))
    shelf = ArchivedSessions(where, files)
    nothing = Status(path, "missing", 0, *there, 0, 0, len(files) + len(shelf.states))
    if not os.path.isfile(path) or os.path.islink(path) or not is_private(os.path.dirname(path), where):
        return nothing
    try:
        db = open_read_only(path)
        try:
            (version,) = db.execute("SELECT version FROM about").fetchone()
            if version != VERSION:
                return nothing._replace(state="newer" if version > VERSION else "missing", size=_size(where))
            counts = [db.execute(f"SELECT {what}").fetchone()[0] for what in _COUNTS]
            held = _records(where) if counts[0] else 0
            work, gone = changes(db, files, shelf)
        finally:
            db.close()
    except (sqlite3.DatabaseError, IndexDamaged, IndexUnusable, TypeError):
        return nothing._replace(state="damaged", size=_size(where))
    behind = sum(not item.same for item in work) + len(gone)
    sessions, elsewhere = counts
    vaulted = sum(not is_foreign(path, where) for path in (elsewhere or "").split("\n") if path)
    return Status(path, "ready", _size(where), *there, sessions, held, behind, vaulted)


def _records(where: Where) -> int:
    """How many records there are, all of them looked at. IndexDamaged or IndexUnusable."""
    folder = words_folder(where)
    if not is_private(folder, where):
        raise IndexDamaged(f"{folder} is no folder of our own")
    words = Postings(folder, fresh=False)
    words.check()
    return words.records


def _size(where: Where) -> int:
    """Bytes of the index: its table, and what SQLite keeps beside it, and its words."""
    path = index_file(where)
    words = (os.path.join(top, name) for top, _, names in os.walk(words_folder(where)) for name in names)
    return sum(os.path.getsize(file) for file in (path, f"{path}-wal", *words) if os.path.isfile(file))
