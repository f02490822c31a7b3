"""``rollover --quick``, and what ``handoff`` shares with it: plan a child, write it, print its receipt."""

from __future__ import annotations

import os
from typing import Unpack

import click

from resume_hooks import quick_rollover
from resume_hooks.cli.child import How, answer, child_options, client_to_start, require_folder
from resume_hooks.cli.output import located, locator_argument
from resume_hooks.errors import UsageError
from resume_hooks.store import SessionFile


@click.command("rollover")
@locator_argument
@click.option("--quick", is_flag=True, help="Lineage only, no model is asked.")
@child_options
def command(locator: str | None, quick: bool, **how: Unpack[How]) -> None:
    """Make a fresh session that holds the lineage of LOCATOR and nothing else.

    The session itself is only read. The child is checked as read back before its id is printed.

    \b
    Examples:
      resume-hooks rollover --quick
      resume-hooks rollover 5e12a303 --quick --dry-run
      resume-hooks rollover "Fix the parser" --quick --start
    """
    if not quick:
        raise UsageError("rollover needs --quick", "resume-hooks rollover --quick")
    carry_out(located(locator), "rollover", "", **how)


def carry_out(parent: SessionFile, kind: str, next_step: str, **how: Unpack[How]) -> None:
    """Plan a child, write it unless this is a dry run, print the receipt, and start the client where asked."""
    client = client_to_start(how)
    decided = quick_rollover.plan(parent, os.environ, kind=kind, next_step=next_step, output_dir=how["output_dir"])
    require_folder(client, decided.birth.setting.cwd)
    made = quick_rollover.receipt(decided) if how["dry_run"] else quick_rollover.write(decided, os.environ)
    answer(kind, made, how, client)
