"""The preview of a smart trim: a table for the user, and JSON that ``--plan`` accepts."""

from __future__ import annotations

from typing import Any

from resume_hooks.derive.model.port import CallCosts
from resume_hooks.derive.trim.plan import format_cell, format_trim_preview
from resume_hooks.derive.trim.selection import Choice
from resume_hooks.parts.smart_trim.ask_model import ModelResult
from resume_hooks.parts.smart_trim.offered_contents import MODEL_RULE_NAME
from resume_hooks.parts.smart_trim.plan import SmartPlan
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.trimmable_pieces import (
    ATTACHMENT_PIECE,
    INPUT_PIECE,
    MEDIA_PIECE,
    RESULT_PIECE,
    TEXT_PIECE,
)

_PIECE_KIND_PREFIXES = {
    RESULT_PIECE: "",
    INPUT_PIECE: "input of ",
    MEDIA_PIECE: "image, ",
    ATTACHMENT_PIECE: "attached ",
    TEXT_PIECE: "answer ",
}

MAX_SHOWN_CHOICES = 3
"""Maximum number of pieces of content that are listed in the question to the user."""


def format_preview(smart_plan: SmartPlan) -> str:
    """Return the plan as text: totals, savings for each rule, and the model's choices with their reasons."""
    rows = []
    for verdict, choice in smart_plan.verdicts_with_choices:
        if verdict.chosen_by == MODEL_RULE_NAME:
            rows.append((verdict, choice))
    lines = [format_trim_preview(smart_plan.trim_plan), "", f"chosen by the model ({len(rows):,})"]
    for verdict, choice in rows:
        tokens = round(choice.count_saved_tokens(smart_plan.offered_contents.trimmable.scale))
        lines.append(
            f"  {tokens:>8,}  {format_cell(_describe_choice(choice))}  "
            f"{_format_choice_reference(smart_plan, choice)}"
        )
        for words in (verdict.description, f"why: {verdict.rationale}"):
            if words:
                lines.append(f"{'':12}{words}")
    return "\n".join(lines)


def format_largest_model_choices(smart_plan: SmartPlan, model_name: str) -> list[str]:
    """Return lines about the model's choices: their number, and the largest of them."""
    scale = smart_plan.offered_contents.trimmable.scale
    rows = []
    for verdict, choice in smart_plan.verdicts_with_choices:
        if verdict.chosen_by == MODEL_RULE_NAME:
            rows.append((choice.count_saved_tokens(scale), verdict, choice))
    largest_rows = sorted(rows, key=lambda row: row[0], reverse=True)[:MAX_SHOWN_CHOICES]
    return [
        f"chosen by {model_name}: {len(rows):,}; the largest of them:",
        *(
            format_cell(f"{saved_tokens:,.0f}  {verdict.description} · {_describe_choice(choice)}")
            for saved_tokens, verdict, choice in largest_rows
        ),
    ]


def _describe_choice(choice: Choice) -> str:
    return f"{_PIECE_KIND_PREFIXES[choice.piece.kind]}{choice.tool} {choice.call_target}"


def format_costs(spent: CallCosts) -> str:
    """Return the tokens and the cost of the model's calls as text."""
    if spent.calls:
        return f"{plain_line(spent.model)}: {spent.description}"
    return "no model was asked"


def list_answer_warnings(smart_plan: SmartPlan, answer: ModelResult) -> list[str]:
    """Return warnings about invalid choices, and about contents that were not shown to the model."""
    counts = (
        (answer.unknown_number_count, "named contents that were not shown to it"),
        (answer.duplicate_choice_count, "repeated an earlier choice"),
        (smart_plan.verdicts_without_savings_count, "would save nothing"),
    )
    ignored_text = ", ".join(f"{count:,} {problem}" for count, problem in counts if count)
    if ignored_text:
        sentences = [f"Some of the model's choices were ignored: {ignored_text}."]
    else:
        sentences = []
    # For a stored plan, the model is not called and nothing is reported, because the plan offers
    # only its own pieces of content.
    if smart_plan.offered_contents.omitted_content_count and answer.costs.calls:
        sentences.append(
            f"{smart_plan.offered_contents.omitted_content_count:,} smaller pieces of content were not "
            "shown to the model and are kept."
        )
    return sentences


def build_plan_data(smart_plan: SmartPlan) -> dict[str, Any]:
    """Return the plan as JSON that ``--plan`` accepts."""
    offer = smart_plan.offered_contents
    choices = []
    for verdict, choice in smart_plan.verdicts_with_choices:
        choices.append(
            {
                "record": verdict.line_number,
                "address": list(verdict.address),
                "digest": verdict.content_digest,
                "by": verdict.chosen_by,
                "description": verdict.description,
                "rationale": verdict.rationale,
                "original": _format_choice_reference(smart_plan, choice),
                "tool": choice.tool,
                "target": choice.call_target,
                "tokens_saved": round(choice.count_saved_tokens(offer.trimmable.scale)),
            }
        )
    return {
        "rules": list(offer.options.only),
        "keep_recent": offer.options.keep_recent,
        "choices": choices,
    }


def _format_choice_reference(smart_plan: SmartPlan, choice: Choice) -> str:
    return str(
        smart_plan.offered_contents.origins.find_origin_of_record(
            choice.piece.line_number
        ).original_reference
    )
