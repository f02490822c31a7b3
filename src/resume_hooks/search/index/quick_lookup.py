"""What the index knows of a file without being brought up to date, as far as the file is still as it was read."""

from __future__ import annotations

import os
import sqlite3
from urllib.parse import quote

from resume_hooks.paths import Where, is_private
from resume_hooks.search.index.database import VERSION, index_file

_TURNS = "SELECT turns FROM files WHERE path=? AND size=? AND mtime=? AND offset=size"


class Known:
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
            self._db = sqlite3.connect(f"file:{quote(self._path)}?mode=ro", uri=True, timeout=0)
            if self._db.execute("SELECT version FROM about").fetchone() != (VERSION,):
                raise sqlite3.DatabaseError("of another version")
        return self._db
