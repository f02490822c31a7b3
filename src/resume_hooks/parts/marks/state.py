"""The active mark of a session: one small private note each, from ``mark`` until a ``back`` used it.

Invariant: a mark is used up by the child that it made, and by nothing that failed; of several ``back`` one gets it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from resume_hooks import clock
from resume_hooks.errors import NoMark, WriteFailed
from resume_hooks.hooks import hook_state
from resume_hooks.parts.marks.mark import MAX_GOAL, Mark

NONE = "No active mark."
BUSY = "Another prompt is going back in this session right now"

KEPT = 60 * 86_400
"""Seconds after which a mark is swept; the client deletes sessions after 30 days."""

MAX_UUID = 200
"""Characters of a record's id: longer ones are none."""

_PREFIX = "mark-"


def keep(mark: Mark) -> None:
    """Make a mark the session's own, in place of the last one. WriteFailed where that can't be done."""
    hook_state.sweep(_PREFIX, KEPT)
    try:
        hook_state.keep(_name(mark.session_id), mark._asdict())
    except OSError as error:
        raise WriteFailed(
            f"The mark could not be kept: {error.strerror or error}", "Check free space and the state folder."
        ) from error


def find(session_id: str) -> Mark | None:
    """The session's mark; None where there is none that can be trusted."""
    return _mark(hook_state.find(_name(session_id)), session_id)


def clear(session_id: str) -> bool:
    """Forget the session's mark; False where there was none."""
    return hook_state.take(_name(session_id))


def settled(session_id: str) -> Mark | None:
    """The session's mark; a ``back`` that is at work on it is waited for, since it uses it up."""
    hook_state.wait(_name(session_id))
    return find(session_id)


@contextlib.contextmanager
def used(mark: Mark) -> Iterator[None]:
    """Use a mark up by what the block makes; it stays where the block fails. Where a fork left is used up by nothing.

    NoMark where it is not the session's any more, or another ``back`` is at work on it.
    """
    if mark.left:
        yield
        return
    name = _name(mark.session_id)
    if not hook_state.begin(name):
        raise NoMark(BUSY, "Wait a moment.")
    try:
        if find(mark.session_id) != mark:
            raise NoMark(NONE, "It was used or replaced meanwhile.")
        yield
        hook_state.take(name)
    finally:
        hook_state.end(name)


def _name(session_id: str) -> str:
    return f"{_PREFIX}{session_id}.json"


def _mark(found: dict[str, Any], session_id: str) -> Mark | None:
    """A mark out of a note; what was not written by ``keep`` is none."""
    uuid, record, goal, at = (found.get(key) for key in ("uuid", "record", "goal", "started_at"))
    if found.get("session_id") != session_id or not isinstance(uuid, str) or not 0 < len(uuid) <= MAX_UUID:
        return None
    if type(record) is not int or record < 0 or not isinstance(goal, str) or len(goal) > MAX_GOAL:
        return None
    started_at = clock.normal(at)
    return Mark(session_id, uuid, record, goal, started_at) if started_at else None
