"""Read the text of the turns that the server found, and return those that match the query as hits.

Damaged and oversized chunks are skipped and counted. The number of bytes that are read per member
is limited, so that a member with large sessions cannot take up all the time of a search.
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
from resume_hooks.parts.team.sessions import TeamSession, fetch_sessions_by_row_ids
from resume_hooks.parts.team.stored_chunks import (
    MAX_SLICE_BYTES,
    batch_chunks,
    fetch_slices,
    fetch_small_chunks,
    parse_file_name,
    unpack_lines,
)
from resume_hooks.search.index.extract import TextExtractor
from resume_hooks.search.index.tokenize import stem_word
from resume_hooks.search.query import Query
from resume_hooks.search.ranking import Lookup
from resume_hooks.search.record_text import (
    Marker,
    Phrase,
    Snippet,
    join_record_texts,
    make_display_text,
    make_snippet,
)
from resume_hooks.transcripts import records
from resume_hooks.transcripts.turns import opens_turn

MAX_SNIPPET_CHARACTERS = 260
TURNS_PER_BATCH = 20
"""The number of turns whose texts are read in one batch. The hits of a batch are sorted by how
close together the query's words are."""

_MAX_CHUNK_BYTES = 8 * 1024 * 1024
"""The maximum size of a chunk after decompression. Only a chunk with a very long line is larger,
and users do not type such long lines."""

_MAX_BYTES_PER_MEMBER = 64 * 1024 * 1024
"""The maximum number of bytes that one search reads from the chunks of one member. The limit leaves
time for the chunks of other members."""

_MIN_AVERAGE_LINE_BYTES = 200
"""A line with fewer bytes is counted as if it had this number of bytes. Without this minimum, a
chunk with millions of empty lines would stay below the limit per member but take minutes to read.
"""

_LOCATION_QUERY = (
    "select q.part::text, q.record::text, p.name, c.first::text, c.records::text, c.raw::text, c.sha,"
    " octet_length(c.data)::text from unnest(%s::bigint[], %s::int[]) q(part, record)"
    " join team.chunk c on c.part = q.part and c.first <= q.record and c.first + c.records > q.record"
    " join team.part p on p.id = c.part"
)


class TeamHit(NamedTuple):
    """A turn in the team's sessions that contains the words of a search.

    ``reference`` has the form ``<owner>:<session>[/agent]:<line>``. ``is_own`` is true if the
    session is your own. The text of another member's session is unverified.
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
    missing_words: tuple[str, ...]
    score: float
    is_own: bool


class MatchingTurn(NamedTuple):
    """A turn that the server found, with the number of its first record, its start time, rank and owner."""

    session_row_id: int
    file_row_id: int
    record_number: int
    start_time: datetime
    rank: float
    owner: str
    is_own: bool


class _TurnLocation(NamedTuple):
    """The location of a turn's first record on the server.

    The record has the number ``record_number`` in the file ``file_name``, whose row has the id
    ``file_row_id``. The other fields describe the chunk that contains the record.
    """

    file_row_id: int
    record_number: int
    file_name: str
    first_record_number: int
    record_count: int
    raw_byte_count: int
    sha256: bytes
    stored_byte_count: int


_LOCATION_ROW_FORMAT = RowFormat(
    _TurnLocation,
    (
        columns.parse_row_id, columns.parse_count, parse_file_name, columns.parse_count,
        columns.make_whole_number_parser(1),
        columns.make_whole_number_parser(1), columns.parse_digest,
        columns.make_whole_number_parser(1),
    ),
)  # fmt: skip


class _OwnedItem(Protocol):
    """Anything that has an owner, for example a turn or a hit."""

    @property
    def owner(self) -> str:
        """The owner's login."""

    @property
    def is_own(self) -> bool:
        """Whether you are the owner."""


OwnedItem = TypeVar("OwnedItem", bound=_OwnedItem)


def reorder_items_fairly_by_member(
    sorted_items: Iterable[OwnedItem], max_items: int
) -> list[OwnedItem]:
    """Return all items, reordered so that one member's items cannot crowd out the others'.

    Up to ``compute_max_per_member`` items of each member come first, and your own come before those
    of the others. The remaining items follow. Each of these groups keeps the order of
    ``sorted_items`` (best first).
    """
    counts_by_owner = Counter[str]()
    preferred_items, other_items = list[OwnedItem](), list[OwnedItem]()
    for item in sorted_items:
        counts_by_owner[item.owner] += 1
        if counts_by_owner[item.owner] <= compute_max_per_member(max_items):
            preferred_items.append(item)
        else:
            other_items.append(item)
    return [*sorted(preferred_items, key=lambda item: not item.is_own), *other_items]


