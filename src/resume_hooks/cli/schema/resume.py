"""The forms of resume and continue: what going on in a session takes, and where it starts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Commands, Context, Like, Strict
from resume_hooks.derive.compare import Advice, Estimate
from resume_hooks.transcripts.api_usage import FirstRequest


class Cache(Strict):
    """What the API still holds of the session's last request."""

    warm: bool
    lifetime_seconds: int = Field(description="300 or 3600, as its requests ask for; 0 where they use no cache")
    age_seconds: int | None = Field(description="since its last request; null where none was counted")
    tokens: int = Field(description="that going on would read from it")


class TypicalTurn(Strict):
    """The medians of the session's last turns."""

    requests: int
    tokens: int = Field(description="added to the context; 0 where too few turns were counted")


class RateTable(Strict):
    """The ratios behind the costs: a token of each kind in input tokens."""

    input: float
    cache_read: float
    uncached: float = Field(description="a token that is not read from the cache, written to it if the session has one")
    output: float


class ResumeForm(Strict):
    """A session and the options for going on. All but ``context`` is an estimate."""

    session_id: str
    session_file: str
    title: str
    context: Context
    cache: Cache
    typical_turn: TypicalTurn
    base: Annotated[FirstRequest, Like(shared="of these, tokens that all sessions share in the cache while it is warm")]
    rates: RateTable
    estimates: list[
        Annotated[
            Estimate,
            Like(
                name=Literal["go on", "trim", "handoff", "rollover", "compact"],
                after="tokens of context after it",
                uncached="tokens that are not read from the cache in the next turn, or that a model reads before it",
                next_turn="what the next turn costs, in input tokens, without its answers",
                pays_after="turns after which it has cost less than going on; null for never, and for going on",
            ),
        ]
    ]
    trim_estimated: bool = Field(
        description="false where the live conversation is too large to estimate a trim; else no estimate of one means "
        "that there is nothing to trim"
    )
    advice: Annotated[Advice, Like(strategy=None, way=Literal["trim", "handoff"])] | None = Field(
        description="null while there is room"
    )
    commands: Commands


class ContinueForm(Strict):
    """A session to go on in."""

    session_id: str
    parent_session_id: str | None = Field(description="the session that was forked; null without --fork")
    folder: str = Field(description="where the client is started")
    commands: Commands
