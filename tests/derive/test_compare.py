"""Tests of comparing the ways to continue a session by size and cost, and of recommending one."""

from __future__ import annotations

import json

import pytest

from resume_hooks import clock
from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.compare import (
    COLD_CACHE_REASON,
    COMPACT,
    COMPACTION_SUMMARY_TOKENS,
    GO_ON,
    HANDOFF,
    NEARLY_FULL_PERCENT,
    ROLLOVER,
    ROLLOVER_SUMMARY_TOKENS,
    SUMMARY_INPUT_TOKENS,
    TOKENS_AFTER_COMPACTION,
    TRIM,
    Comparison,
    StrategyEstimate,
    compare_strategies,
    estimate_prompts_left,
    recommend_strategy,
    recommend_strategy_for_context,
)
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.derive.summary import (
    MAX_SUMMARY_CHARACTERS,
    MAX_SUMMARY_PART_BYTES,
    MAX_SUMMARY_PARTS,
)
from resume_hooks.derive.trim.options import make_options
from resume_hooks.derive.verbs.trim import plan_trim
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.hooks import context_notice
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.opening import DEFAULT_OPENING_TOKENS
from resume_hooks.sessions import locate
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.api_usage import LONG_CACHE_SECONDS, RecentRequests
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN, ESTIMATED, ContextSize
from resume_hooks.transcripts.transcript import MAX_QUICK_SCAN_BYTES
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    boundary,
    custom_title,
    iso_time,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.corpus import RealSession

BASE, SHARED = 30_000, 20_000


def make_cached_usage(cache_read_tokens: int, cache_write_tokens: int) -> Record:
    """Return the token usage of a request.

    All its input is read from the cache or written to the one-hour cache.
    """
    split = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": cache_write_tokens}
    counts = {
        "input_tokens": 0,
        "cache_read_input_tokens": cache_read_tokens,
        "cache_creation_input_tokens": cache_write_tokens,
    }
    return {**counts, "cache_creation": split, "output_tokens": 0}


def make_bulky_session(output_count: int = 40) -> list[Record]:
    """Return a session with a large context.

    The context has ``BASE`` tokens. Outputs of about 2,000 tokens each and three short turns
    follow.
    """
    rows = [
        user("hello", uuid="u"),
        assistant(
            "hi", uuid="a", parent="u", ts=1, tokens=make_cached_usage(SHARED, BASE - SHARED)
        ),
    ]
    context = BASE
    for number in range(output_count):
        rows += [
            tool_use(
                f"c{number}",
                uuid=f"t{number}",
                parent=rows[-1]["uuid"],
                ts=2 + number,
                tool_input={"n": number},
            ),
            tool_result(
                f"c{number}",
                f"{number} " * 3_000,
                uuid=f"r{number}",
                parent=f"t{number}",
                ts=2 + number,
            ),
        ]
        rows[-2]["message"]["usage"] = make_cached_usage(context, 2_000)
        context += 2_000
    for number in range(3):
        rows.append(user("go on", uuid=f"p{number}", parent=rows[-1]["uuid"], ts=100 + 2 * number))
        answer = assistant("yes", uuid=f"y{number}", parent=f"p{number}", ts=101 + 2 * number)
        answer["message"]["usage"] = make_cached_usage(context, 100)
        context += 100
        rows.append(answer)
    return rows


def compare_strategies_at(
    home: ConfigHome,
    records: list[Record],
    seconds_after_start: float,
    *,
    max_live_bytes: int = MAX_QUICK_SCAN_BYTES,
) -> Comparison:
    """Compare the ways to continue a session at ``seconds_after_start`` seconds after its beginning."""
    path = write_session(home.project(), SESSION, records)
    return compare_strategies(
        SessionFile(SESSION, path, 0, 0),
        home.where,
        iso_time(seconds_after_start),
        max_live_bytes=max_live_bytes,
    )


def map_estimates_by_name(comparison: Comparison) -> dict[str, StrategyEstimate]:
    """Return the estimates by the names of their strategies."""
    return {estimate.name: estimate for estimate in comparison.estimates}


