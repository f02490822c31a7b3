"""The forms of export, share and import."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import CommonFields, ReceiptForm, StrictModel
from resume_hooks.derive.imports.bring_in import ImportedSession
from resume_hooks.derive.imports.plan import ImportPlan


class ExportForm(StrictModel):
    """The receipt of an export."""

    session_id: str
    session_file: str
    document: str = Field(description="the file that was, or would be, written")
    format: str = Field(description="html, md or json")
    written: bool
    size: int = Field(description="bytes of the document")
    sha256: str = Field(description="digest of the document, in hex")
    sessions: list[str] = Field(description="ids of the sessions in it, oldest first")
    turns: int = Field(description="turns that are in it; 0 for a bundle")
    redacted: dict[str, int] | None = Field(
        description="secrets that were taken out, by kind; null with --no-redact"
    )
    images: int = Field(description="images that are in it; nobody looked into them for secrets")
    cut: int = Field(description="texts that were cut for their length, each with a notice")


class ShareForm(ExportForm):
    """The receipt of a share: its page, and the bundle in it."""

    redacted: dict[str, int] = Field(
        description="secrets that were taken out of the bundle, by kind"
    )
    folders: int = Field(description="places where a home folder was replaced")
    images: int = Field(
        description="images and files that are not text; nobody looked into them for secrets"
    )
    packed: int = Field(description="bytes of the bundle, packed")


imported = CommonFields[ImportPlan]()
came = CommonFields[ImportedSession]()


class ImportFacts(StrictModel):
    """The imported file, and the records that were taken over."""

    source: str = imported(lambda plan: plan.source.name, "the path, or: the standard input")
    bytes: int = imported(lambda plan: plan.source.size, "unpacked")
    sha256: str = imported(lambda plan: plan.source.sha256)
    lines: int
    damaged: int = Field(description="lines that hold no record")
    records: int = Field(description="records of the conversation that were taken over")
    hidden: int = Field(
        description="those of them that the model reads and the screen does not show"
    )
    existing: str | None = Field(
        description=(
            "the session that was imported from the same bytes before; then no new one is made"
        )
    )


class BundleRow(StrictModel):
    """A session out of a bundle."""

    session_id: str = Field(description="its id here; empty in a dry run, which makes none")
    was: str = came(lambda each: each.head.session_id, "its id where it comes from")
    title: str = came(lambda each: each.receipt.title)
    parent_was: str = came(
        lambda each: each.head.parent_session_id, 'the id of its parent there, "" for none'
    )
    existing: bool = Field(description="the same was here before, so none was made")
    files: int = Field(description="large outputs and sub-agents' files that came along")


class ImportForm(ReceiptForm):
    """The receipt of an import, of the last session of a bundle.

    It has no parent; where the same was imported before, that session stands there.
    """

    imported: ImportFacts | None = Field(description="null for a bundle")
    bundle: list[BundleRow] = Field(description="the sessions of a bundle, oldest first")
