"""What a smart trim would write or wrote, and the plan in it that can be given back with ``--plan``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Spent, Strict
from resume_hooks.cli.schema.writes import TrimReceipt


class SmartChoice(Strict):
    """A content that goes."""

    record: int = Field(description="0-based line in the parent's file")
    address: list[int | str] = Field(description="keys and indexes that lead to the content in its record")
    digest: str = Field(description="SHA-256 of the content; a plan counts for this very content only")
    by: str = Field(description="the rule that gave it up, or smart: the model")
    description: str = Field(description="the model's; it stands in the placeholder")
    rationale: str = Field(description="the model's")
    original: str = Field(description="reference: session and record")
    tool: str
    target: str
    tokens_saved: int


class SmartTrimReceipt(TrimReceipt):
    """The receipt of a smart trim with its plan."""

    rules: list[str] = Field(min_length=1, description="the rules that acted before the model was asked")
    keep_recent: int | None = Field(ge=0, le=10_000, description="turns that stay as they are; null: the usual")
    choices: list[SmartChoice]
    spent: Spent


class StoredPlan(Strict):
    """The document that ``smart-trim --json`` printed."""

    schema_: Literal[1] = Field(alias="schema")
    verb: Literal["smart-trim"]
    ok: Literal[True]
    data: SmartTrimReceipt
    warnings: list[str]
