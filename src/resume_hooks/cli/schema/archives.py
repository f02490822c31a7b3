"""The schemas of the verbs that archive, delete and restore sessions."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.archive.retention.archive_sessions import ArchiveOutcome
from resume_hooks.archive.vault import packs, policy, trash
from resume_hooks.archive.vault.restore import RestorePlan
from resume_hooks.cli.schema.base import FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.cli.schema.sessions import ArchivedSessionRow, Folder
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_in_config_home
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.lineage import Ancestor

deletion_field = FieldDeclarer[ArchivedSession]()


class DeletedSession(StrictModel):
    """A session that is in the trash, or that the verb deleted or restored."""

    session_id: str = deletion_field(lambda entry: entry.session_id)
    locator: str = deletion_field(
        lambda entry: entry.locator if entry.folder else "",
        "the SESSION argument with which restore finds this deletion; empty if nothing was moved",
    )
    title: str = deletion_field(lambda entry: entry.title)
    folder: Folder = deletion_field(lambda entry: entry.cwd)
    file: str = deletion_field(
        lambda entry: path_in_config_home(entry.place, Where()),
        "where the session's transcript belongs",
    )
    kept_in: str = deletion_field(
        lambda entry: entry.folder, "the session's folder in the trash; empty if nothing was moved"
    )
    files: int = deletion_field(lambda entry: len(entry.parts))
    size: int = deletion_field(
        lambda entry: entry.size, "total size in bytes of the session's files"
    )
    ended: str = deletion_field(lambda entry: entry.ended, "when the session was last written")
    deleted_at: str = deletion_field(lambda entry: entry.deleted_at)
    complete: bool = deletion_field(
        lambda entry: entry.complete,
        "false: the deletion was interrupted; restore puts all files back",
    )


stray_field = FieldDeclarer[trash.StrayFolder]()


class StrayFolder(StrictModel):
    """A folder in the trash that contains no session.

    ``gone`` is true if the folder was only partly removed or is empty. It is false if the folder's
    manifest is missing or damaged.
    """

    folder: str = stray_field(lambda stray: stray.folder)
    files: int = stray_field(lambda stray: stray.file_count)
    size: int = stray_field(lambda stray: stray.size, "bytes")
    gone: bool = stray_field(
        lambda stray: stray.is_half_removed,
        (
            "true: partly removed, and emptying the trash removes the rest; false: the folder's "
            "manifest is missing or damaged"
        ),
    )


child_field = FieldDeclarer[Ancestor]()


class DerivedSession(StrictModel):
    """A child of a deleted session. The child itself is not deleted."""

    session_id: str = child_field(lambda child: child.session_id)
    title: str = child_field(lambda child: child.title)
    kind: str = child_field(lambda child: child.kind)


class DeleteSchema(StrictModel):
    """The deleted session, or with --empty-trash the sessions removed from the trash.

    In a dry run these are the sessions that would be deleted.
    """

    session: DeletedSession | None
    open: str = Field(description="why the session counts as open; empty if the session is closed")
    derived: list[DerivedSession]
    kept: str = Field(description="with --other-copies: the file that stays")
    copies: list[DeletedSession] = Field(
        description="with --other-copies: the other copies, which are deleted"
    )
    emptied: list[DeletedSession] = Field(
        description="with --empty-trash: the sessions removed for good"
    )
    strays: list[StrayFolder] = Field(
        description="with --empty-trash: the removed folders without a session"
    )
    written: bool


outcome_field = FieldDeclarer[ArchiveOutcome]()


class ArchivingResult(StrictModel):
    """The result of archiving one session."""

    session_id: str = outcome_field(lambda outcome: outcome.session.session_id)
    file: str = outcome_field(lambda outcome: outcome.session.path)
    result: str = outcome_field(
        lambda outcome: outcome.result,
        "kept (archived for the first time), renewed, unchanged or failed",
    )
    why: str = outcome_field(lambda outcome: outcome.reason, "why archiving failed")
    packed: bool = outcome_field(
        lambda outcome: outcome.result in {"kept", "renewed"},
        "true: this command compressed the session",
    )
    kept: ArchivedSessionRow | None = outcome_field(lambda outcome: outcome.archived_session)


defect_field = FieldDeclarer[packs.ArchiveDefect]()


class ArchiveDefect(StrictModel):
    """A defect in the vault."""

    session_id: str = defect_field(lambda defect: defect.session_id)
    name: str = defect_field(
        lambda defect: defect.kind, "missing, damaged, cut-short, rewritten or unreadable"
    )
    place: str = defect_field(
        lambda defect: defect.relative_path,
        "the file's path in the client's folder; empty for the whole session",
    )
    message: str = defect_field(lambda defect: defect.message)


dropped_session_field = FieldDeclarer[policy.RemovedSession]()


class DroppedSession(StrictModel):
    """A session whose archived copy was, or will be, removed from the vault.

    ``why`` is the reason, worded as the end of a sentence.
    """

    session_id: str = dropped_session_field(lambda session: session.session_id)
    title: str = dropped_session_field(lambda session: session.title)
    stored: int = dropped_session_field(lambda session: session.stored_bytes)
    why: str = dropped_session_field(lambda session: session.reason)


class ArchiveSchema(StrictModel):
    """The archived sessions.

    With --list these are the sessions in the vault, with --verify the findings, with --forget the
    removed copies.
    """

    archived: list[ArchivingResult]
    vault: list[ArchivedSessionRow] = Field(
        description="the archived sessions that --list, --verify or --forget selects"
    )
    findings: list[ArchiveDefect] = Field(
        description="with --verify: the defects of the archived copies"
    )
    verified: int = Field(description="with --verify: the number of bytes that were read")
    unhashed: int = Field(description="always 0, because every archived file has a stored hash")
    dropped: list[DroppedSession] = Field(
        description=(
            "the removed copies; with --list the recently removed ones, without their titles"
        )
    )
    slim: ReceiptSchema | None = Field(
        description="with --slim: the copy that was, or would be, made"
    )
    written: bool


restore_field = FieldDeclarer[RestorePlan]()


class RetrievedSession(StrictModel):
    """A session that was, or would be, restored from the vault."""

    session_id: str = restore_field(
        lambda plan: plan.session_id,
        "the session's id after the restore: the old id, or a new id if the old id is taken",
    )
    file: str = restore_field(lambda plan: plan.target_path)
    files: int = restore_field(
        lambda plan: len(plan.files),
        "the number of files that were, or would be, written; 0: the session exists already",
    )
    kept: ArchivedSessionRow = restore_field(lambda plan: plan.archived_session)


class RestoreSchema(StrictModel):
    """The restored session, or without a SESSION the sessions that can be restored."""

    session: DeletedSession | None = Field(description="the session restored from the trash")
    kept: RetrievedSession | None = Field(description="the session restored from the vault")
    trash: list[DeletedSession] = Field(
        description="the sessions in the trash, newest first; empty with a SESSION"
    )
    vault: list[ArchivedSessionRow] = Field(
        description=(
            "the sessions and earlier states that only the vault has; empty with a SESSION"
        )
    )
    strays: list[StrayFolder] = Field(
        description="folders without a session in the trash; empty with a SESSION"
    )
    written: bool
