"""What each way on from a session would cost: estimates, in input tokens, by the public price ratios.

Pure: numbers in, numbers out. No money, since prices differ between models and change; their ratios have not.
"""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

from resume_hooks.transcripts.api_usage import FIVE_MINUTES, HOUR

READ = 0.1  # what a token that the cache gives costs, where one that it does not costs 1
WRITE = {FIVE_MINUTES: 1.25, HOUR: 2.0}  # what a token costs that is written to a cache of so many seconds
OUTPUT = 5.0  # what a token of an answer costs


class Rates(NamedTuple):
    """What a token of a request costs that the cache gives, and one that it does not, in input tokens."""

    read: float
    write: float


class Habit(NamedTuple):
    """What a turn takes: ``requests``, one at least, and the tokens that it adds to the context, ``growth``."""

    requests: int
    growth: int


class Way(NamedTuple):
    """A way on: the context ``after`` it, and what its first request takes ``cached`` and ``uncached``, in tokens.

    ``apart`` are tokens of a request of its own before that, which the cache does not give (a compaction, a summary);
    ``apart_cost`` is what that request costs in all, in input tokens.
    """

    name: str
    after: int
    cached: int
    uncached: int
    apart: int = 0
    apart_cost: float = 0.0


def rates_of(lifetime: int) -> Rates:
    """The rates of a session whose cache lives so many seconds; 0: it has none, and every token costs the same."""
    return Rates(READ, WRITE[lifetime]) if lifetime in WRITE else Rates(1.0, 1.0)


def first_cost(way: Way, rates: Rates) -> float:
    """What a way costs up to the end of its first request, without the answer, which all ways pay alike."""
    return way.apart_cost + way.cached * rates.read + way.uncached * rates.write


def cost(way: Way, turns: int, habit: Habit, rates: Rates) -> float:
    """What ``turns`` turns on a way cost, answers aside: each request reads the last one's context and writes the rest.

    As if none came so late that the cache is cold: where it does, the smaller context pays sooner.
    """
    more = turns * habit.requests - 1
    grown = habit.growth / habit.requests
    read = more * way.after + grown * more * (more - 1) / 2
    return first_cost(way, rates) + read * rates.read + more * grown * rates.write


def pays_after(way: Way, going_on: Way, habit: Habit, rates: Rates) -> int | None:
    """The fewest turns after which a way has cost less than going on; None where it never does.

    What turns add costs the same on every way, so that the difference between two ways is one of their contexts alone.
    """
    more_first = first_cost(way, rates) - first_cost(going_on, rates)
    saved = (going_on.after - way.after) * rates.read
    if more_first < (habit.requests - 1) * saved:
        return 1
    if saved <= 0:
        return None
    return max(1, ceil((floor(more_first / saved) + 2) / habit.requests))
