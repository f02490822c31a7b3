"""Run ``delete --other-copies``: keep one copy of a session, and delete the copies in other folders."""

from __future__ import annotations

import os

from resume_hooks.archive.vault import delete
from resume_hooks.cli.output import print_text
from resume_hooks.cli.trash import DEFAULT_DELETE_ANSWER_FIELDS, describe_deletion
from resume_hooks.cli.verbs.archives import DeleteOptions
from resume_hooks.errors import UsageError
from resume_hooks.parts.moved.copies import choose_copy_to_keep
from resume_hooks.sessions.archived.layout import path_in_config_home
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count


def delete_other_copies(options: DeleteOptions) -> None:
    """Move all copies of a session except one to the trash.

    Raise UsageError if the session has only one copy or if --empty-trash is given. Raise
    ResumeHooksError if no copy contains all records of the other copies.
    """
    if options.empty_trash:
        raise UsageError(
            "--other-copies and --empty-trash can't be combined", "Leave --empty-trash out."
        )
    ask_first = options.must_ask("Deleting")
    session = options.locate_session()
    copies = choose_copy_to_keep(
        session,
        options.where,
        is_chosen_by_path=os.path.basename(session.path) in str(options.locator),
    )
    plans = []
    for other in copies.other_copies:
        plans.append(delete.plan_delete(other, options.where))
    if not (options.force or options.dry_run):
        delete.require_closed(copies.copy_to_keep, options.where)
    kept_text = f"{copies.copy_to_keep.path} stays"
    missing_text = (
        f"; {format_count(copies.missing_record_count, 'record')} of the other copies "
        f"{'are' if copies.missing_record_count > 1 else 'is'} missing from this copy"
    )
    kept_text += (
        missing_text if copies.missing_record_count else ", and has all records of the other copies"
    )
    if ask_first:
        print_text(
            "\n\n".join([kept_text, *(describe_deletion(plan, options.where) for plan in plans)])
        )
    is_confirmed = options.confirm_write("Move the other copies to the trash?", ask_first=ask_first)
    entries = []
    for deletion in plans:
        entries.append(
            delete.move_to_trash(deletion, options.where, force=options.force)
            if is_confirmed
            else deletion.entry
        )
    data = DEFAULT_DELETE_ANSWER_FIELDS | {
        "session": entries[0],
        "copies": entries[1:],
        "kept": copies.copy_to_keep.path,
        "written": is_confirmed,
    }

    def format_deletion_result() -> str:
        files = "\n".join(
            f"  {path_in_config_home(entry.place, options.where)}" for entry in entries
        )
        if not is_confirmed:
            return f"{kept_text}. Would be moved to the trash:\n{files}\n\nNothing was deleted."
        restore_commands = "\n".join(
            f"  {shell_command(f'restore {entry.locator}')}" for entry in entries
        )
        return f"{kept_text}. Moved to the trash:\n{files}\n\nRestore it:\n{restore_commands}"

    options.print_answer(data, format_deletion_result)
