"""The sessions that one may see on the server, and which of them some words name.

One's own are asked for first and by themselves, so that nobody else's rows can stand before them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resume_hooks import clock
from resume_hooks.errors import AmbiguousLocator, SessionNotFound
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.rows import Database, Form
from resume_hooks.paths import is_session_id
from resume_hooks.sessions.locate import MIN_PREFIX
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import TITLE_LENGTH

VISIBLE = {"m": "private", "p": "project", "t": "team"}
"""Who may see a session, by the kind of its scope; single members come on top."""

MOST_LISTED = 10_000
"""Sessions that are listed at most: so many of one's own, and so many of others."""

_MOST_NAMED = 1_000
"""Sessions that words may name, of one's own and of others; of more nobody can choose."""

_QUERY = """
select s.id::text, s.session_id, m.login::text, a.label, s.title, s.folder, s.project, s.created, s.ended, s.parent,
  s.kind, coalesce(c.kind::text, 'm'), coalesce(p.records, 0)::text, coalesce(p.raw, 0)::text,
  (s.owner = (select team.me()))::text, s.given::text, g.names, extract(epoch from s.pushed)::float8::text
from team.session s join team.member m on m.id = s.owner join team.machine a on a.id = s.machine
  left join team.scope c on c.id = s.scope left join team.part p on p.session = s.id and p.name = ''
  left join lateral (select json_agg(o.login order by o.login)::text as names from team.grant_ x
    join team.member o on o.id = x.member where x.session_id = s.session_id and x.owner = s.owner
      and (x.until is null or x.until > now())) g on true
where s.live
"""
_OWN = " and s.owner = (select team.me())"
_OTHERS = " and s.owner <> (select team.me())"
_OF_OWNER = " and m.login = %(owner)s"
_IN_ROWS = " and s.id = any(%(rows)s::bigint[])"
_IN_IDS = " and s.session_id = any(%(ids)s::text[])"
_NAMED = """ and (s.session_id = any(%(words)s::text[]) or starts_with(s.session_id, %(last)s)
  or starts_with(s.session_id, %(first)s) or strpos(lower(s.title), lower(%(last)s)) > 0
  or strpos(lower(s.title), lower(%(first)s)) > 0)"""
_FITTING = """ order by m.login = %(front)s desc, s.session_id = any(%(words)s::text[]) desc,
  s.title = any(%(words)s::text[]) desc, s.pushed desc limit %(most)s"""
_NEWEST = " order by s.pushed desc limit %(most)s"
"""By the server's clock: what a client says of its sessions can't bring them to the front."""


_SHORT_ID = 8
"""Characters of an id by which it is named in lists; a shorter word can be one of a title."""

_ANY_ID = "00000000-0000-0000-0000-000000000000"


