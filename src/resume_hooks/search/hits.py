"""Hits: turns as they are shown, each with its reference, its words in context, and the sessions that hold it.

Texts are read from the transcripts, never from the index; what can't be read any more is no hit.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.search.index.archived import TranscriptPaths
from resume_hooks.search.index.writing import ROLES
from resume_hooks.search.query import Query
from resume_hooks.search.ranking import PHRASED, RecordMatch, TurnHit
from resume_hooks.search.record_text import Snippet, Text, Texts, pattern_of, phrase_of, snippet_of
from resume_hooks.search.terms import Lookup
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.transcripts.head_tail import HeadTail

WIDTH = 260  # characters of a snippet
LOOKED_AT = 20  # turns whose texts are read so that those with the words close together come first
TRIED = 4  # records of a turn that are read until one is still there
MOST_READ = 2_000  # records that are read in search of an exact phrase
MOST_BYTES = 128 * 1024 * 1024  # bytes of them
NEARNESS = 0.5  # what standing close together adds to a turn's score, at most
_NEAREST = "SELECT path FROM files WHERE session=? AND agent='' ORDER BY id IN temp.scope DESC, mtime DESC LIMIT 1"
_NEAREST_HOLDER = """SELECT p.line, f.path FROM files f JOIN
(SELECT file, line FROM records WHERE id=?1 UNION ALL SELECT file, line FROM copies WHERE record=?1 AND NOT stub) p
ON f.id=p.file WHERE f.session=?2 AND f.agent=?3 ORDER BY f.id IN temp.scope DESC, f.mtime DESC LIMIT 1"""
"""Of several copies of a session, or of its copies that hold a record, the one that is searched, else the newest."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that answers a search, by its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``, ``short`` the same with as much of the id as is needed; a
    sub-agent whose session is gone goes by its path. ``file`` holds the record, ``session_file`` is its session's;
    ``sessions`` are all that hold it, the first one first; ``same`` counts its further turns that say the very same.
    ``words`` were found in the turn, ``missing`` were not.
    """

    reference: str
    short: str
    session_id: str
    session_file: str
    file: str
    folder: str
    title: str
    turn: int
    role: str
    tool: str
    time: str
    snippet: str
    marks: tuple[tuple[int, int], ...]
    words: tuple[str, ...]
    missing: tuple[str, ...]
    sessions: tuple[str, ...]
    same: int
    score: float


@dataclass(slots=True)
class _HitText:
    """The text of a turn's best record that can be read."""

    hit: TurnHit
    candidate: RecordMatch
    snippet: Snippet
    score: float
    same: int = 0


class Best(NamedTuple):
    """The best hits; ``total`` turns fit, or more of them where ``more`` could not be read."""

    hits: list[Hit]
    total: int
    more: bool


class _HitSession(NamedTuple):
    """What is shown of a session: its file, its id as short as it can be, its title, where it is resumed."""

    file: str
    short: str
    title: str
    folder: str


