"""A smart trim, planned and written: verdicts of rules and of a model, and the child that trim's writer makes of them.

Minutes may pass between reading a session and writing: what was agreed on is checked against the file as it is then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim import plan as trimming
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import Reading, TrimPlan
from resume_hooks.derive.trim.selection import Choice
from resume_hooks.derive.trim.smart.offer import Offer, offer
from resume_hooks.derive.trim.smart.verdicts import Verdict, choices_of
from resume_hooks.sessions import locate

KIND = "smart-trim"

WENT_ON = "The session went on meanwhile; the child holds that too."


@dataclass(frozen=True, slots=True)
class SmartPlan:
    """What ``trimming.plan.write`` needs, and who gave up each content. ``useless`` verdicts would save nothing."""

    offer: Offer
    trim: TrimPlan
    rows: tuple[tuple[Verdict, Choice], ...]
    useless: int
    output_dir: str | None


def plan(
    offered: Offer, verdicts: Sequence[Verdict], environ: Mapping[str, str], output_dir: str | None = None
) -> SmartPlan:
    """Decide on a child without what the ``verdicts`` name. PlanOutdated where they are not of this offer."""
    rows = tuple(choices_of(offered, verdicts))
    reading, options = offered.reading, offered.options
    choices = [choice for _, choice in rows]
    decision = trimming.decision_of(reading, options, offered.material, choices, offered.origins)
    decided = trimming.plan(
        reading, environ, options, kind=KIND, output_dir=output_dir, decision=decision, method="smart"
    )
    return SmartPlan(offered, decided, rows, len(verdicts) - len(rows), output_dir)


def write(decided: SmartPlan, environ: Mapping[str, str]) -> Receipt:
    """Apply a plan, to the session as it is now: whoever agreed to it may have taken his time.

    PlanOutdated where one of the contents that it names is not what it was; WriteFailed and CheckFailed as a trim.
    """
    session = decided.offer.reading.session
    now = locate.session_file(session.path)
    if (now.size, now.mtime) == (session.size, session.mtime):
        return trimming.write(decided.trim, environ)
    verdicts = [verdict for verdict, _ in decided.rows]
    reading = trimming.read(now, decided.offer.reading.context.window)
    later = planned_before(reading, decided.offer.options, verdicts, environ, decided.output_dir)
    made = trimming.write(later.trim, environ)
    return made._replace(warnings=(*made.warnings, WENT_ON))


def planned_before(
    reading: Reading,
    options: Options,
    verdicts: Sequence[Verdict],
    environ: Mapping[str, str],
    output_dir: str | None = None,
) -> SmartPlan:
    """A plan of ``verdicts`` that were made earlier, for the session as it is now. PlanOutdated as ``plan``."""
    offered = offer(reading, options, environ, {verdict.key for verdict in verdicts})
    return plan(offered, verdicts, environ, output_dir)
