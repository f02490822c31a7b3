"""List the sessions on the server that you may see, and find a session by a locator.

The number of rows per query is limited. Your own sessions are therefore queried separately, so that
other members' sessions cannot displace them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resume_hooks import clock
from resume_hooks.errors import AmbiguousLocator, SessionNotFound
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.paths import is_session_id
from resume_hooks.sessions.locate import MIN_ID_PREFIX_CHARACTERS
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS

VISIBILITY_BY_AUDIENCE = {"m": "private", "p": "project", "t": "team"}
"""Maps the letter that the database stores for a session's audience to the session's visibility:
only the owner, the members of the session's project, or the whole team. A session can also be
shared with individual members."""

MAX_LISTED_SESSIONS = 10_000
"""The maximum number of your own sessions in a list, and also the maximum number of all other
members' sessions in it."""

_MAX_CANDIDATE_SESSIONS = 1_000
"""The maximum number of your own sessions that are fetched to find the one that a locator names. At
most the same number of other members' sessions are fetched."""

_SESSIONS_QUERY = """
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
_OWN_SESSIONS_CONDITION_SQL = " and s.owner = (select team.me())"
_SESSIONS_OF_OTHERS_CONDITION_SQL = " and s.owner <> (select team.me())"
_OWNER_CONDITION_SQL = " and m.login = %(owner)s"
_ROW_IDS_CONDITION_SQL = " and s.id = any(%(rows)s::bigint[])"
_SESSION_IDS_CONDITION_SQL = " and s.session_id = any(%(ids)s::text[])"
_LOCATOR_CONDITION_SQL = """ and (s.session_id = any(%(words)s::text[]) or starts_with(s.session_id, %(last)s)
  or starts_with(s.session_id, %(first)s) or strpos(lower(s.title), lower(%(last)s)) > 0
  or strpos(lower(s.title), lower(%(first)s)) > 0)"""
_ORDER_BY_MATCH_SQL = """ order by m.login = %(front)s desc, s.session_id = any(%(words)s::text[]) desc,
  s.title = any(%(words)s::text[]) desc, s.pushed desc limit %(most)s"""
_ORDER_BY_TIME_SQL = " order by s.pushed desc limit %(most)s"
"""Sorts by the time at which the server received the session. If sessions were sorted by a client's
time, a client whose clock is wrong could move its sessions to the front."""


_LISTED_ID_LENGTH = 8
"""The number of characters of a session id that lists show. If a word in a locator is shorter, it
is not treated as the beginning of an id, because it may be part of a title."""

_SESSION_ID_PADDING = "00000000-0000-0000-0000-000000000000"


class TeamSession(NamedTuple):
    """A session that one machine pushed, as recorded on the server.

    ``row_id`` is the id of the session's row on the server. ``visibility`` is ``private``,
    ``project`` or ``team``. ``shared_with`` lists individual members who can also read the session.
    ``is_transferred`` is true if an admin transferred the session to you from a former member. The
    text of a transferred session is unverified. ``push_time`` is the time of the last push.
    """

    row_id: int
    session_id: str
    owner: str
    machine: str
    title: str
    folder: str
    project: str
    creation_time: str
    end_time: str
    parent_id: str
    kind: str
    visibility: str
    record_count: int
    raw_byte_count: int
    is_own: bool
    is_transferred: bool
    shared_with: tuple[str, ...]
    push_time: str


def _parse_push_time(raw: bytes | None) -> str:
    return clock.timestamp_from_epoch(rows.parse_finite_number(raw))


_SESSION_ROW_FORMAT = RowFormat(
    TeamSession,
    (
        rows.parse_row_id, rows.parse_session_id, rows.parse_login, rows.make_line_parser(100),
        rows.make_line_parser(MAX_TITLE_CHARACTERS), rows.parse_folder,
        rows.make_line_parser(300), rows.parse_timestamp, rows.parse_timestamp, rows.parse_session_id_or_empty,
        rows.make_line_parser(40), rows.make_keyword_parser(VISIBILITY_BY_AUDIENCE),
        rows.parse_count, rows.parse_count, rows.parse_boolean, rows.parse_boolean, rows.parse_logins, _parse_push_time,
    ),
)  # fmt: skip


def list_team_sessions(db: Database, *, only_own: bool = False) -> list[TeamSession]:
    """Return the sessions that you may see, newest first. ``only_own`` selects your own sessions.

    If there are more than ``MAX_LISTED_SESSIONS``, return those that were pushed last.
    """
    return _query_sessions(
        db, _ORDER_BY_TIME_SQL, {}, only_own=only_own, max_sessions=MAX_LISTED_SESSIONS
    )


def fetch_sessions_by_row_ids(db: Database, row_ids: list[int]) -> list[TeamSession]:
    """Return the sessions with these row ids. Sessions that you may not see are omitted."""
    return db.fetch_rows(
        _SESSIONS_QUERY + _ROW_IDS_CONDITION_SQL + _ORDER_BY_TIME_SQL,
        {"rows": row_ids, "most": len(row_ids)},
        _SESSION_ROW_FORMAT,
    )


def fetch_sessions_by_id(
    db: Database, session_ids: list[str], *, only_own: bool = False, owner: str = ""
) -> list[TeamSession]:
    """Return the sessions with these session ids, newest first. Sessions that you may not see are omitted.

    With ``owner``, return only the sessions of this member. The result can contain several sessions
    with the same id, because several machines or members can push a session under that id.
    """
    conditions = (
        _SESSION_IDS_CONDITION_SQL + (_OWNER_CONDITION_SQL if owner else "") + _ORDER_BY_TIME_SQL
    )
    matches = _query_sessions(
        db,
        conditions,
        {"ids": session_ids, "owner": owner},
        only_own=only_own,
        max_sessions=_MAX_CANDIDATE_SESSIONS,
    )
    return [session for session in matches if owner in {"", session.owner}]


def find_team_session(locator: str, db: Database, *, only_own: bool = False) -> TeamSession:
    """Return the session that matches a locator. With ``only_own``, search only your own sessions.

    Raise SessionNotFound if no session matches, and AmbiguousLocator if several do.
    """
    locator_text = locator.strip()
    first_part, _, remaining_part = locator_text.partition(":")
    values = {
        "words": [locator_text, remaining_part or locator_text],
        "first": locator_text,
        "last": remaining_part or locator_text,
        "front": first_part.partition("@")[0],
    }
    return choose_team_session(
        locator,
        _query_sessions(
            db,
            _LOCATOR_CONDITION_SQL + _ORDER_BY_MATCH_SQL,
            values,
            only_own=only_own,
            max_sessions=_MAX_CANDIDATE_SESSIONS,
        ),
    )


def _query_sessions(
    db: Database,
    conditions: str,
    values: dict[str, Any],
    *,
    only_own: bool = False,
    max_sessions: int,
) -> list[TeamSession]:
    matches: list[TeamSession] = []
    for owner_condition in (
        [_OWN_SESSIONS_CONDITION_SQL]
        if only_own
        else [_OWN_SESSIONS_CONDITION_SQL, _SESSIONS_OF_OTHERS_CONDITION_SQL]
    ):
        matches += db.fetch_rows(
            _SESSIONS_QUERY + owner_condition + conditions,
            {**values, "most": max_sessions},
            _SESSION_ROW_FORMAT,
        )
    return sorted(matches, key=lambda session: (session.end_time, session.push_time), reverse=True)


def choose_team_session(locator: str, sessions: list[TeamSession]) -> TeamSession:
    """Return the session that matches a locator: its id, the beginning of its id, or a part of its title.

    The locator may begin with ``owner:`` or ``owner@machine:``. ``sessions`` is sorted newest
    first. If several machines have pushed the session, return the latest copy. If several members
    have a session with the same id, prefer your own, then that of a current member, then one that
    was transferred from a former member.

    Raise SessionNotFound if no session matches, and AmbiguousLocator if several do.
    """
    front, colon, remaining_part = locator.strip().partition(":")
    owner_sessions = []
    for session in sessions:
        if front in {session.owner, f"{session.owner}@{session.machine}"}:
            owner_sessions.append(session)
    if colon and owner_sessions:
        sessions, locator = owner_sessions, remaining_part
    locator_text = locator.strip()
    matches = sorted(
        _select_best_matches(locator_text, sessions), key=lambda session: session.is_transferred
    )
    own_ids = {session.session_id for session in matches if session.is_own}
    sessions_by_key: dict[tuple[str, str], TeamSession] = {}
    # If ``matches`` contains several copies with the same owner and id, keep the first one.
    for session in reversed(matches):
        if session.is_own or session.session_id not in own_ids:
            sessions_by_key[session.owner, session.session_id] = session
    if not sessions_by_key:
        raise SessionNotFound(
            f"The team has no session '{collapse_line(plain_line(locator), 80)}' that you may see",
            "resume-hooks team sessions",
        )
    if len(sessions_by_key) > 1:
        listed_sessions: list[dict[str, object]] = []
        for match in list(sessions_by_key.values())[::-1][:20]:
            listed_sessions.append(
                {
                    "session_id": match.session_id,
                    "locator": f"{match.owner}:{match.session_id}",
                    "title": match.title,
                    "ended": match.end_time,
                }
            )
        raise AmbiguousLocator(
            locator, listed_sessions, len(sessions_by_key), "Give owner:id, as listed."
        )
    return next(iter(sessions_by_key.values()))


def _select_best_matches(locator_text: str, sessions: list[TeamSession]) -> list[TeamSession]:
    """Return the sessions that match a text best.

    A text can match, from best to worst: the session id, the beginning of the session id, the
    title, a part of the title.
    """
    id_matches = [session for session in sessions if session.session_id == locator_text]
    if id_matches:
        return id_matches
    if len(locator_text) >= MIN_ID_PREFIX_CHARACTERS:
        prefix_matches = [
            session for session in sessions if session.session_id.startswith(locator_text)
        ]
        if prefix_matches:
            return _keep_own_sessions_if_any(prefix_matches)
    if _is_session_id_or_prefix(locator_text):  # A session id is never compared with titles.
        return []
    title_matches = [session for session in sessions if session.title == locator_text]
    if title_matches:
        return title_matches
    lowercase_locator = locator_text.casefold()
    return [
        session
        for session in sessions
        if lowercase_locator and lowercase_locator in session.title.casefold()
    ]


def _is_session_id_or_prefix(locator_text: str) -> bool:
    """Check whether a text is a session id or the beginning of one, optionally after ``owner:``."""
    owner, _, name = locator_text.rpartition(":")
    min_characters = MIN_ID_PREFIX_CHARACTERS if owner else _LISTED_ID_LENGTH
    return len(name) >= min_characters and is_session_id(name + _SESSION_ID_PADDING[len(name) :])


def _keep_own_sessions_if_any(sessions: list[TeamSession]) -> list[TeamSession]:
    """Return only your own sessions if the list contains any, and otherwise all sessions."""
    own_sessions = []
    for session in sessions:
        if session.is_own and not session.is_transferred:
            own_sessions.append(session)
    return own_sessions or [session for session in sessions if session.is_own] or sessions
