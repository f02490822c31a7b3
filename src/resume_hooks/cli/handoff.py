"""``handoff``: a fresh child that knows its lineage and the next step."""

from __future__ import annotations

from typing import Unpack

import click

from resume_hooks.cli.child import How, child_options
from resume_hooks.cli.output import located, locator_argument
from resume_hooks.cli.rollover import carry_out


@click.command("handoff")
@locator_argument
@click.option("-n", "--next-step", default="", help="What the fresh session is to do first.")
@child_options
def command(locator: str | None, next_step: str, **how: Unpack[How]) -> None:
    """Make a fresh session that holds the lineage of LOCATOR and the next step.

    The session itself is only read. The child is checked as read back before its id is printed.

    \b
    Examples:
      resume-hooks handoff -n "fix the tests"
      resume-hooks handoff 5e12a303 -n "write the changelog" --start
      resume-hooks handoff --dry-run --json
    """
    carry_out(located(locator), "handoff", next_step.strip(), **how)
