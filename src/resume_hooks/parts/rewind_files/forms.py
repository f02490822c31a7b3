"""The JSON schema of rewind-files."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import FieldDeclarer, StrictModel
from resume_hooks.parts.rewind_files.files_at_prompt import PromptState
from resume_hooks.parts.rewind_files.plan import FileChange

prompt_field = FieldDeclarer[PromptState]()
change_field = FieldDeclarer[FileChange]()


class RewindTarget(StrictModel):
    """The prompt that --to names. The files are restored to their state at this prompt."""

    uuid: str = prompt_field(lambda at: at.prompt.uuid)
    reference: str = Field(
        description="the reference of the prompt: the session and the line number, which counts from 0"
    )
    turn: int | None = prompt_field(
        lambda at: at.prompt.turn_number or None,
        "the number of the turn that the prompt begins; null if it begins none",
    )
    words: str = prompt_field(lambda at: at.prompt.first_words)
    exact: bool = prompt_field(
        lambda at: at.is_exact,
        (
            "false: the client kept no state at this prompt, so the last state before it is used, "
            "although files were edited after that state"
        ),
    )


class FileRow(StrictModel):
    """A file that the session tracked, and what happens to it."""

    path: str = change_field(
        lambda change: change.path_in_project.path,
        "the path relative to the project; for a refused path, the path in the transcript",
    )
    action: Literal["restore", "create", "delete", "none"] = change_field(
        lambda change: change.action
    )
    status: Literal["planned", "written", "unchanged", "missing", "refused"]
    why: str = change_field(
        lambda change: change.refusal_reason, "why the file is not changed; empty if it is changed"
    )
    changed_since: bool | None = change_field(
        lambda change: change.differs_from_known_state,
        "whether the file differs from the last state that the session recorded; null if that is unknown",
    )
    added: int | None = change_field(
        lambda change: change.difference.added_line_count,
        "the number of added lines; null if the file is not text",
    )
    removed: int | None = change_field(lambda change: change.difference.removed_line_count)
    mode: str | None = change_field(
        lambda change: f"{change.new_version.mode:o}" if change.new_version else None,
        "the file's mode after the change, in octal; null if there is no file",
    )
    backup: str | None = change_field(
        lambda change: (
            os.path.join(change.source.root_folder, *change.source.path_parts)
            if change.source
            else None
        ),
        "the backup from which the file is restored",
    )


class RewindFilesSchema(StrictModel):
    """The changes to files that were planned or written."""

    session_id: str
    file: str
    project: str
    undo: bool
    to: RewindTarget | None = Field(description="the prompt that --to names; null for an undo")
    files: list[FileRow]
    complete: bool = Field(description="true: no file was missing or refused")
    written: bool
    kept: str | None = Field(description="folder with copies of overwritten and removed files")
