"""Search the team's words: the query of the local search, asked of the server; texts out of the pieces that it names.

All words first, then any of them, then their beginnings. What the server ranks is read, compared with the phrases
that were asked for, and put in the order of the words that it has and how near they stand.

What is damaged there, or too large to be looked into, is left out and counted; nobody's sessions take so long to read
that others' are not found.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.errors import ImportFailed
from resume_hooks.parts.team import rows as columns
from resume_hooks.parts.team.pieces import quoted
from resume_hooks.parts.team.rows import Database, Form
from resume_hooks.parts.team.sessions import TeamSession, of_rows
from resume_hooks.parts.team.stored_pieces import SLICE, batches, packed_pieces, part_name, slices_of, unpacked
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

_MOST_PAGES = 100
"""Pages of turns that are asked for at most, however many texts lack the words that the server says they have."""

_LARGEST = 8 * 1024 * 1024
"""Bytes of a piece that is looked into, unpacked; larger ones hold a line that nobody typed."""

_MOST_OF_ONE = 64 * 1024 * 1024
"""Bytes of one member's pieces that are looked into, so that nobody's rows take all the time of others' searches."""

_LEAST_LINE = 200
"""Bytes that each line counts as at least: millions of empty ones would take minutes."""

_INSTANT = timedelta(microseconds=1)
_AHEAD = timedelta(days=1)
"""How far another machine's clock may be ahead; what claims to be from later is not asked for."""

_FIND = (
    "select session::text, part::text, record::text, extract(epoch from at)::float8::text, rank::text"
    " from team.find(%s::tsquery, %s::timestamptz, %s, %s, %s, %s::timestamptz)"
)
_PLACES = (
    "select q.part::text, q.record::text, p.name, c.first::text, c.records::text, c.raw::text, c.sha,"
    " octet_length(c.data)::text from unnest(%s::bigint[], %s::int[]) q(part, record)"
    " join team.chunk c on c.part = q.part and c.first <= q.record and c.first + c.records > q.record"
    " join team.part p on p.id = c.part"
)


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


class _Place(NamedTuple):
    """Where a turn stands: the file's name, and of the piece that has it the first record, its size and digest."""

    part: int
    record: int
    name: str
    first: int
    records: int
    raw: int
    sha: bytes
    stored: int


_ROW = Form(_Row, (columns.row_number, columns.row_number, columns.count, columns.epoch, columns.real))
_PLACE = Form(
    _Place,
    (
        columns.row_number, columns.count, part_name, columns.count, columns.whole(1), columns.whole(1), columns.digest,
        columns.whole(1),
    ),
)  # fmt: skip


def find(words: Sequence[str], db: Database, among: Narrowing = EVERY, *, most: int) -> Found:
    """The ``most`` best hits. UsageError where nothing in the words can be looked up."""
    query = parse(words)
    found, is_used_up = _find(query, db, among, most)
    if found.hits or not is_used_up or among.mine:
        return found
    return _find(query, db, among._replace(mine=True), most)[0]  # rows of others used up what is asked for


def _find(query: Query, db: Database, among: Narrowing, most: int) -> tuple[Found, bool]:
    """The best hits; and whether no more turns were asked for though there may be some."""
    has_phrases = any(term.exact for term in (*query.terms, *query.excluded))
    reading = _Reading(query, db)
    known: dict[tuple[int, int], _Row] = {}
    hits: list[TeamHit] = []
    more, is_used_up, before = False, False, db.refused
    for asked in asked_of(query):
        until = datetime.now(UTC) + _AHEAD
        for page in range(1, _MOST_PAGES + 1):
            if len(hits) >= most:
                break
            told = (asked, among.since or "-infinity", _RANKED, among.mine, among.project, until)
            refused = db.refused
            turns = db.rows(_FIND, told, _ROW)
            found = [row for row in turns if row.at < until]
            db.refused += len(turns) - len(found)
            is_page = len(found) + db.refused - refused >= _RANKED
            fresh = [row for row in sorted(found, key=lambda row: -row.rank) if row[1:3] not in known]
            known.update((row[1:3], row) for row in fresh)
            hits += reading.hits(fresh, max(_LOOKED_AT, most), is_exact=not has_phrases)
            is_all = not (is_page and found)
            rejected = 0 if has_phrases else db.refused - before
            is_enough = len(known) - rejected >= _READ or page == _MOST_PAGES
            is_used_up = is_used_up or (is_enough and not is_all)
            more = has_phrases and not is_all and is_enough
            if is_all or is_enough:
                break
            until = min(row.at for row in found)
            if fresh:
                until += _INSTANT  # there may be more of that instant; else there are too many of it
        if not has_phrases and len(known) - (db.refused - before) >= most:
            break
    best: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        best.setdefault(hit.reference, hit)  # the same turn on two machines
    return Found(list(best.values())[:most], len(known) if more and len(best) < most else 0), is_used_up


