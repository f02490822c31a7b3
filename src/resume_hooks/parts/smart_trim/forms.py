"""The form of smart-trim, and of the plan that it takes back."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import SpentForm, Strict
from resume_hooks.cli.schema.children import TrimForm


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


class SmartTrimForm(TrimForm):
    """The receipt of a smart trim with its plan."""

    rules: list[str] = Field(min_length=1, description="the rules that acted before the model was asked")
    keep_recent: int | None = Field(ge=0, le=10_000, description="turns that stay as they are; null: the usual")
    choices: list[SmartChoice]
    spent: SpentForm


class StoredPlan(Strict):
    """The document that ``smart-trim --json`` printed, which ``--plan`` takes."""

    schema_: Literal[1] = Field(alias="schema")
    verb: Literal["smart-trim"]
    ok: Literal[True]
    data: SmartTrimForm
    warnings: list[str]
