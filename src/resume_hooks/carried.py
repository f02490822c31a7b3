"""Bookkeeping that a child takes over from its parent: tag, pull request, mode, worktree.

Invariant: nothing of a line changes but the session id at its top level.
"""

from __future__ import annotations

from resume_hooks.glance import Glance
from resume_hooks.records import kind, parse, string

CARRIED = ("tag", "pr-link", "mode", "worktree-state")
"""The kinds that are carried, the last of each."""


def carried_lines(glance: Glance, session_id: str) -> list[bytes]:
    """The parent's carried bookkeeping as lines without endings, byte for byte but for the session's id."""
    last: dict[str, bytes] = {}
    for row in glance.tail.split(b"\n"):
        body = row.removesuffix(b"\r")
        record = parse(body) if body.startswith(b'{"type":"') else None
        if record is not None and kind(record) in CARRIED:
            last[kind(record)] = body
    return [renamed for body in last.values() if (renamed := _with_session_id(body, session_id)) is not None]


def _with_session_id(body: bytes, session_id: str) -> bytes | None:
    """A line with its own session id replaced, not one deeper inside; None where it names no session."""
    record = parse(body) or {}
    wanted = {**record, "sessionId": session_id}
    old = f'"sessionId":"{string(record, "sessionId")}"'.encode("utf-8", "replace")
    start = body.find(old)
    while start >= 0:
        renamed = body[:start] + f'"sessionId":"{session_id}"'.encode() + body[start + len(old) :]
        if parse(renamed) == wanted:
            return renamed
        start = body.find(old, start + 1)
    return None
