"""Tests of the simulated costs of a compaction at a threshold of tokens."""

from __future__ import annotations

import pytest

from resume_hooks.derive.trim.options import DEFAULT_KEPT_TURN_COUNT
from resume_hooks.parts.stats.count import ApiRequest, read_requests
from resume_hooks.parts.stats.threshold import (
    CONTEXT_SIZE_THRESHOLDS,
    ThresholdCost,
    compute_threshold_costs,
)
from resume_hooks.transcripts.api_usage import DEFAULT_CACHE_SECONDS, LONG_CACHE_SECONDS
from tests.builders import SESSION, ConfigHome, assistant, user, write_session
from tests.cli.conftest import Cli, Document

STEP_TOKENS = 10_000


def requests_of_turns(
    turn_count: int,
    *,
    first_request_tokens: int = 30_000,
    cache_seconds: int = DEFAULT_CACHE_SECONDS,
) -> list[ApiRequest]:
    """Return the requests of turns with one request each.

    Each request reads the context of the previous request from the cache.
    """
    return [
        ApiRequest(
            f"2026-01-{1 + turn // 10:02}",
            first_request_tokens + STEP_TOKENS * turn,
            max(20_000, first_request_tokens + STEP_TOKENS * (turn - 1)),
            100,
            STEP_TOKENS,
            cache_seconds,
            turn,
            is_side_request=False,
        )
        for turn in range(turn_count)
    ]


def prices_by_setting(prices: list[ThresholdCost]) -> dict[tuple[str, int], ThresholdCost]:
    """Return the prices by strategy and threshold."""
    return {(row.strategy, row.threshold_tokens): row for row in prices}


def test_without_a_threshold_the_price_is_the_actual_one() -> None:
    """Without a threshold, the simulated cost is the actual cost.

    The cost of a token, in input tokens, is 0.1 if it was read from the cache, 1.25 or 2 if it was
    written to the cache, and 5 if it is part of an answer.
    """
    for lifetime, rate in ((DEFAULT_CACHE_SECONDS, 1.25), (LONG_CACHE_SECONDS, 2)):
        (paid, *rest) = compute_threshold_costs(
            [requests_of_turns(3, cache_seconds=lifetime), []], ""
        )
        assert paid == ThresholdCost(
            0, "", 0, 0, 90_000, 30_000, round(9_000 + 30_000 * rate + 1_500)
        )
        assert {row.cost_in_input_tokens for row in rest} == {paid.cost_in_input_tokens}
    assert [row.cost_in_input_tokens for row in compute_threshold_costs([], "")] == [0] * (
        1 + 2 * len(CONTEXT_SIZE_THRESHOLDS)
    )


def test_a_simulated_trim_halves_the_growth_of_the_context() -> None:
    """After the first turn above the threshold, a simulated trim removes half of the context's growth.

    The next request writes the remaining tokens to the cache, except those that all sessions share.
    """
    paid, found = (
        compute_threshold_costs([requests_of_turns(9)], "")[0],
        prices_by_setting(compute_threshold_costs([requests_of_turns(9)], "")),
    )
    row = found["trim", 100_000]
    size = 100_000 + 100
    left = size - (size - 30_000) // 2
    assert (row.context_reduction_count, row.tokens_after_reduction) == (1, left)
    freed = size - left
    assert row.cache_write_tokens - paid.cache_write_tokens == 100_000 - freed - 20_000
    assert paid.cache_read_tokens - row.cache_read_tokens == (100_000 - 20_000)
    assert found["trim", 150_000]._replace(threshold_tokens=0, strategy="") == paid


def test_a_simulated_handoff_keeps_the_base_a_digest_and_the_last_turns() -> None:
    """A simulated handoff keeps the base, a digest of 12,000 tokens and the last turns."""
    assert (
        prices_by_setting(compute_threshold_costs([requests_of_turns(9)], ""))[
            "12k", 100_000
        ].tokens_after_reduction
        == 30_000 + 12_000 + DEFAULT_KEPT_TURN_COUNT * STEP_TOKENS
    )


@pytest.mark.parametrize(
    ("first_request_tokens", "max_compaction_count"), [(30_000, 12), (90_000, 7)]
)
def test_simulated_compactions_are_at_least_five_turns_apart(
    first_request_tokens: int, max_compaction_count: int
) -> None:
    """Simulated compactions are at least five turns apart."""
    row = prices_by_setting(
        compute_threshold_costs(
            [requests_of_turns(60, first_request_tokens=first_request_tokens)], ""
        )
    )["trim", 100_000]
    assert row.context_reduction_count <= max_compaction_count


def test_savings_start_again_after_a_compaction() -> None:
    """After a compaction by the client, the simulation starts with the actual requests again."""
    after = [
        request._replace(prompt_count=request.prompt_count + 9)
        for request in requests_of_turns(3, first_request_tokens=40_000)
    ]
    alone = compute_threshold_costs([after], "")[0]
    both, before = (
        prices_by_setting(compute_threshold_costs([each], ""))["trim", 100_000]
        for each in (requests_of_turns(9) + after, requests_of_turns(9))
    )
    assert both.cost_in_input_tokens - before.cost_in_input_tokens == alone.cost_in_input_tokens


def test_the_option_since_limits_the_priced_requests() -> None:
    """``since`` leaves out the price of earlier requests.

    The simulation nevertheless starts with the session's first request.
    """
    whole, part = (
        compute_threshold_costs([requests_of_turns(20)], since) for since in ("", "2026-01-02")
    )
    assert part[0].cost_in_input_tokens < whole[0].cost_in_input_tokens
    assert prices_by_setting(part)["trim", 100_000].cache_read_tokens < part[0].cache_read_tokens


def test_stats_print_the_threshold_table(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``stats --threshold`` prints a table with its assumptions, and leaves out sub-agents."""
    rows = [
        user("a", uuid="u1", ts=1),
        assistant("b", uuid="a1", parent="u1", ts=2, tokens=40_000),
        assistant("c", uuid="s1", parent="u1", ts=3, tokens=50_000, isSidechain=True),
        user("d", uuid="u2", parent="a1", ts=4),
        assistant("e", uuid="a2", parent="u2", ts=5, tokens=60_000),
    ]
    path = write_session(config_home.project(), SESSION, rows)
    assert [request.prompt_count for request in read_requests(path)] == [1, 2]
    text = cli("stats", "--all", "--threshold").stdout.decode()
    assert "trim@150k" in text
    assert "Assumptions: " in text
    data = document("stats", "--all", "--threshold")["data"]
    assert [(row["line"], row["way"]) for row in data["threshold"]][:2] == [
        (0, ""),
        (200_000, "trim"),
    ]
    assert document("stats", "--all")["data"]["threshold"] == []
