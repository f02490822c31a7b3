"""Open the index on disk: a table of the indexed files, and a folder with their words.

A rebuild takes seconds and loses nothing, so a damaged or old index is rebuilt instead of repaired
or migrated. The index contains no texts, because results are read from the transcripts. The words
of a file are stored durably before the table records that the file was read. If an update is
interrupted, the next update reads again every file that the interrupted update may have changed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator

from resume_hooks.errors import IndexDamaged, IndexUnusable
from resume_hooks.paths import Where, is_own_file, is_private_folder, make_private_folder
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import PRIVATE_MODE

# Version of the table and of the words. An index with a different version is rebuilt.
INDEX_VERSION = 9
TABLE_FILE_NAME = "index.db"
WORDS_FOLDER_NAME = "index"  # the subfolder (of the state folder) that contains the indexed words
# Suffixes of the files that SQLite creates next to the table's file.
SQLITE_FILE_SUFFIXES = "-wal", "-shm", "-journal"
BUSY_TIMEOUT_SECONDS = (
    5.0  # number of seconds that SQLite waits for another process that is writing
)
_TABLES_SQL = f"""
CREATE TABLE about(version INTEGER NOT NULL);
CREATE TABLE files(
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE,
  session TEXT NOT NULL, agent TEXT NOT NULL, folder TEXT NOT NULL,
  inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
  end INTEGER NOT NULL, checked INTEGER NOT NULL, place TEXT NOT NULL, turns INTEGER NOT NULL,
  parent TEXT NOT NULL, cwd TEXT NOT NULL, entrypoint TEXT NOT NULL, hidden INTEGER NOT NULL,
  doubt INTEGER NOT NULL);
CREATE INDEX files_by_session ON files(session);
INSERT INTO about VALUES({INDEX_VERSION})
"""


_FORMAT_ERROR_MESSAGE_PARTS = ("no such", "has no column", "decode to UTF-8")
"""Parts of the error messages that SQLite returns if a database is readable but is not our index.
"""


_TURN_COUNTS_SQL = (
    "SELECT path, size, mtime, turns FROM files, about WHERE version=? AND (end=size OR inode<0)"
)


def index_file_path(where: Where) -> str:
    """Return the path of the SQLite file of this config home's index."""
    return os.path.join(where.state, TABLE_FILE_NAME)


def words_folder(where: Where) -> str:
    """Return the folder with the words of this config home's index."""
    return os.path.join(where.state, WORDS_FOLDER_NAME)


def open_database(where: Where) -> sqlite3.Connection:
    """Open the SQLite file for writing, and create it if it is missing.

    Raise IndexDamaged or IndexUnusable.
    """
    path = index_file_path(where)
    with converted_sqlite_errors():
        try:
            make_private_folder(os.path.dirname(path), where)
            # We never create a folder with this name, so remove it only if it is empty.
            if os.path.isdir(path):
                removal.remove_empty_folder(path, where.state)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            # Creating the file here makes it private from its first byte. SQLite gives its own
            # files the same mode.
            os.close(os.open(path, flags, PRIVATE_MODE))
            _require_own_files(path)
        except OSError as error:
            raise IndexUnusable(
                f"{path} can't be written: {error.strerror}",
                "Check free space and the state folder.",
            ) from error
        return _prepare_table(
            sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
        )


def open_temporary_index() -> sqlite3.Connection:
    """Open an index in memory, for use when the state folder cannot be written."""
    return _prepare_table(sqlite3.connect(":memory:", isolation_level=None))


def open_index_read_only(path: str, timeout: float = BUSY_TIMEOUT_SECONDS) -> sqlite3.Connection:
    """Open the SQLite file of an existing index read-only, without checking its version."""
    from urllib.parse import quote  # the import takes 2 ms, and a search does not need it

    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=timeout)


def remove_index(where: Where) -> None:
    """Delete the index: its SQLite files, and the folder with its words.

    A command that has the index open can still read the deleted files.
    """
    folder = words_folder(where)
    with contextlib.suppress(FileNotFoundError):
        removal.remove_permanently(folder, where.state)
    for suffix in ("", *SQLITE_FILE_SUFFIXES):
        with contextlib.suppress(FileNotFoundError):
            removal.remove_file(index_file_path(where) + suffix, where.state)


@contextlib.contextmanager
def converted_sqlite_errors() -> Iterator[None]:
    """Convert SQLite errors that the block raises to IndexDamaged and IndexUnusable."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if any(words in str(error) for words in _FORMAT_ERROR_MESSAGE_PARTS):
            raise IndexDamaged(f"The index has another format: {error}") from error
        raise IndexUnusable(
            f"The index can't be used: {error}", "Check free space and the state folder."
        ) from error
    except sqlite3.DatabaseError as error:
        raise IndexDamaged(f"The index is damaged: {error}") from error


def _require_own_files(path: str) -> None:
    """Check that the index's SQLite files belong to us, because SQLite would write into existing files.

    Raise IndexDamaged if one of them is not a regular file, belongs to another user or has a second
    hard link. Raise OSError if its status cannot be read.
    """
    for name in (path, *(path + suffix for suffix in SQLITE_FILE_SUFFIXES)):
        try:
            status = os.lstat(name)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or not is_own_file(status):
            raise IndexDamaged(f"{name} is not a resume-hooks file")


def _prepare_table(db: sqlite3.Connection) -> sqlite3.Connection:
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(db.close)
        db.execute("PRAGMA journal_mode=WAL")
        # Before an update changes a file's words, it marks the file as doubtful. Tantivy writes
        # words durably, so the marks must also be durable before the words change.
        db.execute("PRAGMA synchronous=FULL")
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            _create_tables(db)
        (version,) = db.execute("SELECT version FROM about").fetchone() or (0,)
        if not isinstance(version, int):
            raise IndexDamaged("The index has no version")
        if version > INDEX_VERSION:
            raise IndexUnusable("The index was written by a newer resume-hooks", "Update this one.")
        if version < INDEX_VERSION:
            raise IndexDamaged(f"The index has version {version}")
        cleanup.pop_all()
    return db


def _create_tables(db: sqlite3.Connection) -> None:
    with db:
        db.execute("BEGIN IMMEDIATE")
        # Another command may have created the tables in the meantime.
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            for statement in _TABLES_SQL.split(";"):
                db.execute(statement)
    # Empty SQLite's write-ahead log into the database now, because that would be impossible once
    # the disk is full.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def count_turns_by_file(where: Where) -> dict[tuple[str, int, int], int]:
    """Return the number of turns in each indexed file, by the file's path, size and time.

    The result is empty if there is no usable index.
    """
    path = index_file_path(where)
    if not os.path.isfile(path) or not is_private_folder(os.path.dirname(path), where):
        return {}
    try:
        with contextlib.closing(open_index_read_only(path, timeout=0)) as db:
            rows = db.execute(_TURN_COUNTS_SQL, (INDEX_VERSION,)).fetchall()
    except sqlite3.Error:
        return {}
    return {
        (file, size, mtime): turns for file, size, mtime, turns in rows if isinstance(turns, int)
    }
