"""Secrets: where they lie, never what they are."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class Leak(Strict):
    """A secret in a place."""

    kind: str
    place: str = Field(description="transcript, sub-agent, companion, copy, file backup, backup, trash, vault, note")
    session_id: str = Field(description="empty where the place belongs to no session")
    reference: str = Field(description="what read prints the record of; empty where it can't")
    file: str
    line: int = Field(description="0-based; of what the vault or a whole text holds, counted from its start")
    offset: int = Field(description="first byte")
    length: int = Field(description="bytes, as written there")
    uuid: str = Field(description="of the record; empty where there is none")
    time: str = Field(description="of the record, else of the file")


class AuditReport(Strict):
    """The secrets of sessions, oldest first."""

    secrets: list[Leak]
    kinds: dict[str, int] = Field(description="secrets by kind, the most frequent first")
    files: int = Field(description="looked at, or known from before and unchanged")
    bytes: int = Field(description="of these files")
    bytes_read: int = Field(description="read this time")
