"""Tests of the card of ``>resume``, which compares the ways to continue a session.

The card contains everything that the user needs to choose one and fits a terminal of 80 columns.
"""

from __future__ import annotations

from typing import Any

import pytest

from resume_hooks.derive.compare import (
    COLD_CACHE_REASON,
    COMPACT,
    GO_ON,
    HANDOFF,
    ROLLOVER,
    TRIM,
    Advice,
    Comparison,
    SizeEstimate,
    StrategyEstimate,
)
from resume_hooks.derive.size_table import HandoffSize
from resume_hooks.hooks.resume_card import build_ways_table, describe_comparison, resume_card
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.system.copy_result import CopyResult
from resume_hooks.transcripts.api_usage import (
    DEFAULT_CACHE_SECONDS,
    LONG_CACHE_SECONDS,
    RecentRequests,
)
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import ESTIMATED, ContextSize, FirstRequest
from tests.builders import SESSION, ConfigHome, conversation, custom_title, write_session
from tests.hooks.test_child_cards import COPY_RESULTS, MAX_LAST_LINE_CHARACTERS, text_of_block_reply

RESUME_TRIGGER = Trigger("resume", "", is_slash=False, is_pasted_after_text=False)
MAX_CARD_ROWS = 10
"""Maximum number of rows of a card. A card of this size fits a terminal with 24 rows."""

ESTIMATES = (
    StrategyEstimate(GO_ON, 150_000, 1_200, 20_000, None, 15_000, 187_500),
    StrategyEstimate(TRIM, 60_000, 42_000, 60_000, 7, 54_300, 75_000),
    StrategyEstimate(HANDOFF, 31_154, 13_200, 18_300, 1, 18_300, 38_900),
    StrategyEstimate(ROLLOVER, 32_700, 74_700, 90_000, 1_200, 210_000, 230_000),
    StrategyEstimate(COMPACT, 1_048_000, 1_031_200, 300_000, None, 980, 1_350_000),
)
HANDOFF_SIZES = (
    SizeEstimate(
        HandoffSize("1k", 31_000, 23_000, 24_000, consists_mainly_of_lists=True), 18_000, 38_000
    ),
    SizeEstimate(HandoffSize("12k", 42_000, 11_000, 24_000), 32_000, 53_000),
    SizeEstimate(HandoffSize("24k", 54_000, 0, 24_000), 46_000, 67_000),
    SizeEstimate(HandoffSize("48k", 78_000, 0, 24_000, includes_calls=True), 76_000, 97_000),
    SizeEstimate(HandoffSize("all", 150_000, 0), 166_000, 187_500),
)


def make_comparison(home: ConfigHome, **fields: Any) -> Comparison:
    """Return a comparison of the ways to continue a session, with some fields replaced by ``fields``."""
    path = write_session(
        home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]
    )
    own: dict[str, Any] = {
        "session_id": SESSION, "head_tail": HeadTail(path), "folder": "/home/user/proj",
        "seconds_since_request": 40, "estimates": ESTIMATES, "handoff_sizes": HANDOFF_SIZES,
        "context": ContextSize(150_000, 200_000),
        "recent_requests": RecentRequests(1, DEFAULT_CACHE_SECONDS, 149_000, 3, 4_100),
        "base_request": FirstRequest(30_000, 18_000), "is_trim_estimated": True,
        "is_handoff_planned": True, "prompts_left": None,
        "advice": None, **fields,
    }  # fmt: skip
    age, recent_requests = own["seconds_since_request"], own["recent_requests"]
    return Comparison(**own, is_cache_warm=age is not None and age < recent_requests.cache_seconds)


