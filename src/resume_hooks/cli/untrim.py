"""``untrim``: a child of a trimmed session in which the originals stand again."""

from __future__ import annotations

from typing import Any

from resume_hooks import settings
from resume_hooks.cli.child import answer, make, receipt_text, require_client
from resume_hooks.cli.verbs.children import UntrimOptions
from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trimmed_session import TrimmedSession, read_trimmed
from resume_hooks.derive.untrim import UntrimPlan
from resume_hooks.errors import UsageError


def untrim(options: UntrimOptions) -> None:
    """Make the child in which the originals stand."""
    require_client(options)
    reading = read_trimmed(options.located(foreign=True), settings.number("context_window"))
    numbers = _numbers(reading, options)
    decided = agents.untrim(reading, options.where, numbers, strict=options.strict, output_dir=options.output_dir)
    made = make(options, decided)
    answer(options, made, {"restoration": _data(decided)}, lambda: _text(decided, made))


def _numbers(reading: TrimmedSession, options: UntrimOptions) -> tuple[int, ...] | None:
    """The records to restore, None for all. UsageError if that was not said."""
    options.refuse_together("everything", "record")
    if reading.trimmed and not (options.everything or options.record):
        count = len(reading.trimmed)
        records = "1 record is" if count == 1 else f"{count:,} records are"
        raise UsageError(f"{records} trimmed: which ones do you want back?", "--all, or --record N for one of them.")
    numbers: tuple[int, ...] = options.record
    return numbers or None


def _data(decided: UntrimPlan) -> dict[str, Any]:
    return {
        "trimmed": decided.trimmed,
        "restored": len(decided.restored),
        "characters": decided.characters,
        "missing": decided.missing,
    }


def _text(decided: UntrimPlan, made: Receipt) -> str:
    if decided.is_idle:
        return "Nothing in this session is trimmed.\n\nNothing was written."
    facts = [
        *(("restored", fact) for fact in decided.facts),
        ("characters", f"{decided.characters:,} more"),
    ]
    if decided.after.compacts_at_once:
        facts.append(("note", "Resuming would compact at once: restore less (--record)."))
    return receipt_text(made, facts)
