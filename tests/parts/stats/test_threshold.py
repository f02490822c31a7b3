"""What a line would have cost: sessions gone through again, request by request."""

from __future__ import annotations

import pytest

from resume_hooks.derive.trim.options import DEFAULT_KEEP_RECENT
from resume_hooks.parts.stats.count import ApiRequest, read_requests
from resume_hooks.parts.stats.threshold import THRESHOLD_TOKENS, Price, price_thresholds
from resume_hooks.transcripts.api_usage import DEFAULT_CACHE_SECONDS, LONG_CACHE_SECONDS
from tests.builders import SESSION, ConfigHome, assistant, user, write_session
from tests.cli.conftest import Cli, Document

STEP = 10_000


def session(
    turns: int, *, first: int = 30_000, lifetime: int = DEFAULT_CACHE_SECONDS
) -> list[ApiRequest]:
    """Turns of one request each, all of the last one's context out of the cache."""
    return [
        ApiRequest(f"2026-01-{1 + turn // 10:02}", first + STEP * turn, max(20_000, first + STEP * (turn - 1)), 100,
                STEP, lifetime, turn, is_side_request=False)
        for turn in range(turns)
    ]  # fmt: skip


def by_setting(found: list[Price]) -> dict[tuple[str, int], Price]:
    """The prices by way and line."""
    return {(row.strategy, row.threshold_tokens): row for row in found}


def test_without_a_line_the_price_is_the_actual_one() -> None:
    """Reads at a tenth, writes at 1.25 or 2, answers at 5."""
    for lifetime, rate in ((DEFAULT_CACHE_SECONDS, 1.25), (LONG_CACHE_SECONDS, 2)):
        (paid, *rest) = price_thresholds([session(3, lifetime=lifetime), []], "")
        assert paid == Price(0, "", 0, 0, 90_000, 30_000, round(9_000 + 30_000 * rate + 1_500))
        assert {row.cost for row in rest} == {paid.cost}
    assert [row.cost for row in price_thresholds([], "")] == [0] * (1 + 2 * len(THRESHOLD_TOKENS))


def test_a_trim_frees_half_and_the_next_request_writes_it_again() -> None:
    """At the first turn's end over the line; what sessions share stays in the cache."""
    paid, found = (
        price_thresholds([session(9)], "")[0],
        by_setting(price_thresholds([session(9)], "")),
    )
    row = found["trim", 100_000]
    size = 100_000 + 100
    left = size - (size - 30_000) // 2
    assert (row.reduction_count, row.remaining_tokens) == (1, left)
    freed = size - left
    assert row.written_tokens - paid.written_tokens == 100_000 - freed - 20_000
    assert paid.read_tokens - row.read_tokens == (100_000 - 20_000)
    assert found["trim", 150_000]._replace(threshold_tokens=0, strategy="") == paid


def test_a_handoff_leaves_the_base_a_digest_and_the_last_turns() -> None:
    """Those that fit in half of the line."""
    assert (
        by_setting(price_thresholds([session(9)], ""))["12k", 100_000].remaining_tokens
        == 30_000 + 12_000 + DEFAULT_KEEP_RECENT * STEP
    )


@pytest.mark.parametrize(("first", "times"), [(30_000, 12), (90_000, 7)])
def test_never_within_five_turns_nor_for_less_than_a_fifth(first: int, times: int) -> None:
    """However long a session stays above the line."""
    row = by_setting(price_thresholds([session(60, first=first)], ""))["trim", 100_000]
    assert row.reduction_count <= times


def test_savings_start_again_after_a_compaction() -> None:
    """Earlier savings are not subtracted from later requests."""
    after = [request._replace(turn=request.turn + 9) for request in session(3, first=40_000)]
    alone = price_thresholds([after], "")[0]
    both, before = (
        by_setting(price_thresholds([each], ""))["trim", 100_000]
        for each in (session(9) + after, session(9))
    )
    assert both.cost - before.cost == alone.cost


def test_only_from_a_day_on() -> None:
    """The session is gone through from its beginning all the same."""
    whole, part = (price_thresholds([session(20)], since) for since in ("", "2026-01-02"))
    assert part[0].cost < whole[0].cost
    assert by_setting(part)["trim", 100_000].read_tokens < part[0].read_tokens


def test_as_typed(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """A table with its assumptions; sub-agents in the session's own file are omitted."""
    rows = [
        user("a", uuid="u1", ts=1),
        assistant("b", uuid="a1", parent="u1", ts=2, tokens=40_000),
        assistant("c", uuid="s1", parent="u1", ts=3, tokens=50_000, isSidechain=True),
        user("d", uuid="u2", parent="a1", ts=4),
        assistant("e", uuid="a2", parent="u2", ts=5, tokens=60_000),
    ]
    path = write_session(config_home.project(), SESSION, rows)
    assert [request.turn for request in read_requests(path)] == [1, 2]
    text = cli("stats", "--all", "--threshold").stdout.decode()
    assert "trim@150k" in text
    assert "Assumptions: " in text
    data = document("stats", "--all", "--threshold")["data"]
    assert [(row["line"], row["way"]) for row in data["threshold"]][:2] == [
        (0, ""),
        (200_000, "trim"),
    ]
    assert document("stats", "--all")["data"]["threshold"] == []