def test_a_warm_cache_makes_going_on_cheap(config_home: ConfigHome) -> None:
    """With a warm cache, going on costs little, and new sessions reuse the cached start of the requests."""
    found = compare_strategies_at(config_home, make_bulky_session(), 200)
    assert (
        found.is_cache_warm,
        found.seconds_since_request,
        found.recent_requests.cache_seconds,
    ) == (
        True,
        95,
        LONG_CACHE_SECONDS,
    )
    assert found.base_request.tokens == pytest.approx(BASE, abs=2)
    rows = map_estimates_by_name(found)
    assert list(rows) == [GO_ON, TRIM, HANDOFF, ROLLOVER, COMPACT]
    assert (rows[GO_ON].tokens_after, rows[GO_ON].uncached_tokens) == (110_300, 0)
    assert rows[TRIM].tokens_after < 50_000
    assert rows[TRIM].uncached_tokens == rows[TRIM].tokens_after - SHARED
    assert 0 < rows[HANDOFF].tokens_after - found.base_request.tokens < DEFAULT_OPENING_TOKENS + 500
    assert rows[HANDOFF].uncached_tokens == rows[HANDOFF].tokens_after - SHARED
    assert rows[ROLLOVER].tokens_after == rows[HANDOFF].tokens_after + ROLLOVER_SUMMARY_TOKENS
    assert (
        rows[ROLLOVER].uncached_tokens
        == rows[ROLLOVER].tokens_after - SHARED + 110_300 - found.base_request.tokens
    )
    assert rows[COMPACT].tokens_after == pytest.approx(BASE + TOKENS_AFTER_COMPACTION, abs=2)
    assert rows[COMPACT].uncached_tokens == rows[COMPACT].tokens_after - SHARED
    # Each turn sends one request with the whole context, and adds 100 tokens to it.
    assert rows[GO_ON].next_turn_cost == round(110_300 * 0.1)
    assert rows[HANDOFF].next_turn_cost == round(SHARED * 0.1 + rows[HANDOFF].uncached_tokens * 2)
    read, answer = 110_300 * 0.1, COMPACTION_SUMMARY_TOKENS * 5
    assert rows[COMPACT].next_turn_cost == pytest.approx(
        read + answer + SHARED * 0.1 + rows[COMPACT].uncached_tokens * 2, abs=1
    )
    assert 0 < (rows[HANDOFF].turns_to_pay_off or 0) < (rows[ROLLOVER].turns_to_pay_off or 0)


def test_a_cold_cache_makes_small_contexts_pay_off_at_once(config_home: ConfigHome) -> None:
    """With a cold cache, each strategy writes all its tokens to the cache.

    Therefore a strategy with a smaller context pays off in its first turn.
    """
    found = compare_strategies_at(config_home, make_bulky_session(), 105 + LONG_CACHE_SECONDS)
    rows = map_estimates_by_name(found)
    assert not found.is_cache_warm
    for name in (GO_ON, TRIM, HANDOFF):
        assert rows[name].uncached_tokens == rows[name].tokens_after
    assert rows[GO_ON].next_turn_cost == 220_600
    assert [rows[name].turns_to_pay_off for name in (GO_ON, TRIM, HANDOFF)] == [None, 1, 1]
    # The compaction sends all tokens once more. In the next request, only the beginning that all
    # requests share is read from the cache.
    assert rows[COMPACT].uncached_tokens == 110_300 + rows[COMPACT].tokens_after - SHARED


