"""The schemas of the verbs that create a child."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import (
    CallCosts,
    CommonFields,
    FieldsLike,
    ReceiptSchema,
    StrictModel,
)
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.derive.cut_point import Cut
from resume_hooks.derive.summary import SummaryMaterial
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.derive.trim.selection import LargestPiece, SavingsRow
from resume_hooks.derive.untrim import MissingOriginal, UntrimPlan
from resume_hooks.reading.digest.entries import Digest, DigestEntry, TalkMessage


class HandoffReceipt(ReceiptSchema):
    """The receipt of a handoff, with the documents that the user requested."""

    documents: list[str] = Field(description="handoff documents that were, or would be, written")


_from_digest = CommonFields[Digest]()


class DigestSchema(StrictModel):
    """A digest: entries by section, most important first."""

    sections: dict[
        str,
        list[
            Annotated[
                DigestEntry,
                FieldsLike(ref="reference: session and record; empty if unknown"),
            ]
        ],
    ]
    talk: list[
        Annotated[TalkMessage, FieldsLike(ref="reference: session and record; empty if unknown")]
    ] = Field(description="the messages, oldest first, without calls and results")
    omitted: dict[str, int] = Field(description="the number of omitted entries, by section")
    git: str = Field(description="one line on the folder's repository")
    unread: int = _from_digest(
        lambda digest: digest.unread_count, "ancestors that were too large to read"
    )


class HandoffOpening(StrictModel):
    """The opening of a child that was not written."""

    opening: str = Field(description="the whole first message: lineage, digest, next step")
    digest: DigestSchema
    full: str = Field(description="the whole digest as text, which the child keeps in a record")


class HandoffSchema(RootModel[HandoffReceipt | HandoffOpening]):
    """The receipt of `handoff`; with --print, the child's opening."""


material = CommonFields[SummaryMaterial]()


class MaterialSchema(StrictModel):
    """The material for a model, and the number of calls."""

    records: int = Field(description="records with text, all of which are considered")
    shown: int = material(
        lambda found: len(found.numbers), "records that the model would see, long ones cut"
    )
    characters: int
    tokens: int = Field(description="about")
    parts: int = material(lambda found: len(found.parts))
    calls: int


class CheckedSchema(StrictModel):
    """The check of a summary's sentences against the transcripts.

    Sentences without a checkable claim are not counted.
    """

    sentences: int
    tied: int = Field(description="sentences with the record that supports them")
    marked: int = Field(description="marked sentences, which no record supports")


class SummarySchema(StrictModel):
    """The summary of a rollover; a dry run asks no model."""

    included: bool
    model: str = Field(description="the requested model")
    failure: str | None = Field(description="why it is missing; the child then has only the digest")
    material: MaterialSchema | None = Field(description="only in a dry run")
    spent: CallCosts | None = Field(description="null in a dry run")
    checked: CheckedSchema | None = Field(description="null without a summary")


class RolloverSchema(ReceiptSchema):
    """The receipt of a rollover; ``summary`` is null with ``--quick``."""

    summary: SummarySchema | None = None


trimmed = CommonFields[TrimPlan]()


class SavingsSchema(StrictModel):
    """The savings of a trim, in tokens of the client's request."""

    pays: bool
    tokens_saved: int = trimmed(lambda trim: trim.savings.tokens)
    measured: bool = trimmed(
        lambda trim: trim.before.measured, "the size before was counted by the API; else estimated"
    )
    window: int = trimmed(lambda trim: trim.before.window)
    percent_before: int | None = trimmed(lambda trim: trim.before.percent)
    percent_after: int | None = trimmed(lambda trim: trim.after.percent)
    compacts_at_once: bool = trimmed(
        lambda trim: trim.after.compacts_at_once, "the client would compact the child on resume"
    )
    rollover_tokens: int = Field(description="the tokens of a fresh child instead")
    characters_per_token: float = trimmed(lambda trim: trim.savings.ratio)
    rules: list[Annotated[SavingsRow, FieldsLike()]] = trimmed(lambda trim: trim.savings.rules)
    tools: list[Annotated[SavingsRow, FieldsLike()]] = trimmed(lambda trim: trim.savings.tools)
    largest: list[
        Annotated[LargestPiece, FieldsLike(original=(str, "reference: session and record"))]
    ] = trimmed(
        lambda trim: [
            WithFields(piece, {"original": str(piece.original)}) for piece in trim.savings.largest
        ]
    )


class SmartChoice(StrictModel):
    """A content to trim."""

    record: int = Field(description="0-based line in the parent's file")
    address: list[int | str] = Field(
        description="keys and indexes that lead to the content in its record"
    )
    digest: str = Field(
        description="SHA-256 of the content; a plan is valid for exactly this content"
    )
    by: str = Field(description="the rule that chose it, or smart for the model")
    description: str = Field(description="the model's description, for the placeholder")
    rationale: str = Field(description="the model's reason")
    original: str = Field(description="reference: session and record")
    tool: str
    target: str
    tokens_saved: int


class SmartPlanSchema(StrictModel):
    """The contents that `trim --smart` removes; the same plan can be applied again."""

    rules: list[str] = Field(min_length=1, description="the rules applied before the model")
    keep_recent: int | None = Field(
        ge=0, le=10_000, description="turns that stay unchanged; null: the default"
    )
    choices: list[SmartChoice]
    spent: CallCosts


class TrimSchema(ReceiptSchema):
    """The receipt of a trim; without id and file if it would save too little."""

    savings: SavingsSchema
    in_place: bool = Field(
        default=False, description="the session's own file was, or would be, rewritten"
    )
    backup: str | None = Field(
        default=None, description="the copy of the file from before a trim in place"
    )
    smart: SmartPlanSchema | None = Field(
        default=None, description="with --smart: the plan, which --plan takes"
    )


untrimmed = CommonFields[UntrimPlan]()


class RestoredRecords(StrictModel):
    """The records that an untrim restores."""

    trimmed: int = Field(description="trimmed records of the parent's conversation")
    restored: int = untrimmed(lambda untrim: len(untrim.restored))
    characters: int = Field(description="the additional characters that the client sends")
    missing: list[
        Annotated[MissingOriginal, FieldsLike(record="0-based line in the parent's file")]
    ]


class UntrimSchema(ReceiptSchema):
    """The receipt of an untrim; without id and file if nothing was trimmed."""

    restoration: RestoredRecords


cut = CommonFields[Cut]()


class CutSchema(StrictModel):
    """The end of the copied conversation."""

    asked: str = cut(lambda each: each.requested_position, "the place in words")
    reference: str = Field(
        description="the last kept record of the parent: session and 0-based line"
    )
    moved: bool = cut(
        lambda each: each.direction != 0,
        "the requested place would have split a tool call or an answer",
    )
    turn: int | None = Field(
        description="the copy's last turn; null if only the file's end was read"
    )


class ForkSchema(ReceiptSchema):
    """The receipt of a fork; its kind is rehome if it belongs to another folder."""

    cut: CutSchema | None = Field(description="null if the whole live conversation was kept")
