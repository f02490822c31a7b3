"""``stats``: what sessions came to, what children saved, and how long hooks took."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from resume_hooks import clock
from resume_hooks.cli.output import current_folder, emit, json_option
from resume_hooks.cli.progress import at_work
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, canonical
from resume_hooks.reading.stats import state_sizes
from resume_hooks.reading.stats.cache import TranscriptCounts, gather
from resume_hooks.reading.stats.state_sizes import FolderSize
from resume_hooks.reading.stats.totals import HIGH, Figures, Hook, Month, Saving, figures, hook_data
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.git_worktrees import Project, project_at
from resume_hooks.system.text import counted, plain_line

SHOWN_PARTS = 6
"""Entries of our folder that are named, the largest ones."""


@click.command("stats")
@click.option("--since", metavar="WHEN", help="From a day on, or so far back: 2026-01-31, 30d, 6m.")
@click.option("--month", is_flag=True, help="From the first day of this month on.")
@click.option("--all", "everywhere", is_flag=True, help="Every project, not only this one and its worktrees.")
@click.option("--project", metavar="DIR", help="The project of another folder, which may be gone.")
@json_option
def command(since: str | None, month: bool, everywhere: bool, project: str | None, as_json: bool) -> None:
    """Show turns and tokens by month, what children saved, hook times, and the size of our own folder.

    Tokens are those that the API counted, of sub-agents too; SENT is all that requests held, CACHED what of it came
    out of the cache. A copy that the client's own --fork-session made counts again. SAVED is what the parent took when
    it was left, less what the child's first own request held; only children that somebody went on in count. Hook times
    are those that the client wrote into transcripts: it tells few of those that pass silently. Months are in UTC.

    Each transcript is read once; its counts are kept, also when it is deleted.

    \b
    Examples:
      resume-hooks stats
      resume-hooks stats --all --since 30d
      resume-hooks stats --month --json
    """
    if (since and month) or (everywhere and project is not None):
        raise UsageError("These options exclude each other", "Leave one of them out.")
    day = _first_day(since, month=month)
    folder = canonical(os.path.join(current_folder(), os.path.expanduser(project or ".")))
    with at_work("Counting", quiet=as_json) as told:
        gathered = gather(Where(), told)
    found = figures(gathered.transcripts, day, _belongs(None if everywhere else project_at(folder, Where())))
    state = state_sizes.parts(Where())
    data = {
        "scope": "all" if everywhere else folder,
        "since": day,
        "read": gathered.read,
        **{name: getattr(found, name) for name in ("sessions", "gone", "agents")},
        "months": [row._asdict() for row in found.months],
        "savings": [{**row._asdict(), "saved": row.saved} for row in found.savings],
        "hooks": [hook_data(row) for row in found.hooks],
        "state": [part._asdict() for part in state],
    }
    emit("stats", data, lambda: _text(found, state, _heading(data)), as_json=as_json)


def _first_day(since: str | None, *, month: bool) -> str:
    """The day to begin with, ``""`` for all there is. UsageError where the words name none."""
    if month:
        return f"{datetime.now(UTC):%Y-%m}-01"
    moment = clock.point(since) if since else None
    if since and moment is None:
        raise UsageError(f"'{since}' is no time", clock.WHEN)
    return clock.stamp(moment)[:10] if moment else ""


def _belongs(project: Project | None) -> Callable[[TranscriptCounts], bool]:
    """Whether a transcript is of the project; None for all."""
    if project is None:
        return lambda _: True
    return lambda one: project.holds(one.counts.folders, one.folder)


def _heading(data: dict[str, Any]) -> str:
    where = "every project" if data["scope"] == "all" else plain_line(data["scope"])
    gone = f", {data['gone']:,} of them deleted since" if data["gone"] else ""
    agents = f"; {counted(data['agents'], 'sub-agent')}" if data["agents"] else ""
    since = f" since {data['since']}" if data["since"] else ""
    return f"{counted(data['sessions'], 'session')} of {where}{since}{gone}{agents}"


def _text(found: Figures, state: Sequence[FolderSize], heading: str) -> str:
    parts = [heading, _months(found.months), _savings(found.savings), _hooks(found.hooks), _state(state)]
    return "\n\n".join(part for part in parts if part)


def _months(rows: Sequence[Month]) -> str:
    heads = ("MONTH", "SESSIONS", "TURNS", "REQUESTS", "SENT", "CACHED", "ANSWERED")
    return _table(
        heads,
        [
            (
                row.month,
                *(f"{number:,}" for number in (row.sessions, row.turns, row.requests, row.sent)),
                f"{round(100 * row.cached / row.sent)} %" if row.sent else "-",
                f"{row.answered:,}",
            )
            for row in rows
        ],
    )


def _savings(rows: Sequence[Saving]) -> str:
    heads = ("MADE IN", "KIND", "MADE", "GONE ON", "BEFORE", "AFTER", "SAVED")
    numbers = [(row.made, row.used, row.before, row.after, row.saved) for row in rows]
    cells = [
        (row.month, plain_line(row.kind), *(f"{number:,}" for number in told))
        for row, told in zip(rows, numbers, strict=True)
    ]
    return _table(heads, cells, words=2)


def _hooks(rows: Sequence[Hook]) -> str:
    heads = ("HOOK", "WHOSE", "TIMES", "MEDIAN", f"{HIGH} %")
    cells = [
        (row.event, "ours" if row.ours else "others", f"{row.times:,}", f"{row.median:,} ms", f"{row.high:,} ms")
        for row in rows
    ]
    return _table(heads, cells, words=2)


def _state(parts: Sequence[FolderSize]) -> str:
    if not parts:
        return ""
    largest = ", ".join(f"{plain_line(part.name)} {size_text(part.size)}" for part in parts[:SHOWN_PARTS] if part.size)
    return f"Our folder: {size_text(sum(part.size for part in parts))}{f' ({largest})' if largest else ''}"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], words: int = 1) -> str:
    """Columns: the first ``words`` of them from the left, numbers from the right."""
    if not rows:
        return ""
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]

    def line(row: tuple[str, ...]) -> str:
        cells = [
            cell.ljust(width) if place < words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([click.style(line(heads), dim=True), *map(line, rows)])
