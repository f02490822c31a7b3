"""Count the turns, tokens, hooks and stretches of a transcript in one pass.

A stretch is a part of a session. It begins at the start of the session, at a compaction or at the
first record of a child. It ends at its first edit or at the next compaction. Lines that cannot
contain anything to count are not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from resume_hooks import clock
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts import records
from resume_hooks.transcripts.api_usage import DEFAULT_CACHE_SECONDS, LONG_CACHE_SECONDS
from resume_hooks.transcripts.lines import open_transcript, read_lines
from resume_hooks.transcripts.provenance import Parent, read_parent
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.tokens import read_size_stated_in_first_line
from resume_hooks.transcripts.transcript import CopyDetector

MAX_FOLDERS_PER_TRANSCRIPT = 8
# Maximum duration of a hook in milliseconds. A hook with a longer duration is not counted.
MAX_DURATION_MILLISECONDS = 1000 * clock.DAY
# Maximum number of characters in the kind of a child. A longer kind is cut, because the file of a
# child can contain any text as the kind.
MAX_KIND_CHARACTERS = 40

_OUR_HOOK_COMMAND_PATTERN = re.compile(
    r"""\. "\$CLAUDE_PLUGIN_ROOT/hooks/(?:guard|allow|notice|session-start|part|session-end)" """
)
"""Matches the commands in the hooks.json of this plugin."""

_TIMESTAMP_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z")
_EVENT_NAME_PATTERN = re.compile(r"[A-Za-z]{3,40}")
# A longer duration is rounded to two significant digits.
MAX_UNROUNDED_MILLISECONDS = 100
OUR_HOOKS, OTHER_HOOKS = "ours", "others"
# The kinds of stretches that begin with the start of a session or with a compaction, and not with a
# child.
START_KIND, COMPACTION_KIND = "start", "compaction"
# For a stretch without an edit, this value is stored instead of the number of calls before the
# edit.
CALL_COUNT_WITHOUT_EDIT = -1
# Maximum number of calls in a tally. A larger number is replaced with this number.
MAX_COUNTED_CALLS = 10_000

TalliesByNameAndDay = dict[str, dict[str, dict[int, int]]]
"""Maps a name and a day to a tally. A tally maps each value that occurred, for example a duration,
to its frequency."""


class ApiRequest(NamedTuple):
    """A request to the API, with the numbers of tokens that the API has counted.

    ``cached_tokens`` and ``cache_write_tokens`` are parts of ``sent_tokens``: the tokens that were
    read from the cache, and the tokens that were written to it. The cache keeps the written tokens
    for ``cache_seconds`` seconds. ``prompt_count`` is the number of prompts before the request.
    ``is_side_request`` is true for a sub-agent's request that is recorded in the session's own
    file.
    """

    day: str
    sent_tokens: int
    cached_tokens: int
    answer_tokens: int
    cache_write_tokens: int
    cache_seconds: int
    prompt_count: int
    is_side_request: bool


def count_transcript(
    path: str, *, is_subagent: bool = False, linked_parent: Parent | None = None
) -> TranscriptTotals:
    """Return the counts of the transcript at ``path``. Raise SessionNotFound if it cannot be read.

    If ``is_subagent`` is true, prompts are not counted as turns, because a sub-agent has no turns
    of the user. The parent of a child is recorded in the first line of the child's file, or in this
    plugin's links (``linked_parent``). A linked parent is used only if the child was made by a
    handoff.
    """
    counter = _count_transcript_contents(
        path,
        is_subagent=is_subagent,
        linked_parent=linked_parent if linked_parent and linked_parent.kind == "handoff" else None,
    )
    size = read_size_stated_in_first_line(path) if counter.parent else None
    return counter.build_totals(size.original_tokens if size else 0)


def read_requests(path: str) -> list[ApiRequest]:
    """Return the requests of the session at ``path`` in order, without those of its sub-agents.

    Raise SessionNotFound if the transcript cannot be read.
    """
    return [
        request
        for request in _count_transcript_contents(path).requests.values()
        if not request.is_side_request
    ]


def _count_transcript_contents(
    path: str, *, is_subagent: bool = False, linked_parent: Parent | None = None
) -> _TranscriptCounter:
    try:
        counter = _TranscriptCounter(read_parent(path) or linked_parent)
    except OSError:
        counter = _TranscriptCounter(None)
    with open_transcript(path) as stream:
        for line in read_lines(stream):
            raw = line.raw
            if (  # The line may be an answer, a compaction, a prompt, or the record of a hook.
                b'"usage"' in raw
                or b'"compactMetadata"' in raw
                or (b'"type":"user"' in raw and b'"tool_result"' not in raw)
                or (b'"durationMs"' in raw and (b'"hookInfos"' in raw or b'"hookEvent"' in raw))
            ) and (record := records.parse_record(line.body)) is not None:
                counter.add_record(record, is_subagent=is_subagent)
    return counter


class _TranscriptCounter:
    """Counts the records of one transcript.

    An answer can consist of several records, each of which repeats the answer's token counts. The
    answer is counted only once.
    """

    def __init__(self, parent: Parent | None) -> None:
        self.parent = parent
        self._parent_time = clock.normalize_timestamp(parent.derived_at) if parent else ""
        self._copy_detector = CopyDetector()
        self._folders: dict[str, None] = {}
        self._turns: dict[str, int] = {}
        self.requests: dict[str, ApiRequest] = {}
        self._hooks: TalliesByNameAndDay = {}
        self._stretches: TalliesByNameAndDay = {}
        if parent:
            self._stretch_kind = replace_surrogates(parent.kind[:MAX_KIND_CHARACTERS])
        else:
            self._stretch_kind = START_KIND
        self._call_days: list[str] = []
        """The days of the calls in the current stretch. Calls after the first edit are left out."""
        self._first_request_tokens = 0

    def add_record(self, record: Record, *, is_subagent: bool) -> None:
        """Count a record, unless it was copied from a parent."""
        timestamp = get_string(record, "timestamp")
        timestamp = (
            timestamp
            if _TIMESTAMP_PATTERN.fullmatch(timestamp)
            else clock.normalize_timestamp(timestamp)
        )
        if (
            self._copy_detector.is_copy_of_earlier_record(record)
            or not timestamp
            or "forkedFrom" in record
            or timestamp <= self._parent_time
        ):
            return  # The record has no timestamp, or it was copied from a parent.
        day = timestamp[:10]
        if len(self._folders) < MAX_FOLDERS_PER_TRANSCRIPT and (
            folder := get_string(record, "cwd")
        ):
            self._folders[replace_surrogates(folder)] = None
        if records.is_prompt(record):
            self._turns[day] = self._turns.get(day, 0) + (not is_subagent)
        elif records.get_kind(record) == records.ASSISTANT:
            self._count_answer(record, day)
            if not is_subagent and not record.get("isSidechain"):
                for call in records.list_calls(record) if self._stretch_kind else ():
                    self._call_days.append(day)
                    if get_string(call, "name") in records.WRITING_TOOLS:
                        self._finish_stretch(min(len(self._call_days) - 1, MAX_COUNTED_CALLS))
                        break
        elif get_string(record, "subtype") == records.COMPACTION:
            self._finish_stretch(CALL_COUNT_WITHOUT_EDIT)
            self._stretch_kind = COMPACTION_KIND
        else:
            for event, is_ours, duration in _read_hook_durations(record):
                _add_to_tally(
                    self._hooks,
                    f"{event}|{OUR_HOOKS if is_ours else OTHER_HOOKS}",
                    day,
                    round_duration(duration),
                )

    def _finish_stretch(self, calls_before_edit: int) -> None:
        """End the current stretch at its first edit or at a compaction, and count it if it contains calls.

        ``calls_before_edit`` is the number of calls before the edit, or ``CALL_COUNT_WITHOUT_EDIT``
        if the stretch ends without an edit.
        """
        if self._call_days:
            _add_to_tally(
                self._stretches, self._stretch_kind, self._call_days[0], calls_before_edit
            )
        self._stretch_kind, self._call_days = "", []

    def _count_answer(self, record: Record, day: str) -> None:
        sent_tokens, answer_tokens = (
            records.parse_positive_count(count) for count in records.read_token_counts(record)
        )
        if not answer_tokens:
            return
        name = get_string(records.get_message(record), "id") or f"#{len(self.requests)}"
        earlier_request = self.requests.get(name)
        usage = records.token_usage(record)
        cached, written = (
            records.parse_positive_count(usage.get(f"cache_{did}_input_tokens"))
            for did in ("read", "creation")
        )
        hourly_tokens = records.parse_positive_count(
            records.get_mapping(usage, "cache_creation").get("ephemeral_1h_input_tokens")
        )
        request = ApiRequest(
            day=day,
            sent_tokens=sent_tokens,
            cached_tokens=cached if cached <= sent_tokens else 0,
            answer_tokens=answer_tokens - sent_tokens,
            cache_write_tokens=written,
            cache_seconds=LONG_CACHE_SECONDS if hourly_tokens else DEFAULT_CACHE_SECONDS,
            prompt_count=sum(self._turns.values()),
            is_side_request=record.get("isSidechain") is True,
        )
        if earlier_request is None or request.answer_tokens > earlier_request.answer_tokens:
            self.requests[name] = (
                request
                if earlier_request is None
                else request._replace(
                    day=earlier_request.day, prompt_count=earlier_request.prompt_count
                )
            )
        if not self._first_request_tokens and not record.get("isSidechain"):
            self._first_request_tokens = sent_tokens

    def build_totals(self, parent_tokens: int) -> TranscriptTotals:
        """Return the counts of the transcript. ``parent_tokens`` is the context size of its parent, or 0."""
        self._finish_stretch(CALL_COUNT_WITHOUT_EDIT)
        days = {day: DayCounts(turn_count=turns) for day, turns in self._turns.items()}
        for request in self.requests.values():
            added_day = DayCounts(
                0, 1, request.sent_tokens, request.cached_tokens, request.answer_tokens
            )
            days[request.day] = days.get(request.day, DayCounts()).add_day(added_day)
        if self.parent:
            kind = replace_surrogates(self.parent.kind[:MAX_KIND_CHARACTERS])
        else:
            kind = ""
        if kind:
            child = ChildCounts(kind, self._parent_time, parent_tokens, self._first_request_tokens)
        else:
            child = None
        return TranscriptTotals(
            tuple(self._folders), dict(sorted(days.items())), self._hooks, child, self._stretches
        )


def _add_to_tally(tallies: TalliesByNameAndDay, name: str, day: str, value: int) -> None:
    numbers = tallies.setdefault(name, {}).setdefault(day, {})
    numbers[value] = numbers.get(value, 0) + 1


def _read_hook_durations(record: Record) -> Iterator[tuple[str, bool, float]]:
    """Yield a tuple for each hook: its event, whether the hook is part of this plugin, and its duration.

    The duration is in milliseconds.
    """
    if get_string(record, "subtype") == "stop_hook_summary":
        hooks = []
        for info in records.list_objects(record.get("hookInfos")):
            hooks.append(("Stop", info))
    else:
        attachment = records.get_mapping(record, "attachment")
        hooks = [(get_string(attachment, "hookEvent"), attachment)]
    for event, info in hooks:
        duration = info.get("durationMs")
        if (
            not isinstance(duration, (int, float))
            or duration is True
            or not 0 <= duration <= MAX_DURATION_MILLISECONDS
        ):
            continue
        if _EVENT_NAME_PATTERN.fullmatch(event):
            yield (
                event,
                _OUR_HOOK_COMMAND_PATTERN.search(get_string(info, "command")) is not None,
                duration,
            )


class DayCounts(NamedTuple):
    """The counts of one day: the user's turns, the answered requests, and tokens.

    ``sent_tokens`` is the number of all tokens in requests, and ``cached_tokens`` the number of
    these tokens that were read from the cache.
    """

    turn_count: int = 0
    request_count: int = 0
    sent_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0

    def add_day(self, other: DayCounts) -> DayCounts:
        """Return the sum of these counts and the counts of another day."""
        return DayCounts(
            *(
                first_value + second_value
                for first_value, second_value in zip(self, other, strict=True)
            )
        )


class ChildCounts(NamedTuple):
    """The counts of a session that is the child of another session.

    ``parent_tokens`` is the context size of the parent, or 0 if it is unknown.
    ``first_request_tokens`` is the size of the child's first request, or 0 if the child was not
    continued.
    """

    kind: str
    created_at: str
    parent_tokens: int
    first_request_tokens: int


class TranscriptTotals(NamedTuple):
    """The counts of a transcript.

    ``folders`` are the first working directories that its records name. ``hooks`` counts the runs
    of hooks by event and owner (for example ``Stop|ours``) and by duration in milliseconds.
    ``stretches`` counts the stretches by kind and by the number of calls before the first edit. In
    a stretch without an edit, this number is ``CALL_COUNT_WITHOUT_EDIT``. ``stretches`` is None if
    the counts come from the cache of an older version.
    """

    folders: tuple[str, ...]
    days: Mapping[str, DayCounts]
    hooks: TalliesByNameAndDay
    child: ChildCounts | None = None
    stretches: TalliesByNameAndDay | None = None


def round_duration(duration: float) -> int:
    """Return a duration in whole milliseconds. From 100 ms on, it is rounded to two significant digits.

    The rounding reduces the number of different durations in the cache.
    """
    count = round(duration)
    step: int = 10 ** max(0, len(str(count)) - 2)
    if count < MAX_UNROUNDED_MILLISECONDS:
        return count
    return round(count / step) * step


def serialise_totals(counts: TranscriptTotals) -> list[Any]:
    """Return the counts as a list that can be written as JSON."""
    days = {day: list(totals) for day, totals in counts.days.items()}
    child = None if counts.child is None else list(counts.child)
    return [
        list(counts.folders),
        days,
        _serialise_tallies(counts.hooks),
        child,
        _serialise_tallies(counts.stretches or {}),
    ]


def parse_totals(row: Any) -> TranscriptTotals:
    """Return the counts from a row that this or an older version of ``serialise_totals`` made.

    Raise TypeError, ValueError or AttributeError if ``row`` contains other values.
    """
    folders, days, hooks, child, *stretches = row
    return TranscriptTotals(
        tuple(map(str, folders)),
        {str(day): DayCounts(*map(int, numbers)) for day, numbers in days.items()},
        _parse_tallies(hooks),
        None
        if child is None
        else ChildCounts(str(child[0]), str(child[1]), int(child[2]), int(child[3])),
        _parse_tallies(stretches[0]) if stretches else None,
    )


def _serialise_tallies(
    tallies_by_name: TalliesByNameAndDay,
) -> dict[str, dict[str, list[tuple[int, int]]]]:
    tallies = {}
    for name, by_day in tallies_by_name.items():
        tallies[name] = {day: sorted(rows.items()) for day, rows in by_day.items()}
    return tallies


def _parse_tallies(rows: Any) -> TalliesByNameAndDay:
    tallies: TalliesByNameAndDay = {}
    for name, by_day in rows.items():
        days = tallies[str(name)] = {}
        for day, pairs in by_day.items():
            days[str(day)] = {int(number): int(count) for number, count in pairs}
    return tallies
