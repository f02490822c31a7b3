"""The form of rewind-files."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class RewindTo(Strict):
    """The prompt that the files go back to."""

    uuid: str
    reference: str = Field(description="session and 0-based line")
    turn: int | None = Field(description="null for a message that opens no turn")
    words: str
    exact: bool = Field(
        description="false: the client kept no state there; it is the last one before, with edits between"
    )


class FileRow(Strict):
    """One tracked file."""

    path: str = Field(description="below the project; as the transcript has it where it was refused")
    action: Literal["restore", "create", "delete", "none"]
    status: Literal["planned", "written", "unchanged", "missing", "refused"]
    why: str = Field(description="why it is left alone; empty else")
    changed_since: bool | None = Field(description="not as the session knew it last; null where that is not known")
    added: int | None = Field(description="lines; null for what is no text")
    removed: int | None
    mode: str | None = Field(description="octal, as it is to be; null for no file")
    backup: str | None = Field(description="the kept content that is put back")


class RewindFilesForm(Strict):
    """What putting files back changes, or changed."""

    session_id: str
    file: str
    project: str
    undo: bool
    to: RewindTo | None = Field(description="null for an undo")
    files: list[FileRow]
    complete: bool = Field(description="no file was missing or refused")
    written: bool
    kept: str | None = Field(description="folder with copies of what was overwritten or removed")
