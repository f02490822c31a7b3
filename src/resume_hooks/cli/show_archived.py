"""The text of an archived session, and ``sessions --archived``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from itertools import islice

from resume_hooks import clock
from resume_hooks.archive.hold_sessions import archive_lost
from resume_hooks.archive.vault.lookup import earlier_states, name_earlier_state
from resume_hooks.cli.output import column_table
from resume_hooks.cli.verbs.sessions import SessionsOptions
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import is_foreign, path_of_place
from resume_hooks.sessions.archived.manifest import ArchivedSession, all_archived
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.sessions.session_files import all_sessions
from resume_hooks.system.git_worktrees import Project
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import plain_line

HEADS = ("ID", "LAST WRITTEN", "SIZE", "PACKED", "SINCE", "TITLE")


def kept_text(kept: ArchivedSession, where: Where) -> str:
    """Return an archived session as text."""
    if os.path.lexists(path_of_place(kept.place, where, kept.home)):
        gone = ""
    else:
        gone = ", only here"
    gone += f", of {kept.home}" if is_foreign(kept.home, where) else ""
    took = f"{size_text(kept.size)} packed to {size_text(kept.stored)}"
    when = f"last written {clock.format_minute(kept.ended)}"
    rows = [kept.title, f"   {kept.session_id} · {took} · {when}{gone}"]
    for state in earlier_states(kept):
        rows.append(f"   before that: {kept.session_id}@{name_earlier_state(state)}")
    rows += [] if kept.complete else ["   some of its files could not be archived"]
    return "\n".join(rows)


def print_list(options: SessionsOptions, project: Project | None, scope: str) -> None:
    """Print a page of the sessions that only the vault has, of a project or of all.

    The last written comes first.
    """
    archive_lost(options.where)
    present = set()
    for session in all_sessions(options.where):
        present.add(session.session_id)
    gone = all_archived(options.where, present)
    wanted = []
    for kept in gone:
        if project is None or project.holds([kept.cwd], kept.project):
            wanted.append(kept)
    end = options.offset + options.limit if options.limit else None
    shown = list(islice(wanted, options.offset, end))
    data = {
        "scope": scope,
        "offset": options.offset,
        "more": len(wanted) > options.offset + len(shown),
        "files": len(gone),
        "helpers": 0,
        "sessions": [],
        "archived": shown,
    }
    if data["more"]:
        next_page = f"\nMore: --offset {options.offset + len(shown)}, or --limit 0 for all."
    else:
        next_page = ""
    options.emit(data, lambda: _archived_list_text(shown) + next_page)


def _archived_list_text(shown: Sequence[ArchivedSession]) -> str:
    if not shown:
        return (
            "Every archived session here is still in the client's folders. archive "
            "--list shows them."
        )
    rows = []
    for kept in shown:
        rows.append(
            (
                kept.session_id[:SHORT],
                clock.format_minute(kept.ended),
                size_text(kept.size),
                size_text(kept.stored),
                clock.format_minute(kept.archived_at)[:10],
                plain_line(kept.title),
            )
        )
    table = column_table(HEADS, rows, len(HEADS), shutil.get_terminal_size().columns)
    return f"{table}\nBack to the client: {shell_command('restore ID')}"
