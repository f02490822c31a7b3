"""``delete`` and ``restore``: move a session to the trash, and restore a session from the trash or the vault.

These verbs also list and empty the trash.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import click

from resume_hooks import clock, questions, seam
from resume_hooks.archive.hold_sessions import archive_lost_sessions
from resume_hooks.archive.vault import delete, lookup, restore, trash
from resume_hooks.archive.vault.delete import Deletion
from resume_hooks.archive.vault.lookup import list_earlier_states
from resume_hooks.archive.vault.trash import StrayFolder
from resume_hooks.cli.output import facts_table, print_text
from resume_hooks.cli.show_archived import archived_text
from resume_hooks.cli.verbs.archives import DeleteOptions, RestoreOptions
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_of_place
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived, list_archived
from resume_hooks.sessions.child_titles import displayed_kind
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.invocation import resume_command, shell_command
from resume_hooks.system.text import format_count

VAULT_COPY_NOTE = "The vault still has a copy of {title}. To remove that, too: {command}"
MAX_SHOWN = 10  # the maximum number of derived sessions to list

NOT_DELETED: dict[str, Any] = {
    "session": None, "open": "", "derived": [], "kept": "", "copies": [], "emptied": [], "strays": [], "written": False,
}  # fmt: skip
NOT_RESTORED: dict[str, Any] = {
    "session": None,
    "kept": None,
    "trash": [],
    "vault": [],
    "strays": [],
    "written": False,
}
INTERRUPTED_NOTE = "the delete was interrupted: restore joins both halves"


def delete_session(options: DeleteOptions) -> None:
    """Move a session to the trash, or empty the trash."""
    if options.empty_trash is (options.locator is not None):
        raise UsageError(
            "Give either a SESSION or --empty-trash", "Name the session: there is no default."
        )
    if (options.older_than is not None or options.damaged) and not options.empty_trash:
        raise UsageError(
            "--older-than and --damaged belong to --empty-trash", "Leave them out, or SESSION."
        )
    for delete_by_option in options.functions_for_part_options(questions.delete_by_option):
        delete_by_option(options)
        return
    is_asking = options.asks("Deleting")
    if options.locator is None:
        _empty_trash(options, is_asking=is_asking)
    else:
        _delete_session(
            delete.plan_delete(options.locate_session(), options.where),
            options,
            is_asking=is_asking,
        )


def _delete_session(deletion: Deletion, options: DeleteOptions, *, is_asking: bool) -> None:
    if not (options.force or options.dry_run):
        delete.require_closed(deletion.session, options.where)
    if is_asking:
        print_text(deletion_facts(deletion, options.where))
    is_agreed = options.confirm_write("Move it to the trash?", is_asking=is_asking)
    if is_agreed:
        entry = delete.move_to_trash(deletion, options.where, force=options.force)
    else:
        entry = deletion.entry
    data = NOT_DELETED | {"session": entry, "open": deletion.open, "written": is_agreed}
    data["derived"] = [child.row for child in deletion.derived]

    def text() -> str:
        if is_agreed:
            facts = [
                ("deleted", entry.title),
                ("id", entry.session_id),
                ("file", deletion.session.path),
            ]
            facts += [("project", entry.cwd or "unknown"), ("holds", size_of_files_text(entry))]
            return f"{facts_table(facts)}\n\nBring it back: {shell_command(f'restore {entry.locator}')}"
        if is_asking:
            return "Nothing was deleted."
        return f"{deletion_facts(deletion, options.where)}\n\nNothing was deleted."

    notes = []
    if is_agreed:
        notes += _archived_ids_left([entry], options.where)
        for notes_after_delete in seam.answers(questions.notes_after_delete):
            notes += notes_after_delete(entry.session_id, options.where)
    options.emit(data, text, notes)


def _archived_ids_left(entries: Sequence[ArchivedSession], where: Where) -> list[str]:
    archived_entries = (entry for entry in entries if find_archived(entry.session_id, where))
    return [
        VAULT_COPY_NOTE.format(
            title=entry.title, command=shell_command(f"archive --forget {entry.session_id}")
        )
        for entry in archived_entries
    ]


def _empty_trash(options: DeleteOptions, *, is_asking: bool) -> None:
    old_enough = _deleted_before(options)
    complete = [entry for entry in old_enough if entry.complete]
    strays = trash.list_stray_folders(options.where)
    removable_strays = [stray for stray in strays if stray.gone or options.damaged]
    description = _trash_question(complete, removable_strays)
    if is_asking and description:
        rows = []
        for entry in complete:
            rows.append(f"{entry.title} · {entry.session_id} · {format_bytes(entry.size)}")
        print_text("\n".join([*rows, *stray_lines(removable_strays)]))
    is_agreed = bool(description) and options.confirm_write(
        f"Remove {description}, for good?", is_asking=is_asking
    )
    if is_agreed:
        removed = delete.empty_trash(complete, options.where, removable_strays)
    else:
        removed = complete
    data = NOT_DELETED | {"emptied": removed, "strays": removable_strays}

    def text() -> str:
        if is_agreed:
            return (
                "Removed for good: "
                f"{_trash_question(removed, removable_strays) or 'nothing; another command was faster'}."
            )
        if not description:
            if options.older_than:
                age = f" that was deleted {options.older_than} days ago"
            else:
                age = ""
            return f"There is nothing in the trash{age}."
        return f"{description} would be removed for good. Nothing was removed."

    other_strays = [stray for stray in strays if stray not in removable_strays]
    notes = [f"{line} --damaged removes it." for line in stray_lines(other_strays)]
    if len(old_enough) > len(complete):
        notes.append(
            f"{len(old_enough) - len(complete):,} interrupted deletes stay: restore them first. "
            f"{shell_command('restore --list')}"
        )
    if is_agreed:
        notes += _archived_ids_left(removed, options.where)
    options.emit(data | {"written": is_agreed}, text, notes)


def _deleted_before(options: DeleteOptions) -> list[ArchivedSession]:
    """Return the sessions in the trash that were deleted as long ago as the user says."""
    limit = (clock.to_milliseconds(clock.now()) or 0) - (options.older_than or 0) * 1000 * clock.DAY
    old_enough = []
    for entry in trash.list_deleted(options.where):
        if (clock.to_milliseconds(entry.deleted_at) or 0) <= limit:
            old_enough.append(entry)
    return old_enough


def _trash_question(entries: Sequence[ArchivedSession], strays: Sequence[StrayFolder]) -> str:
    damaged = sum(not stray.gone for stray in strays)
    half_removed = len(strays) - damaged
    parts = []
    if entries:
        parts.append(format_count(len(entries), "session"))
    if half_removed:
        parts.append(f"{half_removed:,} half-removed")
    if damaged:
        parts.append(format_count(damaged, "unknown folder"))
    if not parts:
        return ""
    size = sum(entry.size for entry in entries) + sum(stray.size for stray in strays)
    return f"{' and '.join(parts)}, {format_bytes(size)}"


def deletion_facts(deletion: Deletion, where: Where) -> str:
    """Return the facts that a user should see before a session is deleted."""
    entry = deletion.entry
    facts = [
        ("session", entry.title),
        ("id", entry.session_id),
        ("file", deletion.session.path),
        ("project", entry.cwd or "unknown"),
        ("last written", clock.format_minute(entry.ended)),
        ("takes", size_of_files_text(entry)),
    ]
    if deletion.open:
        facts.append(("open", deletion.open))
    return facts_table(facts) + _dependents_text(deletion, where)


def _dependents_text(deletion: Deletion, where: Where) -> str:
    if not deletion.derived:
        return ""
    count = len(deletion.derived)
    lines = [f"\n\n{format_count(count, 'session')} came from it and will miss it:"]
    for child in deletion.derived[:MAX_SHOWN]:
        lines.append(
            f"  {child.row.session_id}  {displayed_kind(child.row.kind)}  {child.row.title}"
        )
    lines += [f"  and {count - MAX_SHOWN:,} more"] if count > MAX_SHOWN else []
    is_archived = find_archived(deletion.session.session_id, where) is not None
    lines.append(
        f"Their lineage will say {'(archived copy): the vault has one' if is_archived else '(file gone)'}."
    )
    if any(child.row.derivation_type == "trimmed" for child in deletion.derived):
        lines.append(
            "It has the originals of their trimmed contents: until it is restored, read and "
            "untrim can't find that."
        )
    return "\n".join(lines)


def restore_session(options: RestoreOptions) -> None:
    """Restore a session, or list the sessions that can be restored."""
    if options.listing and options.locator is not None:
        raise UsageError(
            "--list shows everything that can be restored", "Leave SESSION or --list out."
        )
    archive_lost_sessions(options.where)
    if options.locator is None:
        _print_restorable(options)
        return
    archived = _find_deleted_or_archived(options.locator, options.where)
    restore_plan = restore.plan_restore(archived, options.where)
    if not options.dry_run:
        restore_plan = restore.restore_session(restore_plan, options.where)
    count, deleted = len(restore_plan.pieces), bool(archived.deleted_at)
    is_written = not options.dry_run and (deleted or count > 0)
    if options.dry_run:
        result_label = "would restore"
    elif is_written:
        result_label = "restored"
    else:
        result_label = "is there"
    facts = [
        (result_label, restore_plan.archived.title),
        ("id", restore_plan.session_id),
        ("file", restore_plan.path),
    ]
    if deleted:
        session = archived if options.dry_run else WithFields(archived, {"kept_in": ""})
        data = NOT_RESTORED | {"session": session}
        facts.append(("holds", size_of_files_text(archived)))
    else:
        data = NOT_RESTORED | {"kept": restore_plan}
        facts.append(("files", f"{count:,}"))
    data["written"] = is_written

    def text() -> str:
        if options.dry_run:
            return f"{facts_table(facts)}\n\nNothing was written."
        shell = resume_command(archived.cwd, restore_plan.session_id)
        return facts_table(
            [
                *facts,
                ("in Claude Code", f"/resume {restore_plan.session_id}"),
                ("in a shell", shell),
            ]
        )

    options.emit(data, text, restore_plan.warnings)


def _find_deleted_or_archived(locator: str, where: Where) -> ArchivedSession:
    """Return a session in the trash, or else in the vault. A part of a title is tried last.

    Raise SessionNotFound if neither contains the session.
    """
    deleted = trash.list_deleted(where)
    for by_part in (False, True):
        for candidates in (deleted, None):
            with contextlib.suppress(SessionNotFound):
                return lookup.find_archived(locator, where, candidates, by_part=by_part)
    message = f"Neither the trash nor the vault holds a session '{locator.strip()}'"
    if not (deleted or list_archived(where)):
        raise SessionNotFound(f"{message}: both are empty", "See: resume-hooks sessions")
    raise SessionNotFound(message, "See what can be restored: resume-hooks restore --list")


def stray_lines(strays: Sequence[StrayFolder]) -> list[str]:
    """Return lines on the trash's other folders: the number of partly removed ones, and each unknown one."""
    half_removed = [stray for stray in strays if stray.gone]
    size = format_bytes(sum(stray.size for stray in half_removed))
    if half_removed:
        lines = [
            f"{len(half_removed):,} half-removed, {size}: resume-hooks delete --empty-trash finishes that."
        ]
    else:
        lines = []
    return lines + [
        (
            f"1 unknown folder, {format_bytes(stray.size)}: its manifest is missing or damaged: "
            f"{stray.folder}"
        )
        for stray in strays
        if not stray.gone
    ]


