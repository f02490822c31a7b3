"""The plan of a smart trim: the contents to trim, who chose them, and why.

The code of ``trim`` writes the child.

Invariant: a verdict is valid only if its content is offered and has not changed. Minutes may pass
between reading a session and writing the child, so a confirmed plan is compared with the current
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.child import write_child as child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import (
    TrimmableSession,
    TrimPlan,
    make_decision,
    plan_trim_from_decision,
)
from resume_hooks.derive.trim.rules import OfferedPiece
from resume_hooks.derive.trim.selection import Choice, make_trim_choice
from resume_hooks.errors import PlanOutdated
from resume_hooks.parts.smart_trim.offered_contents import (
    MODEL_RULE_NAME,
    ContentKey,
    OfferedContents,
    build_content_key,
    build_offer,
    hash_content,
)
from resume_hooks.paths import Where
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.agents.registry import readable_session
from resume_hooks.system.text import collapse_line, plain_line

CHILD_KIND: Final = "smart-trim"
NEW_TURNS_WARNING = (
    "The session has had new turns since the plan was made; the child includes them."
)

# Maximum number of characters in a description. The child's placeholder contains the description.
MAX_DESCRIPTION_CHARACTERS = 100
# Maximum number of characters of a rationale, which is shown with the plan but not stored in the
# child.
MAX_RATIONALE_CHARACTERS = 200

_CHARACTER_REPLACEMENTS = str.maketrans({"[": "(", "]": ")", "<": "(", ">": ")", '"': "'"})
"""Replacements for characters that could end a placeholder or start a tag that looks like a tag of
the client."""


class Verdict(NamedTuple):
    """The decision to trim a piece of content.

    ``line_number`` is the line number of the content's record, ``address`` leads to the content in
    the record, and ``content_digest`` is the content's digest. ``chosen_by`` is the name of a rule, or
    ``smart`` for the model. ``description`` and ``rationale`` are lines written by the model, or
    ``""``.
    """

    line_number: int
    address: tuple[str | int, ...]
    content_digest: str
    chosen_by: str
    description: str
    rationale: str

    @property
    def key(self) -> ContentKey:
        """The key of the content to trim."""
        return self.line_number, self.address


def build_rule_verdicts(offer: OfferedContents) -> list[Verdict]:
    """Return verdicts for the contents that rules have chosen."""
    pieces = [choice.piece for choice in offer.rule_choices]
    rules = []
    for choice, value in zip(
        offer.rule_choices, offer.trimmable.read_contents(pieces), strict=True
    ):
        rules.append(
            Verdict(
                choice.piece.line_number,
                choice.piece.address,
                hash_content(value),
                choice.rule,
                "",
                "",
            )
        )
    return rules


def build_model_verdict(
    offer: OfferedContents, candidate_number: int, description: str, rationale: str
) -> Verdict:
    """Return the model's verdict on the content with this number.

    Unsafe characters in the model's words are replaced.
    """
    candidate = offer.candidates[candidate_number - 1]
    record, address = build_content_key(candidate.piece)
    return Verdict(
        record,
        address,
        candidate.content_hash,
        MODEL_RULE_NAME,
        clean_description(description),
        neutralize_text(rationale, MAX_RATIONALE_CHARACTERS),
    )


def clean_description(text: str) -> str:
    """Return a description in which no character can end the placeholder."""
    return neutralize_text(text, MAX_DESCRIPTION_CHARACTERS)


def neutralize_text(text: str, max_characters: int) -> str:
    """Return a model's text as one line of at most ``max_characters`` characters.

    Secrets are removed, and brackets, tags and quotes are replaced. The text is shortened first,
    because a model's answer may be 5 MB long.
    """
    return collapse_line(
        plain_line(redact(text[: 10 * max_characters])[0]).translate(_CHARACTER_REPLACEMENTS),
        max_characters,
    )


def match_verdicts(
    offer: OfferedContents, verdicts: Sequence[Verdict]
) -> list[tuple[Verdict, Choice]]:
    """Return the pieces of content to trim, oldest first, each with its verdict.

    A piece is omitted if its placeholder would save no tokens. Raises PlanOutdated if a piece is no
    longer offered, has changed, or has two verdicts.
    """
    offered_verdicts = {}
    for verdict in build_rule_verdicts(offer):
        offered_verdicts[verdict.key] = verdict
    for candidate in offer.candidates:
        offered_verdicts[build_content_key(candidate.piece)] = build_model_verdict(
            offer, candidate.number, "", ""
        )
    valid_verdicts = [
        verdict
        for verdict in verdicts
        if (offered_verdict := offered_verdicts.get(verdict.key))
        and (offered_verdict.content_digest, offered_verdict.chosen_by)
        == (verdict.content_digest, verdict.chosen_by)
    ]
    stale_count = len(verdicts) - len({verdict.key for verdict in valid_verdicts})
    if stale_count:
        raise PlanOutdated(
            (
                f"The plan no longer matches the session: {stale_count:,} of {len(verdicts):,} pieces of "
                "content are gone or have changed"
            ),
            "Nothing was written. Make a new plan: resume-hooks trim --smart.",
        )
    rule_choices = {build_content_key(choice.piece): choice for choice in offer.rule_choices}
    pieces = {build_content_key(candidate.piece): candidate.piece for candidate in offer.candidates}
    rows = []
    for verdict in valid_verdicts:
        choice = rule_choices.get(verdict.key)
        if choice is None:
            pick = OfferedPiece(
                pieces[verdict.key], f'"{verdict.description}"' if verdict.description else ""
            )
            choice = make_trim_choice(offer.material, pick, MODEL_RULE_NAME, offer.origins)
            if choice is None or choice.count_saved_tokens(offer.trimmable.scale) <= 0:
                continue
        rows.append((verdict, choice))
    return sorted(
        rows, key=lambda row: offer.material.chain_indexes_by_line_number[row[0].line_number]
    )


@dataclass(frozen=True, slots=True)
class SmartPlan:
    """The plan of a smart trim.

    ``trim_plan`` is the plan from which the code of ``trim`` writes the child. ``verdicts_with_choices`` contains
    each verdict with the choice that it leads to. ``verdicts_without_savings_count`` is the number of
    verdicts that would save no tokens.
    """

    offered_contents: OfferedContents
    trim_plan: TrimPlan
    verdicts_with_choices: tuple[tuple[Verdict, Choice], ...]
    verdicts_without_savings_count: int
    output_dir: str | None


def plan_smart_trim(
    offer: OfferedContents, verdicts: Sequence[Verdict], where: Where, output_dir: str | None = None
) -> SmartPlan:
    """Plan a child in which the pieces of content that ``verdicts`` name are trimmed.

    Raises PlanOutdated if the verdicts do not match the offer.
    """
    rows = tuple(match_verdicts(offer, verdicts))
    trimmable, options = offer.trimmable, offer.options
    choices = [choice for _, choice in rows]
    decision = make_decision(trimmable, options, offer.material, choices, offer.origins)
    trim_plan = plan_trim_from_decision(
        trimmable,
        agents.draft_child(trimmable.session, CHILD_KIND, where, output_dir),
        options,
        decision,
        "smart",
    )
    return SmartPlan(offer, trim_plan, rows, len(verdicts) - len(rows), output_dir)


def write_smart_trim(smart_plan: SmartPlan, where: Where) -> Receipt:
    """Write the child that a plan describes.

    If the session has changed since it was read, the verdicts are applied to its current state.
    Raises PlanOutdated if a piece of content has changed, and WriteFailed or CheckFailed for the
    same reasons as a trim without a model.
    """
    session = smart_plan.offered_contents.trimmable.session
    current_session = readable_session(session.path, where)
    if (current_session.size, current_session.mtime) == (session.size, session.mtime):
        return child.write_child(smart_plan.trim_plan, where)
    verdicts = [verdict for verdict, _ in smart_plan.verdicts_with_choices]
    trimmable = agents.read_trimmable_session(current_session, where)
    new_plan = replan_smart_trim(
        trimmable, smart_plan.offered_contents.options, verdicts, where, smart_plan.output_dir
    )
    receipt = child.write_child(new_plan.trim_plan, where)
    return receipt._replace(warnings=(*receipt.warnings, NEW_TURNS_WARNING))


def replan_smart_trim(
    trimmable: TrimmableSession,
    options: Options,
    verdicts: Sequence[Verdict],
    where: Where,
    output_dir: str | None = None,
) -> SmartPlan:
    """Plan a trim of the session's current state with earlier ``verdicts``.

    Raises the errors of ``plan_smart_trim``.
    """
    offer = build_offer(trimmable, options, where, {verdict.key for verdict in verdicts})
    return plan_smart_trim(offer, verdicts, where, output_dir)
