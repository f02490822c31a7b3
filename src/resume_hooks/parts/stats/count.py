"""Counts a transcript in one pass; lines that can't tell anything are not parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from resume_hooks import clock
from resume_hooks.system.text import encodable
from resume_hooks.transcripts import records
from resume_hooks.transcripts.api_usage import FIVE_MINUTES, HOUR
from resume_hooks.transcripts.lines import open_transcript, read_lines
from resume_hooks.transcripts.provenance import Parent, read_parent
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.tokens import stated_size
from resume_hooks.transcripts.transcript import Copies

MAX_FOLDERS = 8
MAX_DURATION = 1000 * clock.DAY  # milliseconds; more is no duration of a hook
MAX_EVENT = 40  # characters of the name of a kind; a file may say anything

_OURS = re.compile(r"""\. "\$CLAUDE_PLUGIN_ROOT/hooks/(?:guard|allow|notice|session-start|part|session-end)" """)
"""How the commands of our own hooks.json read."""

_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z")
_EVENT = re.compile(r"[A-Za-z]{3,40}")
EXACT = 100  # milliseconds up to which a duration is kept as it is; longer ones are rounded to two digits
OURS, OTHERS = "ours", "others"
START, COMPACTION = "start", "compaction"  # how a stretch begins that no child's kind names
NO_EDIT = -1  # calls before the first edit of a stretch that has none
MAX_CALLS = 10_000  # more are counted as so many

Tallies = dict[str, dict[str, dict[int, int]]]
"""By name, by day: how often each number came up."""


class Request(NamedTuple):
    """A request as the API counted it: ``sent`` tokens, ``cached`` and ``written`` are those of the cache among them.

    ``lifetime`` is how many seconds what it wrote lives, ``turn`` the number of prompts before it; one ``aside`` is a
    sub-agent's in its session's own file.
    """

    day: str
    sent: int
    cached: int
    answered: int
    written: int
    lifetime: int
    turn: int
    aside: bool


def count(path: str, *, agent: bool = False, linked: Parent | None = None) -> Counts:
    """Count the transcript at ``path``; a sub-agent's (``agent``) has no turns of a person. SessionNotFound.

    Of a child ``before`` is what its own first line says, 0 if that says nothing. Where the file names no parent, it is
    a handoff if that is how our links have it (``linked``): one that ``/clear`` led to.
    """
    seen = _seen(path, agent=agent, linked=linked if linked and linked.kind == "handoff" else None)
    size = stated_size(path) if seen.parent else None
    return seen.counts(size.original if size else 0)


def requests(path: str) -> list[Request]:
    """The requests of the session at ``path``, in their order, sub-agents' left out. SessionNotFound."""
    return [request for request in _seen(path).requests.values() if not request.aside]


def _seen(path: str, *, agent: bool = False, linked: Parent | None = None) -> _Seen:
    try:
        seen = _Seen(read_parent(path) or linked)
    except OSError:
        seen = _Seen(None)
    with open_transcript(path) as stream:
        for line in read_lines(stream):
            raw = line.raw
            if (  # an answer, a compaction, a prompt, a hook's
                b'"usage"' in raw
                or b'"compactMetadata"' in raw
                or (b'"type":"user"' in raw and b'"tool_result"' not in raw)
                or (b'"durationMs"' in raw and (b'"hookInfos"' in raw or b'"hookEvent"' in raw))
            ) and (record := records.parse(line.body)) is not None:
                seen.take(record, agent=agent)
    return seen


class _Seen:
    """What was counted so far; an answer in several records, which repeat its usage, counts once."""

    def __init__(self, parent: Parent | None) -> None:
        self.parent = parent
        self._since = clock.normal(parent.at) if parent else ""
        self._copies = Copies()
        self._folders: dict[str, None] = {}
        self._turns: dict[str, int] = {}
        self.requests: dict[str, Request] = {}
        self._hooks: Tallies = {}
        self._stretches: Tallies = {}
        self._stretch = encodable(parent.kind[:MAX_EVENT]) if parent else START
        self._calls: list[str] = []
        """The days of the calls before the first edit."""
        self._first = 0

    def take(self, record: Record, *, agent: bool) -> None:
        """Count a record."""
        at = string(record, "timestamp")
        at = at if _INSTANT.fullmatch(at) else clock.normal(at)
        if self._copies.holds(record) or not at or "forkedFrom" in record or at <= self._since:
            return  # undated, or a copy of what the parent holds
        day = at[:10]
        if len(self._folders) < MAX_FOLDERS and (folder := string(record, "cwd")):
            self._folders[encodable(folder)] = None
        if records.is_prompt(record):
            self._turns[day] = self._turns.get(day, 0) + (not agent)
        elif records.kind(record) == records.ASSISTANT:
            self._answer(record, day)
            if not agent and not record.get("isSidechain"):
                for call in records.calls(record) if self._stretch else ():
                    self._calls.append(day)
                    if string(call, "name") in records.WRITERS:
                        self._end_stretch(min(len(self._calls) - 1, MAX_CALLS))
                        break
        elif string(record, "subtype") == records.COMPACTION:
            self._end_stretch(NO_EDIT)
            self._stretch = COMPACTION
        else:
            for event, mine, duration in _durations(record):
                _tally(self._hooks, f"{event}|{OURS if mine else OTHERS}", day, rounded(duration))

    def _end_stretch(self, before: int) -> None:
        """The first edit came after so many calls, or none did; a stretch without a call is none."""
        if self._calls:
            _tally(self._stretches, self._stretch, self._calls[0], before)
        self._stretch, self._calls = "", []

    def _answer(self, record: Record, day: str) -> None:
        asked, total = (records.positive(count) for count in records.counted_tokens(record))
        if not total:
            return
        name = string(records.message(record), "id") or f"#{len(self.requests)}"
        known = self.requests.get(name)
        usage = records.usage(record)
        cached, written = (records.positive(usage.get(f"cache_{did}_input_tokens")) for did in ("read", "creation"))
        hourly = records.positive(records.mapping(usage, "cache_creation").get("ephemeral_1h_input_tokens"))
        request = Request(
            day=day,
            sent=asked,
            cached=cached if cached <= asked else 0,
            answered=total - asked,
            written=written,
            lifetime=HOUR if hourly else FIVE_MINUTES,
            turn=sum(self._turns.values()),
            aside=record.get("isSidechain") is True,
        )
        if known is None or request.answered > known.answered:
            self.requests[name] = request if known is None else request._replace(day=known.day, turn=known.turn)
        if not self._first and not record.get("isSidechain"):
            self._first = asked

    def counts(self, before: int) -> Counts:
        """What was counted; ``before`` is what the parent took."""
        self._end_stretch(NO_EDIT)
        days = {day: Day(turns=turns) for day, turns in self._turns.items()}
        for request in self.requests.values():
            added = Day(0, 1, request.sent, request.cached, request.answered)
            days[request.day] = days.get(request.day, Day()).plus(added)
        kind = encodable(self.parent.kind[:MAX_EVENT]) if self.parent else ""
        child = Child(kind, self._since, before, self._first) if kind else None
        return Counts(tuple(self._folders), dict(sorted(days.items())), self._hooks, child, self._stretches)


