"""Compare the strategies to continue a session: remaining context, cost of the next turn, break-even, advice.

The sizes after a trim and a handoff come from their plans, so receipts show the same numbers. For a
file that takes long to read, the size after a handoff is an upper bound. The sizes after a rollover
and a compaction are estimates. So are all costs: they count input tokens by the public price
ratios, which have stayed the same while prices changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks import clock
from resume_hooks.derive.dial import DialSize, dial_of, unmeasured_dial
from resume_hooks.derive.opening_size import ALL, tokens_of
from resume_hooks.derive.trim.options import WORTH, options_of
from resume_hooks.errors import NothingToHandOff, NothingToTrim, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.shared_values import COLD_TOKENS
from resume_hooks.transcripts import api_usage as traffic
from resume_hooks.transcripts.api_usage import FIVE_MINUTES, HOUR, Traffic
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.tokens import (
    CHARACTERS_PER_TOKEN,
    RESERVED_OUTPUT,
    ContextSize,
    FirstRequest,
)
from resume_hooks.transcripts.transcript import QUICK_LIMIT, is_live_part_within

if TYPE_CHECKING:
    from resume_hooks.derive.fresh_child import FreshPlan

READ = 0.1  # cost of a token read from the cache; an uncached input token costs 1
WRITE = {
    FIVE_MINUTES: 1.25,
    HOUR: 2.0,
}  # cost of a token written to the cache, by the cache's lifetime in seconds
OUTPUT = 5.0  # cost of an output token


class Rates(NamedTuple):
    """The cost of a token read from the cache, and of one written to it, in input tokens."""

    read: float
    write: float


class Strategy(NamedTuple):
    """A strategy's context size (``after``), and the ``cached`` and ``uncached`` tokens of its first request.

    A compaction or a summary needs a separate request first: ``apart`` is the number of its
    uncached tokens, ``apart_cost`` its whole cost in input tokens.
    """

    name: str
    after: int
    cached: int
    uncached: int
    apart: int = 0
    apart_cost: float = 0.0


def rates_of(lifetime: int) -> Rates:
    """Return the rates for a cache that lives ``lifetime`` seconds.

    0 means no cache: every token costs the same.
    """
    if lifetime in WRITE:
        return Rates(READ, WRITE[lifetime])
    return Rates(1.0, 1.0)


def first_cost(strategy: Strategy, rates: Rates) -> float:
    """Return the cost through the first request, without its answer, which costs the same in every strategy."""
    return strategy.apart_cost + strategy.cached * rates.read + strategy.uncached * rates.write


def cost_of_turns(strategy: Strategy, turns: int, habit: Traffic, rates: Rates) -> float:
    """Return the cost of ``turns`` turns without their answers.

    Each request reads the previous context from a warm cache.
    """
    more = turns * habit.requests - 1
    grown = habit.growth / habit.requests
    read = more * strategy.after + grown * more * (more - 1) / 2
    return first_cost(strategy, rates) + read * rates.read + more * grown * rates.write


def pays_after(strategy: Strategy, going_on: Strategy, habit: Traffic, rates: Rates) -> int | None:
    """Return the number of turns after which a strategy costs less than continuing the session.

    Or None if it never does.
    """
    more_first = first_cost(strategy, rates) - first_cost(going_on, rates)
    saved = (going_on.after - strategy.after) * rates.read
    if more_first < (habit.requests - 1) * saved:
        return 1
    if saved <= 0:
        return None
    return max(1, ceil((floor(more_first / saved) + 2) / habit.requests))


PATIENT_LIMIT = (
    24 * 1024 * 1024
)  # the limit for a user who waits in a shell: about a million tokens
LEAST_TURNS = 3  # a typical turn is known after this many counted turns
FEW = 3  # with fewer prompts left, the advice is to act
NEARLY_FULL = 80  # from this percentage of the window on, the advice is to act
ROOMY = 50  # a trimmed session below this percentage of the window has enough room
COLD = "the prompt cache expired"
"""The reason for advice in a session that still has room: the next prompt sends everything uncached."""

KEPT_BY_COMPACTION = 18_000
"""The tokens of a compaction's summary and of the files that the client reads again after it.

The median of ten compactions in the corpus (4,400 to 30,100).
"""

COMPACTION_ANSWER = 3_600  # tokens of a compaction's summary, the median of the same ten
SUMMARY = 2_000  # the most tokens that a model's summary adds to a fresh session
SUMMARY_READS = 180_000
"""The most tokens that a model reads for that summary.

