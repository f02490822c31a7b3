"""Run ``stats``: print statistics of sessions, savings by children, first edits, and hooks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from resume_hooks import clock
from resume_hooks.cli.options import find_project_folder, parse_time_option
from resume_hooks.cli.output import column_table, show_work_progress
from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.stats.cache import gather_counts
from resume_hooks.parts.stats.count import read_requests
from resume_hooks.parts.stats.threshold import (
    ASSUMPTIONS_TEXT,
    ThresholdCost,
    compute_threshold_costs,
)
from resume_hooks.parts.stats.totals import (
    HIGH_PERCENTILE,
    FolderSize,
    Statistics,
    make_statistics,
    measure_state_folder_entries,
)
from resume_hooks.parts.stats.verbs import StatsOptions
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import NAME_FOR_ALL_AGENTS
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count, plain_line

MAX_SHOWN_FOLDERS = 6  # Maximum number of entries of the state folder to show.


def print_stats(options: StatsOptions) -> None:
    """Print the statistics or, with ``--threshold``, what the requests would have cost at each threshold."""
    options.refuse_combination("since", "only_this_month")
    options.refuse_combination("everywhere", "project")
    # The empty string selects all days.
    day = clock.format_timestamp(parse_time_option(options.since))[:10] if options.since else ""
    if options.only_this_month:
        day = f"{datetime.now(UTC):%Y-%m}-01"
    folder = find_project_folder(options.project)
    with show_work_progress("Counting", quiet=options.as_json) as report_progress:
        all_counts = gather_counts(options.where, report_progress)
    if options.everywhere:
        project = None
    else:
        project = project_of_folder(folder, options.where)
    selected_transcripts = []
    for transcript in all_counts.transcripts:
        if options.agent in {NAME_FOR_ALL_AGENTS, transcript.agent_name} and (
            project is None
            or project.contains_session(transcript.totals.folders, transcript.folder)
        ):
            selected_transcripts.append(transcript)
    statistics = make_statistics(selected_transcripts, day)
    state = measure_state_folder_entries(options.where)
    prices: list[ThresholdCost] = []
    if options.compares_thresholds:
        request_lists = []
        for transcript in selected_transcripts:
            if (
                transcript.exists
                and not transcript.agent_id
                and transcript.agent_name == CLAUDE_NAME
            ):
                with contextlib.suppress(SessionNotFound):
                    request_lists.append(read_requests(transcript.path))
        prices = compute_threshold_costs(request_lists, day)
    data = {
        "scope": "all" if options.everywhere else folder,
        "since": day,
        "read": all_counts.newly_read_transcript_count,
        "sessions": statistics.session_count,
        "gone": statistics.deleted_session_count,
        "agents": statistics.subagent_count,
        "months": statistics.months,
        "savings": statistics.savings,
        "stretches": statistics.calls_before_edit,
        "hooks": statistics.hooks,
        "state": state,
        "threshold": prices,
        "assumed": ASSUMPTIONS_TEXT if prices else "",
    }
    options.print_answer(
        data,
        lambda: (
            _format_threshold_costs(prices, _format_heading(data))
            if prices
            else _format_stats(statistics, state, _format_heading(data))
        ),
    )


def _format_threshold_costs(rows: Sequence[ThresholdCost], heading: str) -> str:
    actual_cost, best_row = (
        rows[0].cost_in_input_tokens,
        min(rows, key=lambda row: row.cost_in_input_tokens),
    )
    headings = ("LINE", "TIMES", "LEFT", "READ", "WRITTEN", "COST", "OF NONE")
    cells = []
    for row in rows:
        numbers = _format_numbers(
            row.context_reduction_count,
            row.tokens_after_reduction,
            row.cache_read_tokens,
            row.cache_write_tokens,
            row.cost_in_input_tokens,
        )
        cost_share = f"{100 * row.cost_in_input_tokens / actual_cost:.0f} %" if actual_cost else "-"
        cells.append((_format_threshold_setting(row), *numbers, cost_share))
    if best_row.threshold_tokens:
        advice = shell_command(f"config compaction {_format_threshold_setting(best_row)}")
    else:
        advice = "none, as before"
    return "\n\n".join(
        (
            heading,
            column_table(headings, cells),
            f"The cheapest setting, if only the cost counts: {advice}",
            ASSUMPTIONS_TEXT,
        )
    )


def _format_threshold_setting(row: ThresholdCost) -> str:
    if row.threshold_tokens:
        return f"{row.strategy}@{row.threshold_tokens // 1_000}k"
    return "none"


def _format_heading(data: dict[str, Any]) -> str:
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
        f"{format_count(data['sessions'], 'session')} of {scope_text} with a turn or an answer"
        f"{since}{deleted_text}{agents}"
    )


def _format_numbers(*numbers: int) -> list[str]:
    """Return the numbers as texts, with commas that separate thousands."""
    return [f"{number:,}" for number in numbers]


def _format_stats(statistics: Statistics, folder_sizes: Sequence[FolderSize], heading: str) -> str:
    blocks = (
        heading,
        _format_months(statistics),
        _format_savings(statistics),
        _format_stretches(statistics),
        _format_hooks(statistics),
        _format_state_folder(folder_sizes),
    )
    return "\n\n".join(filter(None, blocks))


def _format_months(statistics: Statistics) -> str:
    cells = []
    for row in statistics.months:
        numbers = _format_numbers(
            row.session_count, row.turn_count, row.request_count, row.sent_tokens
        )
        cached_share = (
            f"{round(100 * row.cached_tokens / row.sent_tokens)} %" if row.sent_tokens else "-"
        )
        cells.append((row.month, *numbers, cached_share, f"{row.answer_tokens:,}"))
    headings = ("MONTH", "SESSIONS", "TURNS", "REQUESTS", "SENT", "CACHED", "ANSWERED")
    return column_table(headings, cells)


def _format_savings(statistics: Statistics) -> str:
    cells = []
    for row in statistics.savings:
        counts = _format_numbers(
            row.child_count, row.continued_child_count, row.measured_child_count
        )
        if row.measured_child_count:
            sizes = _format_numbers(row.tokens_before, row.tokens_after, row.saved_tokens)
        else:
            sizes = ["-", "-", "-"]
        cells.append((row.month, plain_line(row.kind), *counts, *sizes))
    headings = ("MADE IN", "KIND", "MADE", "USED", "MEASURED", "BEFORE", "AFTER", "SAVED")
    return column_table(headings, cells, left_aligned_count=2)


def _format_stretches(statistics: Statistics) -> str:
    cells = []
    for row in statistics.calls_before_edit:
        cells.append(
            (
                plain_line(row.kind),
                *_format_numbers(
                    row.stretch_count,
                    row.stretch_with_edit_count,
                    row.median_call_count,
                    row.p75_call_count,
                ),
            )
        )
    return column_table(("FIRST EDIT AFTER A", "TIMES", "EDITED", "CALLS BEFORE", "75 %"), cells)


def _format_hooks(statistics: Statistics) -> str:
    cells = []
    for row in statistics.hooks:
        owner = "ours" if row.is_own else "others"
        cells.append(
            (row.event, owner, f"{row.run_count:,}", f"{row.median_ms:,} ms", f"{row.p95_ms:,} ms")
        )
    headings = ("HOOK", "WHOSE", "TIMES", "MEDIAN", f"{HIGH_PERCENTILE} %")
    return column_table(headings, cells, left_aligned_count=2)


def _format_state_folder(folder_sizes: Sequence[FolderSize]) -> str:
    """Return the size of the state folder and of its largest folders, or ``""`` if nothing is in it."""
    if not folder_sizes:
        return ""
    total = format_bytes(sum(part.byte_count for part in folder_sizes))
    sizes = []
    for part in folder_sizes[:MAX_SHOWN_FOLDERS]:
        if part.byte_count:
            sizes.append(f"{plain_line(part.name)} {format_bytes(part.byte_count)}")
    if sizes:
        return f"Size of the plugin's folder: {total} ({', '.join(sizes)})"
    return f"Size of the plugin's folder: {total}"
