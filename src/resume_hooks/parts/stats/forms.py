"""Define the JSON schema of ``stats``."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import FieldDeclarer, StrictModel
from resume_hooks.parts.stats import threshold, totals

month_field = FieldDeclarer[totals.MonthSummary]()


class MonthSummary(StrictModel):
    """The counts of one month in UTC. The month is written like ``2026-01``.

    ``sessions`` is the number of sessions with a turn or an answer.
    """

    month: str = month_field(lambda month: month.month)
    sessions: int = month_field(
        lambda month: month.session_count,
        "the number of sessions with a turn or an answer in this month",
    )
    turns: int = month_field(lambda month: month.turn_count)
    requests: int = month_field(lambda month: month.request_count)
    sent: int = month_field(
        lambda month: month.sent_tokens, "tokens of all requests, including cached tokens"
    )
    cached: int = month_field(
        lambda month: month.cached_tokens,
        "the number of cached tokens in requests",
    )
    answered: int = month_field(lambda month: month.answer_tokens)


saving_field = FieldDeclarer[totals.SavingSummary]()


class SavingSummary(StrictModel):
    """The children of one kind that were created in a month.

    ``made`` is the number of children, and ``used`` is the number of children that were continued.
    For the ``measured`` children, two sizes are known: the context of the parent when the user left
    it, and the first request of the child. ``before`` and ``after`` are the sums of these sizes,
    and ``saved`` is their difference.
    """

    month: str = saving_field(lambda saving: saving.month)
    kind: str = saving_field(lambda saving: saving.kind)
    made: int = saving_field(lambda saving: saving.child_count)
    used: int = saving_field(
        lambda saving: saving.continued_child_count, "the number of children that were continued"
    )
    measured: int = saving_field(
        lambda saving: saving.measured_child_count,
        "the number of children with a known size and a parent of known size; the sums cover only these",
    )
    before: int = saving_field(
        lambda saving: saving.tokens_before,
        "tokens in the parents' contexts when the children were made",
    )
    after: int = saving_field(
        lambda saving: saving.tokens_after, "tokens of the first requests of the children"
    )
    saved: int = saving_field(lambda saving: saving.saved_tokens)


stretch_field = FieldDeclarer[totals.CallsBeforeEditSummary]()


class StretchSummary(StrictModel):
    """The numbers of tool calls before the first edit, for one kind of stretch.

    A stretch begins at the start of a session, at a compaction or at the creation of a child, and
    ends at the first edit. Only stretches with a tool call are counted. ``edited`` of them contain
    an edit. ``median`` and ``p75`` are computed from the numbers of calls before the edit.
    """

    kind: str = stretch_field(
        lambda stretch: stretch.kind,
        "what the stretch begins with: start, compaction, or the kind of a child",
    )
    times: int = stretch_field(
        lambda stretch: stretch.stretch_count, "the number of stretches with a tool call"
    )
    edited: int = stretch_field(
        lambda stretch: stretch.stretch_with_edit_count,
        "the number of stretches with an edit; median and p75 cover only these",
    )
    median: int = stretch_field(
        lambda stretch: stretch.median_call_count,
        "the median number of calls before the first edit",
    )
    p75: int = stretch_field(lambda stretch: stretch.p75_call_count)


hook_field = FieldDeclarer[totals.HookSummary]()


class HookSummary(StrictModel):
    """The durations of the hooks on one kind of event in milliseconds, as recorded in transcripts.

    ``ours`` is true for the hooks of this plugin, and false for all other hooks.
    """

    event: str = hook_field(lambda hook: hook.event)
    ours: bool = hook_field(lambda hook: hook.is_own)
    times: int = hook_field(lambda hook: hook.run_count)
    median_ms: int = hook_field(lambda hook: hook.median_ms)
    p95_ms: int = hook_field(lambda hook: hook.p95_ms)


entry_field = FieldDeclarer[totals.FolderSize]()


class FolderSize(StrictModel):
    """The number of files and the number of bytes in one entry of the state folder."""

    name: str = entry_field(lambda entry: entry.name)
    files: int = entry_field(lambda entry: entry.file_count)
    size: int = entry_field(lambda entry: entry.byte_count, "bytes")


price_field = FieldDeclarer[threshold.ThresholdCost]()


class Price(StrictModel):
    """The cost of all requests and answers if each session is reduced when it reaches a threshold.

    The cost is in units of an input token's cost. ``line`` is the threshold in tokens, or 0 for the
    actual cost, to which no threshold applies. ``times`` is the total number of reductions, and
    ``left`` is the average number of tokens after a reduction.
    """

    line: int = price_field(
        lambda price: price.threshold_tokens,
        "the threshold in tokens; 0 for the actual cost, to which no threshold applies",
    )
    way: str = price_field(lambda price: price.strategy, "trim, or handoff")
    times: int = price_field(
        lambda price: price.context_reduction_count,
        "the number of times that a session is reduced at the threshold",
    )
    left: int = price_field(
        lambda price: price.tokens_after_reduction, "the average number of tokens after a reduction"
    )
    read: int = price_field(lambda price: price.cache_read_tokens)
    written: int = price_field(lambda price: price.cache_write_tokens)
    cost: int = price_field(
        lambda price: price.cost_in_input_tokens,
        "the cost of requests and answers, in units of an input token's cost",
    )


class StatsSchema(StrictModel):
    """The statistics of sessions, children, first edits and hooks, and the size of the state folder."""

    scope: str = Field(description="all, or the selected project's folder")
    since: str = Field(description="the first day that is included; empty for all days")
    read: int = Field(
        description="the number of transcripts that were read because they were new or changed"
    )
    sessions: int
    gone: int = Field(description="the number of counted sessions whose transcripts were deleted")
    agents: int = Field(description="transcripts of sub-agents")
    months: list[MonthSummary]
    savings: list[SavingSummary]
    stretches: list[StretchSummary]
    hooks: list[HookSummary] = Field(
        description="durations that the client recorded, rounded to two significant digits from 100 ms on"
    )
    state: list[FolderSize]
    threshold: list[Price] = Field(
        description="with --threshold: the costs at each threshold; else empty"
    )
    assumed: str = Field(description="the assumptions of these prices")
