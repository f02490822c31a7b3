"""A lineage that goes on where this machine knows no more: ancestors on one's other machines, and of colleagues.

What one may not see has its id alone, which its child tells anyway; whether it was ever pushed is not told.
"""

from __future__ import annotations

from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sessions import TeamSession, of_ids
from resume_hooks.sessions.lineage import MAX_DEPTH, MISSING, Ancestor

REMOTE, PRIVATE = "team", "private"
"""What the status of a row is that the server told, or refused to tell."""


def with_team(rows: list[Ancestor], db: Database) -> list[Ancestor]:
    """A lineage, oldest first, with the ancestors that the server knows in the place of one that is missing here."""
    if not rows or rows[0].status != MISSING or not rows[0].session_id:
        return rows
    return [*_ancestors(rows[0].session_id, db, {row.session_id for row in rows[1:]}), *rows[1:]]


def of_team(wanted: TeamSession, db: Database) -> list[Ancestor]:
    """The lineage of a session that the server alone has, oldest first."""
    return [*_ancestors(wanted.parent, db, {wanted.session_id}), _row(wanted)]


def _ancestors(session_id: str, db: Database, seen: set[str]) -> list[Ancestor]:
    """A session and its ancestors, oldest first; one's own before a colleague's, the newest of several machines."""
    rows: list[Ancestor] = []
    while session_id and session_id not in seen and len(rows) < MAX_DEPTH:
        seen.add(session_id)
        found = min(of_ids(db, [session_id]), key=lambda each: not each.mine, default=None)
        unseen = Ancestor(session_id, "", "", "unknown", "unknown", None, None, PRIVATE, "", "", 0)
        rows.append(_row(found) if found else unseen)
        session_id = found.parent if found else ""
    return rows[::-1]


def _row(session: TeamSession) -> Ancestor:
    derived = ("trimmed" if session.kind == "trim" else "continued") if session.parent else "original"
    return Ancestor(
        session.session_id, "", session.title, derived, session.kind or "original", None, session.parent or None,
        REMOTE, session.created, session.ended, session.raw, session.owner, session.machine,
    )  # fmt: skip
