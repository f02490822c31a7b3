"""What the vault holds: archive, and restore out of it."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class KeptSession(Strict):
    """A session in the vault."""

    session_id: str
    title: str
    folder: str = Field(description="where the client must be started to find it")
    file: str = Field(description="where its transcript belongs")
    present: bool = Field(description="whether the client has it there, too")
    kept_in: str = Field(description="its folder in the vault")
    form: str = Field(description="linked, copied or packed")
    files: int
    size: int = Field(description="bytes of all its files, unpacked")
    stored: int = Field(description="bytes in the vault; a link counts with its whole size")
    ended: str = Field(description="when it was last written")
    kept_at: str
    complete: bool = Field(description="false: some of its files could not be kept")
    earlier: list[str] = Field(description="locators for restore of states that something else took the place of")


class Archived(Strict):
    """What became of one session that was to be kept."""

    session_id: str
    file: str
    result: str = Field(description="kept, renewed, unchanged or failed")
    why: str = Field(description="why it failed")
    packed: bool = Field(description="it was compressed by this archive")
    kept: KeptSession | None


class VaultFinding(Strict):
    """Something wrong in the vault."""

    session_id: str
    name: str = Field(description="missing, damaged, cut-short, rewritten or unreadable")
    place: str = Field(description="the file, from the client's folder on; empty for the whole session")
    message: str


class DroppedSession(Strict):
    """A session that went from the vault by the settings, or for a retention."""

    session_id: str
    title: str
    stored: int
    why: str


class Archive(Strict):
    """What was, or would be, kept; with --list what is; with --verify what is wrong; with --forget what went."""

    archived: list[Archived]
    vault: list[KeptSession] = Field(description="with --list, --verify and --forget: the sessions that it is about")
    findings: list[VaultFinding] = Field(description="with --verify")
    verified: int = Field(description="with --verify: bytes that were read")
    unhashed: int = Field(
        description="with --verify: files that are links still, of which only size and both ends were compared"
    )
    dropped: list[DroppedSession] = Field(
        description="what went; with --list what did so lately, without titles, which are not remembered"
    )
    written: bool


class Retrieved(Strict):
    """A session that came, or would come, back out of the vault."""

    session_id: str = Field(description="what it has there: the old id, or a new one where that is taken")
    file: str
    files: int = Field(description="that were, or would be, written; 0: it is there already")
    kept: KeptSession