class Hits:
    """Makes hits of ranked turns. ``related`` are further lookups by the places of their terms in the query."""

    def __init__(
        self,
        db: sqlite3.Connection,
        query: Query,
        lookups: Sequence[Lookup],
        related: Mapping[int, Lookup],
        where: Where,
    ) -> None:
        self._db = db
        self._opening = TranscriptPaths(where)
        self._lookups = lookups
        self._pattern = pattern_of(
            [[lookup, related[place]] if place in related else [lookup] for place, lookup in enumerate(lookups)]
        )
        self._phrases = {place: phrase_of(term.text) for place, term in enumerate(query.terms) if term.exact}
        self._without = [phrase_of(term.text) for term in query.excluded if term.exact]
        self._texts = Texts(db, self._opening)
        self._left = MOST_READ
        self._sessions: dict[str, _HitSession] = {}

    def best(self, turns: Sequence[TurnHit], limit: int) -> Best:
        """The ``limit`` best of ranked turns, those with the words close together first."""
        texts: dict[tuple[str, str], _HitText] = {}
        uncertain = bool(self._phrases or self._without)
        seen = 0
        for turn in turns:
            enough = max(LOOKED_AT, limit)
            if len(texts) >= enough or self._left <= 0 or self._texts.size > MOST_BYTES:
                break
            if seen >= 2 * enough and not uncertain:
                break  # the same over and over
            seen += 1
            if (text := self._text(turn)) is not None:
                known = texts.setdefault((self._owner(text), text.snippet.text), text)
                known.same += known is not text
        best = sorted(texts.values(), key=lambda text: -text.score)
        unread = len(turns) - seen
        total = len(texts) + (0 if uncertain else unread)
        beyond = any(lookup.term.exact and lookup.rows > PHRASED for lookup in self._lookups)
        return Best([self._hit(text) for text in best[:limit]], total, beyond or (uncertain and unread > 0))

    def _text(self, turn: TurnHit) -> _HitText | None:
        """The first record of a turn that can be read, and has a phrase if there are any; all must be in the turn."""
        best: tuple[RecordMatch, Text, int] | None = None
        missing = set(self._phrases)
        for candidate in turn.records if missing else turn.records[:TRIED]:
            if self._phrases and not missing & candidate.terms.keys():
                continue
            self._left -= 1
            text = self._texts.of(candidate.record)
            low = text.bare.lower() if text else ""
            if text is None or any(phrase.search(low) for phrase in self._without):
                continue
            here = {place: match.start() for place in missing if (match := self._phrases[place].search(low))}
            if self._phrases and not here:
                continue
            best = best or (candidate, text, min(here.values(), default=0))
            missing -= here.keys()
            if not missing:
                break
        if best is None or missing:
            return None
        snippet = snippet_of(best[1], self._pattern, WIDTH, best[2])
        return _HitText(turn, best[0], snippet, turn.score * (1 + NEARNESS * snippet.near))

    def _owner(self, text: _HitText) -> str:
        """The session that a text stands in; the same said in another one is another hit."""
        query = "SELECT session FROM files WHERE id=?"
        return str(self._db.execute(query, (text.candidate.file,)).fetchone()[0])

    def _hit(self, text: _HitText) -> Hit:
        record = text.candidate.record
        tool, session_id, agent = self._db.execute(
            "SELECT n.name, f.session, f.agent FROM records r JOIN files f ON f.id=r.file JOIN names n ON n.id=r.tool"
            " WHERE r.id=?",
            (record,),
        ).fetchone()
        line, path = self._db.execute(_NEAREST_HOLDER, (record, session_id, agent)).fetchone()
        path = self._opening.path_of(path, session_id)
        session = self._session(session_id, path)
        holders = self._db.execute(
            "SELECT DISTINCT f.session FROM copies c JOIN files f ON f.id=c.file WHERE c.record=? ORDER BY f.mtime",
            (record,),
        )
        terms = text.hit.terms
        names = [look.term.name for look in self._lookups]
        tail = f"{f'/{agent}' if agent else ''}:{line}"
        lost = session.file == path and bool(agent)
        return Hit(
            reference=f"{path}:{line}" if lost else f"{session_id}{tail}",
            short=f"{path}:{line}" if lost else f"{session.short}{tail}",
            session_id=session_id,
            session_file=session.file,
            file=path,
            folder=session.folder,
            title=session.title,
            turn=text.candidate.turn,
            role=ROLES[text.candidate.role],
            tool=tool,
            time=clock.from_epoch(text.candidate.time) if text.candidate.time else "",
            snippet=text.snippet.text,
            marks=tuple(text.snippet.marks),
            words=tuple(name for place, name in enumerate(names) if place in terms),
            missing=tuple(name for place, name in enumerate(names) if place not in terms),
            same=text.same,
            sessions=tuple(dict.fromkeys([session_id, *(str(row[0]) for row in holders)])),
            score=round(text.score, 3),
        )

    def _session(self, session_id: str, path: str) -> _HitSession:
        if session_id not in self._sessions:
            row = self._db.execute(_NEAREST, (session_id,)).fetchone()
            start = session_id[:SHORT]
            (alike,) = self._db.execute(
                "SELECT count(DISTINCT session) FROM files WHERE substr(session, 1, ?)=?", (SHORT, start)
            ).fetchone()
            file = self._opening.path_of(str(row[0]), session_id) if row else path
            short = start if alike == 1 else session_id
            try:
                ends = HeadTail(file)
                self._sessions[session_id] = _HitSession(file, short, ends.title, ends.cwd)
            except SessionNotFound:
                self._sessions[session_id] = _HitSession(file, short, "(file gone)", os.path.dirname(file))
        return self._sessions[session_id]
