"""The JSON schema of stats."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.cli.schema.base import FieldsLike, StrictModel
from resume_hooks.parts.stats.threshold import Price
from resume_hooks.parts.stats.totals import (
    FolderSize,
    HookSummary,
    MonthSummary,
    SavingSummary,
    StretchSummary,
)

HookRow = Annotated[
    HookSummary,
    FieldsLike(median=None, high=None, median_ms=int, p95_ms=int),
]
"""Values from 100 ms on are rounded to two digits."""


StatePart = Annotated[FolderSize, FieldsLike(size="bytes")]


class StatsSchema(StrictModel):
    """Statistics of sessions, savings by children, first edits, hook durations, and the size of our folder."""

    scope: str = Field(description="all, or the selected project's folder")
    since: str = Field(description="the first day that counts; empty for all")
    read: int = Field(description="transcripts that were read because they were new or changed")
    sessions: int
    gone: int = Field(description="the deleted ones among them")
    agents: int = Field(description="transcripts of sub-agents")
    months: list[
        Annotated[
            MonthSummary,
            FieldsLike(
                sessions="with a turn or an answer in this month",
                sent="tokens of all requests, including cached ones",
                cached="the cached ones among them",
            ),
        ]
    ]
    savings: list[
        Annotated[
            SavingSummary,
            FieldsLike(
                used="the number of continued ones",
                measured="the number with both sizes known; the sums cover these",
                before="tokens of the parents' contexts when they were left",
                after="tokens of the children's own first requests",
                saved=int,
            ),
        ]
    ]
    stretches: list[
        Annotated[
            StretchSummary,
            FieldsLike(
                kind="its beginning: start, compaction, or the kind of a child",
                times="stretches with a tool call",
                edited="the number with an edit; the other figures cover these",
                median="calls before the first edit",
            ),
        ]
    ]
    hooks: list[HookRow] = Field(
        description="durations that the client recorded; from 100 ms on rounded to two digits"
    )
    state: list[StatePart]
    threshold: list[
        Annotated[
            Price,
            FieldsLike(
                line="tokens; 0 for no threshold, the actual cost",
                way="trim, or handoff",
                times="the number of reductions at the threshold",
                left="tokens after that, on average",
                cost="in input tokens, including answers",
            ),
        ]
    ] = Field(description="with --threshold; else empty")
    assumed: str = Field(description="the assumptions of these prices")
