"""The sessions that one may see on the server, and which of them some words name."""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import AmbiguousLocator, SessionNotFound
from resume_hooks.parts.team.connect import Connection
from resume_hooks.sessions.locate import MIN_PREFIX
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.head_tail import TITLE_LENGTH

VISIBLE = {"m": "private", "p": "project", "t": "team"}
"""Who may see a session, by the kind of its scope; single members come on top."""

_QUERY = """
select s.id, s.session_id, m.login::text, a.label, s.title, s.folder, s.project, s.created, s.ended, s.parent, s.kind,
  coalesce(c.kind::text, 'm'), coalesce(p.records, 0), coalesce(p.raw, 0), s.owner = team.me(), g.names,
  extract(epoch from s.pushed)::float8
from team.session s join team.member m on m.id = s.owner join team.machine a on a.id = s.machine
  left join team.scope c on c.id = s.scope left join team.part p on p.session = s.id and p.name = ''
  left join lateral (select array_agg(o.login::text order by o.login) as names from team.grant_ x
    join team.member o on o.id = x.member where x.session_id = s.session_id and x.owner = s.owner
      and (x.until is null or x.until > now())) g on true
where s.live and (%(ids)s::bigint[] is null or s.id = any(%(ids)s))
order by s.ended desc, s.pushed desc limit 10000
"""


class TeamSession(NamedTuple):
    """A session on one machine, as the server tells of it.

    ``row`` is its number there. ``visible`` is private, project or team; ``shared_with`` are single members beside.
    ``pushed`` is when the machine sent of it last.
    """

    row: int
    session_id: str
    owner: str
    machine: str
    title: str
    folder: str
    project: str
    created: str
    ended: str
    parent: str
    kind: str
    visible: str
    records: int
    raw: int
    mine: bool
    shared_with: tuple[str, ...]
    pushed: str


def listed(db: Connection, rows: list[int] | None = None) -> list[TeamSession]:
    """What one may see, the newest first; of ``rows`` alone where they are given."""
    found = []
    for row in db.execute(_QUERY, {"ids": rows}):
        number, session_id, owner, machine, title, folder, project, created, ended, parent, kind = row[:11]
        visible, records, raw, mine, names, pushed = row[11:]
        found.append(TeamSession(
            number, session_id, owner, one_line(plain_line(machine), 100), one_line(plain_line(title), TITLE_LENGTH),
            folder, one_line(plain_line(project), 300), created, ended, parent, kind, VISIBLE.get(visible, "private"),
            records, raw, mine, tuple(names or ()), clock.from_epoch(pushed),
        ))  # fmt: skip
    return found


def named(locator: str, sessions: list[TeamSession]) -> TeamSession:
    """The session that words name: an id, its beginning, a title or a part of one.

    ``owner:`` or ``owner@machine:`` may stand before it; of one that is on several machines it is else the one that
    went on last. SessionNotFound, AmbiguousLocator.
    """
    front, colon, rest = locator.strip().partition(":")
    fronted = [session for session in sessions if front in {session.owner, f"{session.owner}@{session.machine}"}]
    if colon and fronted:
        sessions, locator = fronted, rest
    words = locator.strip()
    low = words.casefold()
    ways = (
        [session for session in sessions if session.session_id == words],
        [session for session in sessions if len(words) >= MIN_PREFIX and session.session_id.startswith(words)],
        [session for session in sessions if session.title == words],
        [session for session in sessions if low and low in session.title.casefold()],
    )
    fitting = next((way for way in ways if way), [])
    found = {(session.owner, session.session_id): session for session in reversed(fitting)}  # the newest stays
    if not found:
        raise SessionNotFound(
            f"The team has no session '{one_line(plain_line(locator), 80)}' that you may see",
            "resume-hooks team sessions",
        )
    if len(found) > 1:
        raise AmbiguousLocator(
            locator,
            [
                {
                    "session_id": each.session_id,
                    "locator": f"{each.owner}:{each.session_id}",
                    "title": each.title,
                    "ended": each.ended,
                }
                for each in list(found.values())[::-1][:20]
            ],
            len(found),
            "Give owner:id, as listed.",
        )
    return next(iter(found.values()))
