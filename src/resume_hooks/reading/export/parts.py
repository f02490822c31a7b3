"""What a document is made of, in the order in which it is read; every text in it is already fit to leave the machine.

The values are the same for each form of document. Nothing here is escaped yet: that is for who writes the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.transcripts.records import Record

USER, ASSISTANT, SUMMARY = "user", "assistant", "summary"
"""Whose words they are; a summary is what a compaction, or a handoff, left for the model."""


class TurnPart(NamedTuple):
    """The head of a turn. ``tokens`` is the context after it, 0 where nobody counted; ``line`` that of its prompt.

    ``place`` is live, compacted or branch, as in an outline. ``number`` 0 is what stands before the first prompt.
    """

    number: int
    line: int
    time: str
    words: str
    place: str
    tokens: int
    tools: dict[str, int]
    failed: int


class SessionPart(NamedTuple):
    """The head of a session: what it is, and the turns that will be told, so that a table can stand before them.

    ``taken_over`` counts records that an earlier session of the same document already told.
    """

    session_id: str
    title: str
    project: str
    branch: str
    created: str
    ended: str
    kind: str
    parent: str
    tokens: int
    models: tuple[str, ...]
    versions: str
    turns: tuple[TurnPart, ...]
    taken_over: int
    damaged: int


class TextPart(NamedTuple):
    """Words: ``who`` is USER, ASSISTANT or SUMMARY. ``line`` is the record's, counted from 0."""

    who: str
    text: str
    time: str
    line: int


class ThinkingPart(NamedTuple):
    """What the model thought."""

    text: str
    line: int


class NotePart(NamedTuple):
    """What neither of the two said: a compaction, an error of the API, the output of a local command."""

    what: str
    text: str
    line: int


class MediaPart(NamedTuple):
    """An image or a document; ``data`` is base64, ``""`` where it was left out or is held elsewhere."""

    kind: str
    media_type: str
    data: str
    about: str


class ResultPart(NamedTuple):
    """What a call was answered with."""

    parts: tuple[str | MediaPart, ...]
    failed: bool


class AgentPart(NamedTuple):
    """A sub-agent's own conversation, told once, when the iterator is walked."""

    name: str
    kind: str
    parts: Iterator[Part]


class CallPart(NamedTuple):
    """A call of a tool: ``about`` is what it is about in one line, ``given`` its input."""

    tool: str
    about: str
    given: Record
    answer: ResultPart | None
    agent: AgentPart | None
    line: int


class EndPart(NamedTuple):
    """The end of the document: what was left out of it, by kind; None where nothing was looked for."""

    secrets: dict[str, int] | None
    pictures: int
    cut: int


Part = SessionPart | TurnPart | TextPart | ThinkingPart | NotePart | MediaPart | CallPart | AgentPart | EndPart
