"""The plan of a smart trim: which contents go, who says so and why; and the child that trim's writer makes of them.

Invariant: a verdict counts only for a content that is offered and that is the very same byte for byte. Minutes may
pass between reading a session and writing: what was agreed on is checked against the file as it is then.
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
from resume_hooks.parts.smart_trim.offer import RULE, Key, Offer, digest_of, key_of, offer
from resume_hooks.paths import Where
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.agents.registry import readable
from resume_hooks.system.text import one_line, plain_line

KIND: Final = "smart-trim"
WENT_ON = "The session went on meanwhile; the child holds that too."

DESCRIPTION = 100  # characters of a description: it stands in the placeholder for as long as the child lives
RATIONALE = 200  # characters of a rationale: it is shown with the plan, and not kept

_NEUTRAL = str.maketrans({"[": "(", "]": ")", "<": "(", ">": ")", '"': "'"})
"""What could end a placeholder, or open a tag that clients and models take for the client's own."""


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


def of_rules(offered: Offer) -> list[Verdict]:
    """The verdicts of the rules that act without asking."""
    pieces = [choice.piece for choice in offered.taken]
    return [
        Verdict(choice.piece.number, choice.piece.address, digest_of(value), choice.rule, "", "")
        for choice, value in zip(offered.taken, offered.scanned.values(pieces), strict=True)
    ]


def of_model(offered: Offer, number: int, description: str, rationale: str) -> Verdict:
    """The model's verdict on the content that it was shown as ``number``, in words that do no harm."""
    candidate = offered.candidates[number - 1]
    record, address = key_of(candidate.piece)
    return Verdict(record, address, candidate.digest, RULE, described(description), neutral(rationale, RATIONALE))


def described(text: str) -> str:
    """A description as it stands in a placeholder."""
    return neutral(text, DESCRIPTION)


def neutral(text: str, limit: int) -> str:
    """A model's words on one line of at most ``limit`` characters, without known secrets, brackets, tags and quotes.

    Cut before they are cleaned: a model may answer with 5 MB.
    """
    return one_line(plain_line(redact(text[: 10 * limit])[0]).translate(_NEUTRAL), limit)


def choices_of(offered: Offer, verdicts: Sequence[Verdict]) -> list[tuple[Verdict, Choice]]:
    """What goes, oldest first. A content that would not get shorter stays.

    PlanOutdated if a content is not offered (any more), is not what the verdict was about, or is judged twice.
    """
    on_offer = {verdict.key: verdict for verdict in of_rules(offered)}
    on_offer |= {key_of(one.piece): of_model(offered, one.number, "", "") for one in offered.candidates}
    valid = [
        verdict
        for verdict in verdicts
        if (other := on_offer.get(verdict.key)) and (other.digest, other.by) == (verdict.digest, verdict.by)
    ]
    stale = len(verdicts) - len({verdict.key for verdict in valid})
    if stale:
        raise PlanOutdated(
            f"The plan does not fit the session: {stale:,} of {len(verdicts):,} contents are not there as it has them",
            "Nothing was written. Make a new plan: resume-hooks trim --smart.",
        )
    taken = {key_of(choice.piece): choice for choice in offered.taken}
    pieces = {key_of(one.piece): one.piece for one in offered.candidates}
    rows = []
    for verdict in valid:
        choice = taken.get(verdict.key)
        if choice is None:
            pick = Pick(pieces[verdict.key], f'"{verdict.description}"' if verdict.description else "")
            choice = choice_of(offered.material, pick, RULE, offered.origins)
            if choice is None or choice.tokens_saved(offered.scanned.scale) <= 0:
                continue
        rows.append((verdict, choice))
    return sorted(rows, key=lambda row: offered.material.places[row[0].record])


@dataclass(frozen=True, slots=True)
class SmartPlan:
    """What ``trimming.plan.write`` needs, and who gave up each content. ``useless`` verdicts would save nothing."""

    offer: Offer
    trim: TrimPlan
    rows: tuple[tuple[Verdict, Choice], ...]
    useless: int
    output_dir: str | None


def plan(offered: Offer, verdicts: Sequence[Verdict], where: Where, output_dir: str | None = None) -> SmartPlan:
    """Decide on a child without what the ``verdicts`` name. PlanOutdated if they are not of this offer."""
    rows = tuple(choices_of(offered, verdicts))
    scanned, options = offered.scanned, offered.options
    choices = [choice for _, choice in rows]
    decision = decision_of(scanned, options, offered.material, choices, offered.origins)
    decided = plan_of(scanned, agents.draft_of(scanned.session, KIND, where, output_dir), options, decision, "smart")
    return SmartPlan(offered, decided, rows, len(verdicts) - len(rows), output_dir)


def write(decided: SmartPlan, where: Where) -> Receipt:
    """Apply a plan, to the session as it is now: whoever agreed to it may have taken their time.

    PlanOutdated if one of the contents that it names is not what it was; WriteFailed and CheckFailed as a trim.
    """
    session = decided.offer.scanned.session
    now = readable(session.path, where)
    if (now.size, now.mtime) == (session.size, session.mtime):
        return child.write(decided.trim, where)
    verdicts = [verdict for verdict, _ in decided.rows]
    scanned = agents.scanned(now, where)
    later = planned_before(scanned, decided.offer.options, verdicts, where, decided.output_dir)
    made = child.write(later.trim, where)
    return made._replace(warnings=(*made.warnings, WENT_ON))


def planned_before(
    scanned: Trimmable,
    options: Options,
    verdicts: Sequence[Verdict],
    where: Where,
    output_dir: str | None = None,
) -> SmartPlan:
    """A plan of ``verdicts`` that were made earlier, for the session as it is now. PlanOutdated as ``plan``."""
    offered = offer(scanned, options, where, {verdict.key for verdict in verdicts})
    return plan(offered, verdicts, where, output_dir)