class TeamSession(NamedTuple):
    """A session on one machine, as the server tells of it.

    ``row`` is its number there. ``visible`` is private, project or team; ``shared_with`` are single
    members beside. ``given`` is true for one's own that was a member's who left: his words, which
    nobody verified. ``pushed`` is when the machine sent of it last.
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
    given: bool
    shared_with: tuple[str, ...]
    pushed: str


def _pushed(raw: bytes | None) -> str:
    return clock.from_epoch(rows.real(raw))


_LISTED = Form(
    TeamSession,
    (
        rows.row_number, rows.parse_session_id, rows.login, rows.parse_line(100),
        rows.parse_line(TITLE_LENGTH), rows.parse_folder,
        rows.parse_line(300), rows.parse_instant, rows.parse_instant, rows.session_id_or_none,
        rows.parse_line(40), rows.one_of(VISIBLE),
        rows.count, rows.count, rows.truth, rows.truth, rows.logins, _pushed,
    ),
)  # fmt: skip


def list_team_sessions(db: Database, *, mine: bool = False) -> list[TeamSession]:
    """What one may see, one's own alone with ``mine``, the newest first.

    The ``MOST_LISTED`` pushed last.
    """
    return _sessions_where(db, _NEWEST, {}, mine=mine, most=MOST_LISTED)


def of_rows(db: Database, numbers: list[int]) -> list[TeamSession]:
    """The sessions with these numbers that one may see."""
    return db.rows(_QUERY + _IN_ROWS + _NEWEST, {"rows": numbers, "most": len(numbers)}, _LISTED)


def of_ids(
    db: Database, ids: list[str], *, mine: bool = False, owner: str = ""
) -> list[TeamSession]:
    """The sessions with these ids that one may see, an ``owner``'s alone where one is named, the newest first.

    Several machines, and several members, may have the same.
    """
    which = _IN_IDS + (_OF_OWNER if owner else "") + _NEWEST
    found = _sessions_where(db, which, {"ids": ids, "owner": owner}, mine=mine, most=_MOST_NAMED)
    return [session for session in found if owner in {"", session.owner}]


def named_team_session(locator: str, db: Database, *, mine: bool = False) -> TeamSession:
    """The session that words name, among one's own with ``mine``.

    SessionNotFound, AmbiguousLocator.
    """
    words = locator.strip()
    front, _, rest = words.partition(":")
    values = {
        "words": [words, rest or words],
        "first": words,
        "last": rest or words,
        "front": front.partition("@")[0],
    }
    return choose_team_session(
        locator, _sessions_where(db, _NAMED + _FITTING, values, mine=mine, most=_MOST_NAMED)
    )


def _sessions_where(
    db: Database, which: str, values: dict[str, Any], *, mine: bool = False, most: int
) -> list[TeamSession]:
    found: list[TeamSession] = []
    for whose in [_OWN] if mine else [_OWN, _OTHERS]:
        found += db.rows(_QUERY + whose + which, {**values, "most": most}, _LISTED)
    return sorted(found, key=lambda session: (session.ended, session.pushed), reverse=True)


def choose_team_session(locator: str, sessions: list[TeamSession]) -> TeamSession:
    """The session of some, the newest first, that words name: an id, its beginning, a title or a part of one.

    ``owner:`` or ``owner@machine:`` may stand before it; of one that is on several machines it is
    else the one that went on last, and one's own before somebody's, who left or not, of the same id
    or beginning. SessionNotFound, AmbiguousLocator.
    """
    front, colon, rest = locator.strip().partition(":")
    fronted = [
        session
        for session in sessions
        if front in {session.owner, f"{session.owner}@{session.machine}"}
    ]
    if colon and fronted:
        sessions, locator = fronted, rest
    words = locator.strip()
    low, is_long = words.casefold(), len(words) >= MIN_PREFIX
    owner, _, name = words.rpartition(":")
    is_id = len(name) >= (MIN_PREFIX if owner else _SHORT_ID) and is_session_id(
        name + _ANY_ID[len(name) :]
    )
    titled = (
        [] if is_id else sessions
    )  # who asks by an id, or its beginning, is given none by its title
    ways = (
        [session for session in sessions if session.session_id == words],
        _own_first(
            [session for session in sessions if is_long and session.session_id.startswith(words)]
        ),
        [session for session in titled if session.title == words],
        [session for session in titled if low and low in session.title.casefold()],
    )
    fitting = sorted(next((way for way in ways if way), []), key=lambda session: session.given)
    own = {session.session_id for session in fitting if session.mine}
    fitting = [session for session in fitting if session.mine or session.session_id not in own]
    found = {
        (session.owner, session.session_id): session for session in reversed(fitting)
    }  # the first stays
    if not found:
        raise SessionNotFound(
            f"The team has no session '{collapse_line(plain_line(locator), 80)}' that you may see",
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


def _own_first(sessions: list[TeamSession]) -> list[TeamSession]:
    """One's own of some where there are any; else all of them."""
    own = []
    for session in sessions:
        if session.mine and not session.given:
            own.append(session)
    return own or [session for session in sessions if session.mine] or sessions