def test_a_cold_cache_recommends_the_strategy_that_pays_off_first(config_home: ConfigHome) -> None:
    """With a cold cache and a large session, the strategy that pays off first is recommended.

    With a warm cache or a smaller session, nothing is recommended.
    """
    found = compare_strategies_at(config_home, make_bulky_session(), 105 + LONG_CACHE_SECONDS)
    assert found.context.max_percent < NEARLY_FULL_PERCENT
    assert (found.recommended_strategy_name, found.advice and found.advice.reason) == (
        TRIM,
        COLD_CACHE_REASON,
    )
    assert compare_strategies_at(config_home, make_bulky_session(), 200).advice is None
    assert (
        compare_strategies_at(config_home, make_bulky_session(30), 105 + LONG_CACHE_SECONDS).advice
        is None
    )
    talk = [row for row in make_bulky_session(0) if row["uuid"] != "a"]
    for number, row in enumerate(row for row in talk if row["type"] == "user"):
        row["message"]["content"] = f"{number} words " * 40_000
    for number, row in enumerate(row for row in talk if row["type"] == "assistant"):
        row["message"]["usage"] = make_cached_usage(35_000 * number, 35_000)
    found = compare_strategies_at(config_home, talk, 105 + LONG_CACHE_SECONDS)
    assert (found.context.tokens, found.recommended_strategy_name) == (105_000, HANDOFF)


def test_the_estimate_of_a_compaction_never_exceeds_the_session(config_home: ConfigHome) -> None:
    """If a session is small, the estimated size after a compaction is not larger than the session."""
    found = compare_strategies_at(config_home, make_bulky_session(0), 200)
    assert map_estimates_by_name(found)[COMPACT].tokens_after <= found.context.tokens


def test_a_compaction_is_estimated_from_the_last_one(config_home: ConfigHome) -> None:
    """The estimate of a compaction uses the size after the session's last compaction."""
    rows = [
        *make_bulky_session(5),
        boundary(uuid="b", ts=300),
        summary("s" * 20_000, uuid="s", parent="b", ts=300),
        user("go on", uuid="q", parent="s", ts=301),
        assistant("yes", uuid="z", parent="q", ts=302, tokens=make_cached_usage(SHARED, 22_000)),
    ]
    compact = compare_strategies_at(config_home, rows, 310)
    found = map_estimates_by_name(compact)
    assert found[COMPACT].tokens_after == 42_000
    assert found[GO_ON].tokens_after == 42_000
    # The model that writes the summary of a rollover also reads the records before the compaction.
    assert found[ROLLOVER].uncached_tokens == found[ROLLOVER].tokens_after - SHARED + round(
        compact.head_tail.size / 4
    )


@pytest.mark.parametrize("record", [user("hello", uuid="u"), custom_title("nothing")])
def test_the_cache_is_assumed_to_be_cold_without_token_counts(
    config_home: ConfigHome, record: Record
) -> None:
    """Without token counts, the cache is assumed to be cold, and no estimate is negative."""
    found = compare_strategies_at(config_home, [record], 10)
    assert (found.is_cache_warm, found.seconds_since_request) == (False, None)
    fresh = {HANDOFF, ROLLOVER} if record["type"] == "user" else set()
    assert set(map_estimates_by_name(found)) == {GO_ON, COMPACT} | fresh, (
        "where nobody asked anything there is nothing to hand off"
    )
    assert bool(found.handoff_sizes) is bool(fresh)
    assert all(
        min(row.tokens_after, row.uncached_tokens, row.next_turn_cost) >= 0
        for row in found.estimates
    )
    assert found.is_trim_estimated


def test_no_child_is_planned_for_a_large_live_part(config_home: ConfigHome) -> None:
    """If the live part of a session is larger than the limit, neither a trim nor a handoff is planned."""
    assert TRIM not in map_estimates_by_name(
        compare_strategies_at(config_home, make_bulky_session(), 200, max_live_bytes=1_000)
    )
    assert not compare_strategies_at(
        config_home, make_bulky_session(), 200, max_live_bytes=1_000
    ).is_trim_estimated
    assert not compare_strategies_at(
        config_home, make_bulky_session(), 200, max_live_bytes=1_000
    ).is_handoff_planned
    assert TRIM in map_estimates_by_name(
        compare_strategies_at(config_home, make_bulky_session(), 200, max_live_bytes=10_000_000)
    )


def make_measured_context(tokens: int, window: int = 200_000) -> ContextSize:
    """Return a measured context size."""
    return ContextSize(tokens, window)


