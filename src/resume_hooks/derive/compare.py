"""Compare the strategies for continuing a session, and recommend one.

The comparison shows the remaining context, the cost of the next turn, and the number of turns after
which a strategy pays off. The sizes after a trim and a handoff come from the plans of these verbs,
so receipts show the same numbers. If a file would take too long to read, the size after a handoff
is an upper bound. The sizes after a rollover and a compaction are estimates.

All costs are estimates too. They are converted to input tokens by the ratios between the public
prices. So far, these ratios have stayed the same when the prices changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks import clock
from resume_hooks.derive.opening_size import WHOLE_SESSION_SIZE, resolve_size_to_tokens
from resume_hooks.derive.size_table import (
    HandoffSize,
    estimate_max_handoff_sizes,
    measure_handoff_sizes,
)
from resume_hooks.derive.trim.options import MIN_WORTHWHILE_SAVED_TOKENS, make_options
from resume_hooks.errors import NothingToHandOff, NothingToTrim, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.shared_values import COLD_CACHE_NOTICE_TOKENS
from resume_hooks.transcripts import api_usage
from resume_hooks.transcripts.api_usage import (
    DEFAULT_CACHE_SECONDS,
    LONG_CACHE_SECONDS,
    RecentRequests,
)
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.tokens import (
    CHARACTERS_PER_TOKEN,
    OUTPUT_RESERVE_TOKENS,
    ContextSize,
    FirstRequest,
)
from resume_hooks.transcripts.transcript import MAX_QUICK_SCAN_BYTES, is_live_part_within_bytes

if TYPE_CHECKING:
    from resume_hooks.derive.fresh_child import FreshChildPlan

# Price of a token that is read from the cache, relative to the price of an uncached input token.
CACHE_READ_RATE = 0.1
# Price of a token that is written to the cache. The keys are the lifetimes of the cache in seconds.
CACHE_WRITE_PRICE_RATIOS = {
    DEFAULT_CACHE_SECONDS: 1.25,
    LONG_CACHE_SECONDS: 2.0,
}
OUTPUT_PRICE_RATIO = (
    5.0  # Price of an output token, relative to the price of an uncached input token.
)


class CachePriceRatios(NamedTuple):
    """The prices of tokens that are read from the cache, and of tokens that are written to it.

    They are relative to the price of an uncached input token.
    """

    read_price_ratio: float
    write_price_ratio: float


class Strategy(NamedTuple):
    """A strategy for continuing a session, with the resulting size and the tokens of its first request.

    ``tokens_after`` is the size of the context. The first request of the continued session sends
    ``cached_tokens`` and ``uncached_tokens``. A compaction or a summary is made by a separate
    request before that one: ``preceding_request_tokens`` is the number of its uncached tokens, and
    ``cost_of_preceding_request`` is its whole cost in input tokens.
    """

    name: str
    tokens_after: int
    cached_tokens: int
    uncached_tokens: int
    preceding_request_tokens: int = 0
    cost_of_preceding_request: float = 0.0


def find_cache_rates(lifetime_seconds: int) -> CachePriceRatios:
    """Return the prices for a cache whose lifetime is ``lifetime_seconds`` seconds.

    If ``lifetime_seconds`` is 0, there is no cache, so all input tokens have the same price.
    """
    if lifetime_seconds in CACHE_WRITE_PRICE_RATIOS:
        return CachePriceRatios(CACHE_READ_RATE, CACHE_WRITE_PRICE_RATIOS[lifetime_seconds])
    return CachePriceRatios(1.0, 1.0)


def compute_first_request_cost(strategy: Strategy, rates: CachePriceRatios) -> float:
    """Return the cost of a strategy's first request, including a request for a summary that precedes it.

    The cost of the answer to the first request is not included.
    """
    return (
        strategy.cost_of_preceding_request
        + strategy.cached_tokens * rates.read_price_ratio
        + strategy.uncached_tokens * rates.write_price_ratio
    )


def compute_cost_of_turns(
    strategy: Strategy, turn_count: int, recent_requests: RecentRequests, rates: CachePriceRatios
) -> float:
    """Return the cost of the next ``turn_count`` turns if the user chooses ``strategy``.

    The cost of the answers in these turns is not included. Each request after the first one reads
    the previous context from the cache.
    """
    later_request_count = turn_count * recent_requests.median_requests_per_turn - 1
    growth_per_request = (
        recent_requests.median_tokens_per_turn / recent_requests.median_requests_per_turn
    )
    read_tokens = (
        later_request_count * strategy.tokens_after
        + growth_per_request * later_request_count * (later_request_count - 1) / 2
    )
    return (
        compute_first_request_cost(strategy, rates)
        + read_tokens * rates.read_price_ratio
        + later_request_count * growth_per_request * rates.write_price_ratio
    )


def count_turns_to_break_even(
    strategy: Strategy, baseline: Strategy, recent_requests: RecentRequests, rates: CachePriceRatios
) -> int | None:
    """Return the number of turns after which ``strategy`` costs less than ``baseline``.

    ``baseline`` is the strategy "go on", which keeps the session as it is. Return None if
    ``strategy`` never costs less.
    """
    extra_first_cost = compute_first_request_cost(strategy, rates) - compute_first_request_cost(
        baseline, rates
    )
    saved_per_request = (baseline.tokens_after - strategy.tokens_after) * rates.read_price_ratio
    if extra_first_cost < (recent_requests.median_requests_per_turn - 1) * saved_per_request:
        return 1
    if saved_per_request <= 0:
        return None
    return max(
        1,
        ceil(
            (floor(extra_first_cost / saved_per_request) + 2)
            / recent_requests.median_requests_per_turn
        ),
    )


MAX_QUICK_SCAN_BYTES_IN_SHELL = (
    24 * 1024 * 1024
    # In a shell, strategies are compared only if the live part of the session is not larger than
    # this number of bytes (about a million tokens).
)
# The size of a typical turn is estimated only if at least this number of turns was counted.
MIN_COUNTED_TURNS = 3
# If the context has space for fewer prompts than this number, a strategy is recommended.
MIN_REMAINING_PROMPTS = 3
# If at least this percentage of the context window is used, a strategy is recommended.
NEARLY_FULL_PERCENT = 80
# If a trimmed session uses more than this percentage of the window, a handoff is recommended
# instead.
MAX_CONTEXT_PERCENT_AFTER_TRIM = 50
COLD_CACHE_REASON = "the prompt cache expired"
"""The reason for a recommendation if the context has enough space but the session's cache has expired.

