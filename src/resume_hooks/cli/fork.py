"""``fork``: copy a session's live conversation, or only its beginning, into a new session.

The copy may be made for another folder.
"""

from __future__ import annotations

import os

from resume_hooks.cli.child import (
    make_caller_for_new_child,
    print_child,
    receipt_text,
    refuse_start_in_other_folder,
)
from resume_hooks.cli.options import current_folder, locate_parent, parse_time_option
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.children import ForkOptions
from resume_hooks.derive import cut_point
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.cut_point import (
    CutAtRecord,
    CutAtTurn,
    CutBeforeCompaction,
    CutBeforeInstant,
    CutSelector,
)
from resume_hooks.derive.fork import ForkPlan
from resume_hooks.derive.verbs.fork import ForkSpec
from resume_hooks.derive.verbs.fork import fork as make_fork
from resume_hooks.errors import UsageError
from resume_hooks.sessions.record_references import Reference
from resume_hooks.sessions.session import Session


def fork_session(options: ForkOptions) -> None:
    """Create a child with a copy of the live conversation, and print its receipt."""
    options.refuse_combination("in_current_folder", "target_folder", "output_dir")
    folder = current_folder() if options.in_current_folder else None
    if options.target_folder is not None:
        folder = os.path.join(current_folder(), os.path.expanduser(options.target_folder))
    refuse_start_in_other_folder(options)
    session, cut_selector = _find_session_and_cut(options)
    outcome = make_fork(
        session,
        ForkSpec(cut_selector, folder, options.target_agent or ""),
        make_caller_for_new_child(options),
    )
    fork_plan, receipt = outcome.plan, outcome.receipt
    cut_data = None
    if fork_plan.cut:
        reference = f"{session.session_id}:{fork_plan.cut.last_message.line_number}"
        cut_data = ValueWithFields(fork_plan.cut, {"reference": reference})
    print_child(
        options, receipt, {"cut": cut_data}, lambda: _format_fork_receipt(fork_plan, receipt)
    )


def _find_session_and_cut(options: ForkOptions) -> tuple[Session, CutSelector | None]:
    """Return the session to copy and the point up to which it is copied.

    The point is None if the whole conversation is copied.
    """
    options.refuse_combination(
        "last_record",
        "end_time",
        "last_turn_number",
        "before_compaction",
        remedy="A session is cut once.",
    )
    if options.last_record is not None:
        cut = cut_point.parse_cut(options.last_record)
        if not isinstance(cut, Reference):
            return options.locate_parent(), cut
        session = locate_parent(cut.session_locator, options.where)
        if (
            options.locator is not None
            and options.locate_parent().original_path != session.original_path
        ):
            raise UsageError(
                f"--at names a different session from '{options.locator}'", "Give only one of them."
            )
        return session, CutAtRecord(cut.record)
    if options.before_compaction:
        return options.locate_parent(), CutBeforeCompaction()
    if options.last_turn_number is not None:
        return options.locate_parent(), CutAtTurn(options.last_turn_number)
    session = options.locate_parent()
    if options.end_time is not None:
        return session, CutBeforeInstant(parse_time_option(options.end_time))
    return session, None


def _format_fork_receipt(fork_plan: ForkPlan, receipt: Receipt) -> str:
    facts: list[tuple[str, object]] = []
    if fork_plan.cut is not None:
        if fork_plan.cut.turn_number:
            turn_text = f", in turn {fork_plan.cut.turn_number}"
        else:
            turn_text = ""
        facts.append(
            (
                "cut",
                (
                    f"{fork_plan.cut.requested_position}; the last record kept is "
                    f"{fork_plan.cut.last_message.line_number}{turn_text}"
                ),
            )
        )
    if fork_plan.relocation is not None:
        facts.append(
            (
                "home",
                f"{fork_plan.relocation.new_home} (was {fork_plan.relocation.old_home_folder})",
            )
        )
    return receipt_text(receipt, facts)
