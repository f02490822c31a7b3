"""What was compared: the ways on from a session."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.lineages import Context
from resume_hooks.cli.schema.writes import Commands


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


class Base(Strict):
    """What any new session here begins with: the client's instructions and tools, files of the project."""

    tokens: int
    shared: int = Field(description="of these, tokens that all sessions share in the cache while it is warm")


class Rates(Strict):
    """The ratios behind the costs: a token of each kind in input tokens."""

    input: float
    cache_read: float
    uncached: float = Field(description="a token sent past the cache, written to it where the session has one")
    output: float


class Estimate(Strict):
    """A way on, estimated."""

    name: Literal["go on", "trim", "handoff", "rollover", "compact"]
    after: int = Field(description="tokens of context after it")
    uncached: int = Field(description="tokens sent past the cache with the next turn, or for it by a model before")
    next_turn: int = Field(description="what the next turn costs, in input tokens, its answers aside")
    pays_after: int | None = Field(
        description="turns after which it has cost less than going on; null for never, and for going on"
    )


class Advice(Strict):
    """What fits best, once the window is nearly full."""

    way: Literal["trim", "smart-trim", "handoff"]
    why: str


class Comparison(Strict):
    """A session and the ways on from it. All but ``context`` is an estimate."""

    session_id: str
    session_file: str
    title: str
    context: Context
    cache: Cache
    typical_turn: TypicalTurn
    base: Base
    rates: Rates
    estimates: list[Estimate]
    trim_estimated: bool = Field(
        description="false where the live conversation is too large to tell what a trim would leave; else no estimate "
        "of one means that there is nothing to trim"
    )
    advice: Advice | None = Field(description="null while there is room")
    commands: Commands
