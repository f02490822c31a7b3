"""Hits: turns with a reference, their words in context, and the sessions that contain them.

A record that can no longer be read is not a hit.
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
from resume_hooks.search.ranking import PHRASED, TITLE, Found, Lookup, together
from resume_hooks.search.record_text import (
    REACH,
    Marker,
    Phrase,
    Snippet,
    Text,
    shown_text,
    snippet_of,
)
from resume_hooks.search.roles import ROLES
from resume_hooks.search.sources import Sources

WIDTH = 260  # characters of a snippet
LOOKED_AT = 20  # turns whose texts are read to rank those with nearby words first
TRIED = 4  # records of a turn to try until one can be read
MOST_HEADLESS = (
    3  # hits in headless runs of one question, because a program may ask the same a thousand times
)
MOST_READ = 2_000  # records to read for an exact phrase
MOST_BYTES = 128 * 1024 * 1024  # bytes of these records
STRONG, FAIR = 0.6, 0.25  # the minimum confidence of a strong and of a fair hit
# the score of the first place among turns and records; a turn with the phrase is as certain
FIRST = 2.0
SHORT_QUERY, LONG_QUERY = 5, 12  # a question's number of terms counts only between these limits
NEARNESS = 0.5  # the maximum bonus of nearby words, as a share of a turn's score
AS_TYPED = 0.5  # the bonus if every word has the typed form, as a share of the score


class Hit(NamedTuple):
    """A turn that answers a search, with its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``; ``short`` has the shortest unique id. A
    sub-agent whose session is gone is named by its path. ``file`` contains the record,
    ``session_file`` is the file of its session, ``agent`` its agent, ``resume`` the command that
    resumes it. ``sessions`` are all sessions with the record, original first. ``same`` is the
    number of the session's other turns with the same text. ``words`` were found in the turn,
    ``missing`` were not. If there were several wordings, ``found_by`` has the numbers, from 1, of
    those that found it. ``confidence`` is the measured probability that it answers, 0 to 1;
    ``strength`` is that as a word. ``headless`` means that its session is a run of one question.
    """

    reference: str
    short: str
    agent: str
    session_id: str
    session_file: str
    file: str
    folder: str
    resume: str
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
    confidence: float
    strength: Literal["strong", "fair", "weak"]
    found_by: tuple[int, ...]
    headless: bool = False


class _HitText(NamedTuple):
    """The text of a turn's best readable record; ``copies`` are all records with the same text, oldest first.

    ``found`` are the wordings that found the turn, the displayed one first.
    """

    found: list[Found]
    record: Posting
    snippet: Snippet
    score: float
    copies: list[Posting]


class Best(NamedTuple):
    """The best hits of ``total`` matching turns; ``more`` if some could not be read.

    ``passed_over`` are the headless runs whose matching turns are not shown.
    """

    hits: list[Hit]
    total: int
    more: bool
    passed_over: frozenset[str] = frozenset()


class Wording:
    """A wording of the question: its query, the lookups of its terms, and how to find them in texts."""

    def __init__(self, query: Query, lookups: Sequence[Lookup]) -> None:
        self.query = query
        self.lookups = lookups
        self.marker = Marker(lookups)
        self.phrases = {
            place: Phrase(term.text) for place, term in enumerate(query.terms) if term.exact
        }
        self.without = [Phrase(term.text) for term in query.excluded if term.exact]
        self._typed = [Phrase(term.forms[0][0]) for term in query.terms]

    @property
    def uncertain(self) -> bool:
        """Whether a match must be verified in the text."""
        return bool(self.phrases or self.without)

    @property
    def is_capped(self) -> bool:
        """Whether one of its phrases may be in more records than are read."""
        return any(lookup.term.exact and lookup.rows > PHRASED for lookup in self.lookups)

    def part(self, terms: Collection[int]) -> float:
        """Return the share of the query that some of its terms make up by weight, 0 to 1."""
        whole = sum(lookup.weight for lookup in self.lookups)
        if whole:
            return sum(self.lookups[place].weight for place in terms) / whole
        return 1.0

    def as_typed(self, text: Text) -> float:
        """Return the share of the query that a text contains in the typed form."""
        low = text.low[:REACH]
        return self.part(
            [place for place, word in enumerate(self._typed) if word.place_in(low) >= 0]
        )


class Hits:
    """The conversion of ranked turns into hits.

    It reads at most ``most_read`` records for phrases.

    It shows only a few turns from the files of ``headless`` runs.
    """

    def __init__(
        self,
        sources: Sources,
        wordings: Sequence[Wording],
        most_read: int = MOST_READ,
        headless: Collection[int] = (),
    ) -> None:
        self._sources = sources
        self._headless = headless
        self._wordings = wordings
        self._left = most_read
        self._last_byte = sources.size + MOST_BYTES

    def best(self, turns: Sequence[Sequence[Found]], limit: int) -> Best:
        """Return the ``limit`` best of ranked turns, those with nearby words first."""
        texts: dict[tuple[str, str], _HitText] = {}  # by session and snippet
        copies = Counter[tuple[str, str]]()
        places: set[tuple[int, int]] = set()
        uncertain = any(wording.uncertain for wording in self._wordings)
        seen = of_headless = 0
        passed_over = set[str]()
        enough = max(LOOKED_AT, limit)
        self._sources.fetch_copies(turn[0].turn.records[0] for turn in turns[:enough])
        for turn in turns:
            if len(texts) >= enough or self._left <= 0 or self._sources.size > self._last_byte:
                break
            if seen >= 2 * enough and not uncertain:
                break  # many turns with the same text
            seen += 1
            record = turn[0].turn.records[0]
            headless = record.file in self._headless
            if headless and of_headless >= MOST_HEADLESS:
                passed_over.add(self._sources.session_of(record))
            elif (text := self._turn_text(turn)) is not None:
                of_headless += headless
                first = text.copies[0]
                if (first.file, first.line) not in places:  # else a copy of it was a hit before
                    places.add((first.file, first.line))
                    said = (self._sources.session_of(first), text.snippet.text)
                    texts.setdefault(said, text)
                    copies[said] += 1
        best = sorted(texts, key=lambda said: -texts[said].score)
        unread = len(turns) - seen
        total = len(texts) + (0 if uncertain else unread)
        beyond = any(wording.is_capped for wording in self._wordings)
        hits = [self._hit(texts[said], copies[said] - 1) for said in best[:limit]]
        return Best(hits, total, beyond or (uncertain and unread > 0), frozenset(passed_over))

    def _turn_text(self, turn: Sequence[Found]) -> _HitText | None:
        """Return a turn's text for its best wording that the text confirms, or None if there is none."""
        shown: tuple[Posting, Text, int] | None = None
        found = []
        for way in turn:
            if shown is None or self._wordings[way.wording].uncertain:
                said = self._first_readable(way)
                if said is None:
                    continue
                shown = shown or said
            found.append(way)
        if shown is None:
            return None
        record, text, place = shown
        wording = self._wordings[found[0].wording]
        snippet = snippet_of(text, wording.marker, WIDTH, place)
        score = (
            together(found)
            * (1 + NEARNESS * snippet.near)
            * (1 + AS_TYPED * wording.as_typed(text))
        )
        return _HitText(found, record, snippet, score, self._sources.copies(record))

    def _first_readable(self, way: Found) -> tuple[Posting, Text, int] | None:
        """Return a turn's first readable record, its text, and the position of a phrase in it.

        The record contains at least one of the phrases, and the turn contains all of them.
        """
        best: tuple[Posting, Text, int] | None = None
        wording = self._wordings[way.wording]
        missing = set(wording.phrases)
        for record in way.turn.records if missing else way.turn.records[:TRIED]:
            self._left -= 1
            text = self._sources.text(record)
            low = text.low if text else ""
            if text is None or any(phrase.place_in(low) >= 0 for phrase in wording.without):
                continue
            here = {}
            for term in missing:
                if (place := wording.phrases[term].place_in(low)) >= 0:
                    here[term] = place
            if wording.phrases and not here:
                continue
            best = best or (record, text, min(here.values(), default=0))
            missing -= here.keys()
            if not missing:
                break
        if missing:
            return None
        return best

    def _without_secrets(self, record: Posting, snippet: Snippet, wording: Wording) -> Snippet:
        """Return a record's snippet without secrets, which are removed before the text is cut.

        In a record that is too large to check, only the snippet's own secrets are removed.
        """
        words = self._sources.words(record) or ""
        known = Redactor([words] if len(words) <= REACH else [])
        if known.redact(snippet.text) is snippet.text:
            return snippet
        if len(words) <= REACH:
            clean = known.redact(words)
        else:
            clean = known.redact(snippet.text)
        return snippet_of(shown_text(clean), wording.marker, WIDTH)

    def _hit(self, text: _HitText, same: int) -> Hit:
        """Return the hit of a text; ``same`` is the number of the session's other turns with it."""
        first = self._sources.nearest(text.copies)
        file = self._sources.file(first)
        if file is None:
            raise IndexDamaged("The index names a file that it does not know")
        path = self._sources.path(file)
        session = self._sources.session(file.session_id, path)
        shown = text.found[0]
        wording = self._wordings[shown.wording]
        terms = shown.turn.terms | text.snippet.terms
        names = [lookup.term.name for lookup in wording.lookups]
        titled = any(record.role == TITLE for record in shown.turn.records)
        if titled:
            by_title = snippet_of(shown_text(session.title), wording.marker, WIDTH).terms
        else:
            by_title = frozenset()
        said = max(wording.part(text.snippet.terms), wording.part(by_title))
        shown_snippet = self._without_secrets(text.record, text.snippet, wording)
        sure = certainty(
            wording.part(terms),
            said,
            text.snippet.near,
            len(wording.lookups),
            *((FIRST, 1) if wording.phrases else (together(text.found), len(text.found))),
        )
        tail = f"{f'/{file.agent}' if file.agent else ''}:{first.line}"
        lost = session.file == path and bool(file.agent)
        return Hit(
            reference=f"{path}:{first.line}" if lost else f"{file.session_id}{tail}",
            short=f"{path}:{first.line}" if lost else f"{session.short}{tail}",
            agent=session.agent,
            session_id=file.session_id,
            session_file=session.file,
            file=path,
            folder=session.folder,
            resume=session.resume,
            title=session.title,
            turn=first.turn,
            role=ROLES[first.role],
            tool=self._sources.tools(text.record),
            time=clock.from_epoch(first.time) if first.time else "",
            snippet=shown_snippet.text,
            marks=tuple(shown_snippet.marks),
            words=tuple(name for place, name in enumerate(names) if place in terms),
            missing=tuple(name for place, name in enumerate(names) if place not in terms),
            same=same,
            sessions=tuple(dict.fromkeys(map(self._sources.session_of, text.copies))),
            score=round(text.score, 3),
            confidence=round(sure, 2),
            strength=strength(sure),
            found_by=tuple(sorted(way.wording + 1 for way in text.found))
            if len(self._wordings) > 1
            else (),
            headless=first.file in self._headless,
        )


def certainty(
    turn: float, record: float, near: float, terms: int, score: float, wordings: int
) -> float:
    """Return the probability that a hit answers, 0 to 1.

    It depends on the shares of the query in the turn and in its best record or title, on the
    nearness of the words, on the number of ``terms``, and on the turn's ``score``, which grows with
    the ``wordings`` that found it. The weights come from a logistic regression on half of the
    questions in benchmarks/recall, and were tested on the other half.
    """
    telling = min(max(terms, SHORT_QUERY), LONG_QUERY) / LONG_QUERY
    away = (
        11.1
        - 1.8 * turn
        - 2 * record
        - 1.1 * near
        - 2.9 * telling
        - 3 * score
        + 0.9 * (wordings - 1)
    )
    return 1 / (1 + math.exp(away))


def strength(confidence: float) -> Literal["strong", "fair", "weak"]:
    """Return the word for a confidence."""
    if confidence >= STRONG:
        return "strong"
    if confidence >= FAIR:
        return "fair"
    return "weak"
