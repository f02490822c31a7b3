"""Records one after the other, without turns: those around one, and pages from the end of a file to its start.

Only what is asked for is parsed; of the rest of a file its line ends are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from resume_hooks import records
from resume_hooks.passages import Passage, is_added, passage, says
from resume_hooks.records import Record
from resume_hooks.reference import Entries, Entry, Names
from resume_hooks.rendering import calls_in
from resume_hooks.subagents import name_of
from resume_hooks.trimming.pieces import Call


class Page(NamedTuple):
    """A page of a transcript, oldest first; ``more``: there is something before it."""

    passages: list[Passage]
    more: bool


def page(entries: Entries, names: Names, before: int | None, limit: int) -> Page:
    """The last ``limit`` records that say something before line ``before``; None: before the end."""
    start = len(entries) if before is None else before
    found = list(_take(_saying(entries, range(start - 1, -1, -1)), limit + 1))
    return Page(read(found[:limit][::-1], entries, names), more=len(found) > limit)


def around(entries: Entries, names: Names, number: int, before: int, after: int) -> tuple[list[Passage], list[Passage]]:
    """The ``before`` and ``after`` records that say something around line ``number``, that one in neither.

    What the client added between them comes along uncounted.
    """
    earlier = list(_take(_saying(entries, range(number - 1, -1, -1)), before, uncounted=is_added))[::-1]
    later = list(_take(_saying(entries, range(number + 1, len(entries))), after, uncounted=is_added))
    return read(earlier, entries, names), read(later, entries, names)


def read(found: Iterable[tuple[Entry, Record]], entries: Entries, names: Names) -> list[Passage]:
    """Records as passages, the calls that they answer looked up in one pass over the file."""
    rows = list(found)
    calls = _calls(rows, entries)
    subagent = name_of(entries.file) is not None
    return [passage(record, entry, names, calls, subagent=subagent) for entry, record in rows]


def _saying(entries: Entries, numbers: Iterable[int]) -> Iterator[tuple[Entry, Record]]:
    for number in numbers:
        entry = entries.at(number)
        record = entry.record() if entry else None
        if entry is not None and record is not None and says(record):
            yield entry, record


def _take(
    found: Iterator[tuple[Entry, Record]], limit: int, uncounted: Callable[[Record], bool] = lambda _: False
) -> Iterator[tuple[Entry, Record]]:
    while limit > 0 and (row := next(found, None)):
        limit -= not uncounted(row[1])
        yield row


def _calls(rows: Iterable[tuple[Entry, Record]], entries: Entries) -> Mapping[str, Call]:
    made: dict[str, Call] = {}
    answered: list[str] = []
    for _, record in rows:
        made |= calls_in(record)
        answered += records.answered(record)
    for entry in entries.calling([call for call in answered if call not in made]):
        made |= calls_in(entry.record() or {})
    return made
