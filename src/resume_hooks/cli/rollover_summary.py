"""``rollover`` with a summary: the child with the digest, a model asked, what it took; or what it would take."""

from __future__ import annotations

from typing import Any

from resume_hooks.cli.child import answer, client_to_start, receipt_text, require_start
from resume_hooks.cli.model_options import SummaryHow, model_name, progress, time_for
from resume_hooks.cli.output import say
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import receipt
from resume_hooks.derive.model.claude_headless import ClaudeHeadless
from resume_hooks.derive.summary import rollover
from resume_hooks.derive.summary.parts import SummaryMaterial, material
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import counted
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN


def carry_out(parent: SessionFile, how: SummaryHow) -> Receipt:
    """Make the child, or show what would be made and read."""
    client, name = client_to_start(how), model_name(how["model"])
    begun = rollover.plan(parent, Where(), wish=how["prompt"], output_dir=how["output_dir"])
    require_start(client, begun.plan.draft)
    if how["dry_run"]:
        return _show(begun, name, how)
    return _make(begun, name, how, client)


def _make(begun: rollover.SummaryRollover, name: str, how: SummaryHow, client: str) -> Receipt:
    written = rollover.write(begun, Where())
    model, told = ClaudeHeadless(Where(), name), progress(name, quiet=how["as_json"])
    try:
        made, spent, failure = rollover.add_summary(
            begun, written, model, Where(), limit=time_for(how["timeout"]), progress=told
        )
    except KeyboardInterrupt:
        say(f"Interrupted: the digest alone is in the new session. {written.in_client}", err=True)
        raise
    if failure:
        made = made._replace(warnings=(*made.warnings, rollover.failure_text(failure)))
    report = _report(name, included=not failure, failure=failure or None, spent=spent._asdict())
    said = " · ".join(part for part in (f"by {spent.model}" if not failure else "none", spent.words) if part)
    return answer(
        "rollover", made, how, client, more={"summary": report}, text=lambda: receipt_text(made, [("summary", said)])
    )


def _show(begun: rollover.SummaryRollover, name: str, how: SummaryHow) -> Receipt:
    """A dry run: the child with the digest, and what the model would be given."""
    made, found = receipt(begun.plan), material(begun.parent, Where())
    data = {
        "records": found.records,
        "shown": len(found.numbers),
        "characters": found.characters,
        "tokens": _tokens(found),
        "parts": len(found.parts),
        "calls": found.calls,
    }
    said = (
        f"{name} would be asked {counted(found.calls, 'time')} to read {len(found.numbers):,} of "
        f"{counted(found.records, 'record')}, about {counted(_tokens(found), 'token')}"
    )
    return answer(
        "rollover",
        made,
        how,
        "",
        more={"summary": _report(name, material=data)},
        text=lambda: receipt_text(made, [("summary", said)]),
    )


def _tokens(found: SummaryMaterial) -> int:
    return round(found.characters / CHARACTERS_PER_TOKEN)


def _report(name: str, **said: Any) -> dict[str, Any]:
    """The summary in its documented form."""
    return {"included": False, "model": name, "failure": None, "material": None, "spent": None, **said}
