"""The material of a summary: a session as text in few parts, each small enough for a model to read at once.

The whole history counts, the latest part most: if there is too much, the older parts are cut first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.paths import Where
from resume_hooks.reading.char_budget import TextPiece, cut, fit
from resume_hooks.reading.passages import TurnReader
from resume_hooks.sessions.record_references import TranscriptNames, names_of
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import counted

PART = 240_000  # bytes of a part in UTF-8: 60,000 to 120,000 tokens, which models take with their answer
MAX_PARTS = 3  # of the longest session; each is a call that reads it, and one more call joins their answers
SLIGHT = 1.25  # parts of text that are still given as one: a call costs more than what is cut of the longest outputs
VOICE, ASIDE = 6_000, 1_500  # characters of what a person or the model said, and of what a tool did

HEADING = "Records of the session, oldest first. Each begins at the margin with its reference, <session>:<number>."


class SummaryPart(NamedTuple):
    """Some of a session: ``text``, and the ``numbers`` of the records that stand in it."""

    text: str
    numbers: frozenset[int]


class SummaryMaterial(NamedTuple):
    """A session as it is given to a model: ``records`` that say something in all, ``parts`` oldest first."""

    session_id: str
    records: int
    parts: tuple[SummaryPart, ...]

    @property
    def numbers(self) -> frozenset[int]:
        """The records that stand in any part."""
        return frozenset().union(*(part.numbers for part in self.parts))

    @property
    def characters(self) -> int:
        """Of all parts together."""
        return sum(len(part.text) for part in self.parts)

    @property
    def calls(self) -> int:
        """How often a model is asked: for each part, and once more to join several."""
        return len(self.parts) + (len(self.parts) > 1)


def at_hand(session_id: str) -> SummaryMaterial:
    """Nothing but the digest: for a model that has the session before it."""
    return SummaryMaterial(session_id, 0, (SummaryPart("", frozenset()),))


class _Shown(NamedTuple):
    number: int
    turn: int
    piece: TextPiece


def material(session: SessionFile, where: Where) -> SummaryMaterial:
    """A session in parts, without what the client added by itself. SessionNotFound if it can't be read."""
    reading, names = TurnReader(session), names_of(session, where)
    shown = list(_shown(reading, names))
    characters = sum(len(one.piece.body) for one in shown)
    size = sum(len(one.piece.body.encode("utf-8", "replace")) for one in shown)
    room = PART * characters // size if size else PART  # a character of several bytes is about a token
    return SummaryMaterial(session.session_id, len(shown), tuple(_part(some, room) for some in _split(shown, room)))


def _shown(reading: TurnReader, names: TranscriptNames) -> Iterator[_Shown]:
    """One record after the other, so that never more than one long output is in memory."""
    for row in reading.rows:
        for one in reading.passages([row], names):
            if not one.added:
                room = VOICE if one.voice else ASIDE
                piece = one.piece(names, room, with_turn=True)
                yield _Shown(row.number, row.turn, piece._replace(body=cut(piece, room), missing=0))


def _split(shown: Sequence[_Shown], room: int) -> list[Sequence[_Shown]]:
    """The latest records in a part of their own, as many as it holds; the older ones in parts of equal length."""
    if sum(one.piece.length for one in shown) <= SLIGHT * room:
        return [shown] if shown else []
    start, left = len(shown), room - len(HEADING) - 1
    while start and (left := left - shown[start - 1].piece.length) > 0:
        start -= 1
    older, latest = shown[:start], shown[start:]
    total = sum(one.piece.length for one in older)
    count = min(MAX_PARTS - 1, -(-total // room))
    parts: list[list[_Shown]] = [[] for _ in range(count)]
    before = 0
    for one in older:
        parts[before * count // total].append(one)
        before += one.piece.length
    return [part for part in (*parts, latest) if part]


def _part(shown: Sequence[_Shown], room: int) -> SummaryPart:

    def gap(first: int, last: int) -> str:
        return f"… {counted(last - first + 1, 'record')} of turns {shown[first].turn} to {shown[last].turn} left out"

    text = fit(HEADING, [one.piece for one in shown], room, gap)
    lines = set(text.split("\n"))
    return SummaryPart(text, frozenset(one.number for one in shown if one.piece.head in lines))
