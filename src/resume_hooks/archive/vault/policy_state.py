"""What the policy remembers between its runs: since when sessions are due for their age, and what went.

One wrong clock must not empty the vault: what is too old goes when it was so on two runs a good part of a day apart.
Nothing but ids, sizes and reasons is written here, so that no title outlives its session.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.paths import Where, is_private, is_session_id, read_object
from resume_hooks.sessions.archived.layout import vault
from resume_hooks.storage import state_file

FILE = "policy.json"
VERSION = 1

APART = 20 * 60 * 60
"""Seconds between the two runs; a client's start runs it once a day."""

MOST = 100
"""Sessions that went which are remembered, the last ones."""


MOST_DUE = 5_000
"""Sessions that are noted as due; the others have their turn once those went."""


class Gone(NamedTuple):
    """A session that went from the vault: an instant, the bytes that it took, the end of a sentence."""

    session_id: str
    at: str
    stored: int
    why: str


def ripe(due: Sequence[str], where: Where, now: float) -> set[str]:
    """Those of the sessions ``due`` at ``now``, seconds since the epoch, that were so long enough ago.

    The others are noted, as far as a manifest may hold them.
    """
    row = _row(where)
    since = row.get("since")
    known = since if isinstance(since, dict) else {}
    seen = {each: known[each] if _is_past(known.get(each), now) else int(now) for each in due[:MOST_DUE]}
    if seen != known:
        _write(where, seen, went(where))
    return {each for each, first in seen.items() if now - int(str(first)) >= APART}


def went(where: Where) -> list[Gone]:
    """The sessions that the policy let go, the last ones, oldest first."""
    rows = _row(where).get("went")
    found = [Gone(*each) for each in rows if _is_gone(each)] if isinstance(rows, list) else []
    return found[-MOST:]


def remember(gone: Sequence[tuple[str, int, str]], where: Where) -> None:
    """Remember what went: ids, bytes and reasons."""
    since = _row(where).get("since")
    left = dict(since) if isinstance(since, dict) else {}
    for session_id, _, _ in gone:
        left.pop(session_id, None)
    _write(where, left, [*went(where), *(Gone(each, clock.now(), stored, why) for each, stored, why in gone)])


def _row(where: Where) -> dict[str, object]:
    row = read_object(_path(where)) if is_private(vault(where), where) else {}
    return row if row.get("version") == VERSION else {}


def _write(where: Where, since: Mapping[str, object], gone: Sequence[Gone]) -> None:
    """Write both. What can't be written is forgotten, and then nothing goes for its age."""
    row = {"version": VERSION, "since": since, "went": [list(each) for each in gone[-MOST:]]}
    path = _path(where)
    with contextlib.suppress(OSError):
        if is_private(vault(where), where):
            state_file.replace(path, orjson.dumps(row) + b"\n", where)


def _path(where: Where) -> str:
    return os.path.join(vault(where), FILE)


def _is_past(seconds: object, now: float) -> bool:
    return type(seconds) is int and 0 < seconds <= now


def _is_gone(row: object) -> bool:
    if not isinstance(row, list) or len(row) != len(Gone._fields):
        return False
    session_id, at, stored, why = row
    return is_session_id(session_id) and type(stored) is int and isinstance(at, str) and isinstance(why, str)
