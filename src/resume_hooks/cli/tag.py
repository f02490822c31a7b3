"""``tag``: gives a session a tag, or takes it away."""

from __future__ import annotations

import click

from resume_hooks.cli.options import VerbOptions, as_one_value, complete_locator, dry_run_option, json_option
from resume_hooks.cli.rename import answer
from resume_hooks.errors import UsageError
from resume_hooks.sessions import rename


@click.command("tag")
@click.argument("locator", metavar="SESSION", shell_complete=complete_locator)
@click.argument("tag", required=False)
@click.option("--clear", is_flag=True, help="Take its tag away.")
@dry_run_option
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Give SESSION the tag TAG; a session has one, and several may have the same.

    A record is added to the end of its file, as the official SDK does; the session gets no newer by it.

    \b
    Examples:
      resume-hooks tag 5e12a303 experiment
      resume-hooks tag 5e12a303 --clear
    """
    tag: str | None = options.tag
    if (tag is None) is not options.clear:
        raise UsageError("Give either a TAG or --clear", "resume-hooks tag SESSION TAG")
    if tag is not None and not tag.strip():
        raise UsageError("An empty tag", "Give at least one character that can be seen, or --clear.")
    answer(options, rename.tagged(options.located(), tag or "", options.where), "tag")
