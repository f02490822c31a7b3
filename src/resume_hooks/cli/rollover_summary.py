"""``rollover`` with a summary: create the child with the digest, ask a model, and report the cost.

A dry run reports the size of the question instead.
"""

from __future__ import annotations

from typing import Any

from resume_hooks.cli.child import (
    caller_of,
    model_of,
    model_progress,
    print_child,
    receipt_text,
    require_client,
    time_limit,
)
from resume_hooks.cli.output import print_text
from resume_hooks.cli.verbs.children import RolloverOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.derive import summary
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.model.port import ModelCalls
from resume_hooks.derive.outcome import NothingWritten, OpenedSession
from resume_hooks.derive.summary import SummaryOutcome, SummaryRollover, read_summary_material
from resume_hooks.derive.verbs.rollover import rollover
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN


def roll_over(options: RolloverOptions) -> Receipt:
    """Create the child, or report what a model would read."""
    require_client(options)
    parent = options.locate_session(foreign=True)
    model = model_of(options.model, parent, options.where)

    def ask_for_summary(begun: SummaryRollover, written: Receipt) -> SummaryOutcome:
        progress = model_progress(model.name, quiet=options.as_json)
        calls = ModelCalls(model, time_limit(options.timeout), progress)
        try:
            return summary.add_summary(begun, written, calls, options.where)
        except KeyboardInterrupt:
            told = f"Interrupted: the digest alone is in the new session. {written.in_client}"
            print_text(told, err=True)
            raise

    outcome = rollover(parent, options.prompt, caller_of(options), ask_for_summary)
    match outcome:
        case OpenedSession(receipt=receipt, summary=SummaryOutcome() as made):
            return _print_rollover(receipt, made, model.name, options)
        case NothingWritten(receipt=receipt):
            return _print_dry_run(receipt, parent, model.name, options)
    raise TypeError(f"A rollover came to {outcome}")


def _print_rollover(
    receipt: Receipt, made: SummaryOutcome, name: str, options: RolloverOptions
) -> Receipt:
    spent, failure, check = made.spent, made.failure, made.checked
    if failure:
        warning = summary.describe_failure(failure)
        receipt = receipt._replace(warnings=(*receipt.warnings, warning))
        said = ["none"]
    else:
        said = [f"by {spent.model}"]
    if spent.words:
        said.append(spent.words)
    if check and check.words:
        said.append(check.words)
    report = _summary_report(
        name, included=not failure, failure=failure or None, spent=spent, checked=check
    )
    rows = [("summary", " · ".join(said))]
    return print_child(options, receipt, {"summary": report}, lambda: receipt_text(receipt, rows))


def _print_dry_run(
    receipt: Receipt, parent: SessionFile, name: str, options: RolloverOptions
) -> Receipt:
    found = read_summary_material(parent, options.where)
    tokens = round(found.characters / CHARACTERS_PER_TOKEN)
    said = (
        f"{name} would be asked {format_count(found.calls, 'time')} to read {len(found.numbers):,} of "
        f"{format_count(found.records, 'record')}, about {format_count(tokens, 'token')}"
    )
    report = _summary_report(name, material=With(found, {"tokens": tokens}))
    rows = [("summary", said)]
    return print_child(options, receipt, {"summary": report}, lambda: receipt_text(receipt, rows))


def _summary_report(name: str, **said: Any) -> dict[str, Any]:
    return {
        "included": False,
        "model": name,
        "failure": None,
        "material": None,
        "spent": None,
        "checked": None,
        **said,
    }
