"""``rehome``: copy every session of a moved folder to its current path."""

from __future__ import annotations

import os

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table, work_progress
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.parts.moved.rehome import (
    HAS_COPY,
    copy_sessions_to_folder,
    find_former_folder,
    is_still_there,
    sessions_of_folder,
)
from resume_hooks.parts.moved.verbs import RehomeOptions
from resume_hooks.system.text import format_count


def rehome_folder(options: RehomeOptions) -> int:
    """Copy the sessions of the moved folder. Return 1 if a session could not be copied."""
    new = _absolute_folder(options.home or "")
    if not os.path.isdir(new):
        raise UsageError(f"{new} is not a folder", "Name the folder by its current path.")
    if options.folder:
        old = _absolute_folder(options.folder)
    else:
        old = find_former_folder(new, options.where)
    if is_still_there(old, options.where):
        raise UsageError(
            f"{old} is still there", "Its sessions work there; fork --home copies one of them."
        )
    sessions = sessions_of_folder(old, options.where)
    if not sessions:
        raise SessionNotFound(
            f"No session was started in {old}",
            "See resume-hooks sessions --all for the sessions of all folders.",
        )
    with work_progress("Copying", quiet=options.as_json) as advance:
        receipts, not_copied = copy_sessions_to_folder(
            sessions, new, options.where, advance, dry_run=options.dry_run
        )
    warnings: dict[str, None] = {}
    for receipt in receipts:
        warnings.update(dict.fromkeys(receipt.warnings))
    data = {"was": old, "home": new, "made": receipts, "left_out": not_copied}
    verb = "Would copy" if options.dry_run else "Copied"
    head = (
        f"{verb} {format_count(len(receipts), 'session')} of {old} to {new}; the sessions themselves "
        "stay as they are."
    )
    rows: list[tuple[str, object]] = []
    for row in receipts:
        rows.append((row.parent_session_id[:8], f"{row.session_id}  {row.title}"))
    rows += ((row.session_id[:8], f"not copied: {row.why}") for row in not_copied)
    options.emit(data, lambda: f"{head}\n\n{facts_table(rows)}", list(warnings))
    return int(any(row.why != HAS_COPY for row in not_copied))


def _absolute_folder(folder: str) -> str:
    return os.path.abspath(os.path.join(current_folder(), os.path.expanduser(folder)))