They are priced as if the session's own model read them, although the default is a smaller one. A
test compares this number and the one above with the summary module, which is too slow to import
here.
"""

GO_ON, TRIM, HANDOFF, ROLLOVER, COMPACT = "go on", "trim", "handoff", "rollover", "compact"
FRESH = frozenset({HANDOFF, ROLLOVER})
"""The strategies that need at least one prompt in the session."""


class Estimate(NamedTuple):
    """A strategy's context tokens, and the uncached tokens of its next turn.

    ``next_turn`` is that turn's cost in input tokens, without its answers. The strategy pays off
    after ``pays_after`` turns, or never if None (also for continuing itself). ``warm`` and ``cold``
    are the costs of its first request, in input tokens, with a warm and with a cold cache. They
    include a model's request before it.
    """

    name: str
    after: int
    uncached: int
    next_turn: int
    pays_after: int | None
    warm: int
    cold: int


class SizeEstimate(NamedTuple):
    """A handoff of one size, or a fork for the size ``all``.

    ``warm`` and ``cold`` are the costs of its first request with a warm and with a cold cache.
    """

    carries: DialSize
    warm: int
    cold: int


class Advice(NamedTuple):
    """The recommended strategy, and the reason in a few words."""

    strategy: str
    why: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A session's context and an estimate for each strategy.

    There is no estimate for a trim if nothing can be trimmed.

    ``dial`` lists the possible sizes of a handoff, the smallest first. It is empty if no handoff is
    possible. ``trim_estimated`` is false if the live part is too large for an estimate. ``planned``
    is false if the size of the handoff is an upper bound. ``age`` is in seconds, or None if no
    request was counted. ``prompts_left`` is None after too few turns. ``advice`` is None if there
    is room and the next prompt costs little.
    """

    session_id: str
    glance: HeadTail
    folder: str
    context: ContextSize
    traffic: Traffic
    base: FirstRequest
    age: int | None
    warm: bool
    estimates: tuple[Estimate, ...]
    dial: tuple[SizeEstimate, ...]
    trim_estimated: bool
    planned: bool
    prompts_left: int | None
    advice: Advice | None

    @property
    def recommendation(self) -> str:
        """The name of the recommended strategy."""
        if self.advice:
            return self.advice.strategy
        return GO_ON

    def leaves(self, name: str) -> int:
        """Return the context tokens after a strategy, or 0 if it has no estimate."""
        return next((each.after for each in self.estimates if each.name == name), 0)


class _Measured(NamedTuple):
    """The figures of a session: context, requests, tokens that every session starts with, trim estimate.

    ``fresh`` is the context after a handoff, ``summary_reads`` the number of tokens that a model
    reads to summarize the session.
    """

    context: ContextSize
    seen: Traffic
    base: FirstRequest
    trimmed: _Trimmed | None
    fresh: int
    summary_reads: int


class _Trimmed(NamedTuple):
    """The context that a resume sends for ``chain``, and the context after a trim, or None if a trim would not pay."""

    before: ContextSize
    after: ContextSize | None
    chain: list[Node]


def compare(session: SessionFile, where: Where, at: str, *, limit: int = QUICK_LIMIT) -> Comparison:
    """Compare the strategies at the instant ``at``. A trim is estimated up to ``limit`` live bytes.

    Raises the errors of ``scan``.
    """
    now_ms = clock.milliseconds(at) or 0
    session = Session.of(session, where)
    glance = session.head_tail
    if limit == QUICK_LIMIT:
        trim_estimated = session.is_quick_to_read
    else:
        trim_estimated = is_live_part_within(session.file, limit)
    trimmed = _trim_estimate(session, where) if trim_estimated else None
    context = trimmed.before if trimmed else session.context
    seen, base = traffic.traffic_of(session.file), traffic.base_of(glance, where)
    base = FirstRequest(min(base.tokens, context.tokens), min(base.shared, context.tokens))
    warm = seen.is_warm(now_ms)
    planned = glance.size <= limit
    if planned:
        handed_off = _handed_off(session, where)
        fresh = handed_off.sizes.after if handed_off else base.tokens
        # An uncounted context is the conversation alone.
        conversation = context.tokens - (base.tokens if context.measured else 0)
        sizes = dial_of(handed_off, conversation) if handed_off else ()
    else:
        bare, usual = base.tokens + _lineage_tokens(session), tokens_of("", where)
        fresh, sizes = bare + usual, unmeasured_dial(bare, usual)
    left = prompts_left(context, seen)
    # The summary covers the whole conversation, including everything before a compaction.
    whole = trimmed is not None and not (trimmed.chain and trimmed.chain[0].boundary)
    if whole:
        spoken = context.tokens - base.tokens
    else:
        spoken = round(glance.size / CHARACTERS_PER_TOKEN)
    measured = _Measured(context, seen, base, trimmed, fresh, min(spoken, SUMMARY_READS))
    estimates = tuple(
        way
        for way in _estimates(measured, warm=warm)
        if not glance.is_blank or way.name not in FRESH
    )
    advised = advice(context, trimmed.after if trimmed else None, left)
    if advised is None and not warm and seen.last_ms is not None and seen.lifetime:
        advised = _advice_when_cold(context, estimates)
    return Comparison(
        session_id=session.session_id,
        glance=glance,
        folder=home_folder(glance, where),
        context=context,
        traffic=seen,
        base=base,
        age=seen.age(now_ms),
        warm=warm,
        estimates=estimates,
        dial=_size_estimates(() if glance.is_blank else sizes, measured),
        trim_estimated=trim_estimated,
        planned=planned,
        prompts_left=left,
        advice=advised,
    )


