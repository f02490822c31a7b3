"""``stats``: print statistics of sessions, savings by children, first edits, and hook durations."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from resume_hooks import clock
from resume_hooks.cli.options import find_project_folder, parse_time_option
from resume_hooks.cli.output import column_table, work_progress
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.stats.cache import gather_counts
from resume_hooks.parts.stats.count import requests_of_session
from resume_hooks.parts.stats.threshold import ASSUMPTIONS, Price, price_lines
from resume_hooks.parts.stats.totals import (
    HIGH_PERCENTILE,
    FolderSize,
    Statistics,
    make_statistics,
    state_sizes,
)
from resume_hooks.parts.stats.verbs import StatsOptions
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import ALL_AGENTS
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count, plain_line

SHOWN_PARTS = 6  # the maximum number of entries of our folder to show, largest first


def print_stats(options: StatsOptions) -> None:
    """Print the statistics."""
    options.refuse_combination("since", "month")
    options.refuse_combination("everywhere", "project")
    day = (
        clock.format_timestamp(parse_time_option(options.since))[:10] if options.since else ""
    )  # or "" for all days
    if options.month:
        day = f"{datetime.now(UTC):%Y-%m}-01"
    folder = find_project_folder(options.project)
    with work_progress("Counting", quiet=options.as_json) as advance:
        gathered = gather_counts(options.where, advance)
    if options.everywhere:
        project = None
    else:
        project = project_of_folder(folder, options.where)
    selected = []
    for transcript in gathered.transcripts:
        if options.agent in {ALL_AGENTS, transcript.program} and (
            project is None or project.holds(transcript.counts.folders, transcript.folder)
        ):
            selected.append(transcript)
    statistics = make_statistics(selected, day)
    state = state_sizes(options.where)
    prices: list[Price] = []
    if options.threshold:
        request_lists = []
        for transcript in selected:
            if transcript.there and not transcript.agent and transcript.program == CLAUDE_NAME:
                with contextlib.suppress(SessionNotFound):
                    request_lists.append(requests_of_session(transcript.path))
        prices = price_lines(request_lists, day)
    data = {
        "scope": "all" if options.everywhere else folder,
        "since": day,
        "read": gathered.read,
        **{name: getattr(statistics, name) for name in ("sessions", "gone", "agents")},
        "months": statistics.months,
        "savings": statistics.savings,
        "stretches": statistics.stretches,
        "hooks": [
            WithFields(row, {"median_ms": row.median, "p95_ms": row.high})
            for row in statistics.hooks
        ],
        "state": state,
        "threshold": prices,
        "assumed": ASSUMPTIONS if prices else "",
    }
    options.emit(
        data,
        lambda: (
            _threshold_text(prices, _stats_heading(data))
            if prices
            else _stats_text(statistics, state, _stats_heading(data))
        ),
    )


def _threshold_text(rows: Sequence[Price], heading: str) -> str:
    paid, best = rows[0].cost, min(rows, key=lambda row: row.cost)
    heads = ("LINE", "TIMES", "LEFT", "READ", "WRITTEN", "COST", "OF NONE")
    cells = []
    for row in rows:
        numbers = _grouped(row.times, row.left, row.read, row.written, row.cost)
        share = f"{100 * row.cost / paid:.0f} %" if paid else "-"
        cells.append((_price_setting(row), *numbers, share))
    if best.line:
        advice = shell_command(f"config compaction {_price_setting(best)}")
    else:
        advice = "none, as before"
    return "\n\n".join(
        (heading, column_table(heads, cells), f"Least, by cost alone: {advice}", ASSUMPTIONS)
    )


def _price_setting(row: Price) -> str:
    if row.line:
        return f"{row.way}@{row.line // 1_000}k"
    return "none"


def _stats_heading(data: dict[str, Any]) -> str:
    if data["scope"] == "all":
        scope_text = "every project"
    else:
        scope_text = plain_line(data["scope"])
    if data["gone"]:
        deleted_text = f", {data['gone']:,} of them deleted since"
    else:
        deleted_text = ""
    if data["agents"]:
        agents = f"; {format_count(data['agents'], 'sub-agent')}"
    else:
        agents = ""
    since = f" since {data['since']}" if data["since"] else ""
    return (
        f"{format_count(data['sessions'], 'session')} with a turn or an answer of "
        f"{scope_text}{since}{deleted_text}{agents}"
    )


def _grouped(*numbers: int) -> list[str]:
    """Return numbers with a comma between the thousands."""
    return [f"{number:,}" for number in numbers]


def _stats_text(statistics: Statistics, state: Sequence[FolderSize], heading: str) -> str:
    blocks = (
        heading,
        _months_table(statistics),
        _savings_table(statistics),
        _stretches_table(statistics),
        _hooks_table(statistics),
        _own_folder_line(state),
    )
    return "\n\n".join(filter(None, blocks))


def _months_table(statistics: Statistics) -> str:
    cells = []
    for row in statistics.months:
        numbers = _grouped(row.sessions, row.turns, row.requests, row.sent)
        cached = f"{round(100 * row.cached / row.sent)} %" if row.sent else "-"
        cells.append((row.month, *numbers, cached, f"{row.answered:,}"))
    heads = ("MONTH", "SESSIONS", "TURNS", "REQUESTS", "SENT", "CACHED", "ANSWERED")
    return column_table(heads, cells)


def _savings_table(statistics: Statistics) -> str:
    cells = []
    for row in statistics.savings:
        counts = _grouped(row.made, row.used, row.measured)
        if row.measured:
            sizes = _grouped(row.before, row.after, row.saved)
        else:
            sizes = ["-", "-", "-"]
        cells.append((row.month, plain_line(row.kind), *counts, *sizes))
    heads = ("MADE IN", "KIND", "MADE", "USED", "MEASURED", "BEFORE", "AFTER", "SAVED")
    return column_table(heads, cells, left_aligned=2)


def _stretches_table(statistics: Statistics) -> str:
    cells = []
    for row in statistics.stretches:
        cells.append((plain_line(row.kind), *_grouped(row.times, row.edited, row.median, row.p75)))
    return column_table(("FIRST EDIT AFTER A", "TIMES", "EDITED", "CALLS BEFORE", "75 %"), cells)


def _hooks_table(statistics: Statistics) -> str:
    cells = []
    for row in statistics.hooks:
        owner = "ours" if row.ours else "others"
        cells.append((row.event, owner, f"{row.times:,}", f"{row.median:,} ms", f"{row.high:,} ms"))
    heads = ("HOOK", "WHOSE", "TIMES", "MEDIAN", f"{HIGH_PERCENTILE} %")
    return column_table(heads, cells, left_aligned=2)


def _own_folder_line(state: Sequence[FolderSize]) -> str:
    """Return the size of our own folder, and of its largest parts, or ``""`` if it is empty."""
    if not state:
        return ""
    total = format_bytes(sum(part.size for part in state))
    sizes = []
    for part in state[:SHOWN_PARTS]:
        if part.size:
            sizes.append(f"{plain_line(part.name)} {format_bytes(part.size)}")
    if sizes:
        return f"Our folder: {total} ({', '.join(sizes)})"
    return f"Our folder: {total}"
