"""What sessions there are."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.archives import KeptSession
from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.writes import Commands


class EndContext(Strict):
    """The context in use, as the end of a file tells it."""

    tokens: int | None = Field(description="null where the end does not tell")
    window: int
    measured: bool = Field(description="counted by the API; else what a child came to when it was made")
    percent: int | None


class SessionRow(Strict):
    """A session, as the first and last 64 KB of its file tell."""

    session_id: str
    session_file: str
    title: str
    tag: str
    agent_name: str
    branch: str
    folder: str = Field(description="where the client must be started to find it")
    created: str
    ended: str
    size: int = Field(description="bytes")
    turns: int | None = Field(description="counted by prompts; null where neither the ends nor the index tell")
    turns_at_least: int
    context: EndContext
    kind: str = Field(description="original, handoff, rollover, trim, fork, clear...")
    derivation_type: Literal["original", "trimmed", "continued"]
    parent_session_id: str | None
    expires_days: int | None = Field(description="whole days until the client may delete it; null for never")
    expires_at: str | None = Field(description="the instant from which on the client may delete it; null for never")
    kept: bool = Field(description="the vault has it, too")
    live: bool = Field(description="a running client has it open, or it can't be told")
    commands: Commands


class Sessions(Strict):
    """A page of sessions, newest first."""

    scope: str = Field(description="all, or the folder whose project was meant")
    offset: int
    more: bool = Field(description="others follow these")
    files: int = Field(description="session files there, before any was left out: helpers, empty ones, others' folders")
    sessions: list[SessionRow]
    archived: list[KeptSession] = Field(description="with --archived: those that only the vault has")
