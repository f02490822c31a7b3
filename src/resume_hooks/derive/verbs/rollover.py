"""``rollover``: create a session with the parent's lineage, a digest and a model's summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_if_worthwhile
from resume_hooks.derive.fresh_child import FreshChildPlan
from resume_hooks.derive.outcome import NothingWritten, OpenedSession, PendingAnswer
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.sessions.session import Session

if TYPE_CHECKING:
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.summary import SummaryResult, SummaryRollover

    AskForSummary = Callable[[SummaryRollover, Receipt], SummaryResult | PendingAnswer]


def make_rollover(
    parent: Session,
    focus: str,
    caller: Caller,
    ask_for_summary: AskForSummary,
    find_unfinished_child: Callable[[], Receipt | None] = lambda: None,
) -> OpenedSession[FreshChildPlan] | NothingWritten[FreshChildPlan] | PendingAnswer:
    """Write a child with a digest, and then add a model's summary to it.

    ``focus`` is the user's request for the summary. ``ask_for_summary`` is called with the plan and
    the receipt of the child. It asks a model, or returns a PendingAnswer if the user must wait.
    ``find_unfinished_child`` returns the child of an earlier attempt. If there is one, the summary is
    added to that child.
    """
    # Imported here because the import takes 100 ms, and a quick rollover does not need it.
    from resume_hooks.derive import summary

    with caller.time_limit():
        rollover_plan = summary.plan_rollover(
            parent,
            caller.where,
            focus=focus,
            output_dir=caller.output_dir,
            existing_child=find_unfinished_child(),
        )
    caller.check_draft(rollover_plan.plan.draft)
    if caller.dry_run:
        return NothingWritten(
            write_if_worthwhile(rollover_plan.plan, caller.where, dry_run=True), rollover_plan.plan
        )
    receipt = summary.write_rollover(rollover_plan, caller.where)
    result = ask_for_summary(rollover_plan, receipt)
    if isinstance(result, PendingAnswer):
        return result
    if result.failure_reason:
        done = "rolled over without a summary"
    else:
        done = "rolled over"
    return OpenedSession(result.receipt, rollover_plan.plan, done, summary=result)


def make_quick_rollover(
    parent: Session, caller: Caller
) -> OpenedSession[FreshChildPlan] | NothingWritten[FreshChildPlan]:
    """Write a child that contains only the lineage, without asking a model.

    Raises NothingToHandOff for a session without prompts.
    """
    with caller.time_limit():
        plan = agents.plan_fresh_child(parent, caller.where, output_dir=caller.output_dir)
    receipt = caller.write_child(plan)
    if not receipt.written:
        return NothingWritten(receipt, plan)
    return OpenedSession(receipt, plan, "rolled over")
