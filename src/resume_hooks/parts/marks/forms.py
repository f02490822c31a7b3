"""The JSON schemas of ``mark`` and ``back``."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.parts.marks.plan_back import BackCommandPlan
from resume_hooks.parts.marks.state import Mark

MARK_FIELD_DECLARER = FieldDeclarer[Mark]()
BACK_FIELD_DECLARER = FieldDeclarer[BackCommandPlan]()


class MarkRow(StrictModel):
    """A mark of a session."""

    uuid: str = MARK_FIELD_DECLARER(lambda mark: mark.uuid, "the last record before the mark")
    reference: str = MARK_FIELD_DECLARER(
        lambda mark: f"{mark.session_id}:{mark.record}",
        "a reference to the last record before the mark: <session id>:<0-based line>",
    )
    goal: str = MARK_FIELD_DECLARER(lambda mark: mark.goal)
    started_at: str = MARK_FIELD_DECLARER(lambda mark: mark.started_at)


class MarkSchema(StrictModel):
    """The session's mark, which the command has set, shown or forgotten."""

    session_id: str
    file: str
    written: bool = Field(description="true: a mark was set or forgotten")
    active: bool
    mark: MarkRow | None = Field(
        description="the mark that was set, shown or forgotten; null if none"
    )
    replaced: MarkRow | None


class BackFacts(StrictModel):
    """The point to which ``back`` returns, and the records that the child omits."""

    mark: str = BACK_FIELD_DECLARER(
        lambda to: f"{to.mark.session_id}:{to.mark.record}",
        "the reference of the last record before the mark",
    )
    goal: str = BACK_FIELD_DECLARER(lambda to: to.mark.goal)
    started_at: str = BACK_FIELD_DECLARER(lambda to: to.mark.started_at)
    left: str | None = BACK_FIELD_DECLARER(
        lambda to: to.mark.left_parent_id or None,
        "for a fork without a mark: the session that was forked",
    )
    resolved: bool = BACK_FIELD_DECLARER(
        lambda to: not to.missing_mark_reason,
        "false: the mark was not found, so the child has only the report",
    )
    report_characters: int = BACK_FIELD_DECLARER(lambda to: len(to.report))
    first_left_out: str | None = BACK_FIELD_DECLARER(
        lambda to: (
            f"{to.omitted_records.transcript_names.full_name}:{to.omitted_records.first_line_number}"
            if to.omitted_records
            else None
        ),
        "the reference of the first omitted record; null if nothing followed the mark",
    )
    last_left_out: str | None = BACK_FIELD_DECLARER(
        lambda to: (
            f"{to.omitted_records.transcript_names.full_name}:{to.omitted_records.last_line_number}"
            if to.omitted_records
            else None
        )
    )


class BackSchema(ReceiptSchema):
    """The receipt of ``back``."""

    back: BackFacts
