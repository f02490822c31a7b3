"""The schemas of the verbs that list, name and describe sessions."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import Field

from resume_hooks.archive.vault.locate_archived import list_earlier_states, make_earlier_state_name
from resume_hooks.cli.schema.base import (
    ByteCount,
    Commands,
    ContextSize,
    FieldDeclarer,
    LineNumbers,
    StrictModel,
)
from resume_hooks.paths import Where
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions import lineage
from resume_hooks.sessions.agents.registry import RESUMABLE_AGENT_NAMES
from resume_hooks.sessions.archived.layout import path_in_config_home
from resume_hooks.sessions.archived.manifest import ArchivedSession

Folder = Annotated[str, Field(description="the folder where the client finds the session")]

AGENT_DESCRIPTION = (
    f"the session's agent: {', '.join(RESUMABLE_AGENT_NAMES)}; "
    "prompts: only the session's prompts remain"
)
AgentName = Annotated[str, Field(description=AGENT_DESCRIPTION)]
KIND_DESCRIPTION = "original, handoff, rollover, trim, fork, clear..."

archived_session_field = FieldDeclarer[ArchivedSession]()


class ArchivedSessionRow(StrictModel):
    """A session in the vault."""

    session_id: str = archived_session_field(lambda kept: kept.session_id)
    title: str = archived_session_field(lambda kept: kept.title)
    folder: Folder = archived_session_field(lambda kept: kept.cwd)
    file: str = archived_session_field(
        lambda kept: path_in_config_home(kept.place, Where(), kept.home),
        "where the session's transcript belongs",
    )
    present: bool = archived_session_field(
        lambda kept: os.path.lexists(path_in_config_home(kept.place, Where(), kept.home)),
        "true: the client also has the transcript",
    )
    kept_in: str = archived_session_field(
        lambda kept: kept.folder, "the session's folder in the vault"
    )
    form: str = archived_session_field(
        lambda _: "packed", "the form of the copy, which is always packed"
    )
    files: int = archived_session_field(lambda kept: len(kept.parts))
    size: int = archived_session_field(
        lambda kept: kept.size, "total size in bytes of the session's unpacked files"
    )
    stored: int = archived_session_field(
        lambda kept: kept.stored, "the size of the archived copy in bytes"
    )
    ended: str = archived_session_field(
        lambda kept: kept.ended, "when the session was last written"
    )
    kept_at: str = archived_session_field(lambda kept: kept.archived_at)
    complete: bool = archived_session_field(
        lambda kept: kept.complete, "false: some of the session's files could not be archived"
    )
    earlier: list[str] = archived_session_field(
        lambda kept: [
            f"{kept.session_id}@{make_earlier_state_name(state)}"
            for state in list_earlier_states(kept)
        ],
        "SESSION arguments with which restore finds the earlier states",
    )


listed_field = FieldDeclarer[ListedSession]()


class SessionContext(StrictModel):
    """The number of tokens in a session's context, and the size of the context window."""

    tokens: int | None = listed_field(
        lambda row: row.context_tokens,
        "the number of tokens; null if the API did not count the last answer",
    )
    window: int = listed_field(lambda row: row.context.window)
    window_known: bool = listed_field(
        lambda row: row.context.is_window_known,
        "false: the window is unknown, and `window` is the smallest possible window",
    )
    kind: Literal["measured", "added", "estimated", "unknown"] = listed_field(
        lambda row: row.context.kind,
        "measured: the API counted the tokens with the last answer; added: much was added after that answer",
    )
    reason: str = listed_field(
        lambda row: row.context.uncertainty_reason, "why the number is not measured"
    )
    measured: bool = listed_field(
        lambda row: not row.context.is_estimate,
        "true: counted by the API, correct within two per cent",
    )
    percent: int | None = listed_field(
        lambda row: row.context_percent,
        "the used percentage of the window, not counting the space for an answer; null if unknown",
    )


class SessionRow(StrictModel):
    """A session, described from the first and the last 64 KB of its file."""

    agent: AgentName = listed_field(lambda row: row.agent)
    session_id: str = listed_field(lambda row: row.session_id)
    session_file: str = listed_field(lambda row: row.path)
    title: str = listed_field(lambda row: row.title)
    tag: str = listed_field(lambda row: row.tag)
    agent_name: str = listed_field(lambda row: row.agent_name)
    branch: str = listed_field(lambda row: row.branch)
    folder: Folder = listed_field(lambda row: row.folder)
    created: str = listed_field(lambda row: row.creation_time)
    ended: str = listed_field(lambda row: row.end_time)
    size: ByteCount = listed_field(lambda row: row.size)
    turns: int | None = listed_field(
        lambda row: row.turn_count,
        "the number of prompts; null if neither the file's ends nor the index contain all prompts",
    )
    turns_at_least: int = listed_field(lambda row: row.min_turn_count)
    context: SessionContext = listed_field(lambda row: row)
    kind: str = listed_field(lambda row: row.kind, KIND_DESCRIPTION)
    derivation_type: Literal["original", "trimmed", "continued"] = listed_field(
        lambda row: row.derivation_type
    )
    parent_session_id: str | None = listed_field(lambda row: row.parent_id)
    expires_days: int | None = listed_field(
        lambda row: row.days_to_expiry,
        "whole days until the client may delete the session; null for never",
    )
    expires_at: str | None = listed_field(
        lambda row: row.expiry_time,
        "the earliest time at which the client may delete the session; null for never",
    )
    kept: bool = listed_field(lambda row: row.is_archived, "true: the vault also has the session")
    open: bool = listed_field(
        lambda row: row.is_open, "true: a running client has the session open, or may have it open"
    )
    commands: Commands = listed_field(lambda row: row.commands)


