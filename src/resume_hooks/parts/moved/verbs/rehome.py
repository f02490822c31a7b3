"""``rehome``: copy every session of a moved folder to its current path."""

from __future__ import annotations

import os

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table, work_progress
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.parts.moved.rehome import (
    THERE,
    copy_sessions_home,
    former_folder,
    is_still_there,
    own_sessions,
)
from resume_hooks.parts.moved.verbs import RehomeOptions
from resume_hooks.system.text import format_count


def rehome_folder(options: RehomeOptions) -> int:
    """Copy the sessions of the moved folder; return 1 if one could not be copied."""
    new = _absolute_folder(options.home or "")
    if not os.path.isdir(new):
        raise UsageError(f"{new} is not a folder", "Name the folder by its current path.")
    if options.folder:
        old = _absolute_folder(options.folder)
    else:
        old = former_folder(new, options.where)
    if is_still_there(old, options.where):
        raise UsageError(
            f"{old} is still there", "Its sessions work there; fork --home copies one of them."
        )
    sessions = own_sessions(old, options.where)
    if not sessions:
        raise SessionNotFound(
            f"No session was started in {old}",
            "See resume-hooks sessions --all for the sessions of all folders.",
        )
    with work_progress("Copying", quiet=options.as_json) as advance:
        made, left = copy_sessions_home(
            sessions, new, options.where, advance, dry_run=options.dry_run
        )
    warnings: dict[str, None] = {}
    for receipt in made:
        warnings.update(dict.fromkeys(receipt.warnings))
    data = {"was": old, "home": new, "made": made, "left_out": left}
    verb = "Would copy" if options.dry_run else "Copied"
    head = (
        f"{verb} {format_count(len(made), 'session')} of {old} to {new}; the sessions themselves "
        "stay as they are."
    )
    rows: list[tuple[str, object]] = []
    for one in made:
        rows.append((one.parent_session_id[:8], f"{one.session_id}  {one.title}"))
    rows += ((one.session_id[:8], f"not copied: {one.why}") for one in left)
    options.emit(data, lambda: f"{head}\n\n{facts_table(rows)}", list(warnings))
    return int(any(one.why != THERE for one in left))


def _absolute_folder(named: str) -> str:
    return os.path.abspath(os.path.join(current_folder(), os.path.expanduser(named)))
