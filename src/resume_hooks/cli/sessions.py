"""``sessions``: the list of sessions, newest first."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence

import click

from resume_hooks import questions
from resume_hooks.cli.options import project_folder_of_option
from resume_hooks.cli.verbs.sessions import SessionsOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.clock import DAY, HOUR, MINUTE, format_minute
from resume_hooks.paths import Where, canonical_path
from resume_hooks.search import listing
from resume_hooks.search.listing import ORIGINAL, ListedSession, ListingPage, SessionLister
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import agent_named, agents, store_of
from resume_hooks.sessions.child_titles import kind_beside
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.system.text import fit_columns, format_count, plain_line, text_width

PIPED = 200  # columns of a row without a terminal
LEAST_TITLE = 24  # the minimum columns of a title before its marks
UNKNOWN = "-"
_HEADS = ("ID", "AGE", "LEFT", "SIZE", "TURNS", "USED", "TITLE")
_STEPS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"))  # seconds


def list_sessions(options: SessionsOptions) -> None:
    """Print a page of sessions."""
    options.refuse_together("everywhere", "project")
    for list_by_option in options.asked_of_parts(questions.list_by_option):
        list_by_option(options)
        return
    options.refuse_together("archived", "expiring")
    folder = project_folder_of_option(options.project)
    if options.everywhere:
        asked, scope = (None, "all")
    else:
        asked, scope = (project_of_folder(folder, options.where), folder)
    if options.archived:
        # Only this option needs the vault's modules.
        from resume_hooks.cli.show_archived import print_list

        print_list(options, asked, scope)
        return
    look = SessionLister(folder, options.where, store_of(options.where, options.agent))
    found = listing.listing_page(
        look,
        asked,
        limit=options.limit,
        offset=options.offset,
        helpers=options.helpers,
        expiring=options.expiring,
    )
    data = With(
        found, {"scope": scope, "offset": options.offset, "sessions": found.rows, "archived": []}
    )
    notes = []
    for agent in agents(options.where, options.agent):
        notes.extend(agent.notes())
    if not found.rows:
        notes += (
            f"{place} can't be listed: check its permissions" for place in look.store.hidden()
        )
        notes += (
            f"{place} is a symbolic link, which is not followed: name a session there by its path"
            for place in look.store.linked()
        )
    options.emit(data, lambda: _sessions_text(found, folder, options), notes)


def _sessions_text(found: ListingPage, folder: str, options: SessionsOptions) -> str:
    offset = options.offset
    if not found.rows:
        if options.everywhere:
            where = "anywhere"
        else:
            where = f"of {plain_line(folder)}"
        gone = " expires within seven days" if options.expiring else ""
        return (
            f"No session {where}{gone}{f' after the first {offset:,}' if offset else ''}."
            + ("" if options.everywhere else " --all lists those of every project.")
            + "".join(f"\n{line}" for line in _subagent_lines(found))
        )
    now = time.time()
    ids = listing.short_ids(found.rows, options.where)
    cells = []
    for short, row in zip(ids, found.rows, strict=True):
        cells.append((short, *_cells_of_row(row, now)))
    marks = []
    for row in found.rows:
        marks.append(_marks_of_row(row, folder, with_end=options.expiring))
    lines = _sessions_table(cells, marks, shutil.get_terminal_size((PIPED, 0)).columns)
    if found.more:
        more = [f"More: --offset {offset + len(found.rows)}, or --limit 0 for all."]
    else:
        more = []
    return "\n".join([*lines, *more, *_subagent_lines(found)])


def _subagent_lines(found: ListingPage) -> list[str]:
    left = format_count(found.helpers, "headless run")
    if found.helpers:
        return [f"Not listed: {left} of a single question; --helpers lists them."]
    return []


def _cells_of_row(row: ListedSession, now: float) -> tuple[str, ...]:
    if row.percent is None:
        percent = UNKNOWN
    else:
        percent = f"{'~' if row.context.is_estimate else ''}{row.percent}%"
    turns = UNKNOWN if row.turns is None else f"{row.turns:,}"
    if row.expires_days is None:
        left = UNKNOWN
    else:
        left = f"{row.expires_days}d"
    return (
        _short_age(now - row.mtime),
        left,
        size_text(row.size),
        turns,
        percent,
        plain_line(row.title),
    )


def _marks_of_row(row: ListedSession, folder: str, *, with_end: bool) -> str:
    """Return further facts on a session, most important first."""
    if row.folder and canonical_path(row.folder) != folder:
        away = os.path.basename(row.folder)
    else:
        away = ""
    if row.kind == ORIGINAL:
        kind = ""
    else:
        kind = kind_beside(row.title, row.kind)
    named = row.agent_name if row.agent_name != row.title else ""
    said = (
        agent_named(row.agent, Where()).label.lower() if row.agent != NAME else "",
        f"from {format_minute(row.expires_at)} UTC on" if with_end and row.expires_at else "",
        "open" if row.open else "",
        "archived" if row.kept else "",
        kind,
        f"#{row.tag}" if row.tag else "",
        named,
        row.branch,
        away and f"in {away}",
    )
    return " · ".join(plain_line(mark) for mark in said if mark)


def _sessions_table(
    cells: Sequence[tuple[str, ...]], marks: Sequence[str], columns: int
) -> list[str]:
    widths = []
    for place in range(len(_HEADS) - 1):
        widths.append(max(len(row[place]) for row in (_HEADS, *cells)))
    room = max(LEAST_TITLE, columns - sum(widths) - 2 * len(widths))
    lines = [click.style(_padded_row(_HEADS, widths).rstrip(), dim=True)]
    for row, mark in zip(cells, marks, strict=True):
        shown = fit_columns(mark, max(0, room - min(text_width(row[-1]), LEAST_TITLE) - 2))
        title = fit_columns(row[-1], room - (text_width(shown) + 2 if shown else 0))
        lines.append(
            f"{_padded_row(row[:-1], widths)}{title}{f'  {click.style(shown, dim=True)}' if shown else ''}"
        )
    return lines


def _padded_row(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers = (
        cell.ljust(width) if not place else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=False))
    )
    return "  ".join([first, *numbers, *row[len(widths) :], ""])


def _short_age(seconds: float) -> str:
    """Return an age as one word: ``5m``, ``3h``, ``12d``."""
    for step, letter in _STEPS:
        if seconds >= step:
            return f"{int(seconds // step)}{letter}"
    return "now"