def _tally(found: Tallies, name: str, day: str, number: int) -> None:
    numbers = found.setdefault(name, {}).setdefault(day, {})
    numbers[number] = numbers.get(number, 0) + 1


def _durations(record: Record) -> Iterator[tuple[str, bool, float]]:
    """The hooks that a record tells the duration of: event, whether it is ours, milliseconds."""
    if string(record, "subtype") == "stop_hook_summary":
        found = [("Stop", info) for info in records.objects(record.get("hookInfos"))]
    else:
        attached = records.mapping(record, "attachment")
        found = [(string(attached, "hookEvent"), attached)]
    for event, info in found:
        duration = info.get("durationMs")
        if not isinstance(duration, (int, float)) or duration is True or not 0 <= duration <= MAX_DURATION:
            continue
        if _EVENT.fullmatch(event):
            yield event, _OURS.search(string(info, "command")) is not None, duration


class Day(NamedTuple):
    """Turns that a person asked, requests that were answered, and their tokens.

    ``sent`` is all that requests held, ``cached`` what of it came out of the cache, ``answered`` what models wrote.
    """

    turns: int = 0
    requests: int = 0
    sent: int = 0
    cached: int = 0
    answered: int = 0

    def plus(self, other: Day) -> Day:
        """The sums of both."""
        return Day(*(one + two for one, two in zip(self, other, strict=True)))


class Child(NamedTuple):
    """What a session says of how it came from another.

    ``before`` is what its parent took, 0 if nothing tells; ``after`` what its own first request held, 0 if nobody
    went on in it.
    """

    kind: str
    at: str
    before: int
    after: int


class Counts(NamedTuple):
    """The counts of a transcript; ``folders`` are working directories that it names, the first ones.

    ``hooks`` are milliseconds by event and whose hook it was (``Stop|ours``). ``stretches`` are the calls before the
    first edit, or NO_EDIT, by what went before them; None where an older version counted.
    """

    folders: tuple[str, ...]
    days: Mapping[str, Day]
    hooks: Tallies
    child: Child | None = None
    stretches: Tallies | None = None


def rounded(duration: float) -> int:
    """Milliseconds as they are kept: there are few different ones, however many hooks ran."""
    count = round(duration)
    step = 10 ** max(0, len(str(count)) - 2)
    return count if count < EXACT else round(count / step) * step


def to_row(counts: Counts) -> list[Any]:
    """The counts as JSON."""
    days = {day: list(of) for day, of in counts.days.items()}
    child = None if counts.child is None else list(counts.child)
    return [list(counts.folders), days, _rows(counts.hooks), child, _rows(counts.stretches or {})]


def from_row(row: Any) -> Counts:
    """The counts that ``to_row`` gave, or an older version's. TypeError, ValueError, AttributeError for others."""
    folders, days, hooks, child, *stretches = row
    return Counts(
        tuple(map(str, folders)),
        {str(day): Day(*map(int, numbers)) for day, numbers in days.items()},
        _tallies(hooks),
        None if child is None else Child(str(child[0]), str(child[1]), int(child[2]), int(child[3])),
        _tallies(stretches[0]) if stretches else None,
    )


def _rows(found: Tallies) -> dict[str, dict[str, list[tuple[int, int]]]]:
    return {name: {day: sorted(rows.items()) for day, rows in by_day.items()} for name, by_day in found.items()}


def _tallies(rows: Any) -> Tallies:
    return {
        str(name): {str(day): {int(number): int(count) for number, count in found} for day, found in by_day.items()}
        for name, by_day in rows.items()
    }
