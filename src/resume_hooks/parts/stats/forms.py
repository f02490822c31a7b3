"""Define the JSON schema of ``stats``."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import FieldDeclarer, StrictModel
from resume_hooks.parts.stats import threshold, totals

month_field = FieldDeclarer[totals.MonthSummary]()


class MonthSummary(StrictModel):
    """The counts of a month in UTC, for example ``2026-01``.

    ``sessions`` is the number of sessions with a turn or an answer.
    """

    month: str = month_field(lambda month: month.month)
    sessions: int = month_field(
        lambda month: month.sessions, "with a turn or an answer in this month"
    )
    turns: int = month_field(lambda month: month.turns)
    requests: int = month_field(lambda month: month.requests)
    sent: int = month_field(
        lambda month: month.sent_tokens, "tokens of all requests, including cached ones"
    )
    cached: int = month_field(
        lambda month: month.cached_tokens, "the number of cached tokens among these"
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
    made: int = saving_field(lambda saving: saving.made_count)
    used: int = saving_field(lambda saving: saving.continued_count, "the number of continued ones")
    measured: int = saving_field(
        lambda saving: saving.measured_count,
        "the number with both sizes known; the sums cover these",
    )
    before: int = saving_field(
        lambda saving: saving.tokens_before, "tokens of the parents' contexts when they were left"
    )
    after: int = saving_field(
        lambda saving: saving.tokens_after, "tokens of the children's own first requests"
    )
    saved: int = saving_field(lambda saving: saving.saved_tokens)


stretch_field = FieldDeclarer[totals.StretchSummary]()


class StretchSummary(StrictModel):
    """The numbers of tool calls before the first edit, for one kind of stretch.

    A stretch begins at the start of a session, at a compaction or at the creation of a child, and
    ends at the first edit. Only stretches with a tool call are counted. ``edited`` of them contain
    an edit. ``median`` and ``p75`` are computed from the numbers of calls before the edit.
    """

    kind: str = stretch_field(
        lambda stretch: stretch.kind, "its beginning: start, compaction, or the kind of a child"
    )
    times: int = stretch_field(lambda stretch: stretch.stretch_count, "stretches with a tool call")
    edited: int = stretch_field(
        lambda stretch: stretch.edited_count,
        "the number with an edit; the other figures cover these",
    )
    median: int = stretch_field(lambda stretch: stretch.median, "calls before the first edit")
    p75: int = stretch_field(lambda stretch: stretch.p75)


hook_field = FieldDeclarer[totals.HookSummary]()


class HookSummary(StrictModel):
    """The durations, in milliseconds, of the hooks for an event in transcripts.

    The hooks are either those of this plugin (``ours``) or all other hooks.
    """

    event: str = hook_field(lambda hook: hook.event)
    ours: bool = hook_field(lambda hook: hook.ours)
    times: int = hook_field(lambda hook: hook.times)
    median_ms: int = hook_field(lambda hook: hook.median)
    p95_ms: int = hook_field(lambda hook: hook.p95_ms)


entry_field = FieldDeclarer[totals.FolderSize]()


class FolderSize(StrictModel):
    """A file or folder in the state folder, with its number of files and its number of bytes."""

    name: str = entry_field(lambda entry: entry.name)
    files: int = entry_field(lambda entry: entry.files)
    size: int = entry_field(lambda entry: entry.size, "bytes")


price_field = FieldDeclarer[threshold.Price]()


class Price(StrictModel):
    """The cost of all requests and answers with a threshold, in units of an input token's cost.

    ``line`` is the threshold in tokens, or 0 without a threshold. A session that reached the
    threshold was reduced. This happened ``times`` times, and on average ``left`` tokens remained.
    """

    line: int = price_field(
        lambda price: price.threshold_tokens, "tokens; 0 for no threshold, the actual cost"
    )
    way: str = price_field(lambda price: price.strategy, "trim, or handoff")
    times: int = price_field(
        lambda price: price.reduction_count, "the number of reductions at the threshold"
    )
    left: int = price_field(lambda price: price.remaining_tokens, "tokens after that, on average")
    read: int = price_field(lambda price: price.read_tokens)
    written: int = price_field(lambda price: price.written_tokens)
    cost: int = price_field(lambda price: price.cost, "in input tokens, including answers")


class StatsSchema(StrictModel):
    """The statistics of sessions, children, first edits and hooks, and the size of the state folder."""

    scope: str = Field(description="all, or the selected project's folder")
    since: str = Field(description="the first day that counts; empty for all")
    read: int = Field(
        description="the number of transcripts that were read because they were new or changed"
    )
    sessions: int
    gone: int = Field(description="the number of deleted transcripts among these")
    agents: int = Field(description="transcripts of sub-agents")
    months: list[MonthSummary]
    savings: list[SavingSummary]
    stretches: list[StretchSummary]
    hooks: list[HookSummary] = Field(
        description="durations that the client recorded; from 100 ms on rounded to two digits"
    )
    state: list[FolderSize]
    threshold: list[Price] = Field(description="with --threshold; else empty")
    assumed: str = Field(description="the assumptions of these prices")
