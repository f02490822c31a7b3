"""``tag``: gives a session a tag, or takes it away."""

from __future__ import annotations

import click

from resume_hooks.cli.output import complete_locator, dry_run_option, json_option, located
from resume_hooks.cli.rename import answer
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions import rename


@click.command("tag")
@click.argument("locator", shell_complete=complete_locator)
@click.argument("tag", required=False)
@click.option("--clear", is_flag=True, help="Take its tag away.")
@dry_run_option
@json_option
def command(locator: str, tag: str | None, clear: bool, dry_run: bool, as_json: bool) -> None:
    """Give LOCATOR the tag TAG; a session has one, and several may have the same.

    A record is added to the end of its file, as the official SDK does; the session gets no newer by it.

    \b
    Examples:
      resume-hooks tag 5e12a303 experiment
      resume-hooks tag 5e12a303 --clear
    """
    if (tag is None) is not clear:
        raise UsageError("Give either a TAG or --clear", "resume-hooks tag LOCATOR TAG")
    if tag is not None and not tag.strip():
        raise UsageError("An empty tag", "Give at least one character that can be seen, or --clear.")
    answer("tag", rename.tagged(located(locator), tag or "", Where()), "tag", dry_run=dry_run, as_json=as_json)
