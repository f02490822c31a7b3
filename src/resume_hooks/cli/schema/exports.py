"""What ``export`` wrote."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class Export(Strict):
    """The receipt of an export."""

    session_id: str
    session_file: str
    document: str = Field(description="the file that was, or would be, written")
    format: str = Field(description="html, md, txt or json")
    written: bool
    size: int = Field(description="bytes of the document")
    sha256: str = Field(description="digest of the document, in hex")
    sessions: list[str] = Field(description="ids of the sessions in it, oldest first")
    turns: int = Field(description="turns that are told; 0 for a bundle")
    redacted: dict[str, int] | None = Field(description="secrets that were taken out, by kind; null with --no-redact")
    images: int = Field(description="images that are in it; nobody looked into them for secrets")
    cut: int = Field(description="texts that were cut for their length, each with a notice")
