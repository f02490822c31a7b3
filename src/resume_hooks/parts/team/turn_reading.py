"""Read the turns that the server found. A turn becomes a hit if its text confirms the match.

Damaged or oversized pieces are left out and counted. The number of bytes read per member is
limited, so that one member's sessions cannot prevent hits in those of others.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from resume_hooks.errors import ImportFailed
from resume_hooks.parts.team import rows as columns
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.sessions import TeamSession, sessions_with_rows
from resume_hooks.parts.team.stored_pieces import (
    SLICE_BYTES,
    batch_pieces,
    fetch_packed,
    fetch_slices,
    parse_part_name,
    unpack_lines,
)
from resume_hooks.search.index.extract import TextExtractor
from resume_hooks.search.index.tokenize import stem
from resume_hooks.search.query import Query
from resume_hooks.search.ranking import Lookup
from resume_hooks.search.record_text import (
    Marker,
    Phrase,
    Snippet,
    display_text,
    join_record_texts,
    make_snippet,
)
from resume_hooks.transcripts import records
from resume_hooks.transcripts.turns import opens_turn

SNIPPET_WIDTH = 260
HITS_PER_READ = 20
"""The number of turns whose texts are read together, so that turns with the words close together rank first."""

_LARGEST_PIECE = 8 * 1024 * 1024
"""The maximum decompressed size of a piece. A larger piece contains a line that nobody typed."""

_MOST_BYTES_PER_MEMBER = 64 * 1024 * 1024
"""The maximum number of bytes read from one member's pieces per search, so that others also get time."""

_LEAST_LINE_BYTES = 200
"""The number of bytes that even a shorter line counts as, because millions of empty lines would take minutes."""

_LOCATION_QUERY = (
    "select q.part::text, q.record::text, p.name, c.first::text, c.records::text, c.raw::text, c.sha,"
    " octet_length(c.data)::text from unnest(%s::bigint[], %s::int[]) q(part, record)"
    " join team.chunk c on c.part = q.part and c.first <= q.record and c.first + c.records > q.record"
    " join team.part p on p.id = c.part"
)


class TeamHit(NamedTuple):
    """A matching turn in the team's sessions. ``reference`` is ``<owner>:<session>[/agent]:<line>``.

    ``mine`` is false for sessions of others, whose words are unverified.
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


class FoundTurn(NamedTuple):
    """A turn that the server found: its location, time and owner."""

    session: int
    part: int
    record: int
    at: datetime
    rank: float
    owner: str
    mine: bool


class _TurnLocation(NamedTuple):
    """The location of a turn: the file's name, and the first record, size and digest of its piece."""

    part: int
    record: int
    name: str
    first: int
    records: int
    raw: int
    sha: bytes
    stored: int


_LOCATION_FORMAT = RowFormat(
    _TurnLocation,
    (
        columns.parse_row_number, columns.parse_count, parse_part_name, columns.parse_count,
        columns.parse_whole_number(1),
        columns.parse_whole_number(1), columns.parse_digest,
        columns.parse_whole_number(1),
    ),
)  # fmt: skip


class _OwnedItem(Protocol):
    """A turn or a hit with an owner."""

    @property
    def owner(self) -> str:
        """The owner's login."""

    @property
    def mine(self) -> bool:
        """Whether you are the owner."""


SomeOwned = TypeVar("SomeOwned", bound=_OwnedItem)


def share_among_members(ordered: Iterable[SomeOwned], most: int) -> list[SomeOwned]:
    """Return each member's best items first, starting with yours. These are at most half of ``most`` per member."""
    counts = Counter[str]()
    first, rest = list[SomeOwned](), list[SomeOwned]()
    for item in ordered:
        counts[item.owner] += 1
        (first if counts[item.owner] <= member_share(most) else rest).append(item)
    return [*sorted(first, key=lambda item: not item.mine), *rest]


