"""``back``: create a child with a session's records up to its mark and a report of what followed.

In a fork without a mark, the child ends at the point where the fork branched off from its parent.
"""

from __future__ import annotations

import sys

from resume_hooks.cli.child import (
    make_caller_for_new_child,
    print_child,
    receipt_text,
    refuse_start_in_other_folder,
)
from resume_hooks.cli.options import current_folder
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import MarkNotFound
from resume_hooks.parts.marks import plan_back, state
from resume_hooks.parts.marks.cards import describe_what_stays_unchanged
from resume_hooks.parts.marks.fork_point import find_fork_point
from resume_hooks.parts.marks.plan_back import BackCommandPlan
from resume_hooks.parts.marks.state import check_not_subagent
from resume_hooks.parts.marks.verbs import BackOptions
from resume_hooks.sessions.agents.registry import require_answers
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.system.text import collapse_line

# Maximum number of bytes in a report that is read from standard input.
MAX_REPORT_BYTES = 4 * plan_back.MAX_REPORT_CHARACTERS


def go_back(options: BackOptions) -> None:
    """Go back to the mark of a session in a new child, and print the receipt."""
    refuse_start_in_other_folder(options)
    session = resolve_transcript(
        options.locator, current_folder(), options.where, allow_other_agents=True
    )
    require_answers(session)
    check_not_subagent(session)
    mark = state.find_mark(session.session_id) or find_fork_point(session, options.where)
    if mark is None:
        remedy = f"Set a mark first: resume-hooks mark {session.session_id}"
        raise MarkNotFound(
            state.NO_MARK_MESSAGE, f"{remedy}. Only a fork can go back without a mark."
        )
    if options.report != "-":
        report = options.report
    else:
        report = sys.stdin.buffer.read(MAX_REPORT_BYTES + 1).decode("utf-8", "replace")
    plan, receipt = plan_back.go_back(session, mark, report, make_caller_for_new_child(options))
    print_child(options, receipt, {"back": plan}, lambda: _format_receipt(plan, receipt))


def _format_receipt(back_plan: BackCommandPlan, receipt: Receipt) -> str:
    facts: list[tuple[str, object]] = []
    if back_plan.mark.goal:
        facts.append(("goal", collapse_line(back_plan.mark.goal, 300)))
    if back_plan.mark.left_parent_id:
        facts.append(
            ("back to", f"where this fork branched off from {back_plan.mark.left_parent_id}")
        )
    if back_plan.report:
        facts.append(("report", f"{len(back_plan.report):,} characters"))
    notes = describe_what_stays_unchanged(receipt, back_plan.omitted_records, "the old one")
    facts += zip(("note", *[""] * len(notes)), notes, strict=False)
    return receipt_text(receipt, facts)