@pytest.mark.parametrize(
    ("context", "trimmed_context", "strategy"),
    [
        (make_measured_context(100_000), make_measured_context(40_000), None),
        (make_measured_context(143_000), make_measured_context(40_000), None),
        (make_measured_context(144_000), make_measured_context(90_000), TRIM),
        (make_measured_context(144_000), make_measured_context(92_000), HANDOFF),
        (make_measured_context(180_000), make_measured_context(158_000), HANDOFF),
        (make_measured_context(190_000), make_measured_context(160_000), HANDOFF),
        (make_measured_context(190_000), None, HANDOFF),
        (
            make_measured_context(600_000, 1_000_000),
            make_measured_context(300_000, 1_000_000),
            None,
        ),
        # The context exceeds the limit of this small window, so the client would compact
        # immediately.
        (make_measured_context(20_000, 50_000), make_measured_context(10_000, 50_000), TRIM),
    ],
)
def test_a_nearly_full_context_gets_a_recommendation(
    context: ContextSize, trimmed_context: ContextSize | None, strategy: str | None
) -> None:
    """If at least 80 percent of the limit is used, a trim or a handoff is recommended.

    A trim is recommended if it saves enough, and otherwise a handoff.
    """
    found = recommend_strategy_for_context(context, trimmed_context)
    assert (found.strategy if found else None) == strategy


@pytest.mark.parametrize(
    ("context", "tokens_per_turn", "turn_count", "expected_prompt_count"),
    [
        (make_measured_context(87_000), 2_000, 12, 40),
        (make_measured_context(87_000), 12_000, 3, 6),
        (make_measured_context(10_000), 1_000, 12, 150),
        (make_measured_context(160_000), 12_000, 12, 0),
        (make_measured_context(190_000), 2_000, 12, 0),
        (make_measured_context(87_000), 2_000, 2, None),
        (make_measured_context(87_000), 0, 0, None),
        # The context size is only an estimate, so the number of prompts left is unknown.
        (make_measured_context(45_756)._replace(kind=ESTIMATED), 60, 12, None),
    ],
)
def test_the_remaining_prompts_are_estimated_after_three_turns(
    context: ContextSize, tokens_per_turn: int, turn_count: int, expected_prompt_count: int | None
) -> None:
    """The number of prompts left is estimated from three or more turns, and rounded down.

    After fewer turns, the number is unknown.
    """
    recent_requests = RecentRequests(1, LONG_CACHE_SECONDS, 0, 1, tokens_per_turn, turn_count)
    assert estimate_prompts_left(context, recent_requests) == expected_prompt_count
    assert (recommend_strategy_for_context(context, None, expected_prompt_count) is not None) is (
        expected_prompt_count == 0
    )


def test_a_smaller_window_in_the_settings_is_used(config_home: ConfigHome) -> None:
    """The percentage of used context is based on the window in the user's settings.

    The notice above the prompt uses the same window.
    """
    (config_home.config / "settings.json").write_text(json.dumps({"autoCompactWindow": 140_000}))
    found = compare_strategies_at(config_home, make_bulky_session(), 200)
    assert (found.context.percent, found.context.usable_tokens) == (92, 120_000)
    context_notice.store_window(SESSION, 200_000)
    assert (
        context_notice.band_reply(SESSION, found.head_tail.path, 110_300)["window"]
        == found.context.usable_tokens
    )
    assert found.context.compacts_at_once
    assert found.recommended_strategy_name == TRIM


def test_a_strategy_can_be_recommended_before_a_card_recommends_one(
    config_home: ConfigHome,
) -> None:
    """``recommend_strategy`` may recommend a trim although the context is too small for a card."""
    path = write_session(config_home.project(), SESSION, make_bulky_session())
    assert recommend_strategy(path, config_home.where).strategy == TRIM


def test_an_imminent_compaction_is_reported(config_home: ConfigHome) -> None:
    """A session that the client is about to compact gets advice.

    The client reserves space for an answer, so it compacts at 168,000 of 200,000 tokens.
    """
    found = compare_strategies_at(config_home, make_bulky_session(69), 200)
    assert found.context.compacts_at_once
    assert found.advice is not None


