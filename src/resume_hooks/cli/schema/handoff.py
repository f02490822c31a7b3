"""What a handoff wrote, or with ``--print`` what a child would be told."""

from __future__ import annotations

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.writes import Receipt


class HandoffReceipt(Receipt):
    """The receipt of a handoff, with what it left in the project because the user asked for it."""

    documents: list[str] = Field(description="handoff documents that were, or would be, written")
    ledger: str | None = Field(description="the ledger whose line was, or would be, renewed")


class DigestEntry(Strict):
    """One line of a digest."""

    text: str
    ref: str = Field(description="reference: session and record; empty where it is unknown")
    note: str


class DigestForm(Strict):
    """A digest: entries by section, the most telling first."""

    sections: dict[str, list[DigestEntry]]
    omitted: dict[str, int] = Field(description="entries that a section had no room for")
    git: str = Field(description="one line on the folder's repository")
    unread: int = Field(description="ancestors that were left out for their size")


class HandoffOpening(Strict):
    """What a child would be told."""

    opening: str = Field(description="the whole first message: lineage, digest, next step")
    digest: DigestForm
    full: str = Field(description="the whole digest as text, which the child keeps in a record")


class Handoff(RootModel[HandoffReceipt | HandoffOpening]):
    """What `handoff` did; with --print, what it would tell the child."""
