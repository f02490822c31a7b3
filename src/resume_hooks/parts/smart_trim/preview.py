"""The preview of a smart trim: for people a table with reasons, for programs rows that can be given back."""

from __future__ import annotations

from typing import Any

from resume_hooks.derive.model.port import Spent
from resume_hooks.derive.trim.plan import line_of, preview_trim
from resume_hooks.derive.trim.selection import Choice
from resume_hooks.parts.smart_trim.ask import ModelVerdicts
from resume_hooks.parts.smart_trim.offer import RULE
from resume_hooks.parts.smart_trim.plan import SmartPlan
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.trimmable_pieces import ATTACHMENT, INPUT, MEDIA, RESULT, TEXT

_WHAT = {RESULT: "", INPUT: "input of ", MEDIA: "image, ", ATTACHMENT: "attached ", TEXT: "answer "}

SHOWN = 3
"""Contents that a question names."""


def preview_table(decided: SmartPlan) -> str:
    """The plan as text: totals, savings by rule, and each content that the model chose, with its reasons."""
    rows = []
    for verdict, choice in decided.rows:
        if verdict.by == RULE:
            rows.append((verdict, choice))
    lines = [preview_trim(decided.trim), "", f"chosen by the model ({len(rows):,})"]
    for verdict, choice in rows:
        tokens = round(choice.tokens_saved(decided.offer.scanned.scale))
        lines.append(
            f"  {tokens:>8,}  {line_of(_about_choice(choice))}  "
            f"{_reference_of_choice(decided, choice)}"
        )
        for words in (verdict.description, f"why: {verdict.rationale}"):
            if words:
                lines.append(f"{'':12}{words}")
    return "\n".join(lines)


def largest_choices(decided: SmartPlan, model: str) -> list[str]:
    """How many contents the model chose, and the largest of them."""
    scale = decided.offer.scanned.scale
    rows = []
    for verdict, choice in decided.rows:
        if verdict.by == RULE:
            rows.append((choice.tokens_saved(scale), verdict, choice))
    shown = sorted(rows, key=lambda row: row[0], reverse=True)[:SHOWN]
    return [
        f"chosen by {model}: {len(rows):,}, the largest:",
        *(
            line_of(f"{saved:,.0f}  {verdict.description} · {_about_choice(choice)}")
            for saved, verdict, choice in shown
        ),
    ]


def _about_choice(choice: Choice) -> str:
    return f"{_WHAT[choice.piece.kind]}{choice.tool} {choice.target}"


def spent_text(spent: Spent) -> str:
    """The model's tokens and cost, in words."""
    if spent.calls:
        return f"{plain_line(spent.model)}: {spent.words}"
    return "no model was asked"


def warnings_on_answer(decided: SmartPlan, answer: ModelVerdicts) -> list[str]:
    """Warnings of invalid choices, and of contents that the model was not shown."""
    counts = (
        (answer.unknown, "of its choices were not shown to it"),
        (answer.twice, "were named twice"),
        (decided.useless, "would save nothing"),
    )
    left_out = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    if left_out:
        sentences = [f"Of the model's choices these were left out: {left_out}."]
    else:
        sentences = []
    if (
        decided.offer.unshown and answer.spent.calls
    ):  # a plan that is given back offers no more than it names
        sentences.append(
            f"{decided.offer.unshown:,} smaller contents were not shown to the model, and stay."
        )
    return sentences


def data_of_plan(decided: SmartPlan) -> dict[str, Any]:
    """The plan in its documented JSON form, from which it can be made again."""
    return {
        "rules": list(decided.offer.options.only),
        "keep_recent": decided.offer.options.keep_recent,
        "choices": [
            {
                **verdict._asdict(),
                "address": list(verdict.address),
                "original": _reference_of_choice(decided, choice),
                "tool": choice.tool,
                "target": choice.target,
                "tokens_saved": round(choice.tokens_saved(decided.offer.scanned.scale)),
            }
            for verdict, choice in decided.rows
        ],
    }


def _reference_of_choice(decided: SmartPlan, choice: Choice) -> str:
    return str(decided.offer.origins.of(choice.piece.number).reference)
