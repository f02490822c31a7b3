"""The index's file: its tables, how it is opened, and when it must be made anew.

Rebuilding costs seconds and loses nothing, so nothing here is repaired or migrated. The texts themselves are not kept
(contentless FTS5): results are read from the transcripts. Rows that went stay in the word lists, which SQLite 3.40
can't take them out of, and are passed over by joining; too many of them, and the index is built anew.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from urllib.parse import quote

from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, is_own, is_private, private_folder
from resume_hooks.search.index.tokenize import TOKENIZER
from resume_hooks.storage.state_file import MODE

VERSION = 2  # the form of the tables and of the words in them; an index of another version is built anew
FILE_NAME = "index.db"
BESIDE = ("-wal", "-shm", "-journal")  # how the names of SQLite's own files end, which lie beside it
COLUMNS = ("prompt", "reply", "input", "result")
BUFFER = 32 * 1024 * 1024  # bytes of words that are gathered before they are written out
BUSY = 5.0  # seconds that another writer is waited for within SQLite
_TABLES = f"""
CREATE TABLE about(version INTEGER NOT NULL, next INTEGER NOT NULL);
CREATE TABLE files(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, session TEXT NOT NULL, agent TEXT NOT NULL, folder TEXT NOT NULL,
  inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
  offset INTEGER NOT NULL, lines INTEGER NOT NULL, turns INTEGER NOT NULL, checked INTEGER NOT NULL,
  time INTEGER NOT NULL, calls TEXT NOT NULL, parent TEXT NOT NULL,
  cwd TEXT NOT NULL, entrypoint TEXT NOT NULL, hidden INTEGER NOT NULL);
