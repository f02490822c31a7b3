"""The schemas of the verbs that archive, delete and restore sessions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.archive.retention.archive_sessions import ArchiveOutcome
from resume_hooks.archive.vault.packs import ArchiveDefect
from resume_hooks.archive.vault.policy import DroppedSession
from resume_hooks.archive.vault.restore import RestorePlan
from resume_hooks.archive.vault.trash import StrayFolder
from resume_hooks.cli.schema.base import CommonFields, FieldsLike, ReceiptSchema, StrictModel
from resume_hooks.cli.schema.sessions import Folder, KeptSession
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_of_place
from resume_hooks.sessions.archived.manifest import ArchivedSession

deleted = CommonFields[ArchivedSession]()
restored = CommonFields[RestorePlan]()
outcome = CommonFields[ArchiveOutcome]()


class DeletedSession(StrictModel):
    """A session in the trash, or one being deleted or restored."""

    session_id: str
    locator: str = deleted(
        lambda entry: entry.locator if entry.folder else "",
        "the locator of this deletion for restore; empty if nothing was moved",
    )
    title: str
    folder: Folder = deleted(lambda entry: entry.cwd)
    file: str = deleted(
        lambda entry: path_of_place(entry.place, Where()), "where its transcript belongs"
    )
    kept_in: str = deleted(
        lambda entry: entry.folder, "its folder in the trash; empty if nothing was moved"
    )
    files: int = deleted(lambda entry: len(entry.parts))
    size: int = Field(description="bytes of all its files")
    ended: str = Field(description="when it was last written")
    deleted_at: str
    complete: bool = Field(
        description="false: the deletion was interrupted; restore rejoins the moved files with the rest"
    )


TrashStray = Annotated[
    StrayFolder,
    FieldsLike(
        size="bytes",
        gone="true: half removed, emptying finishes it; false: its manifest is missing or damaged",
    ),
]


class DerivedSession(StrictModel):
    """A session that stays when its parent is deleted."""

    session_id: str
    title: str
    kind: str


class DeleteSchema(StrictModel):
    """The deleted session, or the sessions removed from the trash; in a dry run, those to delete."""

    session: DeletedSession | None
    open: str = Field(description="why the session counts as open; empty if it does not")
    derived: list[DerivedSession]
    kept: str = Field(description="with --other-copies: the file that stays")
    copies: list[DeletedSession] = Field(
        description="with --other-copies: the other copies, which are deleted"
    )
    emptied: list[DeletedSession] = Field(
        description="with --empty-trash: the sessions removed for good"
    )
    strays: list[TrashStray] = Field(description="with --empty-trash: the other removed folders")
    written: bool


class ArchivedNow(StrictModel):
    """The result of archiving one session."""

    session_id: str = outcome(lambda each: each.session.session_id)
    file: str = outcome(lambda each: each.session.path)
    result: str = Field(
        description="kept (archived for the first time), renewed, unchanged or failed"
    )
    why: str = Field(description="why it failed")
    packed: bool = outcome(
        lambda each: each.result in {"kept", "renewed"}, "its pack was written by this archive"
    )
    kept: KeptSession | None = outcome(lambda each: each.archived)


class ArchiveSchema(StrictModel):
    """The archived sessions; with --list the vault's sessions, with --verify the findings.

    With --forget the removed copies.
    """

    archived: list[ArchivedNow]
    vault: list[KeptSession] = Field(
        description="with --list, --verify and --forget: the sessions concerned"
    )
    findings: list[
        Annotated[
            ArchiveDefect,
            FieldsLike(
                name="missing, damaged, cut-short, rewritten or unreadable",
                place="the file's path in the client's folder; empty for the whole session",
            ),
        ]
    ] = Field(description="with --verify")
    verified: int = Field(description="with --verify: the bytes read")
    unhashed: int = Field(description="always 0: every file has its hash")
    dropped: list[Annotated[DroppedSession, FieldsLike()]] = Field(
        description=(
            "the removed copies; with --list the recently removed ones, without their titles"
        )
    )
    slim: ReceiptSchema | None = Field(
        description="with --slim: the copy that was, or would be, made"
    )
    written: bool


class RetrievedSession(StrictModel):
    """A session restored, or to be restored, from the vault."""

    session_id: str = Field(
        description="its id after the restore: the old one, or a new one if that is taken"
    )
    file: str = restored(lambda each: each.path)
    files: int = restored(
        lambda each: len(each.files), "files that were, or would be, written; 0: it exists already"
    )
    kept: KeptSession = restored(lambda each: each.archived)


class RestoreSchema(StrictModel):
    """The restored session; without a locator, the sessions that can be restored."""

    session: DeletedSession | None = Field(description="the session restored from the trash")
    kept: RetrievedSession | None = Field(description="the session restored from the vault")
    trash: list[DeletedSession] = Field(
        description="the sessions in the trash, newest first; empty with a locator"
    )
    vault: list[KeptSession] = Field(
        description=(
            "the sessions and earlier states that only the vault has; empty with a locator"
        )
    )
    strays: list[TrashStray] = Field(description="other folders in the trash; empty with a locator")
    written: bool
