"""The answer of fork."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.writes import Receipt


class Cut(Strict):
    """Where a conversation was cut."""

    asked: str = Field(description="the place in words")
    reference: str = Field(description="the last record of the parent that is kept: session and 0-based line")
    moved: bool = Field(description="the place that was asked for would have split a tool call, or an answer")
    turn: int | None = Field(description="the turn that the copy ends in; null where only the file's end was read")


class ForkReceipt(Receipt):
    """The receipt of a fork; its kind is rehome where it became another folder's session."""

    cut: Cut | None = Field(description="null where the whole live conversation was kept")
