"""Sum the counts of transcripts by month, by kind of child and by hook, and measure the state folder."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from resume_hooks.parts.stats.cache import TranscriptCounts
from resume_hooks.parts.stats.count import (
    CALL_COUNT_WITHOUT_EDIT,
    OUR_HOOKS,
    DayCounts,
    TalliesByNameAndDay,
)
from resume_hooks.paths import Where

# Maximum number of files and folders to count. If there are more, the reported size is too small.
MAX_FOLDER_ENTRIES = 200_000
HIGH_PERCENTILE = 95  # The percentile of durations that is shown next to the median.


class MonthSummary(NamedTuple):
    """The counts of one month in UTC. The month is written like ``2026-01``.

    ``session_count`` is the number of sessions with a turn or an answer.
    """

    month: str
    session_count: int
    turn_count: int
    request_count: int
    sent_tokens: int
    cached_tokens: int
    answer_tokens: int


class SavingSummary(NamedTuple):
    """Totals of the children of one kind that were created in one month.

    ``child_count`` is the number of these children, and ``continued_child_count`` is the number of
    children that were continued. ``measured_child_count`` is the number of children for which two
    sizes are known: the size of the parent when the user made the child, and the size of the
    child's first request. ``tokens_before`` and ``tokens_after`` are the sums of these sizes.
    """

    month: str
    kind: str
    child_count: int
    continued_child_count: int
    measured_child_count: int
    tokens_before: int
    tokens_after: int

    @property
    def saved_tokens(self) -> int:
        """The number of saved tokens.

        It is negative if the children's first requests are larger than the parents' contexts.
        """
        return self.tokens_before - self.tokens_after


class HookSummary(NamedTuple):
    """The durations in milliseconds of the hooks that ran on one kind of event.

    ``is_own`` is true for the hooks of this plugin, and false for all other hooks. ``run_count`` is
    the number of runs, and ``median_ms`` and ``p95_ms`` are percentiles of their durations.
    """

    event: str
    is_own: bool
    run_count: int
    median_ms: int
    p95_ms: int


class CallsBeforeEditSummary(NamedTuple):
    """How many tool calls precede the first edit in the stretches of one kind.

    A stretch begins at the start of a session, at a compaction or at the creation of a child, and
    ends at the first edit. Only stretches with a tool call are counted. ``stretch_with_edit_count``
    is the number of counted stretches that contain an edit. ``median_call_count`` and
    ``p75_call_count`` are percentiles of the numbers of calls before the edit.
    """

    kind: str
    stretch_count: int
    stretch_with_edit_count: int
    median_call_count: int
    p75_call_count: int


class Statistics(NamedTuple):
    """All statistics.

    ``session_count`` is the number of sessions since the first day, and ``deleted_session_count``
    the number of these sessions that were deleted. ``subagent_count`` is the number of sub-agents'
    transcripts.
    """

    session_count: int
    deleted_session_count: int
    subagent_count: int
    months: list[MonthSummary]
    savings: list[SavingSummary]
    calls_before_edit: list[CallsBeforeEditSummary]
    hooks: list[HookSummary]


def make_statistics(transcripts: list[TranscriptCounts], first_day: str) -> Statistics:
    """Return the statistics of transcripts since ``first_day``, or of all days if it is ``""``."""
    active_transcripts = [
        transcript for transcript in transcripts if _select_days(transcript, first_day)
    ]
    return Statistics(
        session_count=len(
            {transcript.session_id for transcript in active_transcripts if not transcript.agent_id}
        ),
        deleted_session_count=len(
            {
                transcript.session_id
                for transcript in active_transcripts
                if not transcript.agent_id and not transcript.exists
            }
        ),
        subagent_count=sum(bool(transcript.agent_id) for transcript in active_transcripts),
        months=_sum_months(active_transcripts, first_day),
        savings=_summarize_savings(transcripts, first_day),
        calls_before_edit=_summarize_calls_before_edits(transcripts, first_day),
        hooks=_summarize_hooks(transcripts, first_day),
    )


def compute_percentile(counts: Mapping[int, int], percent: int) -> int:
    """Return a percentile of numbers by the nearest-rank method, or 0 if there are no numbers.

    ``counts`` maps each number to its frequency.
    """
    rank, cumulative = -(-percent * sum(counts.values()) // 100), 0
    for number in sorted(counts):
        cumulative += counts[number]
        if cumulative >= rank:
            return number
    return 0


def _select_days(transcript: TranscriptCounts, first_day: str) -> dict[str, DayCounts]:
    return {day: counts for day, counts in transcript.totals.days.items() if day >= first_day}


def _sum_months(transcripts: list[TranscriptCounts], first_day: str) -> list[MonthSummary]:
    sums: dict[str, DayCounts] = defaultdict(DayCounts)
    sessions: dict[str, set[str]] = defaultdict(set)
    for transcript in transcripts:
        for day, counts in _select_days(transcript, first_day).items():
            month = day[:7]
            sums[month] = sums[month].add_day(counts)
            sessions[month].add(transcript.session_id)
    return [MonthSummary(month, len(sessions[month]), *sums[month]) for month in sorted(sums)]


def _summarize_savings(transcripts: list[TranscriptCounts], first_day: str) -> list[SavingSummary]:
    rows: dict[tuple[str, str], SavingSummary] = {}
    for transcript in transcripts:
        child = transcript.totals.child
        if child is None or transcript.agent_id or child.created_at[:10] < first_day:
            continue
        key = (child.created_at[:7], child.kind)
        row = rows.get(key, SavingSummary(*key, 0, 0, 0, 0, 0))
        is_measured = bool(child.parent_tokens and child.first_request_tokens)
        rows[key] = row._replace(
            child_count=row.child_count + 1,
            continued_child_count=row.continued_child_count + bool(child.first_request_tokens),
            measured_child_count=row.measured_child_count + is_measured,
            tokens_before=row.tokens_before + child.parent_tokens * is_measured,
            tokens_after=row.tokens_after + child.first_request_tokens * is_measured,
        )
    return [rows[key] for key in sorted(rows)]


def _summarize_calls_before_edits(
    transcripts: list[TranscriptCounts], first_day: str
) -> list[CallsBeforeEditSummary]:
    rows = []
    for kind, calls_counts in sorted(
        _sum_tallies_by_name(
            (transcript.totals.stretches or {} for transcript in transcripts), first_day
        ).items()
    ):
        edited_calls = {}
        for calls, count in calls_counts.items():
            if calls != CALL_COUNT_WITHOUT_EDIT:
                edited_calls[calls] = count
        percentiles = compute_percentile(edited_calls, 50), compute_percentile(edited_calls, 75)
        rows.append(
            CallsBeforeEditSummary(
                kind, sum(calls_counts.values()), sum(edited_calls.values()), *percentiles
            )
        )
    return rows


def _summarize_hooks(transcripts: list[TranscriptCounts], first_day: str) -> list[HookSummary]:
    rows = []
    for key, durations in sorted(
        _sum_tallies_by_name(
            (transcript.totals.hooks for transcript in transcripts), first_day
        ).items()
    ):
        event, _, owner = key.partition("|")
        median_ms, p95_ms = (
            compute_percentile(durations, 50),
            compute_percentile(durations, HIGH_PERCENTILE),
        )
        rows.append(
            HookSummary(event, owner == OUR_HOOKS, sum(durations.values()), median_ms, p95_ms)
        )
    return rows


def _sum_tallies_by_name(
    tallies: Iterable[TalliesByNameAndDay], first_day: str
) -> dict[str, dict[int, int]]:
    sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for tally in tallies:
        for name, by_day in tally.items():
            for day, numbers in by_day.items():
                if day >= first_day:
                    for number, count in numbers.items():
                        sums[name][number] += count
    return sums


class FolderSize(NamedTuple):
    """The number of files and the number of bytes in one entry of the state folder."""

    name: str
    file_count: int
    byte_count: int


def measure_state_folder_entries(where: Where) -> list[FolderSize]:
    """Return the sizes of the files and folders in the state folder, largest first.

    Return [] if the state folder does not exist.
    """
    state_folder = where.state
    try:
        names = sorted(os.listdir(state_folder))
    except OSError:
        return []
    entries = []
    for name in names:
        sizes = list(_list_file_sizes(os.path.join(state_folder, name)))
        entries.append(FolderSize(name, len(sizes), sum(sizes)))
    return sorted(entries, key=lambda part: -part.byte_count)


def _list_file_sizes(path: str) -> Iterator[int]:
    pending_paths, remaining_entries = [path], MAX_FOLDER_ENTRIES
    while pending_paths and remaining_entries:
        current_path, remaining_entries = pending_paths.pop(), remaining_entries - 1
        # Skip a file or folder that was deleted or cannot be read.
        with contextlib.suppress(OSError):
            status = os.lstat(current_path)
            if stat.S_ISREG(status.st_mode):
                # A file with several hard links is counted as 0 bytes, because it takes no
                # additional space.
                yield (status.st_size if status.st_nlink == 1 else 0)
            elif stat.S_ISDIR(status.st_mode):
                for name in os.listdir(current_path):
                    pending_paths.append(os.path.join(current_path, name))
