"""Bookkeeping that a child takes over from its parent: tag, pull request, mode, where the session moved.

Invariant: nothing of a line changes but the session id at its top level.
"""

from __future__ import annotations

from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.raw_edit import with_field
from resume_hooks.transcripts.records import kind, parse

PLACES = ("worktree-state", "relocated")
"""The kinds that say where a session is, if not where it began; clients' pickers go by them."""

CARRIED = ("tag", "pr-link", "mode", *PLACES)
"""The kinds that are carried, the last of each."""


def carried_lines(glance: HeadTail, session_id: str, *, moved: bool = False) -> list[bytes]:
    """The parent's carried bookkeeping as lines without endings, byte for byte but for the session's id.

    What says where the session is stays behind where it ``moved``.
    """
    last: dict[str, bytes] = {}
    for row in glance.tail.split(b"\n"):
        body = row.removesuffix(b"\r")
        record = parse(body) if body.startswith(b'{"type":"') else None
        if record is not None and kind(record) in CARRIED and not (moved and kind(record) in PLACES):
            last[kind(record)] = body
    return [renamed for body in last.values() if (renamed := _renamed(body, session_id)) is not None]


def _renamed(body: bytes, session_id: str) -> bytes | None:
    """A line under the child's id; None where it names no session."""
    record = parse(body) or {}
    if not isinstance(record.get("sessionId"), str):
        return None
    return with_field(body, record, "sessionId", session_id)
