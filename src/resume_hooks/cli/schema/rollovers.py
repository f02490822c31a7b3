"""What ``rollover`` wrote: its receipt, and what the model's summary came to."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Spent, Strict
from resume_hooks.cli.schema.writes import Receipt


class Material(Strict):
    """What a model would be given, and how often it would be asked."""

    records: int = Field(description="that say something, all of which are looked at")
    shown: int = Field(description="that the model would see, the long ones cut")
    characters: int
    tokens: int = Field(description="about")
    parts: int
    calls: int


class SummaryReport(Strict):
    """The summary of a context rollover; a dry run asks no model."""

    included: bool
    model: str = Field(description="the one that was asked for")
    failure: str | None = Field(description="why there is none; the digest alone is in the child then")
    material: Material | None = Field(description="of a dry run")
    spent: Spent | None = Field(description="null in a dry run")


class RolloverReceipt(Receipt):
    """The receipt of a rollover; ``summary`` is null with ``--quick``."""

    summary: SummaryReport | None = None
