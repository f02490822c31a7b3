"""Search the team's words: the query of the local search, asked of the server; texts out of the pieces that it names.

All words first, then any of them, then their beginnings. What the server ranks is read, compared with the phrases
that were asked for, and put in the order of the words that it has and how near they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from resume_hooks.search.index.extract import TextExtractor
from resume_hooks.search.index.tokenize import stem
from resume_hooks.search.query import Query, Term, parse
from resume_hooks.search.record_text import said_text, text_of
from resume_hooks.search.snippets import Marker, Phrase, Snippet, snippet_of
from resume_hooks.search.terms import Lookup
from resume_hooks.team.connect import Connection
from resume_hooks.team.fetching import piece_text
from resume_hooks.team.pieces import quoted
from resume_hooks.team.sessions import TeamSession, listed
from resume_hooks.transcripts import records
from resume_hooks.transcripts.turns import opens_turn

WIDTH = 260
_LOOKED_AT = 50
"""Turns that the server ranks: long rows of words are slow to rank, and the newest fifty tell enough."""


class TeamHit(NamedTuple):
    """A turn of the team's that answers. ``reference`` is ``<owner>:<session>[/agent]:<line>``.

    ``mine`` is false for what somebody else's sessions say: nobody verified it.
    """

    reference: str
    session_id: str
    owner: str
    machine: str
    title: str
    project: str
    time: str
    snippet: str
    words: tuple[str, ...]
    missing: tuple[str, ...]
    score: float
    mine: bool


class _Row(NamedTuple):
    session: int
    part: int
    record: int
    at: datetime
    rank: float


def find(
    words: Sequence[str], db: Connection, *, most: int, since: str | None = None, mine: bool = False, project: str = ""
) -> list[TeamHit]:
    """The ``most`` best hits. UsageError where nothing in the words can be looked up."""
    query = parse(words)
    rows: dict[tuple[int, int], _Row] = {}
    for asked in _asked(query):
        if len(rows) >= most:
            break
        told = (asked, since or "-infinity", _LOOKED_AT, mine, project)
        for row in db.execute("select * from team.find(%s::tsquery, %s::timestamptz, %s, %s, %s)", told):
            found = _Row(*row)
            rows.setdefault((found.part, found.record), found)
    sessions = {session.row: session for session in listed(db, [row.session for row in rows.values()])}
    shown = _Shown(query, db)
    hits = [hit for row in rows.values() if row.session in sessions and (hit := shown.hit(row, sessions[row.session]))]
    best: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        best.setdefault(hit.reference, hit)  # the same turn on two machines
    return list(best.values())[:most]


def _asked(query: Query) -> list[str]:
    """The query in the server's form, the strictest first."""
    without = "".join(f" & !({_term(term, stem_of)})" for term in query.excluded if not term.exact)
    every = [_term(term, stem_of) for term in query.terms]
    begun = [_term(term, _beginning) for term in query.terms]
    forms = [" & ".join(every), " | ".join(every), " | ".join(begun)]
    return [f"({form}){without}" for form in dict.fromkeys(forms)]


def stem_of(form: str) -> str:
    """A word as the server has it."""
    return quoted(stem(form))


def _beginning(form: str) -> str:
    return f"{stem_of(form)}:*"


def _term(term: Term, word: Callable[[str], str]) -> str:
    """A term: every word of it, each whole or by its parts."""
    tokens = []
    for whole, *parts in term.forms:
        in_parts = f" | ({' & '.join(map(word, parts))})" if parts and not term.exact else ""
        tokens.append(f"({word(whole)}{in_parts})")
    return f"({' & '.join(tokens)})"


class _Shown:
    """Reads the turns that the server found, as hits."""

    def __init__(self, query: Query, db: Connection) -> None:
        self._query = query
        self._db = db
        marks = [tuple(stem(form) for forms in term.forms for form in forms[:1]) for term in query.terms]
        lookups = [Lookup(term, "word", (), mark, 1, 1.0, mark) for term, mark in zip(query.terms, marks, strict=True)]
        self._marker = Marker(lookups)
        self._phrases = [Phrase(term.text) for term in query.terms if term.exact]
        self._without = [Phrase(term.text) for term in query.excluded if term.exact]

    def hit(self, row: _Row, session: TeamSession) -> TeamHit | None:
        """A turn as a hit, by its best record; None where its text does not bear it out."""
        query = (
            "select p.name, c.first, c.raw, c.sha, c.data from team.chunk c join team.part p on p.id = c.part"
            " where c.part = %s and c.first <= %s and c.first + c.records > %s"
        )
        found = self._db.execute(query, (row.part, row.record, row.record), binary=True).fetchone()
        if found is None:
            return None
        name, first, raw, sha, data = found
        lines = piece_text(bytes(data), raw, bytes(sha)).split(b"\n")[row.record - first :]
        best: tuple[int, Snippet] | None = None
        missing = set(range(len(self._phrases)))
        terms: set[int] = set()
        for number, snippet, low in self._texts(lines, row.record, subagent=name.startswith("subagents/")):
            if any(phrase.place_in(low) >= 0 for phrase in self._without):
                return None
            missing -= {place for place in missing if self._phrases[place].place_in(low) >= 0}
            terms |= snippet.terms
            if best is None or len(snippet.terms) + snippet.near > len(best[1].terms) + best[1].near:
                best = (number, snippet)
        if best is None or missing:
            return None
        number, snippet = best
        agent = f"/{name.removeprefix('subagents/').removesuffix('.jsonl')}" if name.startswith("subagents/") else ""
        names = [term.name for term in self._query.terms]
        return TeamHit(
            f"{session.owner}:{session.session_id}{agent}:{number}", session.session_id, session.owner, session.machine,
            session.title, session.project, row.at.isoformat(), snippet.text,
            tuple(term for place, term in enumerate(names) if place in terms),
            tuple(term for place, term in enumerate(names) if place not in terms),
            round(len(terms) + snippet.near + min(row.rank, 1.0) / 2, 3), session.mine,
        )  # fmt: skip

    def _texts(self, lines: list[bytes], number: int, *, subagent: bool) -> list[tuple[int, Snippet, str]]:
        """The records of a turn that say something: number, snippet, and the text without capitals."""
        extractor, told = TextExtractor(subagent=subagent), []
        for place, line in enumerate(lines):
            record = records.parse(line)
            if record is None:
                continue
            if place and opens_turn(record, subagent=subagent):
                break
            said = extractor.texts_of(record)
            if said is not None:
                text = text_of(said_text(said))
                told.append((number + place, snippet_of(text, self._marker, WIDTH), text.low))
        return told
