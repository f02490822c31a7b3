"""What was imported."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.writes import Receipt


class Imported(Strict):
    """What came, and what of it was taken over."""

    source: str = Field(description="the address without its query, or the path")
    bytes: int = Field(description="unpacked")
    sha256: str
    lines: int
    damaged: int = Field(description="lines that hold no record")
    records: int = Field(description="records of the conversation that were taken over")
    hidden: int = Field(description="of these, what the model reads and the screen does not show")
    existing: str | None = Field(description="the session that was imported from the same bytes; then none is made")


class BundleRow(Strict):
    """A session out of a bundle."""

    session_id: str = Field(description="what it is called here")
    was: str = Field(description="what it is called where it comes from")
    title: str
    parent_was: str = Field(description='what its parent is called there, "" for none')
    existing: bool = Field(description="the same was here before, so none was made")
    files: int = Field(description="large outputs and sub-agents' files that came along")


class ImportReceipt(Receipt):
    """The receipt of an import, of the last session of a bundle.

    It has no parent; where the same was imported before, that session stands there.
    """

    imported: Imported | None = Field(description="null for a bundle")
    bundle: list[BundleRow] = Field(description="the sessions of a bundle, oldest first")
