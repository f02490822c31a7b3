"""The schema of search."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import StrictModel


class SearchCommands(StrictModel):
    """The commands that read the hit's record, resume its session, or hand its session off."""

    read: str
    resume: str
    handoff: str


class Hit(StrictModel):
    """A turn that matches a search, represented by its best record.

    A word of the question is in ``words`` if the turn contains it, else in ``missing``. ``same``
    counts other turns of the session with the same text. ``strength`` gives ``confidence`` as a
    word. ``headless`` is true if the session is a headless run with a single question.
    """

    reference: str = Field(description="<session id>[/agent-<id>]:<0-based line>, for read")
    agent: str = Field(description="the session's agent: claude, codex")
    session_id: str
    session_file: str
    file: str = Field(description="the transcript with the record: the session's, or a sub-agent's")
    folder: str
    title: str
    turn: int = Field(
        description="the number of the turn, counted by prompts from 1; 0 before the first prompt"
    )
    role: str
    tool: str
    time: str
    snippet: str
    words: tuple[str, ...] = Field(description="words of the query that the turn contains")
    missing: tuple[str, ...]
    sessions: tuple[str, ...] = Field(
        description="all sessions with the record, the original first"
    )
    same: int = Field(description="the number of other turns with the same text")
    score: float
    confidence: float = Field(
        description="the measured probability that the turn answers the query, 0 to 1"
    )
    strength: Literal["strong", "fair", "weak"]
    found_by: tuple[int, ...] = Field(
        description="the wordings that found the turn, if there were several: 1 is query, 2 is the first of also"
    )
    headless: bool
    commands: SearchCommands


class ProvisionalSession(StrictModel):
    """A session that is not in the index yet, but contains some of the words."""

    session_id: str
    file: str
    title: str
    words: tuple[str, ...]
    missing: tuple[str, ...]


class SearchSchema(StrictModel):
    """The turns that a search found, best first."""

    query: str
    also: list[str] = Field(description="the other wordings, from --or")
    scope: str = Field(
        description="all, session, lineage, or the folder whose project was searched"
    )
    how: str
    nothing_close: bool = Field(description="true: all hits are weak, so ask again in other words")
    total: int = Field(description="the number of matching turns; hits are the best of these turns")
    more: bool = Field(description="true: more turns may match than were counted")
    hits: list[Hit]
    helpers_left_out: int
    provisional: list[ProvisionalSession] = Field(
        description=(
            "sessions that are not indexed yet but contain some of the words, most words first"
        )
    )
    unread: int = Field(
        description="the number of files that are not indexed yet and may contain a match"
    )
