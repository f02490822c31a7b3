"""What sessions came to."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class MonthOfStats(Strict):
    """A month in UTC. Tokens are those that the API counted."""

    month: str
    sessions: int = Field(description="with a turn or an answer in this month")
    turns: int
    requests: int
    sent: int = Field(description="tokens of all requests, those out of the cache too")
    cached: int = Field(description="of these, tokens out of the cache")
    answered: int


class SavingOfStats(Strict):
    """The children of a kind that were made in a month."""

    month: str
    kind: str
    made: int
    used: int = Field(description="somebody went on in them")
    measured: int = Field(description="of these, both sizes are known; the sums are over them")
    before: int = Field(description="tokens of the parents when they were left")
    after: int = Field(description="tokens of the first own requests of the children")
    saved: int


class HookOfStats(Strict):
    """The hooks of an event whose durations the client wrote down; from 100 ms on rounded to two digits."""

    event: str
    ours: bool
    times: int
    median_ms: int
    p95_ms: int


class StatePart(Strict):
    """An entry of the state folder."""

    name: str
    files: int
    size: int = Field(description="bytes")


class Stats(Strict):
    """What sessions came to, what children saved, how long hooks took, how large the state folder is."""

    scope: str = Field(description="all, or the folder whose project was meant")
    since: str = Field(description="the first day that counts; empty for all")
    read: int = Field(description="transcripts that had to be read, since they were new or had changed")
    sessions: int
    gone: int = Field(description="of these, deleted since they were counted")
    agents: int = Field(description="transcripts of sub-agents")
    months: list[MonthOfStats]
    savings: list[SavingOfStats]
    hooks: list[HookOfStats]
    state: list[StatePart]
