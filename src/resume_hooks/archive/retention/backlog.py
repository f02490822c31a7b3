"""Keeping ancestors that were left for later, and those that only the client knows of so far."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from resume_hooks.archive.retention import pending
from resume_hooks.archive.retention.ancestors import unkept
from resume_hooks.archive.retention.keeper import Keeper
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.files import all_sessions
from resume_hooks.sessions.lineage import Family


def keep_wanted(where: Where, is_over: Callable[[], bool]) -> int:
    """Keep the ancestors that were left for later, until time is over; how many are left still."""
    keeper, left = Keeper(where), 0
    for session_id in pending.wanted(where):
        session = unkept(find_session(session_id, where) or "", where) if keeper.may else None
        if session and is_over():
            left += 1
            continue
        try:
            if session is None or keeper.keep(session.path):
                pending.forget(session_id, where)
        except ResumeHooksError:
            left += 1
    return left


def keep_parents(where: Where, since: float, is_over: Callable[[], bool]) -> bool:
    """Keep what sessions were made of that were written after ``since``: clients fork without telling anybody.

    ``since`` is in seconds since the epoch. Whether there was time to look at all of them.
    """
    family, keeper, seen = Family(where), Keeper(where), set[str]()
    for child in all_sessions(where) if keeper.may else ():
        if child.mtime < since:
            break
        if is_over():
            return False
        with contextlib.suppress(ResumeHooksError):
            parent = family.parent_of(child.path)
            path = family.locate(parent, child.path) if parent else None
            if path and path not in seen and (session := unkept(path, where)):
                keeper.keep(session.path)
            seen.add(path or "")
    return True
