"""``rollover``: a fresh child with a digest and a model's summary, or with its lineage alone."""

from __future__ import annotations

from typing import Unpack

import click

from resume_hooks.cli.child import answer, child_options, client_to_start, require_start
from resume_hooks.cli.model_options import SummaryHow
from resume_hooks.cli.output import located, locator_argument
from resume_hooks.derive import rollover
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import carry_out
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile


class RolloverHow(SummaryHow):
    """The options of any rollover."""

    quick: bool
    with_summary: bool


@click.command("rollover")
@locator_argument
@click.option("-p", "--prompt", default="", help="What the summary shall say most of, in your words.")
@click.option("--quick", is_flag=True, help="Lineage only, no model is asked.")
@click.option("--with-summary", is_flag=True, help="The same as without --quick.")
@click.option("--model", help="The model that writes it; by default the setting summary_model.")
@click.option("--timeout", type=click.IntRange(1), help="Seconds for all of it; by default summary_timeout.")
@child_options
def command(locator: str | None, **how: Unpack[RolloverHow]) -> Receipt:
    """Make a fresh session that holds the lineage of LOCATOR, a digest of it, and a summary by a model.

    The model is asked through the client, without tools and without a session. It reads LOCATOR in up to three parts;
    the session itself is only read. Where it gives no answer the digest alone is in the child, and the receipt says
    why. A dry run asks no model. The child is checked as read back before its id is printed.

    \b
    Examples:
      resume-hooks rollover
      resume-hooks rollover 5e12a303 -p "focus on the parser" --start
      resume-hooks rollover 5e12a303 --dry-run
      resume-hooks rollover "Fix the parser" --quick
    """
    if not how["quick"]:
        # What asks a model takes 100 ms to load, which a handoff need not wait for.
        from resume_hooks.cli.rollover_summary import carry_out  # noqa: PLC0415

        return carry_out(located(locator), how)
    if how["with_summary"] or how["prompt"] or how["model"] or how["timeout"]:
        raise UsageError("--quick asks no model", "Leave out --quick, or --with-summary, -p, --model and --timeout.")
    return _quick(located(locator), how)


def _quick(parent: SessionFile, how: RolloverHow) -> Receipt:
    client = client_to_start(how)
    decided = rollover.plan(parent, Where(), output_dir=how["output_dir"])
    require_start(client, decided.draft)
    made = carry_out(decided, Where(), dry_run=how["dry_run"])
    return answer("rollover", made, how, client)
