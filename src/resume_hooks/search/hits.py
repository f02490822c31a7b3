"""Make the hits of a search from the ranked turns.

A hit is a turn with a reference, an excerpt around the query's words, and the sessions that contain
the turn. A turn whose records can no longer be read is not a hit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from resume_hooks import clock
from resume_hooks.errors import IndexDamaged
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.search.index.postings import Posting
from resume_hooks.search.query import Query
from resume_hooks.search.ranking import (
    MAX_PHRASE_RECORDS,
    TITLE_ROLE,
    Lookup,
    WordingTurn,
    combined_score,
)
from resume_hooks.search.record_text import (
    MAX_SEARCHED_CHARACTERS,
    Marker,
    Phrase,
    Snippet,
    Text,
    make_display_text,
    make_snippet,
)
from resume_hooks.search.roles import ROLES
from resume_hooks.search.sources import Sources

MAX_SNIPPET_CHARACTERS = 260  # maximum length of a snippet in characters
# Maximum number of turns whose texts are read to find out where the query's words are close
# together.
MAX_READ_TURNS = 20
# If a query has no phrase, at most this number of a turn's records are read to find one that can be
# shown.
MAX_TRIED_RECORDS = 4
# Maximum number of hits from headless runs that consist of one question. A program may start a
# thousand such runs with the same question.
MAX_HEADLESS_HITS = 3
MAX_READ_RECORDS = 2_000  # maximum number of records to read in order to find an exact phrase
# maximum total size in bytes of the records that are read for a search
MAX_READ_BYTES = 128 * 1024 * 1024
# Minimum confidence of a strong hit and of a fair hit.
STRONG_CONFIDENCE, FAIR_CONFIDENCE = 0.6, 0.25
# Score of a turn that is first in both the ranking of turns and the ranking of records. A turn that
# contains the exact phrase is given the same score.
FIRST_RANK_SCORE = 2.0
# The number of terms in a question influences the confidence of its hits only within this range.
SHORT_QUERY_TERMS, LONG_QUERY_TERMS = 5, 12
# Maximum bonus for a turn in which the query's words are close together, as a fraction of its
# score.
NEARNESS_BONUS = 0.5
# Maximum bonus for a text that contains the words exactly as typed, as a fraction of the turn's
# score.
EXACT_FORM_BONUS = 0.5


class Hit(NamedTuple):
    """A turn that answers a search, with its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``. ``short_reference`` is the same reference
    with the shortest unique session id. If a sub-agent's session was deleted, both references begin
    with the path of the sub-agent's file.

    ``file`` is the file with the record, and ``session_file`` is the transcript of the record's
    session. ``agent`` is the program that the session belongs to, such as Claude Code, and
    ``resume_command`` is the command that resumes the session. ``session_ids`` are the ids of all
    sessions that contain the record, the original session first.

    ``repetition_count`` is the number of other turns with the same text in the session. ``words``
    are the query's words that were found in the turn, and ``missing_words`` are the query's other
    words. If the question had several wordings, ``wording_numbers`` lists the numbers of the
    wordings that found the turn, counted from 1.

    ``confidence`` is the estimated probability, 0 to 1, that the turn answers the question.
    ``strength`` expresses the confidence as a word. ``is_headless`` is true if the session is a
    headless run with a single question.
    """

    reference: str
    short_reference: str
    agent: str
    session_id: str
    session_file: str
    file: str
    folder: str
    resume_command: str
    title: str
    turn_number: int
    role: str
    tool: str
    time: str
    snippet: str
    marks: tuple[tuple[int, int], ...]
    words: tuple[str, ...]
    missing_words: tuple[str, ...]
    session_ids: tuple[str, ...]
    repetition_count: int
    score: float
    confidence: float
    strength: Literal["strong", "fair", "weak"]
    wording_numbers: tuple[int, ...]
    is_headless: bool = False


class _ReadRecord(NamedTuple):
    """A record that was read from its transcript.

    ``original_text`` is its original text, and ``text`` is the same text on one line.
    ``phrase_position`` is the first position in ``text`` at which a phrase of the query occurs (0
    if the query has no phrase).
    """

    record: Posting
    original_text: str
    text: Text
    phrase_position: int


class _HitText(NamedTuple):
    """The text of the best readable record of a turn.

    ``copies`` are all records with this text, oldest first. ``original_text`` is the record's
    original text, or ``""`` if that text is too long to check for secrets. ``wording_turns`` are
    the results of all wordings that found the turn. The first of these wordings determines the
    snippet.
    """

    wording_turns: list[WordingTurn]
    record: Posting
    original_text: str
    snippet: Snippet
    score: float
    copies: list[Posting]


class BestHits(NamedTuple):
    """The best hits of a search; ``matching_turn_count`` is the number of all matching turns.

    ``has_unread_records`` is true if some records that may contain a phrase were not read.
    ``omitted_run_ids`` are the ids of headless runs whose matching turns were left out.
    """

    hits: list[Hit]
    matching_turn_count: int
    has_unread_records: bool
    omitted_run_ids: frozenset[str] = frozenset()


class Wording:
    """One wording of the question: its query, the lookups of its terms, and a ``Marker`` for its terms."""

    def __init__(self, query: Query, lookups: Sequence[Lookup]) -> None:
        self.query = query
        self.lookups = lookups
        self.marker = Marker(lookups)
        self.phrases = {
            position: Phrase(term.text)
            for position, term in enumerate(query.terms)
            if term.is_phrase
        }
        self.excluded_phrases = [
            Phrase(term.text) for term in query.excluded_terms if term.is_phrase
        ]
        self._typed_phrases = [Phrase(term.forms[0][0]) for term in query.terms]

    @property
    def needs_record_texts(self) -> bool:
        """Whether matches must be verified in the records' texts, because the query contains a phrase."""
        return bool(self.phrases or self.excluded_phrases)

    @property
    def may_have_unread_records(self) -> bool:
        """Whether so many records may contain a phrase that one search can't read them all."""
        return any(
            lookup.term.is_phrase and lookup.record_count > MAX_PHRASE_RECORDS
            for lookup in self.lookups
        )

    def weight_fraction(self, term_numbers: Collection[int]) -> float:
        """Return the weight of these terms as a fraction of the total weight of the query, 0 to 1."""
        total_weight = sum(lookup.weight for lookup in self.lookups)
        if total_weight:
            return sum(self.lookups[position].weight for position in term_numbers) / total_weight
        return 1.0

    def weight_fraction_typed_exactly(self, text: Text) -> float:
        """Return the weight of the terms that a text contains exactly as typed.

        The weight is a fraction of the total weight of the query, 0 to 1.
        """
        folded_text = text.folded_text[:MAX_SEARCHED_CHARACTERS]
        return self.weight_fraction(
            [
                position
                for position, word in enumerate(self._typed_phrases)
                if word.find_first_position(folded_text) >= 0
            ]
        )


