"""Hits: turns as they are shown, each with its reference, its words in context, and the sessions that hold it.

Texts are read from the transcripts, never from the index; what can't be read any more is no hit.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from resume_hooks import clock, records
from resume_hooks.errors import SessionNotFound
from resume_hooks.glance import Glance
from resume_hooks.index.texts import Listener
from resume_hooks.index.words import folded
from resume_hooks.index.writing import ROLES
from resume_hooks.lines import Line
from resume_hooks.searching.query import Query
from resume_hooks.searching.ranking import Candidate, TurnHit
from resume_hooks.searching.snippets import Snippet, pattern_of, snippet_of
from resume_hooks.searching.terms import Lookup

WIDTH = 260
"""Characters of a snippet."""

LOOKED_AT = 40
"""Turns whose texts are read so that those with the words close together come first."""

MOST_READ = 400
"""Turns that are read in search of an exact phrase."""

NEARNESS = 0.5
"""What standing close together adds to a turn's score, at most."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that answers a search, by its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``; ``file`` holds the record, ``session_file`` is its session's;
    ``sessions`` are all that hold it, the first one first; ``same`` counts further turns that say the very same.
    ``words`` were found in the turn, ``missing`` were not.
    """

    reference: str
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
class _Text:
    """The text of a turn's best record that can be read."""

    hit: TurnHit
    candidate: Candidate
    snippet: Snippet
    score: float
    same: int = 0


class Hits:
    """Makes hits of ranked turns."""

    def __init__(self, db: sqlite3.Connection, query: Query, lookups: Sequence[Lookup]) -> None:
        self._db = db
        self._query = query
        self._lookups = lookups
        self._pattern = pattern_of([found.stems for found in lookups])
        self._phrases = [_phrase(term.text) for term in query.terms if term.exact]
        self._without = [_phrase(term.text) for term in query.excluded if term.exact]
        self._sessions: dict[str, _Session] = {}

    def best(self, turns: Sequence[TurnHit], limit: int) -> list[Hit]:
        """The ``limit`` best of ranked turns, those with the words close together first."""
        reach = MOST_READ if self._phrases or self._without else max(LOOKED_AT, limit)
        texts: dict[str, _Text] = {}
        for turn in turns[:reach]:
            if (text := self._text(turn)) is not None:
                known = texts.setdefault(text.snippet.text, text)
                known.same += known is not text
            if len(texts) >= max(LOOKED_AT, limit):
                break
        best = sorted(texts.values(), key=lambda text: -text.score)
        return [self._hit(text) for text in best[:limit]]

    def _text(self, turn: TurnHit) -> _Text | None:
        """The first record of a turn that can be read and has the phrases."""
        for candidate in turn.records[:4]:
            text = self._read(candidate.record)
            if text is None or not self._fits(text):
                continue
            snippet = snippet_of(text, self._pattern, WIDTH)
            return _Text(turn, candidate, snippet, turn.score * (1 + NEARNESS * snippet.near))
        return None

    def _fits(self, text: str) -> bool:
        if not self._phrases and not self._without:
            return True
        flat = _phrase(text)
        return all(phrase in flat for phrase in self._phrases) and not any(phrase in flat for phrase in self._without)

    def _read(self, record: int) -> str | None:
        """The text of a record as it is indexed; None where it is no longer what was."""
        path, agent, offset, length = self._place(record)
        try:
            with open(path, "rb") as stream:
                stream.seek(offset)
                raw = stream.read(length)
        except OSError:
            return None
        found = records.parse(Line(0, offset, raw).body)
        said = Listener(subagent=bool(agent)).said(found) if found is not None else None
        return None if said is None else "\n".join(filter(None, (said.prompt, said.reply, said.input, said.result)))

    def _place(self, record: int) -> tuple[str, str, int, int]:
        row = self._db.execute(
            "SELECT f.path, f.agent, r.offset, r.length FROM records r JOIN files f ON f.id=r.file WHERE r.id=?",
            (record,),
        ).fetchone()
        return (str(row[0]), str(row[1]), int(row[2]), int(row[3])) if row else ("", "", 0, 0)

    def _hit(self, text: _Text) -> Hit:
        record = text.candidate.record
        line, tool, session_id, agent, path = self._db.execute(
            "SELECT r.line, n.name, f.session, f.agent, f.path FROM records r JOIN files f ON f.id=r.file"
            " JOIN names n ON n.id=r.tool WHERE r.id=?",
            (record,),
        ).fetchone()
        session = self._session(session_id, path)
        holders = self._db.execute(
            "SELECT DISTINCT f.session FROM copies c JOIN files f ON f.id=c.file WHERE c.record=? ORDER BY f.mtime",
            (record,),
        )
        found = text.hit.terms
        return Hit(
            reference=f"{session_id}{f'/{agent}' if agent else ''}:{line}",
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
            words=tuple(look.term.text for number, look in enumerate(self._lookups) if number in found),
            missing=tuple(look.term.text for number, look in enumerate(self._lookups) if number not in found),
            same=text.same,
            sessions=tuple(dict.fromkeys([session_id, *(str(row[0]) for row in holders)])),
            score=round(text.score, 3),
        )

    def _session(self, session_id: str, path: str) -> _Session:
        if session_id not in self._sessions:
            row = self._db.execute("SELECT path FROM files WHERE session=? AND agent=''", (session_id,)).fetchone()
            self._sessions[session_id] = _Session(str(row[0]) if row else path)
        return self._sessions[session_id]


class _Session:
    """What is shown of a session; looked up once."""

    def __init__(self, file: str) -> None:
        self.file = file

    @cached_property
    def _glance(self) -> Glance | None:
        try:
            return Glance(self.file)
        except SessionNotFound:
            return None

    @property
    def title(self) -> str:
        return self._glance.title if self._glance else "(file gone)"

    @property
    def folder(self) -> str:
        return self._glance.cwd if self._glance else os.path.dirname(self.file)


def _phrase(text: str) -> str:
    """A text in the form in which phrases are compared: without case, accents and line breaks."""
    return re.sub(r"\s+", " ", folded(text)).strip()
