"""Complete a lineage with ancestors that are not on this machine: from your other machines and from colleagues.

If you may not see an ancestor, only its id is shown, which its child contains anyway. It is not
revealed whether that ancestor was ever pushed.
"""

from __future__ import annotations

from resume_hooks.parts.team.connect import stop_when_late
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sessions import TeamSession, sessions_with_ids
from resume_hooks.paths import Where
from resume_hooks.sessions.lineage import MAX_GENERATIONS, MISSING_STATUS, Ancestor
from resume_hooks.sessions.link_log import read_links

REMOTE, PRIVATE = "team", "private"
"""The status of an ancestor that the server returned, or refused to return."""


def extend_lineage(ancestors: list[Ancestor], db: Database, where: Where) -> list[Ancestor]:
    """Return a lineage, oldest first, with a missing ancestor replaced by ancestors from the server."""
    if not ancestors or ancestors[0].status != MISSING_STATUS or not ancestors[0].session_id:
        return ancestors
    missing, child = ancestors[0].session_id, ancestors[1].session_id
    owners = []
    for link in read_links(where):
        if (link.parent_id, link.child_id) == (missing, child):
            owners.append(link.owner)
    owner = next((owner for owner in reversed(owners) if owner), "")
    return [
        *_ancestors_on_server(missing, owner, db, {row.session_id for row in ancestors[1:]}),
        *ancestors[1:],
    ]


def lineage_on_server(session: TeamSession, db: Database) -> list[Ancestor]:
    """Return the lineage of a session that exists only on the server, oldest first."""
    return [
        *_ancestors_on_server(session.parent, session.owner, db, {session.session_id}),
        _ancestor_row(session),
    ]


def _ancestors_on_server(
    session_id: str, owner: str, db: Database, seen_ids: set[str]
) -> list[Ancestor]:
    """Return a session and its ancestors, oldest first; ``owner`` is the session's owner, or ``""`` for yourself.

    An ancestor only counts if its owner is its child's owner or you, because anybody can push a
    session under any id. If several machines have an ancestor, the newest copy is used.
    """
    rows: list[Ancestor] = []
    with stop_when_late(db):
        while (
            session_id
            and session_id not in seen_ids
            and len(rows) < MAX_GENERATIONS
            and not db.is_late()
        ):
            seen_ids.add(session_id)
            if owner:
                owner_sessions = sessions_with_ids(db, [session_id], owner=owner)
            else:
                owner_sessions = []
            own_sessions = []
            for session in sessions_with_ids(db, [session_id], mine=True):
                if not session.given:
                    own_sessions.append(session)
            ancestor = next(iter([*owner_sessions, *own_sessions]), None)
            unseen = Ancestor(
                session_id, "", "", "unknown", "unknown", None, None, PRIVATE, "", "", 0
            )
            rows.append(_ancestor_row(ancestor) if ancestor else unseen)
            if ancestor:
                session_id, owner = (ancestor.parent, ancestor.owner)
            else:
                session_id, owner = ("", "")
    return rows[::-1]


def _ancestor_row(session: TeamSession) -> Ancestor:
    if session.parent:
        derived = "trimmed" if session.kind == "trim" else "continued"
    else:
        derived = "original"
    return Ancestor(
        session.session_id, "", session.title, derived, session.kind or "original", None, session.parent or None,
        REMOTE, session.created, session.ended, session.raw, session.owner, session.machine,
    )  # fmt: skip