class HitMaker:
    """Makes hits from ranked turns.

    A ``HitMaker`` reads at most ``max_reads`` records to verify phrases. Of its hits, at most
    ``MAX_HEADLESS_HITS`` come from the files in ``headless_file_ids``, which contain headless runs.
    """

    def __init__(
        self,
        sources: Sources,
        wordings: Sequence[Wording],
        max_reads: int = MAX_READ_RECORDS,
        headless_file_ids: Collection[int] = (),
    ) -> None:
        self._sources = sources
        self._headless_file_ids = headless_file_ids
        self._wordings = wordings
        self._remaining_reads = max_reads
        self._max_total_bytes = sources.read_bytes + MAX_READ_BYTES

    def best_hits(self, turns: Sequence[Sequence[WordingTurn]], max_hits: int) -> BestHits:
        """Return the best hits among the ranked turns, at most ``max_hits``.

        Turns in which the query's words are close together are ranked higher.
        """
        # Maps the id of a session and the text of a snippet to the first turn with that text.
        texts: dict[tuple[str, str], _HitText] = {}
        copies = Counter[tuple[str, str]]()
        first_records: set[tuple[int, int]] = set()
        needs_record_texts = any(wording.needs_record_texts for wording in self._wordings)
        seen_turn_count = headless_count = 0
        omitted_runs = set[str]()
        max_texts = max(MAX_READ_TURNS, max_hits)
        self._sources.fetch_copies(turn[0].turn.records[0] for turn in turns[:max_texts])
        for turn in turns:
            if (
                len(texts) >= max_texts
                or self._remaining_reads <= 0
                or self._sources.read_bytes > self._max_total_bytes
            ):
                break
            if seen_turn_count >= 2 * max_texts and not needs_record_texts:
                break  # Many turns may have the same text. Without phrases, there is no need to read all of them.
            seen_turn_count += 1
            record = turn[0].turn.records[0]
            is_headless = record.file_id in self._headless_file_ids
            if is_headless and headless_count >= MAX_HEADLESS_HITS:
                omitted_runs.add(self._sources.session_id_of_posting(record))
            elif (text := self._read_turn_text(turn)) is not None:
                headless_count += is_headless
                original = text.copies[0]
                # If the original of this text is already known, this turn is only a copy.
                if (original.file_id, original.line_number) not in first_records:
                    first_records.add((original.file_id, original.line_number))
                    text_key = (self._sources.session_id_of_posting(original), text.snippet.text)
                    texts.setdefault(text_key, text)
                    copies[text_key] += 1
        best_keys = sorted(texts, key=lambda text_key: -texts[text_key].score)
        unread_turn_count = len(turns) - seen_turn_count
        total = len(texts) + (0 if needs_record_texts else unread_turn_count)
        is_capped = any(wording.may_have_unread_records for wording in self._wordings)
        hits = [
            self._make_hit(texts[text_key], copies[text_key] - 1)
            for text_key in best_keys[:max_hits]
        ]
        return BestHits(
            hits,
            total,
            is_capped or (needs_record_texts and unread_turn_count > 0),
            frozenset(omitted_runs),
        )

    def _read_turn_text(self, turn: Sequence[WordingTurn]) -> _HitText | None:
        """Return the text of a turn, or None if the turn does not contain the phrases of any wording."""
        displayed_record: _ReadRecord | None = None
        wording_turns = []
        for wording_turn in turn:
            if (
                displayed_record is None
                or self._wordings[wording_turn.wording_index].needs_record_texts
            ):
                candidate = self._first_readable_record(wording_turn)
                if candidate is None:
                    continue
                displayed_record = displayed_record or candidate
            wording_turns.append(wording_turn)
        if displayed_record is None:
            return None
        record, words, text, position = displayed_record
        wording = self._wordings[wording_turns[0].wording_index]
        snippet = make_snippet(text, wording.marker, MAX_SNIPPET_CHARACTERS, position)
        score = (
            combined_score(wording_turns)
            * (1 + NEARNESS_BONUS * snippet.nearness)
            * (1 + EXACT_FORM_BONUS * wording.weight_fraction_typed_exactly(text))
        )
        if len(words) > MAX_SEARCHED_CHARACTERS:
            words = ""
        copies = self._sources.find_copies(record)
        return _HitText(wording_turns, record, words, snippet, score, copies)

    def _first_readable_record(self, wording_turn: WordingTurn) -> _ReadRecord | None:
        """Return the first record of a turn that can be read, or None.

        If the wording has phrases, return the first record that contains one of them. If a phrase
        occurs in none of the turn's records, return None.
        """
        best_record: _ReadRecord | None = None
        wording = self._wordings[wording_turn.wording_index]
        missing = set(wording.phrases)
        for record in (
            wording_turn.turn.records if missing else wording_turn.turn.records[:MAX_TRIED_RECORDS]
        ):
            self._remaining_reads -= 1
            words = self._sources.read_text(record)
            if words is None:
                continue
            text = make_display_text(words)
            if any(
                phrase.find_first_position(text.folded_text) >= 0
                for phrase in wording.excluded_phrases
            ):
                continue
            positions = {}
            for term in missing:
                if (position := wording.phrases[term].find_first_position(text.folded_text)) >= 0:
                    positions[term] = position
            if wording.phrases and not positions:
                continue
            if best_record is None:
                first_position = min(positions.values(), default=0)
                best_record = _ReadRecord(record, words, text, first_position)
            missing -= positions.keys()
            if not missing:
                break
        if missing:
            return None
        return best_record

    def _make_hit(self, text: _HitText, repetition_count: int) -> Hit:
        """Return the hit for a text that occurs in ``repetition_count`` other turns of the session."""
        original = self._sources.choose_original(text.copies)
        file = self._sources.indexed_file(original)
        if file is None:
            raise IndexDamaged("The index refers to a file that it does not contain")
        path = self._sources.original_path(file)
        session = self._sources.find_hit_session(file.session_id, path)
        displayed_turn = text.wording_turns[0]
        wording = self._wordings[displayed_turn.wording_index]
        terms = displayed_turn.turn.term_numbers | text.snippet.term_numbers
        found_names, missing_names = [], []
        for position, lookup in enumerate(wording.lookups):
            if position in terms:
                found_names.append(lookup.term.display_name)
            else:
                missing_names.append(lookup.term.display_name)
        clean_snippet = _redact_snippet(text, wording)
        confidence = self._estimate_confidence(text, session.title)
        if file.agent and session.path == path:  # The session of this sub-agent was deleted.
            reference = short = f"{path}:{original.line_number}"
        else:
            agent = f"/{file.agent}" if file.agent else ""
            reference = f"{file.session_id}{agent}:{original.line_number}"
            short = f"{session.short_id}{agent}:{original.line_number}"
        found_by: list[int] = []
        if len(self._wordings) > 1:
            found_by = sorted(turn.wording_index + 1 for turn in text.wording_turns)
        return Hit(
            reference=reference,
            short_reference=short,
            agent=session.agent,
            session_id=file.session_id,
            session_file=session.path,
            file=path,
            folder=session.folder,
            resume_command=session.resume_command,
            title=session.title,
            turn_number=original.turn_number,
            role=ROLES[original.role_index],
            tool=self._sources.tool_names(text.record),
            time=clock.timestamp_from_epoch(original.record_time) if original.record_time else "",
            snippet=clean_snippet.text,
            marks=tuple(clean_snippet.marks),
            words=tuple(found_names),
            missing_words=tuple(missing_names),
            repetition_count=repetition_count,
            session_ids=tuple(dict.fromkeys(map(self._sources.session_id_of_posting, text.copies))),
            score=round(text.score, 3),
            confidence=round(confidence, 2),
            strength=strength_of_confidence(confidence),
            wording_numbers=tuple(found_by),
            is_headless=original.file_id in self._headless_file_ids,
        )

    def _estimate_confidence(self, text: _HitText, title: str) -> float:
        """Return the probability, 0 to 1, that a text answers the question.

        ``title`` is the title of the text's session.
        """
        displayed_turn = text.wording_turns[0]
        wording = self._wordings[displayed_turn.wording_index]
        record_fraction = wording.weight_fraction(text.snippet.term_numbers)
        if any(record.role_index == TITLE_ROLE for record in displayed_turn.turn.records):
            of_title = make_snippet(
                make_display_text(title), wording.marker, MAX_SNIPPET_CHARACTERS
            )
            record_fraction = max(record_fraction, wording.weight_fraction(of_title.term_numbers))
        if wording.phrases:
            score, wording_count = FIRST_RANK_SCORE, 1
        else:
            score, wording_count = combined_score(text.wording_turns), len(text.wording_turns)
        return hit_probability(
            wording.weight_fraction(displayed_turn.turn.term_numbers | text.snippet.term_numbers),
            record_fraction,
            text.snippet.nearness,
            len(wording.lookups),
            score,
            wording_count,
        )


