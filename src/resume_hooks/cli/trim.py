"""``trim`` creates a child with placeholders for long contents. ``untrim`` restores these contents."""

from __future__ import annotations

from typing import Any

from resume_hooks import questions
from resume_hooks.cli.child import (
    check_results_text,
    make_caller_for_new_child,
    print_child,
    receipt_text,
    refuse_start_in_other_folder,
    refuse_start_without_client,
)
from resume_hooks.cli.options import locate_trim
from resume_hooks.cli.output import facts_table
from resume_hooks.cli.verbs.children import TrimOptions, UntrimOptions
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.outcome import NothingWritten, OpenedSession
from resume_hooks.derive.trim.options import EnteredOptions, make_options
from resume_hooks.derive.trim.plan import format_trim_preview
from resume_hooks.derive.untrim import UntrimPlan
from resume_hooks.derive.verbs.trim import TrimOutcome, trim
from resume_hooks.derive.verbs.trim_in_place import trim_in_place
from resume_hooks.derive.verbs.untrim import UntrimSpec, untrim
from resume_hooks.errors import UsageError
from resume_hooks.sessions.project_folder import home_folder_of_session


def trim_session(options: TrimOptions) -> Receipt:
    """Create a trimmed child and return its receipt. With ``--in-place``, trim the session itself.

    If the option of an installed part was given (``--smart``), the part creates the child.
    """
    for trim_with_part_option in options.find_part_functions(questions.trim_with_part_option):
        return trim_with_part_option(options)
    if options.force and not options.in_place:
        raise UsageError(
            "--force needs --in-place",
            "Leave out --force: a child of an open session does not need it.",
        )
    if options.in_place and options.output_dir is not None:
        raise UsageError(
            "--in-place rewrites the session's own file", "Leave --output-dir or --in-place out."
        )
    if options.force and options.start:
        raise UsageError(
            "--start would open a session that is already open", "Leave --start or --force out."
        )
    refuse_start_in_other_folder(options)
    typed_options = EnteredOptions(
        tools=options.tool_names,
        threshold=options.thresholds,
        keep_recent=options.kept_turn_count,
        assistant=options.trimmed_answer_count,
        target_tokens=options.target_tokens,
        only=options.only_rules,
        skip=options.skipped_rules,
        min_savings=options.min_saved_tokens,
    )
    trim_options = make_options(typed_options)
    caller = make_caller_for_new_child(options)
    fields: dict[str, Any] = {}
    if options.in_place:
        session = options.locate_session()
        refuse_start_without_client(
            options, home_folder_of_session(session.head_tail, options.where)
        )
        outcome = trim_in_place(session, trim_options, caller, force=options.force)
        fields = {"in_place": True, "backup": outcome.receipt.backup or None}
    else:
        outcome = trim(options.locate_session(allow_other_agents=True), trim_options, caller)
    fields["savings"] = outcome.plan
    return print_child(options, outcome.receipt, fields, lambda: _describe_trim_outcome(outcome))


def _describe_trim_outcome(outcome: TrimOutcome) -> str:
    receipt = outcome.receipt
    if isinstance(outcome, NothingWritten):
        return f"{format_trim_preview(outcome.plan)}\n\nNothing was written."
    notes = [("note", fact) for fact in outcome.facts]
    if not receipt.backup:
        return receipt_text(receipt, notes)
    return facts_table(
        [
            ("rewrote", receipt.title),
            ("id", receipt.session_id),
            ("file", receipt.file),
            ("backup", receipt.backup),
            ("tokens", f"{receipt.tokens_before:,} -> about {receipt.tokens_after:,}"),
            *notes,
            ("checks", check_results_text(receipt)),
            ("in Claude Code", receipt.client_command),
            ("in a shell", receipt.shell_command),
        ]
    )


def untrim_session(options: UntrimOptions) -> None:
    """Create a child with the original contents of a trimmed session."""
    refuse_start_in_other_folder(options)
    options.refuse_combination("everything", "record_numbers")
    session = locate_trim(options.locator, options.where)
    spec = UntrimSpec(options.everything, options.record_numbers, options.strict)
    outcome = untrim(session, spec, make_caller_for_new_child(options))
    fields = {"restoration": outcome.plan}
    print_child(options, outcome.receipt, fields, lambda: _describe_untrim_outcome(outcome))


def _describe_untrim_outcome(
    outcome: OpenedSession[UntrimPlan] | NothingWritten[UntrimPlan],
) -> str:
    plan, receipt = outcome.plan, outcome.receipt
    if isinstance(outcome, NothingWritten) and outcome.reason is not None:
        paragraphs = [f"{outcome.reason.message}."]
        if outcome.reason.remedy:
            paragraphs.append(f"  {outcome.reason.remedy}")
        return "\n\n".join([*paragraphs, "Nothing was written."])
    facts = [
        *(("restored", fact) for fact in plan.facts),
        ("characters", f"{plan.restored_character_count:,} more"),
    ]
    if plan.context_after.compacts_at_once:
        facts.append(
            (
                "note",
                "The client would compact the child at its first start: restore fewer records with --record.",
            )
        )
    return receipt_text(receipt, facts)
