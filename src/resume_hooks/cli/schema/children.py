"""The schemas of the verbs that create a child."""

from __future__ import annotations

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import CallCosts, FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.derive import untrim
from resume_hooks.derive.cut_point import Cut
from resume_hooks.derive.summary import SummaryMaterial
from resume_hooks.derive.trim import selection
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.reading.digest import entries
from resume_hooks.reading.digest.entries import MessageKind
from resume_hooks.reading.summary_check import CheckedSummary


class HandoffReceipt(ReceiptSchema):
    """The receipt of a handoff, with the documents that the user requested."""

    documents: list[str] = Field(description="handoff documents that were, or would be, written")


entry_field = FieldDeclarer[entries.DigestEntry]()


class DigestEntry(StrictModel):
    """One entry of a digest: its text, a reference to its record, and a note.

    A reference has the form ``<session id>:<record>``. It is empty if the record is unknown.
    """

    text: str = entry_field(lambda entry: entry.text)
    ref: str = entry_field(
        lambda entry: entry.ref, "reference: session and record; empty if unknown"
    )
    note: str = entry_field(lambda entry: entry.note)


message_field = FieldDeclarer[entries.TalkMessage]()


class TalkMessage(StrictModel):
    """A message without its blank lines, and the reference of its record (``<session id>:<record>``).

    ``superseded`` contains each sentence that the user revoked later, with the reference of the
    record that revokes it.
    """

    kind: MessageKind = message_field(lambda message: message.kind)
    ref: str = message_field(
        lambda message: message.ref, "reference: session and record; empty if unknown"
    )
    text: str = message_field(lambda message: message.text)
    superseded: tuple[tuple[str, str], ...] = message_field(
        lambda message: message.superseded_sentences
    )


digest_field = FieldDeclarer[entries.Digest]()


class DigestSchema(StrictModel):
    """A digest. Each section lists its most important entries first."""

    sections: dict[str, list[DigestEntry]] = digest_field(lambda digest: digest.sections)
    talk: list[TalkMessage] = digest_field(
        lambda digest: digest.talk, "the messages, oldest first, without calls and results"
    )
    omitted: dict[str, int] = digest_field(
        lambda digest: digest.omitted_counts, "the number of omitted entries, by section"
    )
    git: str = digest_field(
        lambda digest: digest.git_line, "one line about the git repository of the folder"
    )
    unread: int = digest_field(
        lambda digest: digest.unread_transcript_count,
        "the number of ancestors that were too large to read",
    )


class HandoffOpening(StrictModel):
    """The opening of a child that was not created."""

    opening: str = Field(description="the whole first message: lineage, digest, next step")
    digest: DigestSchema
    full: str = Field(description="the whole digest as text, which the child keeps in a record")


class HandoffSchema(RootModel[HandoffReceipt | HandoffOpening]):
    """The receipt of `handoff`, or with --print the opening of the child."""


material_field = FieldDeclarer[SummaryMaterial]()


class MaterialSchema(StrictModel):
    """The size of the text that a model reads, and the number of calls that it needs."""

    records: int = material_field(
        lambda material: material.record_count, "the number of records with text"
    )
    shown: int = material_field(
        lambda material: len(material.record_numbers),
        "the number of records that the model would read; long records are shortened",
    )
    characters: int = material_field(lambda material: material.character_count)
    tokens: int = Field(description="the approximate number of tokens of the text")
    parts: int = material_field(lambda material: len(material.parts))
    calls: int = material_field(lambda material: material.call_count)


checked_field = FieldDeclarer[CheckedSummary]()


class SummaryCheck(StrictModel):
    """The result of checking a summary's sentences against the transcripts.

    Only sentences with a claim that can be checked are counted.
    """

    sentences: int = checked_field(lambda checked: checked.sentence_count)
    tied: int = checked_field(
        lambda checked: checked.referenced_sentence_count,
        "the number of sentences with a reference to the record that supports the sentence",
    )
    marked: int = checked_field(
        lambda checked: checked.marked_sentence_count,
        "the number of marked sentences, which no record supports",
    )


class SummarySchema(StrictModel):
    """The summary of a rollover. In a dry run no model is asked."""

    included: bool
    model: str = Field(description="the requested model")
    failure: str | None = Field(
        description="why the summary is missing; the child then has only the digest"
    )
    material: MaterialSchema | None = Field(
        description="in a dry run: the text that a model would read; else null"
    )
    spent: CallCosts | None = Field(description="the cost of the model's calls; null in a dry run")
    checked: SummaryCheck | None = Field(
        description="the result of checking the summary; null without a summary"
    )


class RolloverSchema(ReceiptSchema):
    """The receipt of a rollover. ``summary`` is null with ``--quick``."""

    summary: SummarySchema | None = None


row_field = FieldDeclarer[selection.SavingsRow]()


class SavingsRow(StrictModel):
    """The number of pieces that one rule or one tool trims, and their tokens before and after the trim."""

    name: str = row_field(lambda row: row.name)
    pieces: int = row_field(lambda row: row.piece_count)
    tokens_before: int = row_field(lambda row: row.tokens_before)
    tokens_after: int = row_field(lambda row: row.tokens_after)


piece_field = FieldDeclarer[selection.LargestPiece]()


