"""Describe archived sessions as text, and print the list of ``sessions --archived``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from itertools import islice

from resume_hooks import clock
from resume_hooks.archive.link_sessions import archive_lost_sessions
from resume_hooks.archive.vault.locate_archived import list_earlier_states, make_earlier_state_name
from resume_hooks.cli.output import column_table
from resume_hooks.cli.verbs.sessions import SessionsOptions
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import is_other_config_home, path_in_config_home
from resume_hooks.sessions.archived.manifest import ArchivedSession, list_archived
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.sessions.session_files import all_sessions
from resume_hooks.system.git_worktrees import Project
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import plain_line

COLUMN_HEADINGS = ("ID", "LAST WRITTEN", "SIZE", "PACKED", "SINCE", "TITLE")


def archived_session_text(archived: ArchivedSession, where: Where) -> str:
    """Return the title, id and sizes of an archived session as text, with its earlier archived states."""
    if os.path.lexists(path_in_config_home(archived.place, where, archived.home)):
        only_copy_text = ""
    else:
        only_copy_text = ", only here"
    only_copy_text += f", of {archived.home}" if is_other_config_home(archived.home, where) else ""
    sizes = f"{format_bytes(archived.size)} packed to {format_bytes(archived.stored)}"
    last_written = f"last written {clock.format_minute(archived.ended)}"
    rows = [archived.title, f"   {archived.session_id} · {sizes} · {last_written}{only_copy_text}"]
    for state in list_earlier_states(archived):
        rows.append(f"   before that: {archived.session_id}@{make_earlier_state_name(state)}")
    rows += [] if archived.complete else ["   some of its files could not be archived"]
    return "\n".join(rows)


def print_archived_page(options: SessionsOptions, project: Project | None, scope: str) -> None:
    """Print a page of the sessions that only the vault has. If ``project`` is None, list all projects.

    The most recently used session comes first.
    """
    archive_lost_sessions(options.where)
    present_ids = set()
    for session in all_sessions(options.where):
        present_ids.add(session.session_id)
    archived_sessions = list_archived(options.where, present_ids)
    listed_sessions = []
    for archived in archived_sessions:
        if project is None or project.contains_session([archived.cwd], archived.project):
            listed_sessions.append(archived)
    end_index = options.offset + options.limit if options.limit else None
    page_sessions = list(islice(listed_sessions, options.offset, end_index))
    data = {
        "scope": scope,
        "offset": options.offset,
        "more": len(listed_sessions) > options.offset + len(page_sessions),
        "files": len(archived_sessions),
        "helpers": 0,
        "sessions": [],
        "archived": page_sessions,
    }
    if data["more"]:
        next_page = (
            f"\nTo see more: --offset {options.offset + len(page_sessions)}, or --limit 0 for all."
        )
    else:
        next_page = ""
    options.print_answer(
        data, lambda: _format_archived_sessions(page_sessions, project) + next_page
    )


def _format_archived_sessions(sessions: Sequence[ArchivedSession], project: Project | None) -> str:
    if not sessions:
        scope_text = "" if project is None else " of the project"
        return (
            f"No archived session{scope_text} needs to be restored: the client still has them all. To list "
            f"the archived sessions: {shell_command('archive --list')}"
        )
    rows = []
    for session in sessions:
        rows.append(
            (
                session.session_id[:SHORT_ID_CHARACTERS],
                clock.format_minute(session.ended),
                format_bytes(session.size),
                format_bytes(session.stored),
                clock.format_minute(session.archived_at)[:10],
                plain_line(session.title),
            )
        )
    table = column_table(
        COLUMN_HEADINGS, rows, len(COLUMN_HEADINGS), shutil.get_terminal_size().columns
    )
    return f"{table}\nTo restore a session: {shell_command('restore ID')}"
