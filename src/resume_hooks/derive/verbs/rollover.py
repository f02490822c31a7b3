"""``rollover``: a new session with the lineage of this one, a digest, and a model's summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from resume_hooks.derive import agents
from resume_hooks.derive.child.write import write_unless_idle
from resume_hooks.derive.fresh_child import FreshPlan
from resume_hooks.derive.outcome import NothingWritten, OpenedSession, Waiting
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.sessions.session import Session

if TYPE_CHECKING:
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.summary import SummaryOutcome, SummaryRollover

    AskForSummary = Callable[[SummaryRollover, Receipt], SummaryOutcome | Waiting]


def rollover(
    parent: Session,
    wish: str,
    caller: Caller,
    ask_for_summary: AskForSummary,
    unfinished: Callable[[], Receipt | None] = lambda: None,
) -> OpenedSession[FreshPlan] | NothingWritten[FreshPlan] | Waiting:
    """Write a child with a digest, then add a model's summary to it.

    ``wish`` is the user's request for the summary. ``ask_for_summary`` gets the child with the
    digest. It asks a model, or returns the reason why the user must wait. ``unfinished`` returns
    the child of an earlier attempt, which is completed.
    """
    # this import takes 100 ms and is not needed for a quick rollover
    from resume_hooks.derive import summary

    with caller.time_limit():
        begun = summary.plan_rollover(
            parent,
            caller.where,
            wish=wish,
            output_dir=caller.output_dir,
            standing=unfinished(),
        )
    caller.check_draft(begun.plan.draft)
    if caller.dry_run:
        return NothingWritten(write_unless_idle(begun.plan, caller.where, dry_run=True), begun.plan)
    written = summary.write_rollover(begun, caller.where)
    made = ask_for_summary(begun, written)
    if isinstance(made, Waiting):
        return made
    if made.failure:
        done = "rolled over without a summary"
    else:
        done = "rolled over"
    return OpenedSession(made.receipt, begun.plan, done, summary=made)


def rollover_quick(
    parent: Session, caller: Caller
) -> OpenedSession[FreshPlan] | NothingWritten[FreshPlan]:
    """Write a child that contains only the lineage.

    No model is asked. Raises NothingToHandOff like a handoff.
    """
    with caller.time_limit():
        plan = agents.plan_fresh(parent, caller.where, output_dir=caller.output_dir)
    receipt = caller.write(plan)
    if not receipt.written:
        return NothingWritten(receipt, plan)
    return OpenedSession(receipt, plan, "rolled over")
