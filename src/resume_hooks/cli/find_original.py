"""``find-original``: where a lineage began."""

from __future__ import annotations

import click

from resume_hooks.cli.lineage import line
from resume_hooks.cli.options import VerbOptions, as_one_value, json_option, locator_argument
from resume_hooks.sessions.lineage import Family


@click.command("find-original")
@locator_argument
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Show the oldest known ancestor of a session; the session itself where it has none.

    \b
    Examples:
      resume-hooks find-original
      resume-hooks find-original 5e12a303 --json
    """
    root = Family(options.where).lineage(options.located().path)[0]
    options.emit(root, lambda: line(root))