CREATE INDEX files_by_parent ON files(parent);
CREATE TABLE names(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE records(
  id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, turn INTEGER NOT NULL, time INTEGER NOT NULL, role INTEGER NOT NULL,
  tool INTEGER NOT NULL, branch INTEGER NOT NULL, key INTEGER, digest INTEGER NOT NULL);
CREATE UNIQUE INDEX records_by_key ON records(key) WHERE key IS NOT NULL;
CREATE TABLE copies(
  record INTEGER NOT NULL, file INTEGER NOT NULL, line INTEGER NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, turn INTEGER NOT NULL, stub INTEGER NOT NULL, PRIMARY KEY(record, file)) WITHOUT ROWID;
CREATE INDEX copies_by_file ON copies(file);
CREATE TABLE aliases(own INTEGER PRIMARY KEY, key INTEGER NOT NULL);
CREATE TABLE touched(name INTEGER NOT NULL, record INTEGER NOT NULL, PRIMARY KEY(name, record)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5({", ".join(COLUMNS)}, content='', tokenize="{TOKENIZER}");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
INSERT INTO words(words, rank) VALUES('hashsize', {BUFFER});
INSERT INTO about VALUES({VERSION}, 1);
"""


_WRONG = ("no such", "has no column", "decode to UTF-8")
"""What SQLite says of a file that it can read, but that isn't our index."""


_TURNS = "SELECT turns FROM files WHERE path=? AND size=? AND mtime=? AND offset=size"

NO_FTS5 = "Set RESUME_HOOKS_PYTHON to one that has it, such as uv's, Homebrew's or python.org's."


class IndexDamaged(ResumeHooksError):
    """The index can't be read as one; it is to be built anew."""

    code = "index-damaged"


class IndexUnusable(ResumeHooksError):
    """The index can't be kept where it belongs: a read-only or full disk, or one that a newer version wrote."""

    code = "index-unusable"


def index_file(where: Where) -> str:
    """The path of the index of this config home."""
    return os.path.join(where.state, FILE_NAME)


def open_index(where: Where) -> sqlite3.Connection:
    """Open the index to be written, made where it is missing. IndexDamaged or IndexUnusable."""
    path = index_file(where)
    with telling():
        try:
            private_folder(os.path.dirname(path), where)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            os.close(os.open(path, flags, MODE))  # private from the first byte; SQLite's own files take its mode
            _require_own(path)
        except OSError as error:
            raise IndexUnusable(f"{path} can't be written: {error.strerror}", "Check the state folder.") from error
        return _ready(sqlite3.connect(path, timeout=BUSY, isolation_level=None))


def open_temporary() -> sqlite3.Connection:
    """An index in memory, for a state folder that can't be written."""
    return _ready(sqlite3.connect(":memory:", isolation_level=None))


def open_read_only(path: str, timeout: float = BUSY) -> sqlite3.Connection:
    """Open an index that is there, as it is; nothing is made, and its version is not looked at."""
    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=timeout)


def remove_index(path: str) -> None:
    """Remove an index and what SQLite keeps beside it; who has it open still reads the old one."""
    for ending in ("", *BESIDE):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + ending)


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """What SQLite says in the block, as one of our own errors."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            raise IndexUnusable("The SQLite of this Python has no FTS5, so nothing can be searched", NO_FTS5) from error
        if any(words in str(error) for words in _WRONG):
            raise IndexDamaged(f"The index is not as it should be: {error}") from error
        raise IndexUnusable(f"The index can't be used: {error}", "Check free space and the state folder.") from error
    except sqlite3.DatabaseError as error:
        raise IndexDamaged(f"The index is damaged: {error}") from error


def _require_own(path: str) -> None:
    """Refuse what SQLite would write into although it may be another's: it writes in place, and into names beside.

    A pipe, another user's file, or one that has a second name, which may be of anything. IndexDamaged: what goes
    then is the name here. OSError where it can't be looked at.
    """
    for name in (path, *(path + ending for ending in BESIDE)):
        try:
            status = os.lstat(name)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or not is_own(status):
            raise IndexDamaged(f"{name} is no file of our own")


def _ready(db: sqlite3.Connection) -> sqlite3.Connection:
    with contextlib.ExitStack() as failing:
        failing.callback(db.close)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA temp_store=MEMORY")
        db.execute("PRAGMA cache_size=-32000")
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            _create(db)
        _require_version(db)
        failing.pop_all()
    return db


def _require_version(db: sqlite3.Connection) -> None:
    (version,) = db.execute("SELECT version FROM about").fetchone() or (0,)
    if not isinstance(version, int):
        raise IndexDamaged("The index doesn't say of which version it is")
    if version > VERSION:
        raise IndexUnusable("The index was written by a newer resume-hooks", "Update this one.")
    if version < VERSION:
        raise IndexDamaged(f"The index is of version {version}")


def _create(db: sqlite3.Connection) -> None:
    with db:
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:  # another one may have been faster
            for statement in _TABLES.split(";"):
                db.execute(statement)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # should the disk be full later, there is nothing left to be moved


class KnownTurns:
    """The turns of files as the index counted them; opened when first asked, read-only, never made."""

    def __init__(self, where: Where) -> None:
        self._path = index_file(where)
        self._db: sqlite3.Connection | None = None
        self._unusable = not os.path.isfile(self._path) or not is_private(os.path.dirname(self._path), where)

    def turns(self, path: str) -> int | None:
        """Turns of the transcript at ``path``; None where the index does not know it as it is now."""
        if self._unusable:
            return None
        try:
            status = os.stat(path)
        except OSError:
            return None  # gone since it was listed
        try:
            row = self._opened().execute(_TURNS, (path, status.st_size, status.st_mtime_ns)).fetchone()
        except UnicodeEncodeError:
            return None  # a name that is no UTF-8, which the index leaves out
        except sqlite3.Error:
            self._unusable = True
            return None
        return row[0] if row and isinstance(row[0], int) else None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = open_read_only(self._path, timeout=0)
            if self._db.execute("SELECT version FROM about").fetchone() != (VERSION,):
                raise sqlite3.DatabaseError("of another version")
        return self._db