@pytest.mark.parametrize("copied", COPY_RESULTS)
@pytest.mark.parametrize("with_table", [False, True])
def test_the_card_fits_ten_rows_of_eighty_columns(
    config_home: ConfigHome, copied: CopyResult, *, with_table: bool
) -> None:
    """The card shows the advice, the id, the tokens and the title in ten rows.

    The table with all ways to continue is shown only on request.
    """
    full = ContextSize(190_000, 200_000)
    text = text_of_block_reply(
        resume_card(
            make_comparison(config_home, context=full),
            copied,
            RESUME_TRIGGER,
            with_table=with_table,
        )
    )
    for part in (copied.describe(SESSION), "context 190,000 tokens · Fix the parser"):
        assert part in text
    assert all(f"\n  {row.name} " in text for row in ESTIMATES) is with_table
    assert text.endswith("\nBest: go on" if with_table else "\nTable: >resume --table")
    lines = text.split("\n")
    assert len(lines[-1]) <= MAX_LAST_LINE_CHARACTERS
    assert sum(-(-len(line) // 70) for line in lines) <= MAX_CARD_ROWS + 12 * with_table


def test_a_handoff_larger_than_the_context_is_not_offered(config_home: ConfigHome) -> None:
    """If a handoff would be larger than the context, the card does not suggest it.

    This happens right after a compaction.
    """
    context = ContextSize(30_000, 50_000, kind=ESTIMATED)
    assert "/handoff leaves" not in describe_comparison(
        make_comparison(config_home, context=context), lambda verb: f"/{verb}"
    )


def test_the_table_compares_all_ways_to_continue(config_home: ConfigHome) -> None:
    """The table has a row for each way to continue and for each handoff size, and is 48 columns wide.

    Each row shows the tokens, the cost with a warm and with a cold cache, and the content.
    """
    lines = build_ways_table(make_comparison(config_home))
    assert lines == [
        "estimated  leaves warm cold  contents",
        "go on        150k  15k 188k  everything",
        "trim          60k  54k  75k  less tool output",
        "handoff 1k    31k  18k  38k  lists, last answer",
        "handoff 12k   42k  32k  53k  13k of 24k tokens",
        "handoff 24k   54k  46k  67k  the whole talk",
        "handoff 48k   78k  76k  97k  talk, latest calls",
        "handoff all  150k 166k 188k  everything, a copy",
        "rollover      33k 210k 230k  and a summary",
        "compact      1.0M  980 1.4M  a summary",
        "warm, cold: input tokens of the first request",
        "pays off after prompts: trim 7, handoff 1",
        "30,000 tokens a request: instructions and tools",
        "cache: 4 min left",
        "a prompt: about 3 requests, adds 4,100 tokens",
    ]
    assert max(map(len, lines)) <= 48


@pytest.mark.parametrize(
    ("recent_requests", "seconds_since_request", "table_part"),
    [
        (RecentRequests(1, LONG_CACHE_SECONDS, 9, 1, 0), 90, "cache: 58 min left"),
        (RecentRequests(1, DEFAULT_CACHE_SECONDS, 9, 1, 0), 200, "cache: 100 s left"),
        (RecentRequests(1, DEFAULT_CACHE_SECONDS, 9, 1, 0), 300, "cache: cold"),
        (RecentRequests(1, 0, 0, 1, 0), 5, "cache: unused"),
        (RecentRequests(None, DEFAULT_CACHE_SECONDS, 0, 1, 0), None, "cache: cold"),
    ],
)
def test_the_table_shows_how_warm_the_cache_is(
    config_home: ConfigHome,
    recent_requests: RecentRequests,
    seconds_since_request: int | None,
    table_part: str,
) -> None:
    """The table shows how long the prompt cache will stay warm, or that it is cold or unused."""
    text = "\n".join(
        build_ways_table(
            make_comparison(
                config_home,
                recent_requests=recent_requests,
                seconds_since_request=seconds_since_request,
            )
        )
    )
    assert table_part in text
    assert "a prompt: about 1 request, added tokens unknown" in text


@pytest.mark.parametrize(
    ("is_trim_estimated", "reason"),
    [(True, "nothing to trim"), (False, "too large for an estimate; try a trim")],
)
def test_a_trim_without_an_estimate_states_the_reason(
    config_home: ConfigHome, is_trim_estimated: bool, reason: str
) -> None:
    """If a trim's savings could not be estimated, its row shows the reason instead of numbers."""
    without = tuple(row for row in ESTIMATES if row.name != TRIM)
    assert f"trim       {reason}" in build_ways_table(
        make_comparison(config_home, estimates=without, is_trim_estimated=is_trim_estimated)
    )


def test_the_table_says_when_each_way_to_continue_pays_off(config_home: ConfigHome) -> None:
    """The table shows after how many prompts each way to continue pays off, in one or two lines.

    It omits ways that never pay off. If none ever pays off, the table says so.
    """
    late = tuple(
        row._replace(turns_to_pay_off=100 + at) if at else row for at, row in enumerate(ESTIMATES)
    )
    lines = build_ways_table(make_comparison(config_home, estimates=late))
    assert "pays off after prompts: trim 101, handoff 102," in lines
    assert "  rollover 103, compact 104" in lines
    never = tuple(row._replace(turns_to_pay_off=None) for row in ESTIMATES)
    assert "none pays off within 200 prompts" in build_ways_table(
        make_comparison(config_home, estimates=never)
    )


def test_an_unmeasured_session_shows_the_largest_possible_handoff(config_home: ConfigHome) -> None:
    """If the session is too large to measure, the table shows the largest possible handoff."""
    dial = (SizeEstimate(HandoffSize("12k", 42_000), 32_000, 53_000),)
    assert "handoff 12k   42k  32k  53k  as much as fits" in build_ways_table(
        make_comparison(config_home, handoff_sizes=dial)
    )


def test_a_handoff_larger_than_the_session_has_no_row(config_home: ConfigHome) -> None:
    """The table omits handoff sizes larger than the session, except for the size ``all``.

    The size ``all`` is the session's own size.
    """
    names = [
        line.partition("k ")[0]
        for line in build_ways_table(make_comparison(config_home, context=counted_context(37_640)))
    ]
    assert [name for name in names if name.startswith("handoff")] == [
        "handoff 1",
        "handoff all  150",
    ]
    assert any(name.startswith("rollover") for name in names)
    lines = build_ways_table(make_comparison(config_home, context=counted_context(31_000)))
    assert [line for line in lines if line.startswith(("handoff 1k", "rollover"))] == []


def counted_context(tokens: int) -> ContextSize:
    """Return the size of a context whose tokens the client counted."""
    return ContextSize(tokens, 200_000)


def test_a_session_without_a_prompt_has_one_handoff_row(config_home: ConfigHome) -> None:
    """If the session has no prompt, the table has a single row for a handoff.

    The row says that nothing was asked.
    """
    lines = build_ways_table(make_comparison(config_home, handoff_sizes=()))
    assert [line for line in lines if line.startswith("handoff")] == [
        "handoff       31k  18k  39k  nothing was asked"
    ]


HANDOFF_ADVICE = Advice(HANDOFF, "it leaves the most room")
TRIM_ADVICE = Advice(TRIM, "mostly tool output")


@pytest.mark.parametrize(
    ("tokens", "prompts_left", "advice", "first_line"),
    [
        (0, None, None, "0 % full (of 180,000 tokens). Nothing needed."),
        (14_400, 50, None, "8 % full (of 180,000 tokens). Nothing needed: room for about 50 prompts."),
        (86_400, 40, None,
         ("48 % of 180,000. >handoff leaves 31,000 tokens, >trim 60,000; there is room for about 40 prompts; "
         ">handoff costs less than going on after 1 prompt.")),
        (60_500, 250, None,
         ("34 % of 180,000. >handoff leaves 31,000 tokens; there is room for more than 200 prompts; "
         ">handoff costs less than going on after 1 prompt.")),
        (86_400, None, None, "48 % of 180,000. >handoff leaves 31,000 tokens, >trim 60,000; going on is fine."),
        (60_500, None, None, "34 % of 180,000. >handoff leaves 31,000 tokens; going on is fine."),
        (153_000, 1, TRIM_ADVICE,
         "85 % of 180,000. >handoff leaves 31,000 tokens, >trim 60,000; >trim fits best: about 1 prompt left."),
        (153_000, None, HANDOFF_ADVICE,
         "85 % of 180,000. >handoff leaves 31,000 tokens, >trim 60,000; >handoff fits best: nearly full."),
        (124_000, 5, Advice(TRIM, COLD_CACHE_REASON),
         "69 % of 180,000. >handoff leaves 31,000 tokens, >trim 60,000; >trim fits best: the prompt cache expired."),
        (190_000, 0, HANDOFF_ADVICE,
         ("106 % of 180,000. >handoff leaves 31,000 tokens, >trim 60,000; >handoff fits best: "
          "it is about to be compacted.")),
    ],
)  # fmt: skip
def test_the_first_line_of_the_card_gives_the_advice(
    config_home: ConfigHome,
    tokens: int,
    prompts_left: int | None,
    advice: Advice | None,
    first_line: str,
) -> None:
    """The first line of the card shows how full the session is and the best way to continue, if any.

    ``resume-hooks`` in a shell prints the same line.
    """
    context = ContextSize(tokens, 200_000)
    found = make_comparison(config_home, context=context, prompts_left=prompts_left, advice=advice)
    assert resume_card(found, COPY_RESULTS[0], RESUME_TRIGGER).split("\n")[0] == first_line
    assert describe_comparison(found, "resume-hooks {}".format) == first_line.replace(
        ">", "resume-hooks "
    )


def test_a_session_with_much_space_lists_the_ways_to_continue(config_home: ConfigHome) -> None:
    """If a session has much space left, the card has a separate line for each possible way to continue.

    In a fuller session, the card's first line names the ways instead.
    """
    with_room = ContextSize(14_400, 180_000)
    handoff = "  >handoff: continue in a new session that knows this one"
    for estimates, lines in (
        (ESTIMATES, [handoff, "  >trim: continue without old tool output"]),
        (ESTIMATES[:1], []),
    ):
        card = resume_card(
            make_comparison(config_home, context=with_room, estimates=estimates),
            COPY_RESULTS[0],
            RESUME_TRIGGER,
        )
        assert [line for line in card.split("\n") if line.startswith("  >")] == lines
    assert handoff not in resume_card(make_comparison(config_home), COPY_RESULTS[0], RESUME_TRIGGER)


def test_the_card_omits_impossible_ways_to_continue(config_home: ConfigHome) -> None:
    """The first line of the card omits ways to continue that are impossible."""
    trim = tuple(row for row in ESTIMATES if row.name != HANDOFF)
    for estimates, words in (
        ((ESTIMATES[0],), "83 % of 180,000. Going"),
        (trim, ". >trim leaves 60,000 tokens; going"),
    ):
        assert words in resume_card(
            make_comparison(config_home, estimates=estimates), COPY_RESULTS[0], RESUME_TRIGGER
        )


def test_an_estimated_context_is_marked(config_home: ConfigHome) -> None:
    """If a context size is only an estimate, the card writes "about" before it."""
    found = make_comparison(config_home, context=ContextSize(10, 200_000, kind=ESTIMATED))
    assert "context about 10 tokens" in resume_card(found, COPY_RESULTS[0], RESUME_TRIGGER)


def test_text_after_resume_is_offered_as_a_handoff(config_home: ConfigHome) -> None:
    """If the user types text after ``resume``, the answer suggests ``>handoff`` with all of that text."""
    text = text_of_block_reply(
        resume_card(
            make_comparison(config_home),
            COPY_RESULTS[0],
            RESUME_TRIGGER._replace(text='two\nlines "quoted"'),
        )
    )
    assert '\n  >handoff two\nlines "quoted"\n' in text
    assert "not sent" in text
