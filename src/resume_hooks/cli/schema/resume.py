"""The schemas of resume and continue: the costs of continuing a session, and its commands."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from resume_hooks.cli.schema.base import (
    Commands,
    CommonFields,
    ContextSize,
    FieldsLike,
    StrictModel,
)
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.derive.compare import (
    OUTPUT_RATE,
    Advice,
    Comparison,
    Estimate,
    Rates,
    SizeEstimate,
    rates_for_lifetime,
)
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import original_path
from resume_hooks.transcripts.api_usage import RecentRequests
from resume_hooks.transcripts.tokens import FirstRequest

compared = CommonFields[Comparison]()
traffic = CommonFields[RecentRequests]()
rates = CommonFields[Rates]()
of_size = CommonFields[SizeEstimate]()


class Cache(StrictModel):
    """The API's cache of the session's last request."""

    warm: bool
    lifetime_seconds: int = compared(
        lambda found: found.traffic.lifetime,
        "300 or 3600, as its requests specify; 0 without a cache",
    )
    age_seconds: int | None = compared(
        lambda found: found.age, "since its last counted request; null without one"
    )
    tokens: int = compared(
        lambda found: found.traffic.cached if found.warm else 0,
        "the tokens that going on would read from it",
    )


class TypicalTurn(StrictModel):
    """The medians of the session's last turns."""

    requests: int
    tokens: int | None = traffic(
        lambda seen: seen.growth or None,
        "tokens added to the context; null if too few turns were counted",
    )


class RateTable(StrictModel):
    """The rates behind the costs: the price of each kind of token, in input tokens."""

    input: float = rates(lambda _: 1.0)
    cache_read: float = rates(lambda each: each.read)
    uncached: float = rates(
        lambda each: each.write,
        "a token that is not cached, written to the cache if the session has one",
    )
    output: float = rates(lambda _: OUTPUT_RATE)


class SizeRow(StrictModel):
    """A size of a handoff: its content, and the cost of its first request in input tokens."""

    size: str = of_size(
        lambda each: each.dial_size.size, "the value for `handoff --size`; `all` is a fork"
    )
    after: int = of_size(lambda each: each.dial_size.after, "tokens of context after it")
    whole: int = of_size(
        lambda each: each.dial_size.whole,
        "tokens of an opening without a limit; 0 if not measured",
    )
    cut: int | None = of_size(
        lambda each: each.dial_size.cut,
        "tokens of these that are cut; null if not measured",
    )
    has_calls: bool = of_size(
        lambda each: each.dial_size.has_calls, "nothing is cut, and the latest calls fit, too"
    )
    warm: int = Field(description="while the session's cache is warm")
    cold: int = Field(description="once it is cold")


class ResumeSchema(StrictModel):
    """A session and the ways to continue. Everything but ``context`` is an estimate."""

    session_id: str
    session_file: str = compared(lambda found: original_path(found.ends.path, Where()))
    title: str = compared(lambda found: found.ends.title)
    context: ContextSize
    cache: Cache = compared(lambda found: found)
    typical_turn: TypicalTurn = compared(lambda found: found.traffic)
    base: Annotated[
        FirstRequest,
        FieldsLike(shared="of these, tokens that all sessions share in the cache while it is warm"),
    ]
    rates: RateTable = compared(lambda found: rates_for_lifetime(found.traffic.lifetime))
    estimates: list[
        Annotated[
            Estimate,
            FieldsLike(
                name=Literal["go on", "trim", "handoff", "rollover", "compact"],
                after="tokens of context after it",
                uncached="uncached tokens: of the next turn, and of the text that a model reads before it",
                next_turn="the cost of the next turn in input tokens, without its answers",
                pays_after=(
                    "turns after which it has cost less than going on; null for never, and "
                    "for going on"
                ),
                warm=(
                    "the cost of its first request while the session's cache is warm, in "
                    "input tokens"
                ),
                cold="the same once the cache is cold",
            ),
        ]
    ]
    dial: list[SizeRow] = Field(description="the sizes that a handoff can have, the smallest first")
    trim_estimated: bool = Field(
        description="false if the live conversation is too large to estimate a trim; else a missing estimate means "
        "that there is nothing to trim"
    )
    advice: Annotated[Advice, FieldsLike(strategy=None, way=Literal["trim", "handoff"])] | None = (
        compared(
            lambda found: found.advice and WithFields(found.advice, {"way": found.advice.strategy}),
            "null if the session need not become smaller",
        )
    )
    recommendation: Literal["go on", "trim", "handoff"] = Field(
        description="the way that fits best"
    )
    prompts_left: int | None = Field(
        description=(
            "about how many typical turns fit before the client compacts; null if too few "
            "were counted"
        )
    )
    commands: Commands


class ContinueSchema(StrictModel):
    """A session to continue."""

    session_id: str
    parent_session_id: str | None = Field(
        description="the session that was forked; null without --fork"
    )
    folder: str = Field(description="the folder in which the client starts")
    commands: Commands
