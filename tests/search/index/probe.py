"""A home to index, and what an index of it holds: all that could be found, read back from SQLite."""

from __future__ import annotations

import os
import random
import sqlite3
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from resume_hooks.paths import Where
from resume_hooks.search.index.connect import OpenIndex, opened_index
from resume_hooks.search.index.database import FILE_NAME
from resume_hooks.search.index.update import UpdateOutcome
from tests.builders import CWD, SESSION, ConfigHome, Record, assistant, session_bytes, session_id, user

LONG_AGO = 1_000_000_000.0

Find = tuple[str, int, str, str]
"""A word that can be found: the file's name, the line, the column, the word as it is stemmed."""


class Holding(NamedTuple):
    """What an index holds, and what the update before it came to."""

    finds: set[Find]
    outcome: UpdateOutcome
    notes: list[str]
    rebuilt: bool

    def lines(self, word: str) -> list[tuple[str, int]]:
        """Where a word is found: file and line."""
        return sorted({(name, line) for name, line, _, found in self.finds if found == word})

    def words(self) -> set[str]:
        """Every word that is found."""
        return {word for *_, word in self.finds}


def uid(text: str | int) -> str:
    """A UUID that stands for ``text``."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(text)))


def said(text: str, *, number: str | int = "", **rest: Any) -> Record:
    """A prompt with an id of its own."""
    return user(text, uuid=uid(number or text), **rest)


def replied(text: str | list[Record], *, number: str | int = "", **rest: Any) -> Record:
    """An answer with an id of its own."""
    return assistant(text, uuid=uid(number or str(text)), **rest)


def held(home: ConfigHome, *, state: Path | None = None, **options: Any) -> Holding:
    """Bring the index up to date and read back all that can be found in it."""
    where = Where({**home.environ, "RESUME_HOOKS_HOME": str(state)}) if state else home.where
    with opened_index(where, **options) as index:
        return Holding(finds(index.db), index.outcome, index.notes, index.rebuilt)


def finds(db: sqlite3.Connection) -> set[Find]:
    """All that can be found, in the records' own places and in those of their whole copies."""
    db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.seen USING fts5vocab(main, words, instance)")
    places: dict[int, list[tuple[str, int]]] = {}
    own = "SELECT r.id, f.path, r.line FROM records r JOIN files f ON f.id=r.file"
    copied = (
        "SELECT c.record, f.path, c.line FROM copies c JOIN records r ON r.id=c.record JOIN files f ON f.id=c.file"
        " WHERE c.stub=0"
    )
    for record, path, line in db.execute(f"{own} UNION ALL {copied}"):
        places.setdefault(record, []).append((os.path.basename(path), line))
    seen = db.execute("SELECT doc, col, term FROM temp.seen").fetchall()
    return {(name, line, col, word) for doc, col, word in seen for name, line in places.get(doc, [])}


def owners(index: OpenIndex) -> dict[str, list[tuple[str, bool]]]:
    """Each file's records by key: ``path:line`` to the files that hold copies, and whether those are stubs."""
    rows = index.db.execute(
        "SELECT f.path, r.line, g.path, c.stub FROM records r JOIN files f ON f.id=r.file"
        " LEFT JOIN copies c ON c.record=r.id LEFT JOIN files g ON g.id=c.file ORDER BY 1, 2, 3"
    )
    found: dict[str, list[tuple[str, bool]]] = {}
    for path, line, other, stub in rows:
        copies = found.setdefault(f"{os.path.basename(path)}:{line}", [])
        copies += [(os.path.basename(other), bool(stub))] if other else []
    return found


def cold(home: ConfigHome, tmp_path: Path) -> Holding:
    """What an index that is made from nothing holds."""
    return held(home, state=tmp_path / f"cold-{uuid.uuid4()}")


def written(home: ConfigHome, *records: Record | bytes, name: str = SESSION, old: bool = True) -> Path:
    """A session of the project; ``old`` as one that nobody writes any more."""
    path = home.project(CWD) / f"{name}.jsonl"
    path.write_bytes(session_bytes(records))
    return aged(path) if old else path


def aged(path: Path) -> Path:
    """``path``, last written long ago."""
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def append(path: Path, *records: Record | bytes) -> int:
    """Append whole records; the bytes of them."""
    return add_bytes(path, session_bytes(records))


def add_bytes(path: Path, raw: bytes) -> int:
    """Append bytes as they are; how many."""
    with path.open("ab") as stream:
        stream.write(raw)
    return len(raw)


def index_of(home: ConfigHome) -> Path:
    """The index's file."""
    return home.config / "resume-hooks" / FILE_NAME


def filled(home: ConfigHome, files: int = 24, records: int = 60) -> int:
    """A home of many sessions of random words; the number of records."""
    chance = random.Random(1)
    vocabulary = [f"{chance.choice('abcdefgh')}{chance.randrange(4_000)}word" for _ in range(4_000)]
    for number in range(files):
        texts = (" ".join(chance.choices(vocabulary, k=300)) for _ in range(records))
        written(
            home,
            *(replied(text, number=f"{number}.{place}") for place, text in enumerate(texts)),
            name=session_id(number),
        )
    return files * records
