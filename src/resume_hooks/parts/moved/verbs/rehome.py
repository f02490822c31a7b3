"""Run ``rehome``: copy every session of a moved folder to its current path."""

from __future__ import annotations

import os

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table, show_work_progress
from resume_hooks.errors import ExitCode, SessionNotFound, UsageError
from resume_hooks.parts.moved.rehome import (
    ALREADY_COPIED_REASON,
    copy_sessions_to_folder,
    find_folder_sessions,
    find_former_folder,
    is_folder_unmoved,
)
from resume_hooks.parts.moved.verbs import RehomeOptions
from resume_hooks.system.text import format_count


def rehome_folder(options: RehomeOptions) -> ExitCode:
    """Copy the sessions of the moved folder, and return the exit code: 1 if a session could not be copied."""
    new_folder = _resolve_folder(options.home or "")
    if not os.path.isdir(new_folder):
        raise UsageError(f"{new_folder} is not a folder", "Give the folder's current path.")
    if options.folder:
        old_folder = _resolve_folder(options.folder)
    else:
        old_folder = find_former_folder(new_folder, options.where)
    if is_folder_unmoved(old_folder, options.where):
        raise UsageError(
            f"{old_folder} is still there",
            "Its sessions can be resumed as they are. To copy one session: resume-hooks fork --home",
        )
    sessions = find_folder_sessions(old_folder, options.where)
    if not sessions:
        raise SessionNotFound(
            f"No session was started in {old_folder}",
            "See resume-hooks sessions --all for the sessions of all folders.",
        )
    with show_work_progress("Copying", quiet=options.as_json) as report_progress:
        receipts, not_copied = copy_sessions_to_folder(
            sessions, new_folder, options.where, report_progress, dry_run=options.dry_run
        )
    warnings: dict[str, None] = {}
    for receipt in receipts:
        warnings.update(dict.fromkeys(receipt.warnings))
    data = {"was": old_folder, "home": new_folder, "made": receipts, "left_out": not_copied}
    verb = "Would copy" if options.dry_run else "Copied"
    heading = (
        f"{verb} {format_count(len(receipts), 'session')} of {old_folder} to {new_folder}; the sessions themselves "
        "stay as they are."
    )
    rows: list[tuple[str, object]] = []
    for row in receipts:
        rows.append((row.parent_session_id[:8], f"{row.session_id}  {row.title}"))
    rows += ((row.session_id[:8], f"not copied: {row.reason}") for row in not_copied)
    options.print_answer(data, lambda: f"{heading}\n\n{facts_table(rows)}", list(warnings))
    return int(any(row.reason != ALREADY_COPIED_REASON for row in not_copied))


def _resolve_folder(folder: str) -> str:
    return os.path.abspath(os.path.join(current_folder(), os.path.expanduser(folder)))
