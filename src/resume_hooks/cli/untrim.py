"""``untrim``: a child of a trimmed session in which the originals stand again."""

from __future__ import annotations

from typing import Any, Unpack

import click

from resume_hooks import settings
from resume_hooks.cli.child import How, answer, child_options, client_to_start, receipt_text, require_start
from resume_hooks.cli.output import located, locator_argument
from resume_hooks.derive import untrim
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import carry_out
from resume_hooks.derive.untrim import TrimmedSession, UntrimPlan
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where


class UntrimHow(How):
    """The options of an untrim."""

    record: tuple[int, ...]
    everything: bool
    strict: bool


@click.command("untrim")
@locator_argument
@click.option(
    "--record", multiple=True, type=click.IntRange(0), metavar="N", help="Restore this line of LOCATOR's file."
)
@click.option("--all", "everything", is_flag=True, help="Restore every trimmed record.")
@click.option("--strict", is_flag=True, help="Write nothing where an original can't be found.")
@child_options
def command(locator: str | None, **how: Unpack[UntrimHow]) -> None:
    """Make a child of LOCATOR in which trimmed contents are back.

    The originals are read from the session that holds them, wherever it lies by now, or from the backup of an
    in-place trim. Messages, tool results, inputs, images and thinking stand again as they were.

    \b
    Examples:
      resume-hooks untrim 5e12a303 --all
      resume-hooks untrim 5e12a303 --record 41 --record 57
      resume-hooks untrim --all --dry-run
    """
    client = client_to_start(how)
    reading = untrim.read(located(locator), settings.number("context_window"))
    numbers = _numbers(reading, how)
    decided = untrim.plan(reading, Where(), numbers, strict=how["strict"], output_dir=how["output_dir"])
    require_start(client, decided.draft)
    made = carry_out(decided, Where(), dry_run=how["dry_run"])
    answer("untrim", made, how, client, more={"restoration": _data(decided)}, text=lambda: _text(decided, made))


def _numbers(reading: TrimmedSession, how: UntrimHow) -> tuple[int, ...] | None:
    """The records that are meant, None for all. UsageError where that was not said."""
    if how["everything"] and how["record"]:
        raise UsageError("--all and --record exclude each other", "Leave one of them out.")
    if reading.trimmed and not (how["everything"] or how["record"]):
        count = len(reading.trimmed)
        records = "1 record is" if count == 1 else f"{count:,} records are"
        raise UsageError(f"{records} trimmed: which shall be restored?", "--all, or --record N for one of them.")
    return how["record"] or None


def _data(decided: UntrimPlan) -> dict[str, Any]:
    return {
        "trimmed": decided.trimmed,
        "restored": len(decided.restored),
        "characters": decided.characters,
        "missing": [row._asdict() for row in decided.missing],
    }


def _text(decided: UntrimPlan, made: Receipt) -> str:
    if not decided.restored:
        return "Nothing in this session is trimmed.\n\nNothing was written."
    facts = [
        ("restored", f"{len(decided.restored):,} of {decided.trimmed:,} trimmed records"),
        ("characters", f"{decided.characters:,} more"),
    ]
    if decided.after.compacts_at_once:
        facts.append(("note", "Resuming would compact at once: restore less (--record)."))
    return receipt_text(made, facts)
