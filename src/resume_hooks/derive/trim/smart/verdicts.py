"""Verdicts: which contents go, who says so and why; and what of that still holds for a session as it is now.

Invariant: a verdict counts only for a content that is offered, and that is the very same byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.derive.trim.rules.rule import Pick
from resume_hooks.derive.trim.selection import Choice, choice_of
from resume_hooks.derive.trim.smart.offer import RULE, Key, Offer, digest_of, key_of, values
from resume_hooks.errors import PlanOutdated
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.content import Piece

DESCRIPTION = 100
"""Characters of a description: it stands in the placeholder for as long as the child lives."""

RATIONALE = 200
"""Characters of a rationale: it is shown with the plan, and not kept."""

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


def of_rules(offer: Offer) -> list[Verdict]:
    """The verdicts of the rules that take without asking."""
    pieces = [choice.piece for choice in offer.taken]
    return [
        Verdict(choice.piece.number, choice.piece.address, digest_of(value), choice.rule, "", "")
        for choice, value in zip(offer.taken, values(offer.reading.transcript, pieces), strict=True)
    ]


def of_model(offer: Offer, number: int, description: str, rationale: str) -> Verdict:
    """The model's verdict on the content that it was shown as ``number``, in words that do no harm."""
    candidate = offer.candidates[number - 1]
    record, address = key_of(candidate.piece)
    return Verdict(record, address, candidate.digest, RULE, described(description), neutral(rationale, RATIONALE))


def described(text: str) -> str:
    """A description as it stands in a placeholder."""
    return neutral(text, DESCRIPTION)


def neutral(text: str, limit: int) -> str:
    """A model's words on one line of at most ``limit`` characters, without brackets, tags and quotes.

    Cut before they are cleaned: a model may answer with 5 MB.
    """
    return one_line(plain_line(text[: 10 * limit]).translate(_NEUTRAL), limit)


def choices_of(offer: Offer, verdicts: Sequence[Verdict]) -> list[tuple[Verdict, Choice]]:
    """What goes, oldest first. A content that would not get shorter stays.

    PlanOutdated where a content is not offered (any more), is not what the verdict was about, or is judged twice.
    """
    offered = {verdict.key: verdict for verdict in of_rules(offer)}
    offered |= {key_of(one.piece): of_model(offer, one.number, "", "") for one in offer.candidates}
    held = [verdict for verdict in verdicts if _is_same(verdict, offered.get(verdict.key))]
    stale = len(verdicts) - len({verdict.key for verdict in held})
    if stale:
        raise PlanOutdated(
            f"The plan does not fit the session: {stale:,} of {len(verdicts):,} contents are not there as it has them",
            "Nothing was written. Make a new plan: resume-hooks smart-trim.",
        )
    taken = {key_of(choice.piece): choice for choice in offer.taken}
    pieces = {key_of(one.piece): one.piece for one in offer.candidates}
    found = ((one, taken.get(one.key) or _judged(offer, one, pieces[one.key])) for one in held)
    kept = [(verdict, choice) for verdict, choice in found if choice is not None]
    return sorted(kept, key=lambda row: offer.material.places[row[0].record])


def _is_same(verdict: Verdict, offered: Verdict | None) -> bool:
    return offered is not None and (offered.digest, offered.by) == (verdict.digest, verdict.by)


def _judged(offer: Offer, verdict: Verdict, piece: Piece) -> Choice | None:
    """The choice of a content that the model gives up; None where that would save nothing."""
    why = f'"{verdict.description}"' if verdict.description else ""
    choice = choice_of(offer.material, Pick(piece, why), RULE, offer.origins)
    return choice if choice is not None and choice.tokens_saved(offer.reading.scale) > 0 else None
