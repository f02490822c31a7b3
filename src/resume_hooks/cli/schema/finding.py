"""What was found: hits of a search, and the index behind it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class SearchCommands(Strict):
    """What to run to go on from a hit."""

    read: str
    resume: str
    handoff: str


class SearchHit(Strict):
    """A turn that answers a search, by its best record."""

    reference: str = Field(description="<session id>[/agent-<id>]:<0-based line>; read takes it")
    session_id: str
    session_file: str
    file: str = Field(description="the transcript that holds the record: the session's, or a sub-agent's")
    folder: str
    title: str
    turn: int = Field(description="by prompts in the file's order, from 1; 0 before the first")
    role: str
    tool: str
    time: str
    snippet: str
    words: list[str] = Field(description="of the query, found in the turn")
    missing: list[str]
    sessions: list[str] = Field(description="all that hold the record, the one it was first said in first")
    same: int = Field(description="further turns that say the very same")
    score: float
    commands: SearchCommands


class Search(Strict):
    """The best hits, the best first."""

    query: str
    scope: str = Field(description="all, session, lineage, or the folder whose project was searched")
    how: str
    total: int = Field(description="turns that fit; hits are the best of them")
    more: bool = Field(description="more may fit than were counted")
    hits: list[SearchHit]
    helpers_left_out: int


class Index(Strict):
    """The state of the index."""

    file: str
    state: Literal["ready", "missing", "damaged", "newer"]
    size: int
    transcripts: int
    transcripts_size: int
    sessions: int
    records: int
    copies: int
    behind: int = Field(description="files to be read or dropped")
    vaulted: int = Field(description="sessions in it of which only the vault has a copy")
    bytes_read: int = Field(description="by this command")
