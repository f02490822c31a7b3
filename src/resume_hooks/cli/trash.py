"""``delete`` moves a session to the trash. ``restore`` takes it from the trash or from the vault.

These verbs also list and empty the trash.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import click

from resume_hooks import clock, questions, seam
from resume_hooks.archive.link_sessions import archive_lost_sessions
from resume_hooks.archive.vault import delete, locate_archived, restore, trash
from resume_hooks.archive.vault.delete import Deletion
from resume_hooks.archive.vault.locate_archived import list_earlier_states
from resume_hooks.archive.vault.trash import StrayFolder
from resume_hooks.cli.output import facts_table, print_text
from resume_hooks.cli.show_archived import archived_session_text
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.archives import DeleteOptions, RestoreOptions
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_in_config_home
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived, list_archived
from resume_hooks.sessions.child_titles import displayed_kind
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.invocation import resume_command, shell_command
from resume_hooks.system.text import format_count

VAULT_COPY_NOTE = "The vault still has a copy of {title}. To remove this copy as well: {command}"
# the maximum number of children that are listed before a session is deleted
MAX_SHOWN_CHILDREN = 10

DEFAULT_DELETE_ANSWER_FIELDS: dict[str, Any] = {
    "session": None, "open": "", "derived": [], "kept": "", "copies": [], "emptied": [], "strays": [], "written": False,
}  # fmt: skip
DEFAULT_RESTORE_ANSWER_FIELDS: dict[str, Any] = {
    "session": None,
    "kept": None,
    "trash": [],
    "vault": [],
    "strays": [],
    "written": False,
}
INTERRUPTED_DELETION_NOTE = "the deletion was interrupted: restore puts all files back"


def delete_session(options: DeleteOptions) -> None:
    """Move a session to the trash, or remove the contents of the trash for good."""
    if options.empty_trash is (options.locator is not None):
        raise UsageError(
            "Give either a SESSION or --empty-trash", "Name the session: there is no default."
        )
    if (
        options.min_age_days is not None or options.include_damaged_folders
    ) and not options.empty_trash:
        raise UsageError(
            "--older-than and --damaged need --empty-trash", "Omit these options, or SESSION."
        )
    for delete_sessions_with_part_option in options.find_part_functions(
        questions.delete_sessions_with_part_option
    ):
        delete_sessions_with_part_option(options)
        return
    ask_first = options.must_ask("Deleting")
    if options.locator is None:
        _empty_trash(options, ask_first=ask_first)
    else:
        _delete_session(
            delete.plan_delete(options.locate_session(), options.where),
            options,
            ask_first=ask_first,
        )


def _delete_session(deletion: Deletion, options: DeleteOptions, *, ask_first: bool) -> None:
    if not (options.force or options.dry_run):
        delete.require_closed(deletion.session, options.where)
    if ask_first:
        print_text(describe_deletion(deletion, options.where))
    is_confirmed = options.confirm_write("Move the session to the trash?", ask_first=ask_first)
    if is_confirmed:
        entry = delete.move_to_trash(deletion, options.where, force=options.force)
    else:
        entry = deletion.entry
    data = DEFAULT_DELETE_ANSWER_FIELDS | {
        "session": entry,
        "open": deletion.open_reason,
        "written": is_confirmed,
    }
    data["derived"] = [child.row for child in deletion.descendants]

    def describe_deletion_policy() -> str:
        if is_confirmed:
            facts = [
                ("deleted", entry.title),
                ("id", entry.session_id),
                ("file", deletion.session.path),
            ]
            facts += [("project", entry.cwd or "unknown"), ("holds", describe_size(entry))]
            return (
                f"{facts_table(facts)}\n\nRestore it: {shell_command(f'restore {entry.locator}')}"
            )
        if ask_first:
            return "Nothing was deleted."
        return f"{describe_deletion(deletion, options.where)}\n\nNothing was deleted."

    notes = []
    if is_confirmed:
        notes += _list_notes_on_archived_copies([entry], options.where)
        for notes_after_delete in seam.find_answers(questions.notes_after_delete):
            notes += notes_after_delete(entry.session_id, options.where)
    options.print_answer(data, describe_deletion_policy, notes)


def _list_notes_on_archived_copies(entries: Sequence[ArchivedSession], where: Where) -> list[str]:
    archived_entries = (entry for entry in entries if find_archived(entry.session_id, where))
    return [
        VAULT_COPY_NOTE.format(
            title=entry.title, command=shell_command(f"archive --forget {entry.session_id}")
        )
        for entry in archived_entries
    ]


def _empty_trash(options: DeleteOptions, *, ask_first: bool) -> None:
    old_sessions = _find_old_deletions(options)
    complete_sessions = [entry for entry in old_sessions if entry.complete]
    stray_folders = trash.list_stray_folders(options.where)
    removable_folders = [
        stray for stray in stray_folders if stray.is_half_removed or options.include_damaged_folders
    ]
    description = _describe_removal(complete_sessions, removable_folders)
    if ask_first and description:
        rows = []
        for entry in complete_sessions:
            rows.append(f"{entry.title} · {entry.session_id} · {format_bytes(entry.size)}")
        print_text("\n".join([*rows, *describe_stray_folders(removable_folders)]))
    is_confirmed = bool(description) and options.confirm_write(
        f"Remove {description} for good?", ask_first=ask_first
    )
    if is_confirmed:
        removed_sessions = delete.empty_trash(complete_sessions, options.where, removable_folders)
    else:
        removed_sessions = complete_sessions
    data = DEFAULT_DELETE_ANSWER_FIELDS | {"emptied": removed_sessions, "strays": removable_folders}

    def format_removal() -> str:
        if is_confirmed:
            nothing_text = "nothing, because another command removed or restored it first"
            return (
                "Removed for good: "
                f"{_describe_removal(removed_sessions, removable_folders) or nothing_text}."
            )
        if not description:
            if options.min_age_days:
                age_text = f" that was deleted at least {options.min_age_days} days ago"
            else:
                age_text = ""
            return f"There is nothing in the trash{age_text}."
        return f"{description} would be removed for good. Nothing was removed."

    other_folders = [stray for stray in stray_folders if stray not in removable_folders]
    notes = [f"{line} --damaged removes it." for line in describe_stray_folders(other_folders)]
    if len(old_sessions) > len(complete_sessions):
        notes.append(
            f"{format_count(len(old_sessions) - len(complete_sessions), 'interrupted deletion')} "
            "can't be removed until you restore the session. To list the deleted sessions: "
            f"{shell_command('restore --list')}"
        )
    if is_confirmed:
        notes += _list_notes_on_archived_copies(removed_sessions, options.where)
    options.print_answer(data | {"written": is_confirmed}, format_removal, notes)


def _find_old_deletions(options: DeleteOptions) -> list[ArchivedSession]:
    """Return the sessions in the trash that were deleted at least ``--older-than`` days ago."""
    latest_time = (clock.to_milliseconds(clock.now()) or 0) - (
        options.min_age_days or 0
    ) * 1000 * clock.DAY
    old_sessions = []
    for entry in trash.list_trashed_sessions(options.where):
        if (clock.to_milliseconds(entry.deleted_at) or 0) <= latest_time:
            old_sessions.append(entry)
    return old_sessions


def _describe_removal(
    entries: Sequence[ArchivedSession], stray_folders: Sequence[StrayFolder]
) -> str:
    damaged_count = sum(not stray.is_half_removed for stray in stray_folders)
    half_removed_count = len(stray_folders) - damaged_count
    parts = []
    if entries:
        parts.append(format_count(len(entries), "session"))
    if half_removed_count:
        parts.append(format_count(half_removed_count, "partly removed folder"))
    if damaged_count:
        parts.append(format_count(damaged_count, "unknown folder"))
    if not parts:
        return ""
    size = sum(entry.size for entry in entries) + sum(stray.size for stray in stray_folders)
    return f"{' and '.join(parts)}, {format_bytes(size)}"


def describe_deletion(deletion: Deletion, where: Where) -> str:
    """Return the text that a user sees before a session is deleted.

    It contains details of the session and a list of its children.
    """
    entry = deletion.entry
    facts = [
        ("session", entry.title),
        ("id", entry.session_id),
        ("file", deletion.session.path),
        ("project", entry.cwd or "unknown"),
        ("last written", clock.format_minute(entry.ended)),
        ("takes", describe_size(entry)),
    ]
    if deletion.open_reason:
        facts.append(("open", deletion.open_reason))
    return facts_table(facts) + _describe_children(deletion, where)


def _describe_children(deletion: Deletion, where: Where) -> str:
    if not deletion.descendants:
        return ""
    count = len(deletion.descendants)
    lines = [
        f"\n\nChildren of the session, which are not deleted: {format_count(count, 'session')}"
    ]
    for child in deletion.descendants[:MAX_SHOWN_CHILDREN]:
        lines.append(
            f"  {child.row.session_id}  {displayed_kind(child.row.kind)}  {child.row.title}"
        )
    lines += [f"  and {count - MAX_SHOWN_CHILDREN:,} more"] if count > MAX_SHOWN_CHILDREN else []
    is_archived = find_archived(deletion.session.session_id, where) is not None
    label = "(archived copy): the vault has a copy" if is_archived else "(file gone)"
    lines.append(f"Their lineage will show the deleted session as {label}.")
    if any(child.row.derivation_type == "trimmed" for child in deletion.descendants):
        lines.append(
            "The deleted session contains the originals of the contents that were trimmed in its "
            "children. Until you restore the session, read and untrim can't find them."
        )
    return "\n".join(lines)


def restore_session(options: RestoreOptions) -> None:
    """Restore a session, or list the sessions that can be restored."""
    if options.must_list and options.locator is not None:
        raise UsageError(
            "--list shows everything that can be restored", "Leave SESSION or --list out."
        )
    archive_lost_sessions(options.where)
    if options.locator is None:
        _print_restorable_sessions(options)
        return
    archived = _find_deleted_or_archived_session(options.locator, options.where)
    restore_plan = restore.plan_restore(archived, options.where)
    if not options.dry_run:
        restore_plan = restore.execute_restore_plan(restore_plan, options.where)
    piece_count, is_deleted = len(restore_plan.files), bool(archived.deleted_at)
    is_written = not options.dry_run and (is_deleted or piece_count > 0)
    if options.dry_run:
        result_label = "would restore"
    elif is_written:
        result_label = "restored"
    else:
        result_label = "is there"
    facts = [
        (result_label, restore_plan.archived_session.title),
        ("id", restore_plan.session_id),
        ("file", restore_plan.target_path),
    ]
    if is_deleted:
        session = archived if options.dry_run else ValueWithFields(archived, {"kept_in": ""})
        data = DEFAULT_RESTORE_ANSWER_FIELDS | {"session": session}
        facts.append(("holds", describe_size(archived)))
    else:
        data = DEFAULT_RESTORE_ANSWER_FIELDS | {"kept": restore_plan}
        facts.append(("files", f"{piece_count:,}"))
    data["written"] = is_written

    def format_restored_session() -> str:
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

    options.print_answer(data, format_restored_session, restore_plan.warnings)


def _find_deleted_or_archived_session(locator: str, where: Where) -> ArchivedSession:
    """Return the session in the trash or in the vault that a locator names.

    The trash comes first. A locator is taken as a part of a title only if nothing else matches.
    Raise SessionNotFound if neither the trash nor the vault has the session.
    """
    deleted_sessions = trash.list_trashed_sessions(where)
    for by_title_part in (False, True):
        for candidates in (deleted_sessions, None):
            with contextlib.suppress(SessionNotFound):
                return locate_archived.find_archived(
                    locator, where, candidates, match_title_parts=by_title_part
                )
    message = f"Neither the trash nor the vault has a session '{locator.strip()}'"
    if not (deleted_sessions or list_archived(where)):
        raise SessionNotFound(f"{message}: both are empty", "See: resume-hooks sessions")
    raise SessionNotFound(message, "See what can be restored: resume-hooks restore --list")


def describe_stray_folders(stray_folders: Sequence[StrayFolder]) -> list[str]:
    """Return lines about folders in the trash that contain no complete session.

    One line is about all folders that were only partly removed. Every other folder has a line of
    its own.
    """
    half_removed_folders = [stray for stray in stray_folders if stray.is_half_removed]
    size = format_bytes(sum(stray.size for stray in half_removed_folders))
    if half_removed_folders:
        folder_count = format_count(len(half_removed_folders), "partly removed folder")
        lines = [
            f"{folder_count}, {size}: `resume-hooks delete --empty-trash` finishes removing them."
        ]
    else:
        lines = []
    return lines + [
        (
            f"1 unknown folder, {format_bytes(stray.size)}, with a missing or damaged manifest: "
            f"{stray.folder}"
        )
        for stray in stray_folders
        if not stray.is_half_removed
    ]


def describe_size(entry: ArchivedSession) -> str:
    """Return the size and the number of a session's files as text, for example "3.1 MB in 4 files"."""
    return f"{format_bytes(entry.size)} in {format_count(len(entry.parts), 'file')}"