def advise(path: str, where: Where) -> Advice:
    """Return the best strategy for a session, regardless of the remaining room."""
    trimmed = _quickly_trimmed(path, where)
    return _best_advice(trimmed.after if trimmed else None)


class Freed(NamedTuple):
    """The tokens that a trim with the default options would free: in a copy, and in place inside the client."""

    copy: int
    in_place: int


def freed_by_trim(path: str, where: Where) -> Freed:
    """Return the tokens that a trim would free, or 0 if nothing can go or the live part is too large."""
    if not is_live_part_within(path, QUICK_LIMIT):
        return Freed(0, 0)
    from resume_hooks.derive.trim import in_client, plan

    try:
        scanned = plan.scan_session(session_file(path))
    except NothingToTrim:
        return Freed(0, 0)
    ways = (
        plan.decide(scanned, options_of(), where),
        in_client.decide(scanned, options_of(), where),
    )
    return Freed(*(decided.savings.tokens for decided in ways))


def _quickly_trimmed(path: str, where: Where) -> _Trimmed | None:
    if is_live_part_within(path, QUICK_LIMIT):
        return _trim_estimate(session_file(path), where)
    return None


def prompts_left(context: ContextSize, seen: Traffic) -> int | None:
    """Return the approximate number of typical turns that fit before the client compacts.

    Or None if there are too few turns to know their size.

    Counting restarts with the second turn after a compaction, because earlier turns are no measure
    for later ones.
    """
    if seen.turns < LEAST_TURNS or not context.measured:
        return None
    count = max(0, context.window - RESERVED_OUTPUT - context.tokens) // seen.growth
    if count < 10:
        step = 1
    elif count < 100:
        step = 5
    else:
        step = 50
    return count // step * step


def advice(
    context: ContextSize, trimmed: ContextSize | None, left: int | None = None
) -> Advice | None:
    """Return the best strategy, or None while there is room.

    ``trimmed`` is the context after a trim and ``left`` the number of prompts left. None means
    unknown.
    """
    if (
        context.most_percent < NEARLY_FULL
        and not context.compacts_at_once
        and (left is None or left >= FEW)
    ):
        return None
    return _best_advice(trimmed)


def _advice_when_cold(context: ContextSize, estimates: Sequence[Estimate]) -> Advice | None:
    """Return the strategy that makes the next prompt in a large session cheaper.

    That is a trim that halves the session, else a handoff, else any trim.
    """
    if context.tokens < COLD_TOKENS:
        return None
    worth = {}
    for way in estimates:
        if way.pays_after == 1 and context.tokens - way.after >= WORTH:
            worth[way.name] = way
    if TRIM in worth and (HANDOFF not in worth or worth[TRIM].after <= context.tokens / 2):
        return Advice(TRIM, COLD)
    if HANDOFF in worth:
        return Advice(HANDOFF, COLD)
    return None


def _best_advice(trimmed: ContextSize | None) -> Advice:
    if trimmed is not None and trimmed.most_percent <= ROOMY:
        return Advice(TRIM, f"mostly tool output: {_size_of(trimmed)} left")
    return Advice(HANDOFF, "it leaves the most room")


def _size_of(context: ContextSize) -> str:
    if context.percent is None:
        return f"{context.tokens:,} tokens"
    return f"{context.percent} %"


def _trim_estimate(session: SessionFile, where: Where) -> _Trimmed | None:
    from resume_hooks.derive.trim import plan  # not needed for a long live part

    try:
        scanned = plan.scan_session(session)
    except NothingToTrim:
        return None
    options = options_of()
    decided = plan.decide(scanned, options, where)
    pays = decided.savings.tokens >= options.min_savings
    return _Trimmed(decided.before, decided.after if pays else None, scanned.transcript.chain)


