"""Tests of the values that are computed from a session's own API requests.

The values are the age and lifetime of the session's cache, and the cost of a turn and of a new
session.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from resume_hooks.transcripts import api_usage, records, tokens
from resume_hooks.transcripts.api_usage import (
    DEFAULT_CACHE_SECONDS,
    LONG_CACHE_SECONDS,
    RecentRequests,
    measure_first_request,
    read_recent_requests,
)
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import (
    USUAL_CACHED_TOKENS,
    USUAL_FIRST_REQUEST_TOKENS,
    FirstRequest,
)
from tests.builders import (
    EPOCH,
    SESSION,
    ConfigHome,
    Record,
    assistant,
    attachment,
    boundary,
    conversation,
    session_id,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)

START_MILLISECONDS = round(EPOCH.timestamp() * 1000)


def usage_object(
    cache_read_tokens: int,
    cache_write_tokens: int,
    uncached_tokens: int = 3,
    output_tokens: int = 10,
    **write_tokens_by_lifetime: int,
) -> Record:
    """Return a usage object.

    ``write_tokens_by_lifetime`` maps a lifetime of the cache, such as ``1h``, to the number of tokens
    written to the cache for that time.
    """
    parts = {
        f"ephemeral_{key}_input_tokens": value for key, value in write_tokens_by_lifetime.items()
    }
    return {
        "input_tokens": uncached_tokens,
        "cache_read_input_tokens": cache_read_tokens,
        "cache_creation_input_tokens": cache_write_tokens,
        "output_tokens": output_tokens,
        **({"cache_creation": parts} if parts else {}),
    }


def recent_requests_of_records(home: ConfigHome, records: list[Record]) -> RecentRequests:
    """Write a session with these records and return the session's recent requests."""
    return read_recent_requests(write_session(home.project(), SESSION, records))


def start_tokens_of_new_session(home: ConfigHome, rows: list[Record]) -> FirstRequest:
    """Write a session with these records and return the start tokens of a new session."""
    return measure_first_request(HeadTail(write_session(home.project(), SESSION, rows)), home.where)


def counted_answer(uuid: str, parent: str, ts: float, usage: Record, **extra_fields: Any) -> Record:
    """Return an answer with this usage object."""
    return assistant("answer", uuid=uuid, parent=parent, ts=ts, tokens=usage, **extra_fields)


def test_a_session_without_an_answer_has_default_values(config_home: ConfigHome) -> None:
    """A session without an answer has default values: a cold cache and one request per turn."""
    found = recent_requests_of_records(config_home, [user("hello", uuid="u")])
    assert found == RecentRequests(None, DEFAULT_CACHE_SECONDS, 0, 1, 0)
    assert found.seconds_since_last_request(START_MILLISECONDS) is None
    assert not found.is_warm(START_MILLISECONDS)


@pytest.mark.parametrize(
    ("usage", "extra_fields", "lifetime"),
    [
        (usage_object(100, 50), {}, DEFAULT_CACHE_SECONDS),
        (usage_object(100, 50, **{"5m": 50, "1h": 0}), {}, DEFAULT_CACHE_SECONDS),
        (usage_object(100, 50, **{"5m": 0, "1h": 50}), {}, LONG_CACHE_SECONDS),
        (usage_object(100, 50, **{"5m": 20, "1h": 30}), {}, DEFAULT_CACHE_SECONDS),
        (
            usage_object(100, 0, **{"5m": 0, "1h": 0}),
            {"promptCacheRequested": "1h"},
            LONG_CACHE_SECONDS,
        ),
        (
            usage_object(100, 50, **{"1h": 50}),
            {"promptCacheRequested": "5m"},
            DEFAULT_CACHE_SECONDS,
        ),
        (usage_object(100, 50, **{"1h": 50}), {"promptCacheRequested": ["5m"]}, LONG_CACHE_SECONDS),
        (usage_object(0, 0), {}, 0),
        (usage_object(0, 0), {"promptCacheRequested": "5m"}, 0),
        ({**usage_object(100, 50), "cache_creation": "odd"}, {}, DEFAULT_CACHE_SECONDS),
        (
            {**usage_object(100, 50), "cache_creation": {"ephemeral_1h_input_tokens": "odd"}},
            {},
            DEFAULT_CACHE_SECONDS,
        ),
    ],
)
def test_the_lifetime_of_the_cache_is_the_requested_one(
    config_home: ConfigHome, usage: Record, extra_fields: Record, lifetime: int
) -> None:
    """The cache's lifetime is the requested one.

    If none was requested, it is that of the part of the cache that expires first. Without a cache,
    the lifetime is 0.
    """
    assert (
        recent_requests_of_records(
            config_home, [user("q", uuid="u"), counted_answer("a", "u", 1, usage, **extra_fields)]
        ).cache_seconds
        == lifetime
    )


