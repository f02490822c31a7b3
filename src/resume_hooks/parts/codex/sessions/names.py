"""The names that users gave to threads: Codex's list of names, and before it its database, where that can be read."""

from __future__ import annotations

import contextlib
import os

from resume_hooks.paths import is_session_id
from resume_hooks.transcripts.records import parse, string

LIST, DATABASE = "session_index.jsonl", "state_5.sqlite"
MAX_LIST = 64 * 1024 * 1024  # bytes of the list that are read


def thread_names(home: str) -> dict[str, str]:
    """The name of each thread that has one, by its id; the last one in the list wins."""
    names = _of_database(os.path.join(home, DATABASE))
    with contextlib.suppress(OSError), open(os.path.join(home, LIST), "rb") as stream:
        for raw in stream.read(MAX_LIST).split(b"\n"):
            row = parse(raw) or {}
            thread_id, name = row.get("id"), string(row, "thread_name")
            if isinstance(thread_id, str) and is_session_id(thread_id) and name.strip():
                names[thread_id] = name
    return names


def _of_database(path: str) -> dict[str, str]:
    """The names in the database; none where it is locked, of another form, or not there."""
    if not os.path.isfile(path):
        return {}
    import sqlite3  # 10 ms, which only whoever has a database pays
    from urllib.parse import quote

    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=0.2)) as db:
            rows = db.execute("SELECT id, name FROM threads WHERE name <> ''").fetchall()
    except sqlite3.Error:
        return {}
    return {one: name for one, name in rows if isinstance(one, str) and isinstance(name, str) and name.strip()}
