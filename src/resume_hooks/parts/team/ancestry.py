"""Fetch from the team's server those ancestors of a session that are not on this machine.

An ancestor may have been pushed by you from a different machine, or by a colleague. If you may not
read an ancestor, the lineage contains only the ancestor's id, which is recorded in its child. The
server does not tell you whether that ancestor was ever pushed.
"""

from __future__ import annotations

from resume_hooks.parts.team.connect import suppress_answer_timeout
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sessions import TeamSession, fetch_sessions_by_id
from resume_hooks.paths import Where
from resume_hooks.sessions.lineage import MAX_GENERATIONS, MISSING_STATUS, Ancestor
from resume_hooks.sessions.link_log import read_links

TEAM_SOURCE, PRIVATE_SOURCE = "team", "private"
"""The status of an ancestor that was requested from the server. It is ``TEAM_SOURCE`` if the server
returned the ancestor, and ``PRIVATE_SOURCE`` if it did not."""


def add_missing_ancestors(ancestors: list[Ancestor], db: Database, where: Where) -> list[Ancestor]:
    """Return ``ancestors``, a session's lineage, together with older sessions from the server.

    If the first ancestor is missing on this machine and the server returns it, the result contains
    the server's copy and the older ancestors that the server has. If the first ancestor is on this
    machine, return ``ancestors`` unchanged. ``ancestors`` and the result are sorted from oldest to
    newest.
    """
    if not ancestors or ancestors[0].status != MISSING_STATUS or not ancestors[0].session_id:
        return ancestors
    missing_id, child_id = ancestors[0].session_id, ancestors[1].session_id
    owner_logins = []
    for link in read_links(where):
        if (link.parent_id, link.child_id) == (missing_id, child_id):
            owner_logins.append(link.owner)
    owner = next((owner for owner in reversed(owner_logins) if owner), "")
    return [
        *_fetch_ancestors(missing_id, owner, db, {row.session_id for row in ancestors[1:]}),
        *ancestors[1:],
    ]


def fetch_server_lineage(session: TeamSession, db: Database) -> list[Ancestor]:
    """Return the lineage of a session that is only on the server: its ancestors and itself, oldest first."""
    return [
        *_fetch_ancestors(session.parent_id, session.owner, db, {session.session_id}),
        _build_ancestor(session),
    ]


def _fetch_ancestors(
    session_id: str, owner: str, db: Database, seen_ids: set[str]
) -> list[Ancestor]:
    """Return the session ``session_id`` and its ancestors on the server, oldest first.

    ``owner`` is the login of the session's owner, or ``""`` if you are the owner. An ancestor is
    accepted only if it belongs to you or to the owner of its child, because any member can push a
    session under any id. If several machines pushed the same ancestor, its latest copy is returned.
    """
    rows: list[Ancestor] = []
    with suppress_answer_timeout(db):
        while (
            session_id
            and session_id not in seen_ids
            and len(rows) < MAX_GENERATIONS
            and not db.has_passed_deadline()
        ):
            seen_ids.add(session_id)
            if owner:
                owner_sessions = fetch_sessions_by_id(db, [session_id], owner=owner)
            else:
                owner_sessions = []
            own_sessions = []
            for session in fetch_sessions_by_id(db, [session_id], only_own=True):
                if not session.is_transferred:
                    own_sessions.append(session)
            ancestor = next(iter([*owner_sessions, *own_sessions]), None)
            unseen_ancestor = Ancestor(
                session_id, "", "", "unknown", "unknown", None, None, PRIVATE_SOURCE, "", "", 0
            )
            rows.append(_build_ancestor(ancestor) if ancestor else unseen_ancestor)
            if ancestor:
                session_id, owner = (ancestor.parent_id, ancestor.owner)
            else:
                session_id, owner = ("", "")
    return rows[::-1]


def _build_ancestor(session: TeamSession) -> Ancestor:
    if session.parent_id:
        derivation = "trimmed" if session.kind == "trim" else "continued"
    else:
        derivation = "original"
    return Ancestor(
        session.session_id, "", session.title, derivation, session.kind or "original", None, session.parent_id or None,
        TEAM_SOURCE, session.creation_time, session.end_time, session.raw_byte_count, session.owner, session.machine,
    )  # fmt: skip
