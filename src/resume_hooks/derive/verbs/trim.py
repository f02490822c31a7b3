"""``trim``: create a child with placeholders for long contents.

The user can be shown the plan and asked to confirm it.
"""

from __future__ import annotations

from collections.abc import Callable

from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child, write_if_worthwhile
from resume_hooks.derive.outcome import NothingWritten, OpenedSession, format_remark_for_new_session
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import (
    TrimPlan,
    decide_trim,
    list_remarks,
    plan_trim_from_decision,
)
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.paths import Where
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile

TrimOutcome = OpenedSession[TrimPlan] | NothingWritten[TrimPlan]


def trim(session: Session, options: Options, caller: Caller) -> TrimOutcome:
    """Write a trimmed child and return the outcome. Raises the errors of ``plan_trim``."""
    with caller.time_limit():
        plan = plan_trim(session, caller.where, options, output_dir=caller.output_dir)
    caller.check_draft(plan.draft)
    return write_trim(plan, caller)


def plan_trim(
    session: SessionFile, where: Where, options: Options, *, output_dir: str | None = None
) -> TrimPlan:
    """Plan a trim in which rules choose the contents.

    Raises UsageError for invalid options or an unusable parent.
    """
    scanned = agents.read_trimmable_session(session, where)
    decision = decide_trim(scanned, options, where)
    draft = agents.draft_child(session, "trim", where, output_dir)
    return plan_trim_from_decision(scanned, draft, options, decision, "rules")


def write_trim(
    plan: TrimPlan,
    caller: Caller,
    confirm: Callable[[TrimPlan], bool] | None = None,
    write_plan: Callable[[TrimPlan, Where], Receipt] = write_child,
) -> TrimOutcome:
    """Write a trimmed child with ``write_plan``, if the plan is worthwhile and ``confirm`` returns true.

    If ``confirm`` is None, no confirmation is needed. The user may have confirmed the trim with an
    option, with an answer in a terminal, or on a card. All callers write the child with this
    function.
    """
    is_to_be_written = plan.is_worthwhile and not caller.dry_run
    if not is_to_be_written or (confirm is not None and not confirm(plan)):
        return NothingWritten(write_if_worthwhile(plan, caller.where, dry_run=True), plan)
    receipt = write_plan(plan, caller.where)
    remark = format_remark_for_new_session(receipt)
    return OpenedSession(receipt, plan, "trimmed", tuple(list_remarks(plan)), remark)
