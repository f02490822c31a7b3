"""The forms of the verbs that repair, put files back and set up."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Like, ReceiptForm, Strict
from resume_hooks.maintenance.fsck import findings


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


class FsckSession(Strict):
    """What is broken in a session, the worst first."""

    session_id: str
    session_file: str
    clean: bool = Field(description="no errors and no warnings")
    errors: int
    warnings: int
    notes: int
    kinds: list[
        Annotated[
            findings.Kind,
            Like(
                consequence="what the clients and the API do with it",
                count=int,
                findings=(
                    list[Annotated[findings.Defect, Like(kind=None, record="0-based line number")]],
                    f"the first {findings.LISTED}",
                ),
            ),
        ]
    ]


class FsckForm(Strict):
    """The sessions looked at; ``repair`` is the child that was, or would be, written."""

    sessions: list[FsckSession]
    unlistable: list[str] = Field(description="project folders that can't be listed: nothing in them was looked at")
    repair: ReceiptForm | None
    lost: list[str] = Field(description="what the repaired child could not keep")


class SettingRow(Strict):
    """A setting in force."""

    key: str
    value: int | str | list[str]
    source: Literal["default", "file", "environment", "plugin"]
    about: str


class ConfigForm(Strict):
    """The settings in force and the file that keeps them."""

    file: str
    settings: list[SettingRow]


class CompletionForm(Strict):
    """What makes a shell complete."""

    shell: Literal["bash", "zsh", "fish"]
    script: str


class InstallForm(Strict):
    """What install or uninstall did."""

    plugin: str
    commands: list[str]
    ran: bool = Field(description="false: --dry-run, or claude is not on PATH and the commands are for the user to run")
    goes: list[str] = Field(description="files and folders of ours that --purge removed, or would remove")
    stays: list[str] = Field(description="files and folders that are still there, or would be")


UninstallForm = InstallForm
