"""``find-original``: where a lineage began."""

from __future__ import annotations

import click

from resume_hooks.cli.lineage import line, row_data
from resume_hooks.cli.output import emit, json_option, located, locator_argument
from resume_hooks.paths import Where
from resume_hooks.sessions.lineage import Family


@click.command("find-original")
@locator_argument
@json_option
def command(locator: str | None, as_json: bool) -> None:
    """Show the oldest known ancestor of a session; the session itself where it has none.

    \b
    Examples:
      resume-hooks find-original
      resume-hooks find-original 5e12a303 --json
    """
    root = Family(Where()).lineage(located(locator).path)[0]
    emit("find-original", row_data(root), lambda: line(root), as_json=as_json)
