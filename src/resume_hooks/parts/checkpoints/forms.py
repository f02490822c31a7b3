"""The forms of checkpoint and rewind."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import ReceiptForm, Strict


class CheckpointRow(Strict):
    """A mark in a session."""

    uuid: str = Field(description="the last record before it")
    reference: str = Field(description="that record as session and 0-based line")
    goal: str
    started_at: str


class CheckpointForm(Strict):
    """The checkpoint of a session: set, shown, or forgotten."""

    session_id: str
    file: str
    written: bool = Field(description="a mark was set or forgotten")
    active: bool
    checkpoint: CheckpointRow | None = Field(description="the one that this is about; null where there is none")
    replaced: CheckpointRow | None


class RewindFacts(Strict):
    """What a rewind goes back to, and what it leaves out."""

    checkpoint: str = Field(description="reference: session and record")
    goal: str
    started_at: str
    resolved: bool = Field(description="false: the child starts at the root")
    report_characters: int
    first_left_out: str | None = Field(description="reference; null where nothing followed the checkpoint")
    last_left_out: str | None


class RewindForm(ReceiptForm):
    """The receipt of a rewind."""

    rewind: RewindFacts
