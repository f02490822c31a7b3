"""The JSON schemas of mark and back."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import CommonFields, ReceiptSchema, StrictModel
from resume_hooks.parts.marks.back import BackPlan
from resume_hooks.parts.marks.state import Mark

marked = CommonFields[Mark]()
returned = CommonFields[BackPlan]()


class MarkRow(StrictModel):
    """A mark in a session."""

    uuid: str = Field(description="the last record before it")
    reference: str = marked(
        lambda mark: f"{mark.session_id}:{mark.record}", "that record as session and 0-based line"
    )
    goal: str
    started_at: str


class MarkSchema(StrictModel):
    """The mark of a session after it was set, shown or forgotten."""

    session_id: str
    file: str
    written: bool = Field(description="a mark was set or forgotten")
    active: bool
    mark: MarkRow | None = Field(
        description="the mark that was set, shown or forgotten; null if none"
    )
    replaced: MarkRow | None


class BackFacts(StrictModel):
    """The point to which ``back`` returns, and the omitted records."""

    mark: str = returned(
        lambda to: f"{to.mark.session_id}:{to.mark.record}", "reference: session and record"
    )
    goal: str = returned(lambda to: to.mark.goal)
    started_at: str = returned(lambda to: to.mark.started_at)
    left: str | None = returned(
        lambda to: to.mark.left or None, "for a fork: the parent session that it left"
    )
    resolved: bool = returned(lambda to: not to.lost, "false: the child only has the report")
    report_characters: int = returned(lambda to: len(to.report))
    first_left_out: str | None = returned(
        lambda to: f"{to.left_out.names.full}:{to.left_out.first}" if to.left_out else None,
        "reference; null if nothing followed the mark",
    )
    last_left_out: str | None = returned(
        lambda to: f"{to.left_out.names.full}:{to.left_out.last}" if to.left_out else None
    )


class BackSchema(ReceiptSchema):
    """The receipt of ``back``."""

    back: BackFacts