class SubagentRow(StrictModel):
    """A sub-agent that has a transcript of its own."""

    locator: str = Field(description="<session id>/agent-<id>, for handoff, fork, outline and read")
    session_id: str = Field(description="the session that started the sub-agent")
    session_file: str = Field(description="the file with the sub-agent's records")
    kind: str = Field(description="the kind of agent; empty if unknown")
    asked: str = Field(description="the beginning of the sub-agent's first prompt")
    ended: str = Field(description="when the file was last written")
    size: ByteCount


class SessionsSchema(StrictModel):
    """A page of the list of sessions, newest first."""

    scope: str = Field(description="all, or the folder of the listed project")
    offset: int
    more: bool = Field(description="true: more sessions follow")
    files: int = Field(
        description=(
            "the number of files that may be sessions, including omitted ones: helpers, empty files"
        )
    )
    helpers: int = Field(
        description="the number of omitted headless runs with a single question; --helpers lists these runs"
    )
    sessions: list[SessionRow]
    archived: list[ArchivedSessionRow] = Field(
        description="with --archived: the sessions that only the vault has"
    )
    subagents: list[SubagentRow] = Field(
        [], description="with --subagents: the sub-agents, and no sessions"
    )


ancestor_field = FieldDeclarer[lineage.Ancestor]()


class Ancestor(StrictModel):
    """A session in a lineage.

    ``derivation_type`` is a short form of ``kind``, which may be handoff, fork or clear, for
    example.
    """

    session_id: str = ancestor_field(lambda row: row.session_id)
    session_file: str = ancestor_field(
        lambda row: row.session_file,
        "the path of the client's file, even if the file no longer exists",
    )
    title: str = ancestor_field(lambda row: row.title)
    derivation_type: Literal["original", "trimmed", "continued", "unknown"] = ancestor_field(
        lambda row: row.derivation_type
    )
    kind: str = ancestor_field(lambda row: row.kind, KIND_DESCRIPTION)
    exported_file: str | None = ancestor_field(lambda row: row.exported_file)
    parent_session_id: str | None = ancestor_field(lambda row: row.parent_session_id)
    status: Literal["present", "kept", "prompts", "missing", "team", "private"] = ancestor_field(
        lambda row: row.status,
        (
            "kept: an archived copy; prompts: only the session's prompts remain; team: the server "
            "has the session; private: the server does not show the session"
        ),
    )
    created: str = ancestor_field(lambda row: row.created_at)
    ended: str = ancestor_field(lambda row: row.ended_at)
    size: int = ancestor_field(lambda row: row.size, "bytes")
    owner: str = ancestor_field(
        lambda row: row.owner, "with --team: the session's owner; empty for local sessions"
    )
    machine: str = ancestor_field(lambda row: row.machine)
    subagent: str = ancestor_field(
        lambda row: row.subagent,
        "the parent's sub-agent whose work this session continues; empty if it continues the parent's own work",
    )


class LineageSchema(StrictModel):
    """A session's ancestors, oldest first, and the session itself, or only its first ancestor.

    With --derived these are the descendants, each after its parent.
    """

    rows: list[Ancestor]


class InfoSchema(StrictModel):
    """The facts about a session."""

    kept: bool = Field(
        description="true: the client's file no longer exists; session_file is a temporary copy"
    )
    form: Literal["packed"] | None
    kept_at: str | None
    agent: AgentName
    session_id: str
    session_file: str
    title: str
    tag: str
    cwd: str
    branch: str
    client_version: str
    created: str
    ended: str
    size: ByteCount
    lines: int
    longest_line: ByteCount
    bad_lines: LineNumbers
    torn: bool = Field(description="true: the last line is incomplete")
    records: int = Field(
        description="the number of linked records; `lines` is the number of all lines"
    )
    live_records: int
    turns: int = Field(description="the number of prompts, as in outline")
    live_turns: int = Field(description="the number of turns that a resume sends")
    tool_calls: int
    unanswered_calls: int
    models: dict[str, int] = Field(description="the number of answers by each model")
    context: ContextSize
    characters_per_token: float


class RenameSchema(StrictModel):
    """A session's new title or tag."""

    session_id: str
    file: str
    old: str = Field(description="the former title or tag; empty for no tag")
    new: str = Field(description="the new title or tag; empty for no tag")
    written: bool = Field(
        description="false: the session has this title or tag already, or --dry-run was given"
    )