def member_share(most: int) -> int:
    """Return the maximum number of results from one member, out of ``most``, while others have results."""
    return max(1, most // 2)


class TurnReader:
    """Reads the turns that the server found, and counts the bytes read from each member's pieces."""

    def __init__(self, query: Query, db: Database) -> None:
        self._shown = _HitReader(query)
        self._db = db
        self._read = Counter[str]()

    def hits(self, rows: Sequence[FoundTurn], most: int, *, is_exact: bool) -> list[TeamHit]:
        """Return up to ``most`` hits among turns that are sorted by rank.

        If ``is_exact`` is true, a turn without a hit counts as invalid, because the server's query
        was complete.
        """
        sessions = {}
        for session in sessions_with_rows(self._db, [row.session for row in rows]):
            sessions[session.row] = session
        hits: list[TeamHit] = []
        remaining = [row for row in rows if row.session in sessions]
        while remaining and len(hits) < most:
            chunk, remaining = remaining[:HITS_PER_READ], remaining[HITS_PER_READ:]
            refused = self._db.refused
            chunk_hits = self._read_hits(chunk, sessions)
            if is_exact:
                self._db.refused = max(self._db.refused, refused + len(chunk) - len(chunk_hits))
            hits += chunk_hits
        return hits

    def _read_hits(self, rows: list[FoundTurn], sessions: dict[int, TeamSession]) -> list[TeamHit]:
        """Return the hits among some turns. Turns in the same piece are read together."""
        values = [turn.part for turn in rows], [turn.record for turn in rows]
        turns_by_place = {turn[1:3]: turn for turn in rows}
        pieces: dict[tuple[int, int], list[_TurnLocation]] = {}
        for location in self._db.rows(_LOCATION_QUERY, values, _LOCATION_FORMAT):
            turn = turns_by_place.get(location[:2])
            if (
                turn is not None
                and location.first <= location.record < location.first + location.records
            ):
                pieces.setdefault((location.part, location.first), []).append(location)
        readable = [
            turns[0]
            for turns in pieces.values()
            if self._is_within_limits(turns[0], sessions[turns_by_place[turns[0][:2]].session])
        ]
        hits: list[TeamHit] = []
        for batch in batch_pieces(readable):
            data = fetch_packed(
                [(piece.part, piece.first) for piece in batch if piece.stored <= SLICE_BYTES],
                self._db,
            )
            for piece in batch:
                turns, packed = pieces[piece.part, piece.first], data.get((piece.part, piece.first))
                slices = (
                    fetch_slices(piece.part, piece.first, piece.stored, self._db)
                    if packed is None
                    else [packed]
                )
                try:
                    body = b"".join(unpack_lines(slices, piece.raw, piece.sha))
                except ImportFailed:
                    self._db.refused += len(turns)
                    continue
                if not self._has_plausible_lines(body, sessions[turns_by_place[piece[:2]].session]):
                    self._db.refused += len(turns)
                    continue
                for location, lines in _split_turns(body, turns):
                    turn = turns_by_place[location[:2]]
                    hit = self._shown.hit(turn, location, lines, sessions[turn.session])
                    hits += [hit] if hit else []
        return hits

    def _is_within_limits(self, piece: _TurnLocation, session: TeamSession) -> bool:
        """Check whether a piece is within the limits. If it is not, count it as refused."""
        self._read[session.owner] += piece.raw
        may = (
            piece.raw <= _LARGEST_PIECE
            and piece.stored <= _LARGEST_PIECE
            and self._read[session.owner] <= _MOST_BYTES_PER_MEMBER
        )
        self._db.refused += not may
        return may

    def _has_plausible_lines(self, body: bytes, session: TeamSession) -> bool:
        """Check whether a piece has a plausible number of lines."""
        self._read[session.owner] += max(0, body.count(b"\n") * _LEAST_LINE_BYTES - len(body))
        return self._read[session.owner] <= _MOST_BYTES_PER_MEMBER


def _split_turns(
    body: bytes, turns: list[_TurnLocation]
) -> Iterator[tuple[_TurnLocation, list[bytes]]]:
    """Yield each turn of a piece with its lines. A turn ends at the beginning of the next turn."""
    lines, starts = body.split(b"\n"), sorted({location.record for location in turns})
    ends = dict(itertools.pairwise(starts))
    for location in turns:
        end = ends.get(location.record, location.first + len(lines))
        yield location, lines[location.record - location.first : end - location.first]


class _HitReader:
    """Creates hits from the texts of turns."""

    def __init__(self, query: Query) -> None:
        self._query = query
        marks = []
        for term in query.terms:
            marks.append(tuple(stem(forms[0]) for forms in term.forms if forms))
        lookups = []
        for term, mark in zip(query.terms, marks, strict=True):
            lookups.append(Lookup(term, "word", (), mark, 1, 1.0, mark))
        self._marker = Marker(lookups)
        stems = []
        for mark in marks:
            for word in mark:
                stems.append(word.removesuffix("i").encode())
        # Every line must be read if the query excludes a phrase or if a word has several spellings.
        sees_all = any(term.is_phrase for term in query.excluded) or not all(
            term.text.isascii() for term in query.terms
        )
        self._needles = [] if sees_all else stems
        self._phrases = [Phrase(term.text) for term in query.terms if term.is_phrase]
        self._without = [Phrase(term.text) for term in query.excluded if term.is_phrase]

    def hit(
        self, turn: FoundTurn, location: _TurnLocation, lines: list[bytes], session: TeamSession
    ) -> TeamHit | None:
        """Return a hit that shows a turn's best record, or None if the turn's lines do not contain the words."""
        name = location.name
        best: tuple[int, Snippet] | None = None
        missing = set(range(len(self._phrases)))
        terms: set[int] = set()
        for number, snippet, low in self._texts(
            lines, turn.record, subagent=name.startswith("subagents/")
        ):
            if any(phrase.find_in(low) >= 0 for phrase in self._without):
                return None
            missing -= {
                location for location in missing if self._phrases[location].find_in(low) >= 0
            }
            terms |= snippet.terms
            if (
                best is None
                or len(snippet.terms) + snippet.nearness > len(best[1].terms) + best[1].nearness
            ):
                best = (number, snippet)
        if best is None or missing:
            return None
        number, snippet = best
        if name.startswith("subagents/"):
            agent = f"/{name.removeprefix('subagents/').removesuffix('.jsonl')}"
        else:
            agent = ""
        names = [term.name for term in self._query.terms]
        return TeamHit(
            f"{session.owner}:{session.session_id}{agent}:{number}", session.session_id, session.owner, session.machine,
            session.title, session.project, turn.at.isoformat(), snippet.text,
            tuple(term for location, term in enumerate(names) if location in terms),
            tuple(term for location, term in enumerate(names) if location not in terms),
            round(len(terms) + snippet.nearness + min(max(turn.rank, 0.0), 1.0) / 2, 3),
            session.mine and not session.given,
        )  # fmt: skip

    def _texts(
        self, lines: list[bytes], number: int, *, subagent: bool
    ) -> list[tuple[int, Snippet, str]]:
        """Return the records of a turn that have text: the line number, the snippet and the lower-case text."""
        extractor, texts = TextExtractor(subagent=subagent), []
        for index, line in enumerate(lines):
            low = line.lower()  # JSON escapes and accents can only be compared after parsing.
            plain = bool(self._needles) and low.isascii() and b"\\u" not in low
            has_no_match = plain and not any(needle in low for needle in self._needles)
            if has_no_match and b'"user"' not in line:
                continue
            record = records.parse(line)
            if record is None:
                continue
            if index and opens_turn(record, subagent=subagent):
                break
            record_texts = None if has_no_match else extractor.extract_texts(record)
            if record_texts is not None:
                text = display_text(join_record_texts(record_texts))
                texts.append(
                    (number + index, make_snippet(text, self._marker, SNIPPET_WIDTH), text.folded)
                )
        return texts