def test_the_last_request_that_wrote_to_the_cache_sets_its_lifetime(
    config_home: ConfigHome,
) -> None:
    """The last request that wrote to the cache determines the cache's lifetime.

    The very last request determines the model.
    """
    rows = [
        user("q", uuid="u"),
        counted_answer("a", "u", 1, usage_object(0, 50, **{"1h": 50})),
        counted_answer("b", "a", 2, usage_object(50, 0, **{"1h": 0, "5m": 0}), model="another"),
    ]
    assert recent_requests_of_records(config_home, rows).cache_seconds == LONG_CACHE_SECONDS
    assert recent_requests_of_records(config_home, rows).model == "another"


def test_the_cache_is_warm_until_its_lifetime_has_passed(config_home: ConfigHome) -> None:
    """The cache is warm until the age of the last request exceeds the cache's lifetime.

    If the clock was set back, the request's age is zero.
    """
    found = recent_requests_of_records(
        config_home, [user("q", uuid="u"), counted_answer("a", "u", 60, usage_object(900, 100))]
    )
    assert (found.last_answer_time_ms, found.cached_tokens) == (START_MILLISECONDS + 60_000, 1_000)
    for seconds, warm in ((-500, True), (60, True), (359, True), (360, False), (100_000, False)):
        assert found.is_warm(START_MILLISECONDS + seconds * 1_000) is warm
    assert found.seconds_since_last_request(START_MILLISECONDS) == 0


def turn_of_requests(
    turn_number: int, request_count: int, added_tokens: int, tokens_before: int
) -> list[Record]:
    """Return a prompt and ``request_count`` answers with one tool call each.

    Each answer consists of two records. The context grows by ``added_tokens`` tokens in total.
    """
    rows = [user(f"prompt {turn_number}", uuid=f"p{turn_number}", ts=100 * turn_number)]
    for at in range(request_count):
        context = tokens_before + round(added_tokens * (at + 1) / request_count)
        usage = usage_object(context - 20, 7)
        name = f"{turn_number}-{at}"
        shared: dict[str, Any] = {
            "message_id": f"m{name}",
            "tokens": usage,
            "ts": 100 * turn_number + at,
        }
        rows += [
            assistant("hm", uuid=f"t{name}", parent=rows[-1]["uuid"], **shared),
            tool_use(f"c{name}", uuid=f"a{name}", parent=f"t{name}", **shared),
            tool_result(f"c{name}", uuid=f"r{name}", parent=f"a{name}", ts=100 * turn_number + at),
        ]
    return rows


def test_the_typical_turn_is_the_median_of_recent_turns(config_home: ConfigHome) -> None:
    """The requests and tokens of a typical turn are the medians of the recent turns."""
    rows: list[Record] = []
    before = 1_000
    for number, (requests, grows) in enumerate(
        [(2, 500), (9, 8_000), (3, 900), (4, 1_200), (3, 700)], 1
    ):
        rows += turn_of_requests(number, requests, grows, before)
        before += grows
    found = recent_requests_of_records(config_home, rows)
    assert (found.median_requests_per_turn, found.median_tokens_per_turn) == (3, 1_200)


