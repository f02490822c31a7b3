"""``rollover`` with a summary: create the child with its digest, ask a model, and print the cost.

A dry run asks no model. It prints the size of the text that a model would read.
"""

from __future__ import annotations

from typing import Any

from resume_hooks.cli.child import (
    find_requested_model,
    get_model_time_limit,
    make_caller_for_new_child,
    make_model_call_reporter,
    print_child,
    receipt_text,
    refuse_start_in_other_folder,
)
from resume_hooks.cli.output import print_text
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.children import RolloverOptions
from resume_hooks.derive import summary
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.model.port import ModelCalls
from resume_hooks.derive.outcome import NothingWritten, OpenedSession
from resume_hooks.derive.summary import SummaryResult, SummaryRollover, read_summary_material
from resume_hooks.derive.verbs.rollover import make_rollover
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN


def rollover_with_summary(options: RolloverOptions) -> Receipt:
    """Create a child with a digest and a model's summary, and return the child's receipt.

    A dry run prints what a model would read.
    """
    refuse_start_in_other_folder(options)
    parent = options.locate_session(allow_other_agents=True)
    model = find_requested_model(options.model, parent, options.where)

    def ask_for_summary(rollover_plan: SummaryRollover, child: Receipt) -> SummaryResult:
        progress = make_model_call_reporter(model.name, quiet=options.as_json)
        calls = ModelCalls(model, get_model_time_limit(options.timeout), progress)
        try:
            return summary.add_summary(rollover_plan, child, calls, options.where)
        except KeyboardInterrupt:
            message = f"Interrupted: the new session has only the digest. {child.client_command}"
            print_text(message, err=True)
            raise

    outcome = make_rollover(
        parent, options.prompt, make_caller_for_new_child(options), ask_for_summary
    )
    match outcome:
        case OpenedSession(receipt=receipt, summary=SummaryResult() as summary_outcome):
            return _print_rollover(receipt, summary_outcome, model.name, options)
        case NothingWritten(receipt=receipt):
            return _print_dry_run(receipt, parent, model.name, options)
    raise TypeError(f"Unexpected outcome of a rollover: {outcome}")


def _print_rollover(
    receipt: Receipt, summary_outcome: SummaryResult, model_name: str, options: RolloverOptions
) -> Receipt:
    spent, failure, sentence_check = (
        summary_outcome.costs,
        summary_outcome.failure_reason,
        summary_outcome.checked_summary,
    )
    if failure:
        warning = summary.describe_summary_failure(failure)
        receipt = receipt._replace(warnings=(*receipt.warnings, warning))
        summary_facts = ["none"]
    else:
        summary_facts = [f"by {spent.model}"]
    if spent.description:
        summary_facts.append(spent.description)
    if sentence_check and sentence_check.description:
        summary_facts.append(sentence_check.description)
    report = _make_summary_report(
        model_name,
        included=not failure,
        failure=failure or None,
        spent=spent,
        checked=sentence_check,
    )
    rows = [("summary", " · ".join(summary_facts))]
    return print_child(options, receipt, {"summary": report}, lambda: receipt_text(receipt, rows))


def _print_dry_run(
    receipt: Receipt, parent: SessionFile, model_name: str, options: RolloverOptions
) -> Receipt:
    material = read_summary_material(parent, options.where)
    tokens = round(material.character_count / CHARACTERS_PER_TOKEN)
    summary_fact = (
        f"{model_name} would be asked {format_count(material.call_count, 'time')} to read "
        f"{len(material.record_numbers):,} of {format_count(material.record_count, 'record')}, "
        f"about {format_count(tokens, 'token')}"
    )
    report = _make_summary_report(
        model_name, material=ValueWithFields(material, {"tokens": tokens})
    )
    rows = [("summary", summary_fact)]
    return print_child(options, receipt, {"summary": report}, lambda: receipt_text(receipt, rows))


def _make_summary_report(model_name: str, **fields: Any) -> dict[str, Any]:
    return {
        "included": False,
        "model": model_name,
        "failure": None,
        "material": None,
        "spent": None,
        "checked": None,
        **fields,
    }
