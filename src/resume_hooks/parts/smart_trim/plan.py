"""The plan of a smart trim: which contents go, who says so and why.

And the child that trim's writer makes.

Invariant: a verdict counts only for a content that is offered and the same byte for byte. Minutes
may pass between reading a session and writing: the agreed plan is checked against the file as it is
then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.child import write as child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import Trimmable, TrimPlan, decision_of, plan_of
from resume_hooks.derive.trim.rules import Pick
from resume_hooks.derive.trim.selection import Choice, choice_of
from resume_hooks.errors import PlanOutdated
from resume_hooks.parts.smart_trim.offer import (
    RULE,
    Key,
    Offer,
    digest_of_content,
    key_of,
    make_offer,
)
from resume_hooks.paths import Where
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.agents.registry import readable_session
from resume_hooks.system.text import collapse_line, plain_line

KIND: Final = "smart-trim"
WENT_ON = "The session went on meanwhile; the child holds that too."

DESCRIPTION = (
    100  # characters of a description: it stands in the placeholder for as long as the child lives
)
RATIONALE = 200  # characters of a rationale: it is shown with the plan, and not kept

_NEUTRAL = str.maketrans({"[": "(", "]": ")", "<": "(", ">": ")", '"': "'"})
"""Signs that could end a placeholder, or open a tag that clients and models take for the client's own."""


class Verdict(NamedTuple):
    """A content that goes: the line of its record, its address there and its digest; ``by`` a rule or the model.

    ``description`` and ``rationale`` are a model's words or a rule's, one line each.
    """

    record: int
    address: tuple[str | int, ...]
    digest: str
    by: str
    description: str
    rationale: str

    @property
    def key(self) -> Key:
        """The content that it is about."""
        return self.record, self.address


def verdicts_of_rules(offered: Offer) -> list[Verdict]:
    """The verdicts of the rules that act without asking."""
    pieces = [choice.piece for choice in offered.taken]
    rules = []
    for choice, value in zip(offered.taken, offered.scanned.values(pieces), strict=True):
        rules.append(
            Verdict(
                choice.piece.number,
                choice.piece.address,
                digest_of_content(value),
                choice.rule,
                "",
                "",
            )
        )
    return rules


def verdict_of_model(offered: Offer, number: int, description: str, rationale: str) -> Verdict:
    """The model's verdict on the content that it was shown as ``number``, in words that do no harm."""
    candidate = offered.candidates[number - 1]
    record, address = key_of(candidate.piece)
    return Verdict(
        record,
        address,
        candidate.digest,
        RULE,
        clean_description(description),
        neutral_words(rationale, RATIONALE),
    )


def clean_description(text: str) -> str:
    """A description as it stands in a placeholder."""
    return neutral_words(text, DESCRIPTION)


def neutral_words(text: str, limit: int) -> str:
    """A model's words on one line of at most ``limit`` characters, without known secrets, brackets, tags and quotes.

    Cut before they are cleaned: a model may answer with 5 MB.
    """
    return collapse_line(plain_line(redact(text[: 10 * limit])[0]).translate(_NEUTRAL), limit)


def choices_of_verdicts(
    offered: Offer, verdicts: Sequence[Verdict]
) -> list[tuple[Verdict, Choice]]:
    """The contents that go, oldest first. A content that would not get shorter stays.

    PlanOutdated if a content is not offered (any more), is not what the verdict was about, or is
    judged twice.
    """
    on_offer = {}
    for verdict in verdicts_of_rules(offered):
        on_offer[verdict.key] = verdict
    for one in offered.candidates:
        on_offer[key_of(one.piece)] = verdict_of_model(offered, one.number, "", "")
    valid = [
        verdict
        for verdict in verdicts
        if (other := on_offer.get(verdict.key))
        and (other.digest, other.by) == (verdict.digest, verdict.by)
    ]
    stale = len(verdicts) - len({verdict.key for verdict in valid})
    if stale:
        raise PlanOutdated(
            (
                f"The plan does not fit the session: {stale:,} of {len(verdicts):,} contents "
                "are gone or changed"
            ),
            "Nothing was written. Make a new plan: resume-hooks trim --smart.",
        )
    taken = {key_of(choice.piece): choice for choice in offered.taken}
    pieces = {key_of(one.piece): one.piece for one in offered.candidates}
    rows = []
    for verdict in valid:
        choice = taken.get(verdict.key)
        if choice is None:
            pick = Pick(
                pieces[verdict.key], f'"{verdict.description}"' if verdict.description else ""
            )
            choice = choice_of(offered.material, pick, RULE, offered.origins)
            if choice is None or choice.tokens_saved(offered.scanned.scale) <= 0:
                continue
        rows.append((verdict, choice))
    return sorted(rows, key=lambda row: offered.material.places[row[0].record])


@dataclass(frozen=True, slots=True)
class SmartPlan:
    """The plan for trim's writer, and the verdict on each content.

    ``useless`` counts verdicts that save nothing.
    """

    offer: Offer
    trim: TrimPlan
    rows: tuple[tuple[Verdict, Choice], ...]
    useless: int
    output_dir: str | None


def plan_smart_trim(
    offered: Offer, verdicts: Sequence[Verdict], where: Where, output_dir: str | None = None
) -> SmartPlan:
    """Plan a child without the contents that ``verdicts`` name.

    PlanOutdated if they are not of this offer.
    """
    rows = tuple(choices_of_verdicts(offered, verdicts))
    scanned, options = offered.scanned, offered.options
    choices = [choice for _, choice in rows]
    decision = decision_of(scanned, options, offered.material, choices, offered.origins)
    decided = plan_of(
        scanned,
        agents.draft_child(scanned.session, KIND, where, output_dir),
        options,
        decision,
        "smart",
    )
    return SmartPlan(offered, decided, rows, len(verdicts) - len(rows), output_dir)


def write_smart_trim(decided: SmartPlan, where: Where) -> Receipt:
    """Apply a plan to the session as it is now: the user may have agreed to it late.

    PlanOutdated if one of its contents has changed; WriteFailed and CheckFailed as a trim.
    """
    session = decided.offer.scanned.session
    now = readable_session(session.path, where)
    if (now.size, now.mtime) == (session.size, session.mtime):
        return child.write_child(decided.trim, where)
    verdicts = [verdict for verdict, _ in decided.rows]
    scanned = agents.scan_for_trim(now, where)
    later = replan_smart_trim(scanned, decided.offer.options, verdicts, where, decided.output_dir)
    made = child.write_child(later.trim, where)
    return made._replace(warnings=(*made.warnings, WENT_ON))


def replan_smart_trim(
    scanned: Trimmable,
    options: Options,
    verdicts: Sequence[Verdict],
    where: Where,
    output_dir: str | None = None,
) -> SmartPlan:
    """Plan a trim by earlier ``verdicts`` for the session as it is now.

    PlanOutdated as ``plan_smart_trim``.
    """
    offered = make_offer(scanned, options, where, {verdict.key for verdict in verdicts})
    return plan_smart_trim(offered, verdicts, where, output_dir)