def test_a_partially_read_turn_is_not_counted(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only the end of a file is read, and this end begins within a turn, the turn is not counted."""
    rows = [*turn_of_requests(1, 9, 9_000, 1_000), *turn_of_requests(2, 2, 500, 10_000)]
    path = write_session(config_home.project(), SESSION, rows)
    size = sum(len(str(row)) for row in turn_of_requests(2, 2, 500, 10_000))
    monkeypatch.setattr(tokens, "TAIL_SIZES_BYTES", (size + 500, size * 9))
    # The scan reads a larger part of the file, which includes both turns.
    assert read_recent_requests(path).median_requests_per_turn == 9
    monkeypatch.setattr(tokens, "TAIL_SIZES_BYTES", (size + 500, size + 501))
    found = read_recent_requests(path)
    assert (found.median_requests_per_turn, found.median_tokens_per_turn) == (2, 0)


def test_the_whole_file_is_read_if_its_end_shows_no_request(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the end of a file has no request, for example because of a long output, the whole file is read."""
    rows = [*conversation(2), user("x" * 50_000, uuid="big", parent="r3", ts=9)]
    monkeypatch.setattr(tokens, "TAIL_SIZES_BYTES", (1_000, 5_000))
    assert (
        recent_requests_of_records(config_home, rows).last_answer_time_ms
        == START_MILLISECONDS + 3_000
    )


def test_sub_agents_and_synthetic_answers_are_not_counted(config_home: ConfigHome) -> None:
    """Answers of sub-agents and synthetic answers are not counted as requests."""
    rows = [
        *conversation(1),
        counted_answer("s", "r1", 50, usage_object(9_000, 9_000), isSidechain=True),
        counted_answer("t", "r1", 60, usage_object(9_000, 9_000), model="<synthetic>"),
    ]
    found = recent_requests_of_records(config_home, rows)
    assert (found.last_answer_time_ms, found.cached_tokens) == (START_MILLISECONDS + 1_000, 1_087)


def test_a_compaction_empties_the_cache_estimate(config_home: ConfigHome) -> None:
    """After a compaction the cache is empty, because the earlier content is not sent again.

    The smaller context is not counted as growth.
    """
    rows = [*conversation(2), boundary(uuid="b", ts=10), summary("s", uuid="s", parent="b", ts=10)]
    found = recent_requests_of_records(config_home, rows)
    assert (found.cached_tokens, found.cache_seconds) == (0, DEFAULT_CACHE_SECONDS)
    after = [
        user("q", uuid="q", parent="s", ts=11),
        counted_answer("z", "q", 12, usage_object(500, 100)),
    ]
    assert recent_requests_of_records(config_home, [*rows, *after]).median_tokens_per_turn == 200


@pytest.mark.parametrize(
    "usage", [{"input_tokens": "x"}, {"input_tokens": True}, {"input_tokens": -5}, "odd", None]
)
def test_invalid_counts_are_ignored(config_home: ConfigHome, usage: object) -> None:
    """A token count that is not a number, or is negative, is ignored."""
    row = assistant("a", uuid="a", parent="u")
    row["message"]["usage"] = usage
    assert recent_requests_of_records(config_home, [user("q", uuid="u"), row]) == RecentRequests(
        None, DEFAULT_CACHE_SECONDS, 0, 1, 0
    )


def test_a_new_session_starts_with_the_first_request_without_its_prompt(
    config_home: ConfigHome,
) -> None:
    """A new session starts with the tokens of the first request, without the tokens of its prompt.

    Attachments are included. The tokens that the first request read from the cache are shared by
    all new sessions.
    """
    rows = [
        user("x" * 4_000, uuid="u"),
        attachment("y" * 8_000, uuid="t", parent="u"),
        counted_answer("a", "t", 1, usage_object(16_000, 14_000, uncached_tokens=5)),
        counted_answer("b", "a", 2, usage_object(30_000, 14_000)),
    ]
    assert start_tokens_of_new_session(config_home, rows) == FirstRequest(30_005 - 1_000, 16_000)


def test_a_first_request_without_cache_has_the_usual_shared_tokens(config_home: ConfigHome) -> None:
    """If the first request used no cache, the usual number of shared tokens is assumed.

    This number is at most the number of tokens in the request.
    """
    for written, shared in ((40_000, USUAL_CACHED_TOKENS), (5_000, 5_000)):
        rows = [
            user("", uuid="u"),
            counted_answer("a", "u", 1, usage_object(0, written, uncached_tokens=0)),
        ]
        assert start_tokens_of_new_session(config_home, rows) == FirstRequest(written, shared)


def test_the_opening_of_a_child_does_not_count_as_start_tokens(config_home: ConfigHome) -> None:
    """The opening and the card of a child do not count as start tokens of a new session."""
    rows = [
        user("L" * 40_000, uuid="u", isCompactSummary=True),
        assistant("card", uuid="a", parent="u", model="<synthetic>"),
        user("go on", uuid="v", parent="a"),
        counted_answer("b", "v", 1, usage_object(0, 40_000, uncached_tokens=0)),
    ]
    assert start_tokens_of_new_session(config_home, rows).tokens == 40_000 - 10_002


def test_the_usual_start_tokens_apply_without_a_first_request(
    config_home: ConfigHome,
) -> None:
    """If no first request can be used, a new session is assumed to start with the usual tokens."""
    for rows in (
        [user("q", uuid="u")],
        [user("x" * 90_000, uuid="u"), counted_answer("a", "u", 1, usage_object(0, 30_000))],
    ):
        assert start_tokens_of_new_session(config_home, rows) == FirstRequest(
            USUAL_FIRST_REQUEST_TOKENS, USUAL_CACHED_TOKENS
        )


def test_a_child_without_a_request_has_the_start_tokens_of_its_parent(
    config_home: ConfigHome,
) -> None:
    """A child without a request has the start tokens of its nearest ancestor with a request.

    If no such ancestor is found, the usual number is returned.
    """
    root = [user("q", uuid="u"), counted_answer("a", "u", 1, usage_object(0, 40_000))]
    first = measure_first_request(
        HeadTail(write_session(config_home.project(), session_id(1), root)), config_home.where
    )
    for number in (2, 3):
        head = {"trim_metadata": {"parent_file": f"/x/{session_id(number - 1)}.jsonl"}}
        path = write_session(config_home.project(), session_id(number), [head, user("q", uuid="u")])
    assert measure_first_request(HeadTail(path), config_home.where) == first
    os.unlink(config_home.project() / f"{session_id(1)}.jsonl")
    assert measure_first_request(HeadTail(path), config_home.where) == FirstRequest(
        USUAL_FIRST_REQUEST_TOKENS, USUAL_CACHED_TOKENS
    )


def test_enormous_token_counts_are_limited(config_home: ConfigHome) -> None:
    """Enormous token counts are limited to the largest possible context."""
    rows = [user("q", uuid="u"), counted_answer("a", "u", 1, usage_object(10**18, 10**18))]
    assert (
        recent_requests_of_records(config_home, rows).cached_tokens
        <= 2 * records.MAX_CONTEXT_TOKENS
    )
    assert api_usage.MAX_TURNS_FOR_MEDIANS > 1


def test_a_file_without_its_beginning_has_the_usual_start_tokens(config_home: ConfigHome) -> None:
    """A file whose beginning is missing has the usual start tokens.

    The first token count in such a file also counts the missing part.
    """
    kept = assistant("yes", uuid="c", parent="b", tokens=94_171)
    cut = [boundary(uuid="cut", before="gone"), user("on with it", uuid="b", parent="cut")]
    for rows in ([user("on with it", uuid="b", parent="gone"), kept], [*cut, kept]):
        assert start_tokens_of_new_session(config_home, rows) == FirstRequest(
            USUAL_FIRST_REQUEST_TOKENS, USUAL_CACHED_TOKENS
        )
