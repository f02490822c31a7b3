"""What a session is and where it came from: lineage, find-derived, resolve, info."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class LineageRow(Strict):
    """A session of a lineage."""

    session_id: str
    session_file: str = Field(description="where the client has it, or had it")
    title: str
    derivation_type: Literal["original", "trimmed", "continued", "unknown"]
    kind: str = Field(description="original, handoff, rollover, trim, fork, clear...")
    exported_file: str | None
    parent_session_id: str | None
    status: Literal["present", "kept", "missing"] = Field(
        description="kept: the client's file is gone, the vault has a copy"
    )
    created: str
    ended: str
    size: int = Field(description="bytes")


class Lineage(Strict):
    """Ancestors, oldest first, the session itself last."""

    rows: list[LineageRow]


class Derived(Strict):
    """What came from a session, parents before children."""

    session_id: str
    rows: list[LineageRow]


class OfCopy(Strict):
    """Whether the file is a kept copy."""

    kept: bool = Field(description="the client's file is gone: session_file is a copy, which may go again")
    form: Literal["linked", "copied", "packed"] | None
    kept_at: str | None


class Resolved(OfCopy):
    """The session that a locator names."""

    session_id: str
    session_file: str
    title: str
    size: int = Field(description="bytes")
    ended: str


class Context(Strict):
    """Tokens in use."""

    tokens: int
    window: int
    measured: bool = Field(description="counted by the API; else estimated from characters")
    percent: int
    compacts_at_once: bool


class Info(OfCopy):
    """What a session holds."""

    session_id: str
    session_file: str
    title: str
    tag: str
    cwd: str
    branch: str
    client_version: str
    created: str
    ended: str
    size: int = Field(description="bytes")
    lines: int
    bad_lines: list[int] = Field(description="0-based numbers of lines that hold no JSON object")
    torn: bool = Field(description="the last line has no ending")
    records: int
    live_records: int
    turns: int
    tool_calls: int
    unanswered_calls: int
    models: dict[str, int] = Field(description="answers by model")
    context: Context
    characters_per_token: float
