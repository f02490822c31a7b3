"""``rollover`` with a summary: the child with the digest, a model asked, what it took.

Or what it would take.
"""

from __future__ import annotations

from typing import Any

from resume_hooks.cli.child import (
    model_of,
    model_progress,
    print_child,
    receipt_text,
    require_client,
    require_start,
    time_limit,
)
from resume_hooks.cli.output import say
from resume_hooks.cli.verbs.children import RolloverOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.derive import summary
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import carry_out
from resume_hooks.derive.model.port import HeadlessModel, ModelCalls
from resume_hooks.derive.summary import material
from resume_hooks.system.text import plural
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN


def roll_over(options: RolloverOptions) -> Receipt:
    """Make the child, or show what would be made and read."""
    require_client(options)
    parent = options.locate_session(foreign=True)
    model = model_of(options.model, parent, options.where)
    begun = summary.plan(parent, options.where, wish=options.prompt, output_dir=options.output_dir)
    require_start(options, begun.plan.draft)
    if options.dry_run:
        return _show_rollover(begun, model.name, options)
    return _make_rollover(begun, model, options)


def _make_rollover(
    begun: summary.SummaryRollover, model: HeadlessModel, options: RolloverOptions
) -> Receipt:
    written = summary.write(begun, options.where)
    calls = ModelCalls(
        model, time_limit(options.timeout), model_progress(model.name, quiet=options.as_json)
    )
    try:
        made, spent, failure, check = summary.add_summary(begun, written, calls, options.where)
    except KeyboardInterrupt:
        say(f"Interrupted: the digest alone is in the new session. {written.in_client}", err=True)
        raise
    if failure:
        made = made._replace(warnings=(*made.warnings, summary.failure_text(failure)))
    report = _summary_report(
        model.name, included=not failure, failure=failure or None, spent=spent, checked=check
    )
    parts = (
        f"by {spent.model}" if not failure else "none",
        spent.words,
        check.words if check else "",
    )
    said = " · ".join(part for part in parts if part)
    return print_child(
        options, made, {"summary": report}, lambda: receipt_text(made, [("summary", said)])
    )


def _show_rollover(begun: summary.SummaryRollover, name: str, options: RolloverOptions) -> Receipt:
    made, found = (
        carry_out(begun.plan, options.where, dry_run=True),
        material(begun.parent, options.where),
    )
    tokens = round(found.characters / CHARACTERS_PER_TOKEN)
    said = (
        f"{name} would be asked {plural(found.calls, 'time')} to read {len(found.numbers):,} of "
        f"{plural(found.records, 'record')}, about {plural(tokens, 'token')}"
    )
    report = _summary_report(name, material=With(found, {"tokens": tokens}))
    return print_child(
        options, made, {"summary": report}, lambda: receipt_text(made, [("summary", said)])
    )


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