def _lineage_tokens(session: Session) -> int:
    """Return the approximate number of tokens of a child's lineage block."""
    row: dict[str, Any] = {
        "title": session.head_tail.title,
        "session_id": "-" * 36,
        "file": session.path,
        "created": clock.now(),
    }
    return round(len(lineage_block.render_block(session.lineage, **row)) / CHARACTERS_PER_TOKEN)


def _handed_off(session: SessionFile, where: Where) -> FreshPlan | None:
    """Plan a handoff of the default size without a next step.

    Return None if no handoff is possible.
    """
    from resume_hooks.derive import agents  # not needed for a long session
    from resume_hooks.derive.fresh_child import Contents
    from resume_hooks.reading.digest.build import digest_of

    try:
        contents = Contents(digest_of(session, where), tokens=tokens_of("", where))
        return agents.plan_fresh(session, where, kind="handoff", contents=contents)
    except (NothingToHandOff, UsageError):
        return None


def _strategies(measured: _Measured, *, warm: bool) -> list[Strategy]:
    """Return every strategy. A warm cache holds the tokens that every session starts with."""
    context, seen, base, trimmed, fresh, summary_reads = measured
    rates = rates_of(seen.lifetime)
    if warm:
        held = min(context.tokens, max(seen.cached, base.shared))
    else:
        held = 0

    def new(name: str, after: int, read: int = 0, answer: int = 0) -> Strategy:
        return _new_session_strategy(name, after, base.shared if warm else 0, read, answer)

    going_on = Strategy(GO_ON, context.tokens, held, context.tokens - held)
    kept, answer = _compaction(trimmed.chain if trimmed else [], base)
    compacted = min(base.tokens + kept, context.tokens)
    return [
        going_on,
        *([new(TRIM, trimmed.after.tokens)] if trimmed and trimmed.after else []),
        new(HANDOFF, fresh),
        new(ROLLOVER, fresh + SUMMARY, summary_reads, SUMMARY),
        # The request for the summary has just cached the tokens that every session starts with.
        Strategy(
            COMPACT,
            compacted,
            base.shared,
            compacted - base.shared,
            going_on.uncached,
            held * rates.read + going_on.uncached * rates.write + answer * OUTPUT,
        ),
    ]


def _new_session_strategy(
    name: str, after: int, shared: int, read: int = 0, answer: int = 0
) -> Strategy:
    """Return the strategy of a new session with ``shared`` tokens in the cache.

    A model may first read ``read`` tokens and answer with ``answer`` tokens.
    """
    return Strategy(
        name, after, min(shared, after), after - min(shared, after), read, read + answer * OUTPUT
    )


def _size_estimates(sizes: tuple[DialSize, ...], measured: _Measured) -> tuple[SizeEstimate, ...]:
    """Return the cost of each size. The last entry is the whole session, which a fork continues."""
    shared, rates = measured.base.shared, rates_of(measured.seen.lifetime)
    if sizes:
        whole = [DialSize(ALL, measured.context.tokens, 0)]
    else:
        whole = []

    def costs(size: DialSize, held: int) -> int:
        return round(first_cost(_new_session_strategy(size.size, size.after, held), rates))

    return tuple(
        SizeEstimate(size, costs(size, shared), costs(size, 0)) for size in (*sizes, *whole)
    )


def _compaction(chain: list[Node], base: FirstRequest) -> tuple[int, int]:
    if not chain or not chain[0].boundary:
        return KEPT_BY_COMPACTION, COMPACTION_ANSWER
    first = next(
        (node for node in chain if node.input_tokens and node.number > chain[0].number), None
    )
    answer = next((node.characters for node in chain if node.summary), 0)
    kept = max(0, first.input_tokens - base.tokens) if first else 0
    return kept or KEPT_BY_COMPACTION, round(answer / CHARACTERS_PER_TOKEN) or COMPACTION_ANSWER


def _estimates(measured: _Measured, *, warm: bool) -> tuple[Estimate, ...]:
    seen = measured.seen
    strategies, rates = _strategies(measured, warm=warm), rates_of(seen.lifetime)
    going_on = strategies[0]
    warm_costs, cold_costs = (
        [round(first_cost(each, rates)) for each in _strategies(measured, warm=state)]
        for state in (True, False)
    )
    return tuple(
        Estimate(
            name=strategy.name,
            after=strategy.after,
            uncached=strategy.apart + strategy.uncached,
            next_turn=round(cost_of_turns(strategy, 1, seen, rates)),
            pays_after=None
            if strategy is going_on
            else pays_after(strategy, going_on, seen, rates),
            warm=warm_cost,
            cold=cold_cost,
        )
        for strategy, warm_cost, cold_cost in zip(strategies, warm_costs, cold_costs, strict=True)
    )