def compute_max_per_member(max_items: int) -> int:
    """Return how many of the first ``max_items`` results may come from one member."""
    return max(1, max_items // 2)


class TurnReader:
    """Reads the turns that the server found, and counts the bytes that are read per member."""

    def __init__(self, query: Query, db: Database) -> None:
        self._hit_builder = _HitBuilder(query)
        self._db = db
        self._read_bytes = Counter[str]()

    def read_hits(
        self, matching_turns: Sequence[MatchingTurn], max_hits: int, *, is_exact: bool
    ) -> list[TeamHit]:
        """Return up to ``max_hits`` hits in ``matching_turns``, which are sorted by rank.

        Set ``is_exact`` if the server compared the whole query. Every turn should then have a hit,
        so a turn without one is counted as an invalid row.
        """
        sessions = {}
        for session in fetch_sessions_by_row_ids(
            self._db, [turn.session_row_id for turn in matching_turns]
        ):
            sessions[session.row_id] = session
        hits: list[TeamHit] = []
        remaining_turns = [turn for turn in matching_turns if turn.session_row_id in sessions]
        while remaining_turns and len(hits) < max_hits:
            chunk, remaining_turns = (
                remaining_turns[:TURNS_PER_BATCH],
                remaining_turns[TURNS_PER_BATCH:],
            )
            refused_before = self._db.refused_row_count
            chunk_hits = self._read_hits(chunk, sessions)
            if is_exact:
                self._db.refused_row_count = max(
                    self._db.refused_row_count, refused_before + len(chunk) - len(chunk_hits)
                )
            hits += chunk_hits
        return hits

    def _read_hits(
        self, matching_turns: list[MatchingTurn], sessions: dict[int, TeamSession]
    ) -> list[TeamHit]:
        """Return the hits in ``matching_turns``. A chunk with several of these turns is read only once."""
        values = (
            [turn.file_row_id for turn in matching_turns],
            [turn.record_number for turn in matching_turns],
        )
        turns_by_location = {turn[1:3]: turn for turn in matching_turns}
        turns_by_chunk: dict[tuple[int, int], list[_TurnLocation]] = {}
        for location in self._db.fetch_rows(_LOCATION_QUERY, values, _LOCATION_ROW_FORMAT):
            turn = turns_by_location.get(location[:2])
            if (
                turn is not None
                and location.first_record_number
                <= location.record_number
                < location.first_record_number + location.record_count
            ):
                turns_by_chunk.setdefault(
                    (location.file_row_id, location.first_record_number), []
                ).append(location)
        readable_chunks = [
            turns[0]
            for turns in turns_by_chunk.values()
            if self._is_within_limits(
                turns[0], sessions[turns_by_location[turns[0][:2]].session_row_id]
            )
        ]
        hits: list[TeamHit] = []
        for batch in batch_chunks(readable_chunks):
            packed_by_address = fetch_small_chunks(
                [
                    (chunk.file_row_id, chunk.first_record_number)
                    for chunk in batch
                    if chunk.stored_byte_count <= MAX_SLICE_BYTES
                ],
                self._db,
            )
            for chunk in batch:
                turns, packed_chunk = (
                    turns_by_chunk[chunk.file_row_id, chunk.first_record_number],
                    packed_by_address.get((chunk.file_row_id, chunk.first_record_number)),
                )
                slices = (
                    fetch_slices(
                        chunk.file_row_id,
                        chunk.first_record_number,
                        chunk.stored_byte_count,
                        self._db,
                    )
                    if packed_chunk is None
                    else [packed_chunk]
                )
                try:
                    body = b"".join(unpack_lines(slices, chunk.raw_byte_count, chunk.sha256))
                except ImportFailed:
                    self._db.refused_row_count += len(turns)
                    continue
                if not self._are_lines_within_limit(
                    body, sessions[turns_by_location[chunk[:2]].session_row_id]
                ):
                    self._db.refused_row_count += len(turns)
                    continue
                for location, lines in _split_turns(body, turns):
                    turn = turns_by_location[location[:2]]
                    hit = self._hit_builder.build_hit(
                        turn, location, lines, sessions[turn.session_row_id]
                    )
                    hits += [hit] if hit else []
        return hits

    def _is_within_limits(self, location: _TurnLocation, session: TeamSession) -> bool:
        """Check whether a chunk may be read. If not, count it as an invalid row.

        A chunk may be read if it is small enough, and if the chunks that are read from its owner do
        not together exceed the limit per member.
        """
        self._read_bytes[session.owner] += location.raw_byte_count
        is_within_limits = (
            location.raw_byte_count <= _MAX_CHUNK_BYTES
            and location.stored_byte_count <= _MAX_CHUNK_BYTES
            and self._read_bytes[session.owner] <= _MAX_BYTES_PER_MEMBER
        )
        self._db.refused_row_count += not is_within_limits
        return is_within_limits

    def _are_lines_within_limit(self, body: bytes, session: TeamSession) -> bool:
        """Check whether a member's chunks stay within the limit for bytes.

        A line with fewer than ``_MIN_AVERAGE_LINE_BYTES`` bytes counts as if it had that many.
        """
        self._read_bytes[session.owner] += max(
            0, body.count(b"\n") * _MIN_AVERAGE_LINE_BYTES - len(body)
        )
        return self._read_bytes[session.owner] <= _MAX_BYTES_PER_MEMBER


def _split_turns(
    body: bytes, turns: list[_TurnLocation]
) -> Iterator[tuple[_TurnLocation, list[bytes]]]:
    """Yield the location and the lines of each turn in a chunk.

    A turn ends where the next turn begins.
    """
    lines, turn_starts = body.split(b"\n"), sorted({location.record_number for location in turns})
    turn_ends = dict(itertools.pairwise(turn_starts))
    for location in turns:
        end = turn_ends.get(location.record_number, location.first_record_number + len(lines))
        yield (
            location,
            lines[
                location.record_number - location.first_record_number : end
                - location.first_record_number
            ],
        )


class _NumberedSnippet(NamedTuple):
    """A snippet of a record, with the record's line number and its whole text in lower case."""

    line_number: int
    snippet: Snippet
    lowercase_text: str


class _HitBuilder:
    """Makes hits from the lines of turns."""

    def __init__(self, query: Query) -> None:
        self._query = query
        term_stems = []
        for term in query.terms:
            term_stems.append(tuple(stem_word(forms[0]) for forms in term.forms if forms))
        lookups = []
        for term, mark in zip(query.terms, term_stems, strict=True):
            lookups.append(Lookup(term, "word", (), mark, 1, 1.0, mark))
        self._marker = Marker(lookups)
        stems = []
        for mark in term_stems:
            for word in mark:
                stems.append(word.removesuffix("i").encode())
        # Skipping the lines without the query's stems saves time. Every line must be read if the
        # query excludes a phrase, or if a word of the query is not ASCII, because such a word can
        # be spelled in several ways.
        must_read_every_line = any(term.is_phrase for term in query.excluded_terms) or not all(
            term.text.isascii() for term in query.terms
        )
        self._stems = [] if must_read_every_line else stems
        self._phrases = [Phrase(term.text) for term in query.terms if term.is_phrase]
        self._excluded_phrases = [
            Phrase(term.text) for term in query.excluded_terms if term.is_phrase
        ]

    def build_hit(
        self, turn: MatchingTurn, location: _TurnLocation, lines: list[bytes], session: TeamSession
    ) -> TeamHit | None:
        """Return a hit with the best record of a turn, or None if the turn does not match."""
        name = location.file_name
        best_snippet: tuple[int, Snippet] | None = None
        missing_terms = set(range(len(self._phrases)))
        terms: set[int] = set()
        for line_number, snippet, lowercase_text in self._read_numbered_snippets(
            lines, turn.record_number, is_subagent=name.startswith("subagents/")
        ):
            if any(
                phrase.find_first_position(lowercase_text) >= 0 for phrase in self._excluded_phrases
            ):
                return None
            missing_terms -= {
                location
                for location in missing_terms
                if self._phrases[location].find_first_position(lowercase_text) >= 0
            }
            terms |= snippet.term_numbers
            if (
                best_snippet is None
                or len(snippet.term_numbers) + snippet.nearness
                > len(best_snippet[1].term_numbers) + best_snippet[1].nearness
            ):
                best_snippet = (line_number, snippet)
        if best_snippet is None or missing_terms:
            return None
        line_number, snippet = best_snippet
        if name.startswith("subagents/"):
            agent = f"/{name.removeprefix('subagents/').removesuffix('.jsonl')}"
        else:
            agent = ""
        names = [term.display_name for term in self._query.terms]
        return TeamHit(
            f"{session.owner}:{session.session_id}{agent}:{line_number}", session.session_id,
            session.owner, session.machine, session.title, session.project, turn.start_time.isoformat(), snippet.text,
            tuple(term for location, term in enumerate(names) if location in terms),
            tuple(term for location, term in enumerate(names) if location not in terms),
            round(len(terms) + snippet.nearness + min(max(turn.rank, 0.0), 1.0) / 2, 3),
            session.is_own and not session.is_transferred,
        )  # fmt: skip

    def _read_numbered_snippets(
        self, lines: list[bytes], line_number: int, *, is_subagent: bool
    ) -> list[_NumberedSnippet]:
        """Return a snippet of each record that contains text.

        ``lines`` starts with the lines of a turn. Any lines after the turn are ignored.
        """
        extractor, texts = TextExtractor(subagent=is_subagent), []
        for index, line in enumerate(lines):
            # Lines with JSON escapes or accents can be compared only after parsing.
            lowercase_line = line.lower()
            is_plain = (
                bool(self._stems) and lowercase_line.isascii() and b"\\u" not in lowercase_line
            )
            has_no_match = is_plain and not any(needle in lowercase_line for needle in self._stems)
            if has_no_match and b'"user"' not in line:
                continue
            record = records.parse_record(line)
            if record is None:
                continue
            if index and opens_turn(record, is_subagent=is_subagent):
                break
            record_texts = None if has_no_match else extractor.extract_texts(record)
            if record_texts is not None:
                text = make_display_text(join_record_texts(record_texts))
                texts.append(
                    _NumberedSnippet(
                        line_number + index,
                        make_snippet(text, self._marker, MAX_SNIPPET_CHARACTERS),
                        text.folded_text,
                    )
                )
        return texts
