"""The counts of one transcript, by day; small, so that a file need not be read again while it stays as it is.

What a file copied from its parent counts at the parent alone. Numbers are what the API and the client themselves wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

EXACT = 100  # milliseconds up to which a duration is kept as it is; longer ones are rounded to two digits

OURS, OTHERS = "ours", "others"


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

    ``before`` is what its parent took, 0 where nothing tells; ``after`` what its own first request held, 0 where nobody
    went on in it.
    """

    kind: str
    at: str
    before: int
    after: int


Durations = dict[str, dict[str, dict[int, int]]]
"""By event and whose hook it was (``Stop|ours``), by day: how many took so many milliseconds."""


class Counts(NamedTuple):
    """The counts of a transcript; ``folders`` are working directories that it names, the first ones."""

    folders: tuple[str, ...]
    days: Mapping[str, Day]
    hooks: Durations
    child: Child | None = None


def rounded(duration: float) -> int:
    """Milliseconds as they are kept: there are few different ones, however many hooks ran."""
    count = round(duration)
    step = 10 ** max(0, len(str(count)) - 2)
    return count if count < EXACT else round(count / step) * step


def to_row(counts: Counts) -> list[Any]:
    """The counts as JSON."""
    hooks = {key: {day: sorted(found.items()) for day, found in by_day.items()} for key, by_day in counts.hooks.items()}
    days = {day: list(of) for day, of in counts.days.items()}
    return [list(counts.folders), days, hooks, None if counts.child is None else list(counts.child)]


def from_row(row: Any) -> Counts:
    """The counts that ``to_row`` gave. TypeError, ValueError, AttributeError for anything else."""
    folders, days, hooks, child = row
    return Counts(
        tuple(map(str, folders)),
        {str(day): Day(*map(int, numbers)) for day, numbers in days.items()},
        {
            str(key): {str(day): {int(ms): int(count) for ms, count in found} for day, found in by_day.items()}
            for key, by_day in hooks.items()
        },
        None if child is None else Child(str(child[0]), str(child[1]), int(child[2]), int(child[3])),
    )
