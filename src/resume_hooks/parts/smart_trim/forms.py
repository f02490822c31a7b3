"""The JSON schema of a stored plan for a smart trim."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import StrictModel
from resume_hooks.cli.schema.children import SmartPlanSchema, TrimSchema


class PlannedTrim(TrimSchema):
    """The receipt of ``trim --smart``, which contains the plan."""

    smart: SmartPlanSchema


class StoredPlan(StrictModel):
    """The output of ``trim --smart --json``, which ``--plan`` accepts."""

    schema_: Literal[1] = Field(alias="schema")
    verb: Literal["trim"]
    ok: Literal[True]
    data: PlannedTrim
    warnings: list[str]