The next prompt then sends all tokens of the session uncached.
"""

TOKENS_AFTER_COMPACTION = 18_000
"""The size of the context after a compaction: the summary, and the files that are read again.

This is the median of ten measured compactions. The sizes ranged from 4,400 to 30,100 tokens.
"""

# Size of a compaction's summary in tokens: the median of ten compactions in the corpus.
COMPACTION_SUMMARY_TOKENS = 3_600
# The summary of a rollover adds at most this number of tokens to the fresh session.
ROLLOVER_SUMMARY_TOKENS = 2_000
SUMMARY_INPUT_TOKENS = 180_000
"""The maximum number of tokens that a model reads for the summary of a rollover.

The cost is computed as if the session's own model read these tokens, although the default model is
smaller and cheaper. A test compares this constant and ``ROLLOVER_SUMMARY_TOKENS`` with the limits
in the summary module. They are not imported from there, because the import would be too slow.
"""

GO_ON, TRIM, HANDOFF, ROLLOVER, COMPACT = "go on", "trim", "handoff", "rollover", "compact"
FRESH_STRATEGIES = frozenset({HANDOFF, ROLLOVER})
"""Strategies that are possible only if the session has at least one prompt."""


class StrategyEstimate(NamedTuple):
    """The estimated size and costs of a strategy. All costs are in input tokens.

    ``tokens_after`` is the size of the context. ``next_turn_cost`` is the cost of the next
    turn, without the cost of its answers. ``uncached_tokens`` is the number of tokens outside
    the cache that the next turn sends, including a request for a summary. ``turns_to_pay_off``
    is the number of turns after which the strategy costs less than the strategy "go on". It is
    None if the strategy never costs less, and for "go on" itself.

    ``warm_cache_cost_tokens`` and ``cold_cache_cost_tokens`` are the costs of the strategy's first
    request with a warm and with a cold API cache. If a model has to be called before that request,
    for example for a summary, they include the cost of this call.
    """

    name: str
    tokens_after: int
    uncached_tokens: int
    next_turn_cost: int
    turns_to_pay_off: int | None
    warm_cache_cost_tokens: int
    cold_cache_cost_tokens: int


class SizeEstimate(NamedTuple):
    """The estimate for a handoff of one size. The size ``all`` stands for a fork.

    ``warm_cache_cost_tokens`` and ``cold_cache_cost_tokens`` are the costs of the first request
    with a warm and with a cold cache.
    """

    measured_size: HandoffSize
    warm_cache_cost_tokens: int
    cold_cache_cost_tokens: int


class Advice(NamedTuple):
    """The recommended strategy, and the reason in a few words."""

    strategy: str
    reason: str


class Comparison(NamedTuple):
    """A session's context, and an estimate for each strategy.

    If no content can be trimmed, ``estimates`` does not contain a trim. ``handoff_sizes`` contains
    the possible sizes of a handoff, the smallest first. It is empty if a handoff is impossible.
    ``is_trim_estimated`` is false if the live part of the session is too large to estimate a trim.
    ``is_handoff_planned`` is false if the size of the handoff is only an upper bound.

    ``seconds_since_request`` is the number of seconds since the last counted request, or None if no
    request was counted. ``prompts_left`` is None if there are too few turns for an estimate.
    ``advice`` is None if the context has enough space and the next prompt costs little.
    """

    session_id: str
    head_tail: HeadTail
    folder: str
    context: ContextSize
    recent_requests: RecentRequests
    base_request: FirstRequest
    seconds_since_request: int | None
    is_cache_warm: bool
    estimates: tuple[StrategyEstimate, ...]
    handoff_sizes: tuple[SizeEstimate, ...]
    is_trim_estimated: bool
    is_handoff_planned: bool
    prompts_left: int | None
    advice: Advice | None

    @property
    def recommended_strategy_name(self) -> str:
        """The name of the recommended strategy, or ``go on`` if there is no advice."""
        if self.advice:
            return self.advice.strategy
        return GO_ON

    def find_tokens_after_strategy(self, strategy_name: str) -> int:
        """Return the size of the context after a strategy was applied, or 0 if it has no estimate."""
        return next((each.tokens_after for each in self.estimates if each.name == strategy_name), 0)


class _Measurements(NamedTuple):
    """The measurements from which the strategies are estimated.

    ``base_request`` is the size of a request without a conversation. ``tokens_after_handoff`` is the
    size of the context after a handoff. ``summary_input_tokens`` is the number of tokens that a
    model reads to summarize the session.
    """

    context: ContextSize
    recent_requests: RecentRequests
    base_request: FirstRequest
    trim_estimate: _TrimEstimate | None
    tokens_after_handoff: int
    summary_input_tokens: int


class _TrimEstimate(NamedTuple):
    """The size of the context that a resume sends, now and after a trim.

    ``chain`` contains the records of the conversation. ``context_after`` is None if a trim is not
    worthwhile.
    """

    context_before: ContextSize
    context_after: ContextSize | None
    chain: list[Node]


def compare_strategies(
    session: SessionFile, where: Where, now: str, *, max_live_bytes: int = MAX_QUICK_SCAN_BYTES
) -> Comparison:
    """Compare the strategies for continuing a session at the time ``now``.

    A trim is estimated only if the live part of the session has at most ``max_live_bytes`` bytes.
    Raises the errors of ``scan_session``.
    """
    now_ms = clock.to_milliseconds(now) or 0
    session = Session.from_file(session, where)
    head_tail = session.head_tail
    if max_live_bytes == MAX_QUICK_SCAN_BYTES:
        trim_estimated = session.is_quick_to_read
    else:
        trim_estimated = is_live_part_within_bytes(session.file, max_live_bytes)
    trim_estimate = _estimate_trim(session, where) if trim_estimated else None
    context = trim_estimate.context_before if trim_estimate else session.context
    recent_requests = api_usage.read_recent_requests(session.file)
    base = api_usage.measure_first_request(head_tail, where)
    base = FirstRequest(
        min(base.tokens, context.tokens),
        min(base.tokens_shared_with_other_sessions, context.tokens),
    )
    warm = recent_requests.is_warm(now_ms)
    has_handoff_plan = head_tail.size <= max_live_bytes
    if has_handoff_plan:
        handoff_plan = _plan_default_handoff(session, where)
        tokens_after_handoff = handoff_plan.sizes.tokens_after if handoff_plan else base.tokens
        # If the API has not counted the tokens of a request yet, the estimate of the context
        # includes only the conversation.
        conversation_tokens = context.tokens - (base.tokens if context.is_measured else 0)
        measured_sizes = (
            measure_handoff_sizes(handoff_plan, conversation_tokens) if handoff_plan else ()
        )
    else:
        fixed_tokens = base.tokens + _estimate_lineage_tokens(session)
        default_tokens = resolve_size_to_tokens("", where)
        tokens_after_handoff = fixed_tokens + default_tokens
        measured_sizes = estimate_max_handoff_sizes(fixed_tokens, default_tokens)
    remaining_prompts = estimate_prompts_left(context, recent_requests)
    # The summary covers the whole conversation. The chain contains the whole conversation only if
    # it does not start with a compaction.
    is_uncompacted = trim_estimate is not None and not (
        trim_estimate.chain and trim_estimate.chain[0].is_boundary
    )
    if is_uncompacted:
        summary_input = context.tokens - base.tokens
    else:
        summary_input = round(head_tail.size / CHARACTERS_PER_TOKEN)
    measurements = _Measurements(
        context,
        recent_requests,
        base,
        trim_estimate,
        tokens_after_handoff,
        min(summary_input, SUMMARY_INPUT_TOKENS),
    )
    estimates = _estimate_strategies(measurements, is_warm=warm)
    if head_tail.is_blank:
        estimates = tuple(
            estimate for estimate in estimates if estimate.name not in FRESH_STRATEGIES
        )
    chosen_advice = recommend_strategy_for_context(
        context, trim_estimate.context_after if trim_estimate else None, remaining_prompts
    )
    if (
        chosen_advice is None
        and not warm
        and recent_requests.last_answer_time_ms is not None
        and recent_requests.cache_seconds
    ):
        chosen_advice = _recommend_for_cold_cache(context, estimates)
    return Comparison(
        session_id=session.session_id,
        head_tail=head_tail,
        folder=home_folder_of_session(head_tail, where),
        context=context,
        recent_requests=recent_requests,
        base_request=base,
        seconds_since_request=recent_requests.seconds_since_last_request(now_ms),
        is_cache_warm=warm,
        estimates=estimates,
        handoff_sizes=_estimate_handoff_sizes(
            () if head_tail.is_blank else measured_sizes, measurements
        ),
        is_trim_estimated=trim_estimated,
        is_handoff_planned=has_handoff_plan,
        prompts_left=remaining_prompts,
        advice=chosen_advice,
    )


def recommend_strategy(path: str, where: Where) -> Advice:
    """Return the recommended strategy for a session that is full."""
    trim_estimate = _estimate_trim_if_quick(path, where)
    return _recommend_trim_or_handoff(trim_estimate.context_after if trim_estimate else None)


class FreedTokens(NamedTuple):
    """The number of tokens that a trim with default options would remove.

    ``freed_by_trimmed_copy`` applies to a trimmed copy, and ``freed_in_place`` to a trim in the
    running client.
    """

    freed_by_trimmed_copy: int
    freed_in_place: int


def count_freed_tokens(path: str, where: Where) -> FreedTokens:
    """Return how many tokens a trim with default options would remove.

    There is one number for a trimmed copy and one for a trim in the running client. Both are 0 if no
    content can be trimmed, or if the live part would take too long to read.
    """
    if not is_live_part_within_bytes(path, MAX_QUICK_SCAN_BYTES):
        return FreedTokens(0, 0)
    # Imported here because these modules are used only for sessions that can be read quickly.
    from resume_hooks.derive.trim import in_client, plan

    try:
        scanned_session = plan.scan_session(session_file(path))
    except NothingToTrim:
        return FreedTokens(0, 0)
    decisions = (
        plan.decide_trim(scanned_session, make_options(), where),
        in_client.decide_trim_in_client(scanned_session, make_options(), where),
    )
    return FreedTokens(*(decision.savings.tokens for decision in decisions))


def _estimate_trim_if_quick(path: str, where: Where) -> _TrimEstimate | None:
    if is_live_part_within_bytes(path, MAX_QUICK_SCAN_BYTES):
        return _estimate_trim(session_file(path), where)
    return None


def estimate_prompts_left(context: ContextSize, recent_requests: RecentRequests) -> int | None:
    """Return the approximate number of typical turns until the client compacts the session.

    Return None if there are too few turns to estimate the size of a typical one. After a
    compaction, turns are counted only from the second one on, because earlier turns have different
    sizes.
    """
    if recent_requests.turn_count < MIN_COUNTED_TURNS or not context.is_measured:
        return None
    remaining_turns = (
        max(0, context.window - OUTPUT_RESERVE_TOKENS - context.tokens)
        // recent_requests.median_tokens_per_turn
    )
    if remaining_turns < 10:
        rounding_step = 1
    elif remaining_turns < 100:
        rounding_step = 5
    else:
        rounding_step = 50
    return remaining_turns // rounding_step * rounding_step


def recommend_strategy_for_context(
    context: ContextSize, trimmed_context: ContextSize | None, remaining_prompts: int | None = None
) -> Advice | None:
    """Return a recommendation if the context is nearly full, or None while it has enough space.

    ``trimmed_context`` is the context after a trim, and ``remaining_prompts`` is the number of
    prompts for which the context has space. Each of them is None if it is unknown.
    """
    if (
        context.max_percent < NEARLY_FULL_PERCENT
        and not context.compacts_at_once
        and (remaining_prompts is None or remaining_prompts >= MIN_REMAINING_PROMPTS)
    ):
        return None
    return _recommend_trim_or_handoff(trimmed_context)


def _recommend_for_cold_cache(
    context: ContextSize, estimates: Sequence[StrategyEstimate]
) -> Advice | None:
    """Recommend a strategy that makes the next prompt of a large session cheaper, or return None.

    Only strategies that pay off with the next turn are considered. A trim is recommended if it
    halves the session or if a handoff does not pay off. Otherwise a handoff is recommended.
    """
    if context.tokens < COLD_CACHE_NOTICE_TOKENS:
        return None
    worthwhile = {}
    for estimate in estimates:
        if (
            estimate.turns_to_pay_off == 1
            and context.tokens - estimate.tokens_after >= MIN_WORTHWHILE_SAVED_TOKENS
        ):
            worthwhile[estimate.name] = estimate
    if TRIM in worthwhile and (
        HANDOFF not in worthwhile or worthwhile[TRIM].tokens_after <= context.tokens / 2
    ):
        return Advice(TRIM, COLD_CACHE_REASON)
    if HANDOFF in worthwhile:
        return Advice(HANDOFF, COLD_CACHE_REASON)
    return None


def _recommend_trim_or_handoff(trimmed_context: ContextSize | None) -> Advice:
    if (
        trimmed_context is not None
        and trimmed_context.max_percent <= MAX_CONTEXT_PERCENT_AFTER_TRIM
    ):
        return Advice(TRIM, f"mostly tool output: it leaves {_format_size(trimmed_context)}")
    return Advice(HANDOFF, "it leaves the most room")


def _format_size(context: ContextSize) -> str:
    if context.percent is None:
        return f"{context.tokens:,} tokens"
    return f"{context.percent} %"


def _estimate_trim(session: SessionFile, where: Where) -> _TrimEstimate | None:
    # Imported here because sessions with a large live part do not need it.
    from resume_hooks.derive.trim import plan

    try:
        scanned_session = plan.scan_session(session)
    except NothingToTrim:
        return None
    options = make_options()
    decision = plan.decide_trim(scanned_session, options, where)
    is_worthwhile = decision.savings.tokens >= options.min_savings
    return _TrimEstimate(
        decision.context_before,
        decision.context_after if is_worthwhile else None,
        scanned_session.transcript.chain,
    )


def _estimate_lineage_tokens(session: Session) -> int:
    """Return the approximate number of tokens of the lineage block in a child of this session."""
    block = lineage_block.render_lineage_block(
        session.lineage,
        title=session.head_tail.title,
        session_id="-" * 36,
        file=session.path,
        created_at=clock.now(),
    )
    return round(len(block) / CHARACTERS_PER_TOKEN)


def _plan_default_handoff(session: SessionFile, where: Where) -> FreshChildPlan | None:
    """Plan a handoff of the default size, without a next step.

    Return None if a handoff is impossible.
    """
    # Imported here because long sessions do not need it.
    from resume_hooks.derive import agents
    from resume_hooks.derive.fresh_child import ChildContents
    from resume_hooks.reading.digest.build import build_digest

    try:
        contents = ChildContents(
            build_digest(session, where), opening_tokens=resolve_size_to_tokens("", where)
        )
        return agents.plan_fresh_child(session, where, kind="handoff", contents=contents)
    except (NothingToHandOff, UsageError):
        return None


def _list_strategies(measurements: _Measurements, *, is_warm: bool) -> list[Strategy]:
    """Return all possible strategies, starting with "go on".

    If ``is_warm`` is true, the cache contains at least the tokens with which every session starts.
    """
    context, recent_requests, base, trim_estimate, tokens_after_handoff, summary_input_tokens = (
        measurements
    )
    rates = find_cache_rates(recent_requests.cache_seconds)
    if is_warm:
        cached_tokens = min(
            context.tokens,
            max(recent_requests.cached_tokens, base.tokens_shared_with_other_sessions),
        )
    else:
        cached_tokens = 0

    def make_strategy_with_new_session(
        name: str, tokens_after: int, input_tokens: int = 0, output_tokens: int = 0
    ) -> Strategy:
        return _make_new_session_strategy(
            name,
            tokens_after,
            base.tokens_shared_with_other_sessions if is_warm else 0,
            input_tokens,
            output_tokens,
        )

    baseline = Strategy(GO_ON, context.tokens, cached_tokens, context.tokens - cached_tokens)
    tokens_kept, summary_tokens = _estimate_kept_and_summary_tokens(
        trim_estimate.chain if trim_estimate else [], base
    )
    compacted_tokens = min(base.tokens + tokens_kept, context.tokens)
    return [
        baseline,
        *(
            [make_strategy_with_new_session(TRIM, trim_estimate.context_after.tokens)]
            if trim_estimate and trim_estimate.context_after
            else []
        ),
        make_strategy_with_new_session(HANDOFF, tokens_after_handoff),
        make_strategy_with_new_session(
            ROLLOVER,
            tokens_after_handoff + ROLLOVER_SUMMARY_TOKENS,
            summary_input_tokens,
            ROLLOVER_SUMMARY_TOKENS,
        ),
        # The cache already contains the tokens with which every session starts, because the request
        # for the summary has just sent them.
        Strategy(
            COMPACT,
            compacted_tokens,
            base.tokens_shared_with_other_sessions,
            compacted_tokens - base.tokens_shared_with_other_sessions,
            baseline.uncached_tokens,
            cached_tokens * rates.read_price_ratio
            + baseline.uncached_tokens * rates.write_price_ratio
            + summary_tokens * OUTPUT_PRICE_RATIO,
        ),
    ]


def _make_new_session_strategy(
    name: str, tokens_after: int, cached_tokens: int, input_tokens: int = 0, output_tokens: int = 0
) -> Strategy:
    """Return the strategy of a new session whose first request reads ``cached_tokens`` from the cache.

    If a model summarizes the parent first, it reads ``input_tokens`` and answers with
    ``output_tokens``.
    """
    return Strategy(
        name,
        tokens_after,
        min(cached_tokens, tokens_after),
        tokens_after - min(cached_tokens, tokens_after),
        input_tokens,
        input_tokens + output_tokens * OUTPUT_PRICE_RATIO,
    )


def _estimate_handoff_sizes(
    sizes: tuple[HandoffSize, ...], measurements: _Measurements
) -> tuple[SizeEstimate, ...]:
    """Return the estimate for each handoff size, followed by the estimate for a fork.

    A fork contains the whole session.
    """
    cached_tokens, rates = (
        measurements.base_request.tokens_shared_with_other_sessions,
        find_cache_rates(measurements.recent_requests.cache_seconds),
    )
    if sizes:
        whole_session = [HandoffSize(WHOLE_SESSION_SIZE, measurements.context.tokens, 0)]
    else:
        whole_session = []

    def compute_handoff_cost(size: HandoffSize, cached_tokens: int) -> int:
        return round(
            compute_first_request_cost(
                _make_new_session_strategy(size.size, size.tokens_after, cached_tokens), rates
            )
        )

    return tuple(
        SizeEstimate(size, compute_handoff_cost(size, cached_tokens), compute_handoff_cost(size, 0))
        for size in (*sizes, *whole_session)
    )


def _estimate_kept_and_summary_tokens(chain: list[Node], base: FirstRequest) -> tuple[int, int]:
    if not chain or not chain[0].is_boundary:
        return TOKENS_AFTER_COMPACTION, COMPACTION_SUMMARY_TOKENS
    first_counted = next(
        (node for node in chain if node.input_tokens and node.line_number > chain[0].line_number),
        None,
    )
    summary_characters = next((node.character_count for node in chain if node.is_summary), 0)
    tokens_kept = max(0, first_counted.input_tokens - base.tokens) if first_counted else 0
    return tokens_kept or TOKENS_AFTER_COMPACTION, round(
        summary_characters / CHARACTERS_PER_TOKEN
    ) or COMPACTION_SUMMARY_TOKENS


def _estimate_strategies(
    measurements: _Measurements, *, is_warm: bool
) -> tuple[StrategyEstimate, ...]:
    recent_requests = measurements.recent_requests
    rates = find_cache_rates(recent_requests.cache_seconds)
    warm_strategies = _list_strategies(measurements, is_warm=True)
    cold_strategies = _list_strategies(measurements, is_warm=False)
    strategies = warm_strategies if is_warm else cold_strategies
    baseline = strategies[0]
    estimates: list[StrategyEstimate] = []
    for strategy, warm_strategy, cold_strategy in zip(
        strategies, warm_strategies, cold_strategies, strict=True
    ):
        break_even_count = None
        if strategy is not baseline:
            break_even_count = count_turns_to_break_even(strategy, baseline, recent_requests, rates)
        estimates.append(
            StrategyEstimate(
                name=strategy.name,
                tokens_after=strategy.tokens_after,
                uncached_tokens=strategy.preceding_request_tokens + strategy.uncached_tokens,
                next_turn_cost=round(compute_cost_of_turns(strategy, 1, recent_requests, rates)),
                turns_to_pay_off=break_even_count,
                warm_cache_cost_tokens=round(compute_first_request_cost(warm_strategy, rates)),
                cold_cache_cost_tokens=round(compute_first_request_cost(cold_strategy, rates)),
            )
        )
    return tuple(estimates)
