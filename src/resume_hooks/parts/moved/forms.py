"""Define the JSON schema of ``rehome``."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.parts.moved.rehome import UncopiedSession

left_out_field = FieldDeclarer[UncopiedSession]()


class UncopiedSessionRow(StrictModel):
    """A session that was not copied."""

    session_id: str = left_out_field(lambda row: row.session_id)
    why: str = left_out_field(lambda row: row.reason)


class RehomeSchema(StrictModel):
    """The result of ``rehome``: the copies of a moved folder's sessions."""

    was: str = Field(description="the folder that moved")
    home: str = Field(description="the folder's current path")
    made: list[ReceiptSchema]
    left_out: list[UncopiedSessionRow]
