"""Tests that estimated costs equal costs computed by hand, and sums of the costs of single requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.derive.compare import (
    CachePriceRatios,
    Strategy,
    compute_cost_of_turns,
    compute_first_request_cost,
    count_turns_to_break_even,
    find_cache_rates,
)
from resume_hooks.transcripts.api_usage import (
    DEFAULT_CACHE_SECONDS,
    LONG_CACHE_SECONDS,
    RecentRequests,
)

GO_ON_WITH_WARM_CACHE = Strategy("go on", 100_000, 99_000, 1_000)
GO_ON_WITH_COLD_CACHE = Strategy("go on", 100_000, 0, 100_000)
HALF_SIZE_TRIM = Strategy("trim", 50_000, 20_000, 30_000)
"""A trim that halves the context. Of the remaining 50,000 tokens, 20,000 can be read from the
cache."""


def make_recent_requests(requests_per_turn: int, tokens_per_turn: int) -> RecentRequests:
    """Return data about recent turns with ``requests_per_turn`` requests each.

    Each turn added ``tokens_per_turn`` to the context.
    """
    return RecentRequests(None, 0, 0, requests_per_turn, tokens_per_turn)


ONE_REQUEST_PER_TURN = make_recent_requests(1, 0)


def test_token_prices_have_the_published_ratios() -> None:
    """An input token costs 1. Reading a token from the cache costs 0.1, and writing it costs 1.25 or 2."""
    assert find_cache_rates(DEFAULT_CACHE_SECONDS) == CachePriceRatios(0.1, 1.25)
    assert find_cache_rates(LONG_CACHE_SECONDS) == CachePriceRatios(0.1, 2.0)
    assert find_cache_rates(0) == CachePriceRatios(1.0, 1.0)


@pytest.mark.parametrize(
    ("strategy", "lifetime_seconds", "expected_cost"),
    [
        (GO_ON_WITH_WARM_CACHE, DEFAULT_CACHE_SECONDS, 99_000 * 0.1 + 1_000 * 1.25),
        (GO_ON_WITH_WARM_CACHE, LONG_CACHE_SECONDS, 99_000 * 0.1 + 1_000 * 2),
        (GO_ON_WITH_COLD_CACHE, DEFAULT_CACHE_SECONDS, 125_000),
        (GO_ON_WITH_COLD_CACHE, LONG_CACHE_SECONDS, 200_000),
        (GO_ON_WITH_COLD_CACHE, 0, 100_000),
        (HALF_SIZE_TRIM, DEFAULT_CACHE_SECONDS, 2_000 + 37_500),
        (
            Strategy("compact", 40_000, 18_000, 22_000, 1_000, 30_000),
            DEFAULT_CACHE_SECONDS,
            30_000 + 1_800 + 27_500,
        ),
    ],
)
def test_a_cached_token_costs_less_in_the_first_request(
    strategy: Strategy, lifetime_seconds: int, expected_cost: float
) -> None:
    """In the first request, a cached token costs a tenth of an input token.

    Any other token costs the price of a cache write. If the strategy needs another request before
    the first one, the cost of that request is added.
    """
    assert compute_first_request_cost(
        strategy, find_cache_rates(lifetime_seconds)
    ) == pytest.approx(expected_cost)


def test_the_costs_of_several_requests_per_turn_are_added_up() -> None:
    """Two turns of two requests each, with 400 new tokens a turn, cost the sum that was computed by hand."""
    read = (50_000 + 50_200 + 50_400) * 0.1
    written = 3 * 200 * 1.25
    assert compute_cost_of_turns(
        HALF_SIZE_TRIM, 2, make_recent_requests(2, 400), find_cache_rates(DEFAULT_CACHE_SECONDS)
    ) == pytest.approx(39_500 + read + written)


@pytest.mark.parametrize(
    ("strategy", "strategy_of_going_on", "lifetime_seconds", "recent_requests", "expected_turn"),
    [
        # Warm cache: the first request costs 39,500 instead of 11,150, and each later one 5,000
        # less. 28,350 / 5,000 = 5.67, so six more requests are needed.
        (HALF_SIZE_TRIM, GO_ON_WITH_WARM_CACHE, DEFAULT_CACHE_SECONDS, ONE_REQUEST_PER_TURN, 7),
        (
            HALF_SIZE_TRIM,
            GO_ON_WITH_WARM_CACHE,
            DEFAULT_CACHE_SECONDS,
            make_recent_requests(3, 9_000),
            3,
        ),
        (
            HALF_SIZE_TRIM,
            GO_ON_WITH_WARM_CACHE,
            DEFAULT_CACHE_SECONDS,
            make_recent_requests(50, 9_000),
            1,
        ),
        # Writing to the one-hour cache costs more: 62,000 against 11,900. 50,100 / 5,000 = 10.02,
        # so eleven more requests are needed.
        (HALF_SIZE_TRIM, GO_ON_WITH_WARM_CACHE, LONG_CACHE_SECONDS, ONE_REQUEST_PER_TURN, 12),
        # Cold cache: a session that goes on writes 100,000 tokens to the cache again, so the trim
        # pays off in the first request.
        (
            HALF_SIZE_TRIM._replace(cached_tokens=0, uncached_tokens=50_000),
            GO_ON_WITH_COLD_CACHE,
            DEFAULT_CACHE_SECONDS,
            ONE_REQUEST_PER_TURN,
            1,
        ),
        (
            HALF_SIZE_TRIM._replace(cached_tokens=0, uncached_tokens=50_000),
            GO_ON_WITH_COLD_CACHE,
            0,
            ONE_REQUEST_PER_TURN,
            1,
        ),
        # A new session that is at least as large as the old one never pays off.
        (
            Strategy("trim", 100_000, 20_000, 80_000),
            GO_ON_WITH_WARM_CACHE,
            DEFAULT_CACHE_SECONDS,
            ONE_REQUEST_PER_TURN,
            None,
        ),
        (
            Strategy("handoff", 120_000, 20_000, 100_000),
            GO_ON_WITH_WARM_CACHE,
            LONG_CACHE_SECONDS,
            make_recent_requests(9, 0),
            None,
        ),
        # The strategy's first request costs as much as the first request of going on. Each later
        # request costs less.
        (
            Strategy("x", 50_000, 99_000, 1_000),
            GO_ON_WITH_WARM_CACHE,
            DEFAULT_CACHE_SECONDS,
            ONE_REQUEST_PER_TURN,
            2,
        ),
        # Before the trim, a model reads 60,000 tokens, so the first request costs 99,500 instead of
        # 11,150. 88,350 / 5,000 = 17.67.
        (
            HALF_SIZE_TRIM._replace(cost_of_preceding_request=60_000),
            GO_ON_WITH_WARM_CACHE,
            DEFAULT_CACHE_SECONDS,
            ONE_REQUEST_PER_TURN,
            19,
        ),
    ],
)
def test_a_strategy_pays_off_after_a_number_of_turns(
    strategy: Strategy,
    strategy_of_going_on: Strategy,
    lifetime_seconds: int,
    recent_requests: RecentRequests,
    expected_turn: int | None,
) -> None:
    """A strategy pays off in the first turn in which its total cost is lower than that of going on.

    A strategy that saves nothing never pays off.
    """
    assert (
        count_turns_to_break_even(
            strategy, strategy_of_going_on, recent_requests, find_cache_rates(lifetime_seconds)
        )
        == expected_turn
    )


TOKEN_COUNT_STRATEGY = st.integers(0, 300_000)
GENERATED_STRATEGIES = st.builds(
    lambda cached, uncached, apart: Strategy(
        "a strategy", cached + uncached, cached, uncached, apart, float(apart)
    ),
    TOKEN_COUNT_STRATEGY,
    TOKEN_COUNT_STRATEGY,
    TOKEN_COUNT_STRATEGY,
)


@given(
    GENERATED_STRATEGIES,
    GENERATED_STRATEGIES,
    st.builds(make_recent_requests, st.integers(1, 60), st.integers(0, 50_000)),
    st.sampled_from([0, 300, 3_600]),
)
def test_a_strategy_pays_off_in_the_first_turn_with_a_lower_sum(
    strategy: Strategy,
    strategy_of_going_on: Strategy,
    recent_requests: RecentRequests,
    lifetime_seconds: int,
) -> None:
    """The computed turn is the first in which a strategy's total cost is lower than that of going on.

    If there is no such turn, the strategy's total cost is not lower after a thousand turns either.
    """
    rates = find_cache_rates(lifetime_seconds)
    found = count_turns_to_break_even(strategy, strategy_of_going_on, recent_requests, rates)
    slack = 1e-6 * (
        1 + compute_cost_of_turns(strategy_of_going_on, found or 1_000, recent_requests, rates)
    )
    if found is None:
        assert (
            compute_cost_of_turns(strategy, 1_000, recent_requests, rates)
            >= compute_cost_of_turns(strategy_of_going_on, 1_000, recent_requests, rates) - slack
        )
        return
    assert (
        compute_cost_of_turns(strategy, found, recent_requests, rates)
        <= compute_cost_of_turns(strategy_of_going_on, found, recent_requests, rates) + slack
    )
    if found > 1:
        assert (
            compute_cost_of_turns(strategy, found - 1, recent_requests, rates)
            >= compute_cost_of_turns(strategy_of_going_on, found - 1, recent_requests, rates)
            - slack
        )
