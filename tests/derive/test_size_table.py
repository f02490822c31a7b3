"""Tests that the size table estimates the content of a handoff for each size."""

from __future__ import annotations

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.compare import HANDOFF, SizeEstimate, compare_strategies
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.sessions.session_files import SessionFile
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    custom_title,
    iso_time,
    tool_result,
    tool_use,
    user,
    write_session,
)


def make_turns_with_talk_and_calls(turn_count: int) -> list[Record]:
    """Return turns with about 900 tokens of talk and 900 tokens of calls and results each."""
    rows: list[Record] = []
    for number in range(turn_count):
        words = " ".join(
            f"Word{number}x{at} is what part {at} of step {number} does." for at in range(40)
        )
        found = "\n".join(f"line {at} of file {number}" for at in range(150))
        parent = rows[-1]["uuid"] if rows else None
        rows += [
            user(f"Do step {number}. {words}", uuid=f"u{number}", parent=parent, ts=4 * number),
            tool_use(f"c{number}", uuid=f"t{number}", parent=f"u{number}", ts=4 * number + 1),
            tool_result(
                f"c{number}", found, uuid=f"r{number}", parent=f"t{number}", ts=4 * number + 2
            ),
            assistant(
                f"Did step {number}. {words}",
                uuid=f"a{number}",
                parent=f"r{number}",
                ts=4 * number + 3,
            ),
        ]
    return rows


def write_session_and_estimate_sizes(
    home: ConfigHome, turn_count: int, **options: int
) -> tuple[SessionFile, dict[str, SizeEstimate]]:
    """Write a session with this number of turns.

    Return the session, and the estimates of the sizes by their names.
    """
    session = SessionFile(
        SESSION,
        write_session(home.project(), SESSION, make_turns_with_talk_and_calls(turn_count)),
        0,
        0,
    )
    found = compare_strategies(session, home.where, iso_time(1_000), **options)
    return session, {each.measured_size.size: each for each in found.handoff_sizes}


def test_a_small_size_cuts_the_talk(config_home: ConfigHome) -> None:
    """With a small size, a handoff shortens the talk and states how many tokens are omitted.

    With a larger size, a handoff contains the whole talk and the latest calls.
    """
    _, dial = write_session_and_estimate_sizes(config_home, 14)
    assert list(dial) == ["1k", "4k", "12k", "24k", "all"]
    assert dial["1k"].measured_size.consists_mainly_of_lists
    cut = [each.measured_size.omitted_tokens for each in dial.values()]
    assert all(isinstance(count, int) for count in cut)
    assert cut == sorted(cut, key=lambda count: -(count or 0))
    assert (dial["4k"].measured_size.omitted_tokens or 0) + 4_000 == pytest.approx(
        dial["4k"].measured_size.full_opening_tokens, abs=200
    )
    assert (dial["24k"].measured_size.omitted_tokens, dial["24k"].measured_size.includes_calls) == (
        0,
        True,
    )
    assert not dial["4k"].measured_size.includes_calls
    assert all(each.warm_cache_cost_tokens <= each.cold_cache_cost_tokens for each in dial.values())


@pytest.mark.parametrize("turn_count", [1, 5, 14, 40])
def test_a_size_matches_its_estimate(config_home: ConfigHome, turn_count: int) -> None:
    """A handoff of the size 12k is as large as estimated.

    Handoffs of other sizes differ from their estimates by at most a tenth.
    """
    session, dial = write_session_and_estimate_sizes(config_home, turn_count)
    for size, estimate in list(dial.items())[:-1]:
        contents = ChildContents(
            build_digest(session, config_home.where),
            opening_tokens=int(size.removesuffix("k")) * 1_000,
        )
        planned = agents.plan_fresh_child(
            session, config_home.where, kind="handoff", contents=contents
        )
        assert estimate.measured_size.tokens_after == pytest.approx(
            planned.sizes.tokens_after, rel=0 if size == "12k" else 0.1
        )
    left = [estimate.measured_size.tokens_after for estimate in list(dial.values())[:-1]]
    assert left == sorted(left)
    found = compare_strategies(session, config_home.where, iso_time(1_000))
    assert found.find_tokens_after_strategy(HANDOFF) == dial["12k"].measured_size.tokens_after
    assert found.context.tokens == dial["all"].measured_size.tokens_after


def test_the_table_of_sizes_includes_the_size_in_the_settings(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of handoff sizes includes the size that the user set in ``handoff_size``."""
    monkeypatch.setitem(config_home.where.environ, "RESUME_HOOKS_HANDOFF_SIZE", "8k")
    _, dial = write_session_and_estimate_sizes(config_home, 2)
    assert list(dial) == ["1k", "4k", "8k", "12k", "24k", "all"]


def test_the_sizes_of_an_unread_session_are_upper_limits(config_home: ConfigHome) -> None:
    """If a session is too large to read, its sizes are upper limits without counts of omitted tokens."""
    _, dial = write_session_and_estimate_sizes(config_home, 5, max_live_bytes=1_000)
    assert [each.measured_size.omitted_tokens for each in dial.values()] == [
        None,
        None,
        None,
        None,
        0,
    ]
    assert dial["4k"].measured_size.tokens_after - dial["1k"].measured_size.tokens_after == 3_000


def test_a_session_without_prompts_has_no_sizes(config_home: ConfigHome) -> None:
    """A session without prompts has no handoff sizes."""
    session = SessionFile(
        SESSION, write_session(config_home.project(), SESSION, [custom_title("nothing")]), 0, 0
    )
    assert compare_strategies(session, config_home.where, iso_time(10)).handoff_sizes == ()
