"""Define the JSON schemas of export, share and import."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.derive.imports.plan_import import ImportPlan
from resume_hooks.derive.verbs.import_ import ImportedSession


class ExportSchema(StrictModel):
    """The result of an export."""

    session_id: str
    session_file: str
    document: str = Field(description="the written file, or the file that would be written")
    format: str = Field(description="html, md or json")
    written: bool
    size: int = Field(description="bytes of the document")
    sha256: str = Field(description="digest of the document, in hex")
    sessions: list[str] = Field(description="ids of the sessions in it, oldest first")
    turns: int = Field(description="turns in the document; 0 for a bundle")
    redacted: dict[str, int] | None = Field(
        description="removed secrets by kind; null with --no-redact"
    )
    images: int = Field(description="images in the document, not checked for secrets")
    cut: int = Field(description="overlong texts that were cut, each with a notice")


class ShareSchema(ExportSchema):
    """The result of ``share``: the page, and the bundle that the page contains."""

    redacted: dict[str, int] = Field(description="secrets removed from the bundle, by kind")
    folders: int = Field(description="places where a home folder was replaced")
    images: int = Field(description="images and binary files, not checked for secrets")
    packed: int = Field(description="the size of the compressed bundle in bytes")


import_field = FieldDeclarer[ImportPlan]()
session_field = FieldDeclarer[ImportedSession]()


class ImportFacts(StrictModel):
    """The imported file, and the numbers of its lines and records."""

    source: str = import_field(
        lambda plan: plan.source.name, 'the path of the file, or "the standard input"'
    )
    bytes: int = import_field(
        lambda plan: plan.source.size_bytes, "the unpacked size of the file in bytes"
    )
    sha256: str = import_field(lambda plan: plan.source.sha256)
    lines: int = import_field(lambda plan: plan.line_count)
    damaged: int = import_field(
        lambda plan: plan.damaged_line_count, "the number of lines without a record"
    )
    records: int = import_field(
        lambda plan: plan.record_count, "the number of imported records of the conversation"
    )
    hidden: int = import_field(
        lambda plan: plan.hidden_record_count,
        "the number of imported records that the model receives but the screen does not show",
    )
    existing: str | None = Field(
        description="the session from an earlier import of the same bytes; if set, no new session is created"
    )


class BundleRow(StrictModel):
    """A session that was imported from a bundle."""

    session_id: str = session_field(
        lambda each: each.session_id, "the id of the imported session; empty in a dry run"
    )
    was: str = session_field(lambda each: each.head.session_id, "the session's id in the bundle")
    title: str = session_field(lambda each: each.receipt.title)
    parent_was: str = session_field(
        lambda each: each.head.parent_session_id,
        "the id of the session's parent in the bundle; empty if there is none",
    )
    existing: bool = session_field(
        lambda each: each.existed_before,
        "true: the same session existed already, so no new session was created",
    )
    files: int = session_field(
        lambda each: each.file_count, "imported files that contain large outputs or sub-agents"
    )


class ImportSchema(ReceiptSchema):
    """The result of an import. For a bundle, it describes the bundle's last session.

    An imported session has no parent. If the same file was imported before, the parent fields
    describe the session that this earlier import created.
    """

    imported: ImportFacts | None = Field(description="the imported file; null for a bundle")
    bundle: list[BundleRow] = Field(description="the sessions of a bundle, oldest first")