def _redact_snippet(text: _HitText, wording: Wording) -> Snippet:
    """Return the snippet of a text without secrets.

    Secrets are removed from the whole text before the snippet is cut from it. If the text is too
    large to check, only the snippet is checked for secrets.
    """
    redactor = Redactor([text.original_text] if text.original_text else [])
    if redactor.redact(text.snippet.text) is text.snippet.text:
        return text.snippet
    clean_text = redactor.redact(text.original_text or text.snippet.text)
    return make_snippet(make_display_text(clean_text), wording.marker, MAX_SNIPPET_CHARACTERS)


def hit_probability(
    turn_fraction: float,
    record_fraction: float,
    nearness: float,
    term_count: int,
    score: float,
    wording_count: int,
) -> float:
    """Return the probability, 0 to 1, that a hit answers the question.

    ``turn_fraction`` is the weight of the query's words that occur in the turn, divided by the
    weight of all words of the query. ``record_fraction`` is the same fraction for the turn's best
    record or title. ``nearness`` is higher if the words are close together. ``term_count`` is the
    number of terms in the question. ``score`` grows with ``wording_count``, the number of wordings
    that found the turn. The coefficients come from a logistic regression on half of the questions
    in benchmarks/recall, and were tested on the other half.
    """
    length_fraction = min(max(term_count, SHORT_QUERY_TERMS), LONG_QUERY_TERMS) / LONG_QUERY_TERMS
    exponent = (
        11.1
        - 1.8 * turn_fraction
        - 2 * record_fraction
        - 1.1 * nearness
        - 2.9 * length_fraction
        - 3 * score
        + 0.9 * (wording_count - 1)
    )
    return 1 / (1 + math.exp(exponent))


def strength_of_confidence(confidence: float) -> Literal["strong", "fair", "weak"]:
    """Return the word for a confidence: "strong", "fair" or "weak"."""
    if confidence >= STRONG_CONFIDENCE:
        return "strong"
    if confidence >= FAIR_CONFIDENCE:
        return "fair"
    return "weak"