def asked_of(query: Query) -> list[str]:
    """The query in the server's form, the strictest first; in none a phrase lacks one of its words."""
    without = "".join(f" & !({_term(term, stem_of)})" for term in query.excluded if not term.exact)
    every = [_term(term, stem_of) for term in query.terms]
    exact = [_term(term, stem_of) for term in query.terms if term.exact]
    begun = [_term(term, lambda form: f"{stem_of(form)}:*") for term in query.terms]
    forms = [" & ".join(every), *([" & ".join(exact)] if exact else [" | ".join(every), " | ".join(begun)])]
    return [f"({form}){without}" for form in dict.fromkeys(forms)]


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


class _Reading:
    """Reads the turns that the server found, with what was read of each member."""

    def __init__(self, query: Query, db: Database) -> None:
        self._shown = _HitReader(query)
        self._db = db
        self._read = Counter[str]()

    def hits(self, rows: Sequence[_Row], most: int, *, is_exact: bool) -> list[TeamHit]:
        """The hits among turns, the best ranked first, until there are ``most``.

        Where the server was asked for exactly what is sought, a turn that is no hit counts as refused.
        """
        sessions = {session.row: session for session in of_rows(self._db, [row.session for row in rows])}
        hits: list[TeamHit] = []
        left = [row for row in rows if row.session in sessions]
        while left and len(hits) < most:
            now, left = left[:_LOOKED_AT], left[_LOOKED_AT:]
            before = self._db.refused
            found = self._of(now, sessions)
            if is_exact:
                self._db.refused = max(self._db.refused, before + len(now) - len(found))
            hits += found
        return hits

    def _of(self, rows: list[_Row], sessions: dict[int, TeamSession]) -> list[TeamHit]:
        """The hits among some turns; those of one piece are read together."""
        told = [row.part for row in rows], [row.record for row in rows]
        asked = {row[1:3]: row for row in rows}
        pieces: dict[tuple[int, int], list[_Place]] = {}
        for place in self._db.rows(_PLACES, told, _PLACE):
            row = asked.get(place[:2])
            if row is not None and place.first <= place.record < place.first + place.records:
                pieces.setdefault((place.part, place.first), []).append(place)
        wanted = [
            turns[0] for turns in pieces.values() if self._may_read(turns[0], sessions[asked[turns[0][:2]].session])
        ]
        hits: list[TeamHit] = []
        for batch in batches(wanted):
            data = packed_pieces([(piece.part, piece.first) for piece in batch if piece.stored <= SLICE], self._db)
            for piece in batch:
                turns, packed = pieces[piece.part, piece.first], data.get((piece.part, piece.first))
                slices = slices_of(piece.part, piece.first, piece.stored, self._db) if packed is None else [packed]
                try:
                    body = b"".join(unpacked(slices, piece.raw, piece.sha))
                except ImportFailed:
                    self._db.refused += len(turns)
                    continue
                if not self._may_split(body, sessions[asked[piece[:2]].session]):
                    self._db.refused += len(turns)
                    continue
                for place, lines in _split(body, turns):
                    row = asked[place[:2]]
                    hit = self._shown.hit(row, place, lines, sessions[row.session])
                    hits += [hit] if hit else []
        return hits

    def _may_read(self, piece: _Place, session: TeamSession) -> bool:
        """Whether a piece is looked into; else it counts as refused."""
        self._read[session.owner] += piece.raw
        may = piece.raw <= _LARGEST and piece.stored <= _LARGEST and self._read[session.owner] <= _MOST_OF_ONE
        self._db.refused += not may
        return may

    def _may_split(self, body: bytes, session: TeamSession) -> bool:
        """Whether the lines of a piece are looked at, which are few in all that a client wrote."""
        self._read[session.owner] += max(0, body.count(b"\n") * _LEAST_LINE - len(body))
        return self._read[session.owner] <= _MOST_OF_ONE


def _split(body: bytes, turns: list[_Place]) -> Iterator[tuple[_Place, list[bytes]]]:
    """Each turn of a piece with its lines, which end where the next one begins: none is read twice."""
    lines, starts = body.split(b"\n"), sorted({place.record for place in turns})
    ends = dict(itertools.pairwise(starts))
    for place in turns:
        end = ends.get(place.record, place.first + len(lines))
        yield place, lines[place.record - place.first : end - place.first]


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

    def hit(self, row: _Row, place: _Place, lines: list[bytes], session: TeamSession) -> TeamHit | None:
        """A turn as a hit, by its best record; None where its lines do not bear it out."""
        name = place.name
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
            round(len(terms) + snippet.near + min(max(row.rank, 0.0), 1.0) / 2, 3),
            session.mine and not session.given,
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
