"""The material of a summary: a session as text in few parts, each small enough for a model to read at once.

The whole history counts, the latest weighs most: what no part has room for is cut in the older ones first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.reading.char_budget import Piece, cut, fit
from resume_hooks.reading.selections import Reading
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.references import Names, names_of
from resume_hooks.system.text import counted

PART = 240_000
"""Bytes of a part in UTF-8: 60,000 to 120,000 tokens, in whatever script, which models take with their answer."""

MOST_PARTS = 3
"""Parts of the longest session, each of which is a call that reads it; one call more joins what they came to."""

SLIGHT = 1.25
"""Parts of text that are still given as one: a call is dearer than what the longest outputs are cut for it."""

VOICE, ASIDE = 6_000, 1_500
"""Characters of what a person or the model said, and of what a tool did."""

HEADING = "Records of the session, oldest first. Each begins at the margin with its reference, <session>:<number>."


class Part(NamedTuple):
    """Some of a session: ``text``, and the ``numbers`` of the records that stand in it."""

    text: str
    numbers: frozenset[int]


class Material(NamedTuple):
    """A session as it is given to a model: ``records`` it has in all that say something, ``parts`` oldest first."""

    session_id: str
    records: int
    parts: tuple[Part, ...]

    @property
    def numbers(self) -> frozenset[int]:
        """The records that stand in any part."""
        return frozenset().union(*(part.numbers for part in self.parts))

    @property
    def characters(self) -> int:
        """Of all parts together."""
        return sum(len(part.text) for part in self.parts)


class _Shown(NamedTuple):
    number: int
    turn: int
    piece: Piece


def material(session: SessionFile, environ: Mapping[str, str]) -> Material:
    """A session in parts, without what the client added by itself. SessionNotFound where it can't be read."""
    reading, names = Reading(session), names_of(session, environ)
    shown = list(_shown(reading, names))
    room = _room(shown)
    return Material(session.session_id, len(shown), tuple(_part(some, room) for some in _split(shown, room)))


def _shown(reading: Reading, names: Names) -> Iterator[_Shown]:
    """One record after the other, so that never more than one long output is in memory."""
    for row in reading.rows:
        for one in reading.passages([row], names):
            if not one.added:
                room = VOICE if one.voice else ASIDE
                piece = one.piece(names, room, with_turn=True)
                yield _Shown(row.number, row.turn, piece._replace(body=cut(piece, room), missing=0))


def _room(shown: Sequence[_Shown]) -> int:
    """Characters of a part: where one takes several bytes, as in scripts other than Latin, it is about a token."""
    characters = sum(len(one.piece.body) for one in shown)
    size = sum(len(one.piece.body.encode("utf-8", "replace")) for one in shown)
    return PART * characters // size if size else PART


def _split(shown: Sequence[_Shown], room: int) -> list[Sequence[_Shown]]:
    """The latest records in a part of their own, as many as it holds; the older ones in parts of equal length."""
    if sum(one.piece.length for one in shown) <= SLIGHT * room:
        return [shown] if shown else []
    start, left = len(shown), room - len(HEADING) - 1
    while start and (left := left - shown[start - 1].piece.length) > 0:
        start -= 1
    older, latest = shown[:start], shown[start:]
    total = sum(one.piece.length for one in older)
    count = min(MOST_PARTS - 1, -(-total // room))
    parts: list[list[_Shown]] = [[] for _ in range(count)]
    before = 0
    for one in older:
        parts[before * count // total].append(one)
        before += one.piece.length
    return [part for part in (*parts, latest) if part]


def _part(shown: Sequence[_Shown], room: int) -> Part:
    """Some records in the characters that a part has."""

    def gap(first: int, last: int) -> str:
        return f"… {counted(last - first + 1, 'record')} of turns {shown[first].turn} to {shown[last].turn} left out"

    text = fit(HEADING, [one.piece for one in shown], room, gap)
    lines = set(text.split("\n"))
    return Part(text, frozenset(one.number for one in shown if one.piece.head in lines))