class LargestPiece(StrictModel):
    """One of the largest trimmed pieces of content, with a reference to its original."""

    original: str = piece_field(
        lambda piece: str(piece.original_reference), "reference: session and record"
    )
    rule: str = piece_field(lambda piece: piece.rule)
    tool: str = piece_field(lambda piece: piece.tool)
    target: str = piece_field(lambda piece: piece.target)
    tokens: int = piece_field(lambda piece: piece.tokens)


trim_field = FieldDeclarer[TrimPlan]()


class SavingsSchema(StrictModel):
    """The savings of a trim. Tokens are those that the client sends with each request."""

    pays: bool = trim_field(lambda trim: trim.is_worthwhile)
    tokens_saved: int = trim_field(lambda trim: trim.savings.tokens)
    measured: bool = trim_field(
        lambda trim: trim.context_before.is_measured,
        "true: the API counted the size before the trim; false: it is estimated",
    )
    window: int = trim_field(lambda trim: trim.context_before.window)
    percent_before: int | None = trim_field(lambda trim: trim.context_before.percent)
    percent_after: int | None = trim_field(lambda trim: trim.context_after.percent)
    compacts_at_once: bool = trim_field(
        lambda trim: trim.context_after.compacts_at_once,
        "true: the client would compact the child on resume",
    )
    rollover_tokens: int = trim_field(
        lambda trim: trim.lineage_only_child_tokens,
        "the tokens of a handoff instead of this trim",
    )
    characters_per_token: float = trim_field(lambda trim: trim.savings.characters_per_token)
    rules: list[SavingsRow] = trim_field(lambda trim: trim.savings.savings_by_rule)
    tools: list[SavingsRow] = trim_field(lambda trim: trim.savings.savings_by_tool)
    largest: list[LargestPiece] = trim_field(lambda trim: trim.savings.largest_pieces)


class SmartChoice(StrictModel):
    """A piece of content that ``trim --smart`` removes."""

    record: int = Field(description="0-based line in the parent's file")
    address: list[int | str] = Field(
        description="the keys and indexes that lead to the content in the record"
    )
    digest: str = Field(
        description="SHA-256 of the content; a plan is valid for exactly this content"
    )
    by: str = Field(description="the rule that chose the content, or smart for the model")
    description: str = Field(description="the model's description, for the placeholder")
    rationale: str = Field(description="the model's reason")
    original: str = Field(description="reference: session and record")
    tool: str
    target: str
    tokens_saved: int


class SmartPlanSchema(StrictModel):
    """The plan of `trim --smart`: the pieces of content to remove. --plan applies the same plan again."""

    rules: list[str] = Field(min_length=1, description="the rules applied before the model")
    keep_recent: int | None = Field(
        ge=0,
        le=10_000,
        description="the number of most recent turns that stay unchanged; null: the default",
    )
    choices: list[SmartChoice]
    spent: CallCosts


class TrimSchema(ReceiptSchema):
    """The receipt of a trim. The id and file are empty if the trim would save too little."""

    savings: SavingsSchema
    in_place: bool = Field(
        default=False, description="true: the session's own file was, or would be, rewritten"
    )
    backup: str | None = Field(
        default=None, description="with --in-place: the backup of the file from before the trim"
    )
    smart: SmartPlanSchema | None = Field(
        default=None, description="with --smart: the plan, which --plan can apply again"
    )


missing_field = FieldDeclarer[untrim.MissingOriginal]()


class MissingOriginal(StrictModel):
    """A trimmed record that can't be restored, and the reason."""

    record: int = missing_field(
        lambda missing: missing.line_number, "0-based line in the parent's file"
    )
    why: str = missing_field(lambda missing: missing.reason)


untrim_field = FieldDeclarer[untrim.UntrimPlan]()


class RestoredRecords(StrictModel):
    """The records that an untrim restores."""

    trimmed: int = untrim_field(
        lambda plan: plan.trimmed_record_count,
        "the number of trimmed records in the parent's conversation",
    )
    restored: int = untrim_field(lambda plan: len(plan.restored_records))
    characters: int = untrim_field(
        lambda plan: plan.restored_character_count,
        "the additional characters that the client sends",
    )
    missing: list[MissingOriginal] = untrim_field(lambda plan: plan.missing_originals)


class UntrimSchema(ReceiptSchema):
    """The receipt of an untrim. The id and file are empty if nothing was trimmed."""

    restoration: RestoredRecords


cut_field = FieldDeclarer[Cut]()


class CutSchema(StrictModel):
    """The point up to which the conversation was copied."""

    asked: str = cut_field(lambda cut: cut.requested_position, "the requested point, in words")
    reference: str = Field(
        description="reference of the last copied record of the parent: session and 0-based line"
    )
    moved: bool = cut_field(
        lambda cut: cut.shift_direction != 0,
        "true: the copy ends at a different record from the requested one, to keep a call or an answer complete",
    )
    turn: int | None = cut_field(
        lambda cut: cut.turn_number, "the copy's last turn; null if only the file's end was read"
    )


class ForkSchema(ReceiptSchema):
    """The receipt of a fork. The kind is `rehome` if the fork has a different folder from its parent."""

    cut: CutSchema | None = Field(description="null if the whole live conversation was copied")