def test_a_missing_or_foreign_file_is_reported(config_home: ConfigHome) -> None:
    """Comparing a deleted file or another program's file raises an error."""
    folder = config_home.project()
    with pytest.raises(SessionNotFound):
        compare_strategies(
            SessionFile(SESSION, str(folder / "gone.jsonl"), 0, 0), config_home.where, clock.now()
        )
    path = write_session(folder, SESSION, [{"type": "session_meta", "payload": {}}])
    with pytest.raises(NotATranscript):
        compare_strategies(SessionFile(SESSION, path, 0, 0), config_home.where, clock.now())


def test_the_comparison_and_the_rollover_assume_equal_summary_sizes() -> None:
    """The comparison has its own constants for a summary's sizes, which equal those of the rollover."""
    assert ROLLOVER_SUMMARY_TOKENS * CHARACTERS_PER_TOKEN == MAX_SUMMARY_CHARACTERS
    assert SUMMARY_INPUT_TOKENS * CHARACTERS_PER_TOKEN == MAX_SUMMARY_PART_BYTES * MAX_SUMMARY_PARTS


def test_every_session_of_the_corpus_is_compared(
    config_home: ConfigHome, real_session: RealSession
) -> None:
    """Every real session has estimates for all strategies, and going on costs more with a cold cache."""
    file = str(real_session.path)
    if real_session.is_foreign:
        with pytest.raises(NotATranscript):
            compare_strategies(SessionFile(SESSION, file, 0, 0), config_home.where, clock.now())
        return
    cold = compare_strategies(SessionFile(SESSION, file, 0, 0), config_home.where, clock.now())
    answered = cold.recent_requests.last_answer_time_ms
    warm = compare_strategies(
        SessionFile(SESSION, file, 0, 0),
        config_home.where,
        clock.timestamp_from_milliseconds((answered or 0) + 1_000),
    )
    for found in (cold, warm):
        assert {GO_ON, HANDOFF, ROLLOVER, COMPACT} <= set(map_estimates_by_name(found))
        assert all(
            min(row.tokens_after, row.uncached_tokens, row.next_turn_cost) >= 0
            for row in found.estimates
        )
        assert map_estimates_by_name(found)[GO_ON].tokens_after == found.context.tokens
    assert warm.is_cache_warm is bool(answered and warm.recent_requests.cache_seconds)
    if warm.is_cache_warm and warm.recent_requests.cached_tokens:
        assert (
            map_estimates_by_name(warm)[GO_ON].next_turn_cost
            <= map_estimates_by_name(cold)[GO_ON].next_turn_cost
        )


def test_a_receipt_matches_the_comparison(
    config_home: ConfigHome, real_session: RealSession
) -> None:
    """A handoff and a trim of a real session have the sizes that the comparison estimated."""
    if real_session.is_foreign:
        return
    where = config_home.where
    session = locate.session_file(str(real_session.copy_to(config_home.project())))
    found = compare_strategies(session, where, clock.now())
    if found.find_tokens_after_strategy(HANDOFF):
        contents = ChildContents(build_digest(session, where))
        made = write_child(
            agents.plan_fresh_child(session, where, kind="handoff", contents=contents), where
        )
        assert made.tokens_after == found.find_tokens_after_strategy(HANDOFF)
    if found.find_tokens_after_strategy(TRIM):
        decided = plan_trim(session, where, make_options())
        if decided.is_worthwhile:
            assert write_child(decided, where).tokens_after == found.find_tokens_after_strategy(
                TRIM
            )


def test_content_after_the_last_count_is_included(config_home: ConfigHome) -> None:
    """The size of a session includes content after the client's last token count.

    A comparison and a trim both report this size.
    """
    rows = make_bulky_session()
    rows.append(user("x" * 4_000, uuid="late", parent=rows[-1]["uuid"], ts=200))
    found = compare_strategies_at(config_home, rows, 300)
    trimmed = plan_trim(
        locate.session_file(str(config_home.project() / f"{SESSION}.jsonl")),
        config_home.where,
        make_options(),
    )
    assert found.context == trimmed.context_before
    assert found.context.tokens > compare_strategies_at(config_home, rows[:-1], 300).context.tokens