def size_of_files_text(entry: ArchivedSession) -> str:
    """Return the total size of a session's files."""
    return f"{format_bytes(entry.size)} in {format_count(len(entry.parts), 'file')}"


def _print_restorable(options: RestoreOptions) -> None:
    where = options.where
    deleted, strays = trash.list_deleted(where), trash.list_stray_folders(where)
    archived = list_archived(where)
    restorable = []
    for each in archived:
        if list_earlier_states(each) or not os.path.lexists(
            path_of_place(each.place, where, each.home)
        ):
            restorable.append(each)
    data = NOT_RESTORED | {"trash": deleted, "strays": strays}
    data["vault"] = restorable

    def text() -> str:
        trash_text = (
            "\n".join([*map(_row_of_entry, deleted), *stray_lines(strays)]) or "The trash is empty."
        )
        return "\n".join(
            [trash_text, "", "In the vault:", *(archived_text(each, where) for each in restorable)]
            if restorable
            else [trash_text]
        )

    options.emit(data, text)


def _row_of_entry(entry: ArchivedSession) -> str:
    dates = f"deleted {clock.format_minute(entry.deleted_at)}, last written {clock.format_minute(entry.ended)}"
    if entry.complete:
        note = ""
    else:
        note = f"\n   {click.style(INTERRUPTED_NOTE, fg='yellow')}"
    return f"{entry.title}\n   {entry.locator} · {format_bytes(entry.size)} · {dates}{note}"
