"""The forms of the verbs that archive, delete and restore sessions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.archive.retention.archive_sessions import ArchiveOutcome
from resume_hooks.archive.vault.packs import ArchiveFinding
from resume_hooks.archive.vault.policy import Dropped
from resume_hooks.archive.vault.restore import Retrieval
from resume_hooks.archive.vault.trash import StrayFolder
from resume_hooks.cli.schema.base import CommonFields, FieldsLike, ReceiptForm, StrictModel
from resume_hooks.cli.schema.sessions import Folder, KeptSession
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_of_place
from resume_hooks.sessions.archived.manifest import ArchivedSession

deleted = CommonFields[ArchivedSession]()
restored = CommonFields[Retrieval]()
outcome = CommonFields[ArchiveOutcome]()


class DeletedSession(StrictModel):
    """A session in the trash, or one being deleted or restored."""

    session_id: str
    locator: str = deleted(
        lambda entry: entry.locator if entry.folder else "",
        "names this delete of the session to restore; empty where nothing was moved",
    )
    title: str
    folder: Folder = deleted(lambda entry: entry.cwd)
    file: str = deleted(
        lambda entry: path_of_place(entry.place, Where()), "where its transcript belongs"
    )
    kept_in: str = deleted(
        lambda entry: entry.folder, "its folder in the trash; empty where nothing was moved"
    )
    files: int = deleted(lambda entry: len(entry.parts))
    size: int = Field(description="bytes of all its files")
    ended: str = Field(description="when it was last written")
    deleted_at: str
    complete: bool = Field(
        description="false: the delete was not finished; restore joins what it moved with the rest"
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


class DeleteForm(StrictModel):
    """The deleted session, or the sessions removed from the trash; in a dry run, those to delete."""

    session: DeletedSession | None
    open: str = Field(description="why the session counts as open; empty where it does not")
    derived: list[DerivedSession]
    kept: str = Field(description="with --other-copies: the file that stays")
    copies: list[DeletedSession] = Field(description="with --other-copies: what else goes")
    emptied: list[DeletedSession] = Field(description="with --empty-trash: what is gone for good")
    strays: list[TrashStray] = Field(
        description="with --empty-trash: what goes beside the sessions"
    )
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


class ArchiveForm(StrictModel):
    """The archived sessions; with --list the vault's sessions, with --verify the findings.

    With --forget the removed copies.
    """

    archived: list[ArchivedNow]
    vault: list[KeptSession] = Field(
        description="with --list, --verify and --forget: the sessions that it is about"
    )
    findings: list[
        Annotated[
            ArchiveFinding,
            FieldsLike(
                name="missing, damaged, cut-short, rewritten or unreadable",
                place="the file, from the client's folder on; empty for the whole session",
            ),
        ]
    ] = Field(description="with --verify")
    verified: int = Field(description="with --verify: bytes that were read")
    unhashed: int = Field(description="always 0: every file has its hash")
    dropped: list[Annotated[Dropped, FieldsLike()]] = Field(
        description=(
            "what went; with --list what did so lately, without titles, which are not remembered"
        )
    )
    slim: ReceiptForm | None = Field(
        description="with --slim: the copy that was, or would be, made"
    )
    written: bool


class RetrievedSession(StrictModel):
    """A session restored, or to be restored, from the vault."""

    session_id: str = Field(
        description="what it has there: the old id, or a new one where that is taken"
    )
    file: str = restored(lambda each: each.path)
    files: int = restored(
        lambda each: len(each.pieces), "that were, or would be, written; 0: it is there already"
    )
    kept: KeptSession = restored(lambda each: each.archived)


class RestoreForm(StrictModel):
    """The restored session; without a locator, the sessions that can be restored."""

    session: DeletedSession | None = Field(description="that came back out of the trash")
    kept: RetrievedSession | None = Field(description="that came back out of the vault")
    trash: list[DeletedSession] = Field(
        description="what the trash holds, the newest first; empty with a locator"
    )
    vault: list[KeptSession] = Field(
        description=(
            "what the vault alone holds, of a session or of its earlier states; empty with a "
            "locator"
        )
    )
    strays: list[TrashStray] = Field(description="what else the trash holds; empty with a locator")
    written: bool
