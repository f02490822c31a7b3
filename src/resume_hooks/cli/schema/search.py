"""The schema of search."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import StrictModel


class SearchCommands(StrictModel):
    """The commands for a hit's record and session."""

    read: str
    resume: str
    handoff: str


class Hit(StrictModel):
    """A turn that answers a search, with its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``, and ``short`` is the same with the shortest
    unique id. A sub-agent whose session was deleted is named by its path. ``file`` contains the
    record, ``session_file`` is the transcript of its session, ``agent`` is its agent, and
    ``resume`` is the command that resumes the session. ``sessions`` are all sessions that contain
    the record, the original first. ``same`` is the number of the session's other turns with the
    same text. ``words`` are the query's words that were found in the turn, and ``missing`` are
    those that were not. If the question had several wordings, ``found_by`` lists the numbers, from
    1, of the wordings that found the turn. ``confidence`` is the measured probability, 0 to 1, that
    the turn answers the question; ``strength`` is the same as a word. ``headless`` is true if the
    session is a headless run of one question.
    """

    reference: str = Field(description="<session id>[/agent-<id>]:<0-based line>, for read")
    agent: str = Field(description="the session's agent: claude, codex")
    session_id: str
    session_file: str
    file: str = Field(description="the transcript with the record: the session's, or a sub-agent's")
    folder: str
    title: str
    turn: int = Field(description="by prompts in the file's order, from 1; 0 before the first")
    role: str
    tool: str
    time: str
    snippet: str
    words: tuple[str, ...] = Field(description="words of the query in the turn")
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
    """A session that is not indexed yet, and the words in its file or in one of its sub-agents' files."""

    session_id: str
    file: str
    title: str
    words: tuple[str, ...]
    missing: tuple[str, ...]


class SearchSchema(StrictModel):
    """The hits, best first."""

    query: str
    also: list[str] = Field(description="the other wordings, from --or")
    scope: str = Field(
        description="all, session, lineage, or the folder whose project was searched"
    )
    how: str
    nothing_close: bool = Field(description="no hit is more than weak: ask again in other words")
    total: int = Field(description="the number of matching turns; hits are the best of these turns")
    more: bool = Field(description="more turns may match than were counted")
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
