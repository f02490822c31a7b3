"""What each way to continue a session would cost: estimates, in input tokens, by the public price ratios.

Pure: numbers in, numbers out. No money, since prices differ between models and change; their ratios have not.
"""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

from resume_hooks.transcripts.api_usage import FIVE_MINUTES, HOUR

READ = 0.1  # what a token read from the cache costs; any other costs 1
WRITE = {FIVE_MINUTES: 1.25, HOUR: 2.0}  # what a token written to the cache costs, by the seconds that it lives
OUTPUT = 5.0  # what a token of an answer costs


class Rates(NamedTuple):
    """What a token of a request costs, in input tokens: read from the cache, and written to it."""

    read: float
    write: float


class Habit(NamedTuple):
    """What a turn takes: ``requests``, one at least, and the tokens that it adds to the context, ``growth``."""

    requests: int
    growth: int


class Strategy(NamedTuple):
    """A way to continue: tokens of context ``after`` it, and those ``cached`` and ``uncached`` of its first request.

    ``apart`` are uncached tokens of a request of its own before that (a compaction, a summary); ``apart_cost`` is what
    that request costs in all, in input tokens.
    """

    name: str
    after: int
    cached: int
    uncached: int
    apart: int = 0
    apart_cost: float = 0.0


def rates_of(lifetime: int) -> Rates:
    """The rates of a session whose cache lives ``lifetime`` seconds; 0: no cache, every token costs the same."""
    return Rates(READ, WRITE[lifetime]) if lifetime in WRITE else Rates(1.0, 1.0)


def first_cost(strategy: Strategy, rates: Rates) -> float:
    """The cost up to the end of the first request, without its answer, which costs the same in every strategy."""
    return strategy.apart_cost + strategy.cached * rates.read + strategy.uncached * rates.write


def cost(strategy: Strategy, turns: int, habit: Habit, rates: Rates) -> float:
    """The cost of ``turns`` turns but for answers, each reading the last one's context out of a warm cache."""
    more = turns * habit.requests - 1
    grown = habit.growth / habit.requests
    read = more * strategy.after + grown * more * (more - 1) / 2
    return first_cost(strategy, rates) + read * rates.read + more * grown * rates.write


def pays_after(strategy: Strategy, going_on: Strategy, habit: Habit, rates: Rates) -> int | None:
    """The fewest turns after which a strategy cost less than going on, by its context's size; None for never."""
    more_first = first_cost(strategy, rates) - first_cost(going_on, rates)
    saved = (going_on.after - strategy.after) * rates.read
    if more_first < (habit.requests - 1) * saved:
        return 1
    if saved <= 0:
        return None
    return max(1, ceil((floor(more_first / saved) + 2) / habit.requests))
