"""``handoff``: a fresh child that knows its lineage and the next step."""

from __future__ import annotations

import click

from resume_hooks.cli.output import dry_run_option, json_option, located, locator_argument
from resume_hooks.cli.rollover import carry_out, output_dir_option, start_option


@click.command("handoff")
@locator_argument
@click.option("-n", "--next-step", default="", help="What the fresh session is to do first.")
@output_dir_option
@start_option
@dry_run_option
@json_option
def command(
    locator: str | None,
    next_step: str,
    output_dir: str | None,
    start: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a fresh session that holds the lineage of LOCATOR and the next step.

    The session itself is only read. The child is checked as read back before its id is printed.

    \b
    Examples:
      resume-hooks handoff -n "fix the tests"
      resume-hooks handoff 5e12a303 -n "write the changelog" --start
      resume-hooks handoff --dry-run --json
    """
    carry_out(
        located(locator),
        "handoff",
        next_step.strip(),
        output_dir=output_dir,
        start=start,
        dry_run=dry_run,
        as_json=as_json,
    )
