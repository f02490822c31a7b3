"""``sessions``: the list of sessions, newest first."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence

import click

from resume_hooks import questions
from resume_hooks.cli.options import find_project_folder
from resume_hooks.cli.verbs.sessions import SessionsOptions
from resume_hooks.clock import DAY, HOUR, MINUTE, format_minute
from resume_hooks.paths import Where, canonical_path
from resume_hooks.search import listing
from resume_hooks.search.listing import ORIGINAL_KIND, ListedSession, ListingPage, SessionLister
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_with_name, list_agents, store_of_agents
from resume_hooks.sessions.child_titles import kind_unless_in_title
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.system.text import fit_to_columns, format_count, plain_line, text_width

DEFAULT_ROW_COLUMNS = 200  # the width of a row in columns if the output is not a terminal
# the minimum width of a title in columns, if the row has remarks after its title
MIN_TITLE_COLUMNS = 24
UNKNOWN_VALUE = "-"
_COLUMN_HEADINGS = ("ID", "AGE", "LEFT", "SIZE", "TURNS", "USED", "TITLE")
_AGE_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"))  # seconds


def list_sessions(options: SessionsOptions) -> None:
    """Print a page of the list of sessions."""
    options.refuse_combination("everywhere", "project")
    for list_sessions_with_part_option in options.find_part_functions(
        questions.list_sessions_with_part_option
    ):
        list_sessions_with_part_option(options)
        return
    options.refuse_combination("only_archived", "only_expiring")
    folder = find_project_folder(options.project)
    if options.everywhere:
        project, scope = (None, "all")
    else:
        project, scope = (project_of_folder(folder, options.where), folder)
    if options.only_archived:
        # Imported late because only ``--archived`` needs the vault's modules.
        from resume_hooks.cli.show_archived import print_archived_page

        print_archived_page(options, project, scope)
        return
    lister = SessionLister(folder, options.where, store_of_agents(options.where, options.agent))
    page = listing.listing_page(
        lister,
        project,
        max_rows=options.limit,
        first_row=options.offset,
        include_helpers=options.include_headless_runs,
        only_expiring=options.only_expiring,
    )
    data = {
        "scope": scope,
        "offset": options.offset,
        "more": page.has_more,
        "files": page.file_count,
        "helpers": page.omitted_helper_count,
        "sessions": page.rows,
        "archived": [],
    }
    notes = []
    for agent in list_agents(options.where, options.agent):
        notes.extend(agent.build_listing_notes())
    if not page.rows:
        notes += (
            f"{folder_path} can't be listed: check its permissions"
            for folder_path in lister.store.unreadable_folders()
        )
        notes += (
            (
                f"{folder_path} is a symbolic link, and links are not followed: "
                "name its sessions by the paths of their files"
            )
            for folder_path in lister.store.linked_paths()
        )
    options.print_answer(data, lambda: _format_session_page(page, folder, options), notes)


def _format_session_page(page: ListingPage, folder: str, options: SessionsOptions) -> str:
    offset = options.offset
    if not page.rows:
        if options.everywhere:
            scope_text = "anywhere"
        else:
            scope_text = f"of {plain_line(folder)}"
        expiring_text = " that expire within seven days" if options.only_expiring else ""
        opening = f"After the first {offset:,}, there" if offset else "There"
        return (
            f"{opening} are no sessions {scope_text}{expiring_text}."
            + ("" if options.everywhere else " --all lists the sessions of every project.")
            + "".join(f"\n{line}" for line in _format_omitted_headless_runs(page))
        )
    now = time.time()
    ids = listing.short_ids(page.rows, options.where)
    rows_of_cells = []
    for short_id, row in zip(ids, page.rows, strict=True):
        rows_of_cells.append((short_id, *_format_cells(row, now)))
    remarks = []
    for row in page.rows:
        remarks.append(_format_remarks(row, folder, with_expiry=options.only_expiring))
    lines = _format_session_table(
        rows_of_cells, remarks, shutil.get_terminal_size((DEFAULT_ROW_COLUMNS, 0)).columns
    )
    if page.has_more:
        next_page_lines = [
            f"To see more: --offset {offset + len(page.rows)}, or --limit 0 for all."
        ]
    else:
        next_page_lines = []
    return "\n".join([*lines, *next_page_lines, *_format_omitted_headless_runs(page)])


def _format_omitted_headless_runs(page: ListingPage) -> list[str]:
    runs_text = format_count(page.omitted_helper_count, "headless run")
    if page.omitted_helper_count:
        return [f"Not listed: {runs_text} with a single question; --helpers lists these runs."]
    return []


def _format_cells(row: ListedSession, now: float) -> tuple[str, ...]:
    if row.context_percent is None:
        percent = UNKNOWN_VALUE
    else:
        percent = f"{'~' if row.context.is_estimate else ''}{row.context_percent}%"
    turns = UNKNOWN_VALUE if row.turn_count is None else f"{row.turn_count:,}"
    if row.days_to_expiry is None:
        days_left = UNKNOWN_VALUE
    else:
        days_left = f"{row.days_to_expiry}d"
    return (
        _format_short_age(now - row.mtime),
        days_left,
        format_bytes(row.size),
        turns,
        percent,
        plain_line(row.title),
    )


def _format_remarks(row: ListedSession, folder: str, *, with_expiry: bool) -> str:
    """Return the remarks to show after a session's title, for example ``open · in docs``.

    The most important remark comes first.
    """
    if row.folder and canonical_path(row.folder) != folder:
        other_folder = os.path.basename(row.folder)
    else:
        other_folder = ""
    if row.kind == ORIGINAL_KIND:
        kind_text = ""
    else:
        kind_text = kind_unless_in_title(row.title, row.kind)
    agent_title = row.agent_name if row.agent_name != row.title else ""
    remarks = (
        agent_with_name(row.agent, Where()).label.lower() if row.agent != CLAUDE_NAME else "",
        f"from {format_minute(row.expiry_time)} UTC on" if with_expiry and row.expiry_time else "",
        "open" if row.is_open else "",
        "archived" if row.is_archived else "",
        kind_text,
        f"#{row.tag}" if row.tag else "",
        agent_title,
        row.branch,
        other_folder and f"in {other_folder}",
    )
    return " · ".join(plain_line(remark) for remark in remarks if remark)


def _format_session_table(
    rows_of_cells: Sequence[tuple[str, ...]], remarks: Sequence[str], columns: int
) -> list[str]:
    widths = []
    for column in range(len(_COLUMN_HEADINGS) - 1):
        widths.append(max(len(row[column]) for row in (_COLUMN_HEADINGS, *rows_of_cells)))
    remaining_columns = max(MIN_TITLE_COLUMNS, columns - sum(widths) - 2 * len(widths))
    lines = [click.style(_pad_row(_COLUMN_HEADINGS, widths).rstrip(), dim=True)]
    for row, remark in zip(rows_of_cells, remarks, strict=True):
        remarks_text = fit_to_columns(
            remark, max(0, remaining_columns - min(text_width(row[-1]), MIN_TITLE_COLUMNS) - 2)
        )
        title = fit_to_columns(
            row[-1], remaining_columns - (text_width(remarks_text) + 2 if remarks_text else 0)
        )
        lines.append(
            f"{_pad_row(row[:-1], widths)}{title}{f'  {click.style(remarks_text, dim=True)}' if remarks_text else ''}"
        )
    return lines


def _pad_row(row: Sequence[str], widths: Sequence[int]) -> str:
    first_cell = row[0].ljust(widths[0])
    number_cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False)]
    return "  ".join([first_cell, *number_cells, *row[len(widths) :], ""])


def _format_short_age(seconds: float) -> str:
    """Return an age in the largest fitting unit, for example ``5m``, ``3h`` or ``12d``."""
    for unit_seconds, letter in _AGE_UNITS:
        if seconds >= unit_seconds:
            return f"{int(seconds // unit_seconds)}{letter}"
    return "now"
