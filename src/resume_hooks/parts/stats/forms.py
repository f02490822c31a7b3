"""The form of stats."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.cli.schema.base import FieldsLike, StrictModel
from resume_hooks.parts.stats.threshold import Price
from resume_hooks.parts.stats.totals import FolderSize, Hook, Month, Saving, Stretch

HookRow = Annotated[
    Hook,
    FieldsLike(median=None, high=None, median_ms=int, p95_ms=int),
]
"""From 100 ms on rounded to two digits."""


StatePart = Annotated[FolderSize, FieldsLike(size="bytes")]


class StatsForm(StrictModel):
    """Figures of sessions, savings by children, first edits, times of hooks, and the size of our folder."""

    scope: str = Field(description="all, or the folder whose project was meant")
    since: str = Field(description="the first day that counts; empty for all")
    read: int = Field(
        description="transcripts that had to be read, since they were new or had changed"
    )
    sessions: int
    gone: int = Field(description="those of them that were deleted since")
    agents: int = Field(description="transcripts of sub-agents")
    months: list[
        Annotated[
            Month,
            FieldsLike(
                sessions="with a turn or an answer in this month",
                sent="tokens of all requests, those out of the cache too",
                cached="those of them out of the cache",
            ),
        ]
    ]
    savings: list[
        Annotated[
            Saving,
            FieldsLike(
                used="somebody went on in them",
                measured="those of which both sizes are known; the sums are over them",
                before="tokens of the parents' contexts when they were left",
                after="tokens of the first own requests of the children",
                saved=int,
            ),
        ]
    ]
    stretches: list[
        Annotated[
            Stretch,
            FieldsLike(
                kind="its beginning: start, compaction, or the kind of a child",
                times="with a call of a tool",
                edited="those of them with an edit; the figures are over them",
                median="calls before the first edit",
            ),
        ]
    ]
    hooks: list[HookRow] = Field(
        description="durations that the client wrote down; from 100 ms on with two digits"
    )
    state: list[StatePart]
    threshold: list[
        Annotated[
            Price,
            FieldsLike(
                line="tokens; 0 for no line, as it was paid",
                way="trim, or handoff",
                times="the line was passed, and the session made smaller",
                left="tokens after that, on average",
                cost="in input tokens, answers too",
            ),
        ]
    ] = Field(description="with --threshold; else empty")
    assumed: str = Field(description="what these prices assume")
