"""The schemas of resume and continue: the ways to continue a session, their costs, and the commands."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Commands, ContextSize, FieldDeclarer, StrictModel
from resume_hooks.cli.start_client import ClientStart
from resume_hooks.derive import compare
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import original_path
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import RecentRequests

comparison_field = FieldDeclarer[compare.Comparison]()


class Cache(StrictModel):
    """The state of the API's cache for the session."""

    warm: bool = comparison_field(lambda comparison: comparison.is_cache_warm)
    lifetime_seconds: int = comparison_field(
        lambda comparison: comparison.recent_requests.cache_seconds,
        "300 or 3600, as the session's requests specify; 0 without a cache",
    )
    age_seconds: int | None = comparison_field(
        lambda comparison: comparison.seconds_since_request,
        "seconds since the session's last counted request; null without such a request",
    )
    tokens: int = comparison_field(
        lambda comparison: (
            comparison.recent_requests.cached_tokens if comparison.is_cache_warm else 0
        ),
        "the number of tokens that going on would read from the cache",
    )


requests_field = FieldDeclarer[RecentRequests]()


class TypicalTurn(StrictModel):
    """A typical turn of the session: the medians of its last turns."""

    requests: int = requests_field(lambda requests: requests.median_requests_per_turn)
    tokens: int | None = requests_field(
        lambda requests: requests.median_tokens_per_turn or None,
        "tokens added to the context; null if too few turns were counted",
    )


rates_field = FieldDeclarer[compare.CachePriceRatios]()


class RateTable(StrictModel):
    """The prices that the estimates use, for each kind of token. An input token costs 1."""

    input: float = rates_field(lambda _: 1.0)
    cache_read: float = rates_field(lambda rates: rates.read_price_ratio)
    uncached: float = rates_field(
        lambda rates: rates.write_price_ratio,
        "a token that is not cached; it is written to the cache if the session has one",
    )
    output: float = rates_field(lambda _: compare.OUTPUT_PRICE_RATIO)


size_field = FieldDeclarer[compare.SizeEstimate]()


class SizeRow(StrictModel):
    """One size of a handoff: what it contains, and what its first request costs in input tokens."""

    size: str = size_field(
        lambda estimate: estimate.measured_size.size,
        "the value for `handoff --size`; `all` is a fork",
    )
    after: int = size_field(
        lambda estimate: estimate.measured_size.tokens_after, "tokens of context after the handoff"
    )
    whole: int = size_field(
        lambda estimate: estimate.measured_size.full_opening_tokens,
        "tokens of an opening without a limit; 0 if not measured",
    )
    cut: int | None = size_field(
        lambda estimate: estimate.measured_size.omitted_tokens,
        "the number of these tokens that are cut; null if not measured",
    )
    has_calls: bool = size_field(
        lambda estimate: estimate.measured_size.includes_calls,
        "true: nothing is cut, and the latest calls are included",
    )
    warm: int = size_field(
        lambda estimate: estimate.warm_cache_cost_tokens,
        "the cost while the session's cache is warm",
    )
    cold: int = size_field(
        lambda estimate: estimate.cold_cache_cost_tokens,
        "the cost when the session's cache is cold",
    )


base_field = FieldDeclarer[tokens.FirstRequest]()


class FirstRequest(StrictModel):
    """The tokens with which every new session of the project begins.

    They are the client's instructions, its tools, and the project's instruction files.
    """

    tokens: int = base_field(lambda base: base.tokens)
    shared: int = base_field(
        lambda base: base.tokens_shared_with_other_sessions,
        "the number of these tokens that all sessions share in the cache while the cache is warm",
    )


estimate_field = FieldDeclarer[compare.StrategyEstimate]()


class Estimate(StrictModel):
    """The estimated size and costs of one way to continue a session. Costs are in input tokens."""

    name: Literal["go on", "trim", "handoff", "rollover", "compact"] = estimate_field(
        lambda estimate: estimate.name
    )
    after: int = estimate_field(
        lambda estimate: estimate.tokens_after, "tokens of context in the continued session"
    )
    uncached: int = estimate_field(
        lambda estimate: estimate.uncached_tokens,
        "uncached tokens of the next turn, plus those of the text that a model reads before that turn",
    )
    next_turn: int = estimate_field(
        lambda estimate: estimate.next_turn_cost,
        "the cost of the next turn in input tokens, without its answers",
    )
    pays_after: int | None = estimate_field(
        lambda estimate: estimate.turns_to_pay_off,
        "turns after which this way has cost less than going on; null for never, and for going on itself",
    )
    warm: int = estimate_field(
        lambda estimate: estimate.warm_cache_cost_tokens,
        "the cost in input tokens of the first request, while the session's cache is warm",
    )
    cold: int = estimate_field(
        lambda estimate: estimate.cold_cache_cost_tokens,
        "the cost in input tokens of the first request, when the session's cache is cold",
    )


advice_field = FieldDeclarer[compare.Advice]()


class Advice(StrictModel):
    """The recommended way to continue, and the reason in a few words."""

    why: str = advice_field(lambda advice: advice.reason)
    way: Literal["trim", "handoff"] = advice_field(lambda advice: advice.strategy)


class ResumeSchema(StrictModel):
    """A session and the ways to continue it. All numbers except those in ``context`` are estimates."""

    session_id: str = comparison_field(lambda comparison: comparison.session_id)
    session_file: str = comparison_field(
        lambda comparison: original_path(comparison.head_tail.path, Where())
    )
    title: str = comparison_field(lambda comparison: comparison.head_tail.title)
    context: ContextSize = comparison_field(lambda comparison: comparison.context)
    cache: Cache = comparison_field(lambda comparison: comparison)
    typical_turn: TypicalTurn = comparison_field(lambda comparison: comparison.recent_requests)
    base: FirstRequest = comparison_field(lambda comparison: comparison.base_request)
    rates: RateTable = comparison_field(
        lambda comparison: compare.find_cache_rates(comparison.recent_requests.cache_seconds)
    )
    estimates: list[Estimate] = comparison_field(lambda comparison: comparison.estimates)
    dial: list[SizeRow] = comparison_field(
        lambda comparison: comparison.handoff_sizes,
        "the sizes that a handoff can have, the smallest first",
    )
    trim_estimated: bool = comparison_field(
        lambda comparison: comparison.is_trim_estimated,
        (
            "false: the live conversation is too large to estimate a trim; true: if estimates has no trim, "
            "there is nothing to trim"
        ),
    )
    advice: Advice | None = comparison_field(
        lambda comparison: comparison.advice, "null if the session need not become smaller"
    )
    recommendation: Literal["go on", "trim", "handoff"] = comparison_field(
        lambda comparison: comparison.recommended_strategy_name, "the way that fits best"
    )
    prompts_left: int | None = comparison_field(
        lambda comparison: comparison.prompts_left,
        (
            "about how many typical turns fit before the client compacts; null if too few "
            "were counted"
        ),
    )
    commands: Commands


start_field = FieldDeclarer[ClientStart]()


class ContinueSchema(StrictModel):
    """The session on which the client starts."""

    session_id: str = start_field(lambda start: start.session_id)
    parent_session_id: str | None = Field(
        description="the session that was forked; null without --fork"
    )
    folder: str = start_field(lambda start: start.folder, "the folder in which the client starts")
    commands: Commands
