"""Search the team's words: the query of the local search, asked of the server; texts out of the pieces that it names.

All words first, then any of them, then their beginnings. What the server ranks is read, compared with the phrases
that were asked for, and put in the order of the words that it has and how near they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from resume_hooks.parts.team.connect import Connection
from resume_hooks.parts.team.fetching import piece_text
from resume_hooks.parts.team.pieces import quoted
from resume_hooks.parts.team.sessions import TeamSession, listed
from resume_hooks.search.index.extract import TextExtractor
from resume_hooks.search.index.tokenize import stem
from resume_hooks.search.query import Query, Term, parse
from resume_hooks.search.ranking import Lookup
from resume_hooks.search.record_text import Marker, Phrase, Snippet, said_text, snippet_of, text_of
from resume_hooks.transcripts import records
from resume_hooks.transcripts.turns import opens_turn

WIDTH = 260
_RANKED = 50
"""Turns that the server ranks: long rows of words are slow to rank, and the newest fifty tell enough."""

_LOOKED_AT = 20
"""Hits of which the texts are read, so that those with the words close together come first."""

_READ = 1_000
"""Turns that have the words of a phrase whose texts are read at most, to see which of them have the phrase."""

_INSTANT = timedelta(microseconds=1)
_FIND = "select * from team.find(%s::tsquery, %s::timestamptz, %s, %s, %s, %s::timestamptz)"


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


class Found(NamedTuple):
    """What answers; ``searched``: so many turns with a phrase's words were looked at, and older ones were not."""

    hits: list[TeamHit]
    searched: int = 0


class Narrowing(NamedTuple):
    """Among which turns is looked: from an instant on (ISO 8601), one's own, a project's; by default all."""

    since: str | None = None
    mine: bool = False
    project: str = ""


EVERY = Narrowing()


class _Row(NamedTuple):
    session: int
    part: int
    record: int
    at: datetime
    rank: float


def find(words: Sequence[str], db: Connection, among: Narrowing = EVERY, *, most: int) -> Found:
    """The ``most`` best hits. UsageError where nothing in the words can be looked up."""
    query = parse(words)
    has_phrases, shown = any(term.exact for term in (*query.terms, *query.excluded)), _HitReader(query)
    rows: dict[tuple[int, int], _Row] = {}
    hits: list[TeamHit] = []
    more = False
    for asked in asked_of(query):
        until: datetime | None = None
        while len(hits if has_phrases else rows) < most:
            told = (asked, among.since or "-infinity", _RANKED, among.mine, among.project, until or "infinity")
            found = [_Row(*row) for row in db.execute(_FIND, told)]
            fresh = [row for row in sorted(found, key=lambda row: -row.rank) if row[1:3] not in rows]
            rows.update((row[1:3], row) for row in fresh)
            hits += _read(fresh, shown, db, max(_LOOKED_AT, most))
            is_all = len(found) < _RANKED or not fresh
            more = has_phrases and not is_all and len(rows) >= _READ
            if is_all or more or not has_phrases:
                break
            until = min(row.at for row in found) + _INSTANT
    best: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        best.setdefault(hit.reference, hit)  # the same turn on two machines
    return Found(list(best.values())[:most], len(rows) if more and len(best) < most else 0)


def asked_of(query: Query) -> list[str]:
    """The query in the server's form, the strictest first; in none a phrase lacks one of its words."""
    without = "".join(f" & !({_term(term, stem_of)})" for term in query.excluded if not term.exact)
    every = [_term(term, stem_of) for term in query.terms]
    exact = [_term(term, stem_of) for term in query.terms if term.exact]
    begun = [_term(term, lambda form: f"{stem_of(form)}:*") for term in query.terms]
    forms = [" & ".join(every), *([" & ".join(exact)] if exact else [" | ".join(every), " | ".join(begun)])]
    return [f"({form}){without}" for form in dict.fromkeys(forms)]


def _read(rows: Sequence[_Row], shown: _HitReader, db: Connection, most: int) -> list[TeamHit]:
    """The hits among turns, the best ranked first, until there are ``most``."""
    sessions = {session.row: session for session in listed(db, [row.session for row in rows])}
    hits: list[TeamHit] = []
    seen = [row for row in rows if row.session in sessions]
    while seen and len(hits) < most:
        now, seen = seen[:_LOOKED_AT], seen[_LOOKED_AT:]
        pieces = _pieces(now, db)
        made = [shown.hit(row, piece, sessions[row.session]) for row in now if (piece := pieces.get(row[1:3]))]
        hits += [hit for hit in made if hit]
    return hits


def stem_of(form: str) -> str:
    """A word as the server has it."""
    return quoted(stem(form))


def _term(term: Term, word: Callable[[str], str]) -> str:
    """A term: every word of it, each whole or by its parts."""
    tokens = []
    for whole, *parts in term.forms:
        in_parts = f" | ({' & '.join(map(word, parts))})" if parts and not term.exact else ""
        tokens.append(f"({word(whole)}{in_parts})")
    return f"({' & '.join(tokens)})"


def _pieces(rows: list[_Row], db: Connection) -> dict[tuple[int, int], tuple[Any, ...]]:
    """The pieces that turns stand in, by part and record: name of the file, first record, size, digest, data."""
    query = (
        "select q.part, q.record, p.name, c.first, c.raw, c.sha, c.data"
        " from unnest(%s::bigint[], %s::int[]) q(part, record)"
        " join team.chunk c on c.part = q.part and c.first <= q.record and c.first + c.records > q.record"
        " join team.part p on p.id = c.part"
    )
    told = [row.part for row in rows], [row.record for row in rows]
    return {found[:2]: found[2:] for found in db.execute(query, told, binary=True)}


class _HitReader:
    """Reads the turns that the server found, as hits."""

    def __init__(self, query: Query) -> None:
        self._query = query
        marks = [tuple(stem(form) for forms in term.forms for form in forms[:1]) for term in query.terms]
        lookups = [Lookup(term, "word", (), mark, 1, 1.0, mark) for term, mark in zip(query.terms, marks, strict=True)]
        self._marker = Marker(lookups)
        stems = [word.removesuffix("i").encode() for mark in marks for word in mark]
        # No line may be passed over where a phrase must not be in any, or a word is spelled in several ways.
        sees_all = any(term.exact for term in query.excluded) or not all(term.text.isascii() for term in query.terms)
        self._needles = [] if sees_all else stems
        self._phrases = [Phrase(term.text) for term in query.terms if term.exact]
        self._without = [Phrase(term.text) for term in query.excluded if term.exact]

    def hit(self, row: _Row, piece: tuple[Any, ...], session: TeamSession) -> TeamHit | None:
        """A turn as a hit, by its best record; None where its text does not bear it out."""
        name, first, raw, sha, data = piece
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
            low = line.lower()  # escapes and accents are looked through by reading alone
            plain = bool(self._needles) and low.isascii() and b"\\u" not in low
            silent = plain and not any(needle in low for needle in self._needles)
            if silent and b'"user"' not in line:
                continue
            record = records.parse(line)
            if record is None:
                continue
            if place and opens_turn(record, subagent=subagent):
                break
            said = None if silent else extractor.texts_of(record)
            if said is not None:
                text = text_of(said_text(said))
                told.append((number + place, snippet_of(text, self._marker, WIDTH), text.low))
        return told