def _print_restorable_sessions(options: RestoreOptions) -> None:
    where = options.where
    deleted_sessions, stray_folders = (
        trash.list_trashed_sessions(where),
        trash.list_stray_folders(where),
    )
    archived = list_archived(where)
    restorable_sessions = []
    for session in archived:
        if list_earlier_states(session) or not os.path.lexists(
            path_in_config_home(session.place, where, session.home)
        ):
            restorable_sessions.append(session)
    data = DEFAULT_RESTORE_ANSWER_FIELDS | {"trash": deleted_sessions, "strays": stray_folders}
    data["vault"] = restorable_sessions

    def format_restorable_sessions() -> str:
        trash_text = (
            "\n".join(
                [
                    *map(_describe_deleted_session, deleted_sessions),
                    *describe_stray_folders(stray_folders),
                ]
            )
            or "The trash is empty."
        )
        return "\n".join(
            [
                trash_text,
                "",
                "In the vault:",
                *(archived_session_text(session, where) for session in restorable_sessions),
            ]
            if restorable_sessions
            else [trash_text]
        )

    options.print_answer(data, format_restorable_sessions)


def _describe_deleted_session(entry: ArchivedSession) -> str:
    dates = f"deleted {clock.format_minute(entry.deleted_at)}, last written {clock.format_minute(entry.ended)}"
    if entry.complete:
        note = ""
    else:
        note = f"\n   {click.style(INTERRUPTED_DELETION_NOTE, fg='yellow')}"
    return f"{entry.title}\n   {entry.locator} · {format_bytes(entry.size)} · {dates}{note}"
