"""``rename``: gives a session a title, as ``/rename`` does in the client."""

from __future__ import annotations

import click

from resume_hooks.cli.options import VerbOptions, as_one_value, complete_locator, dry_run_option, json_option
from resume_hooks.cli.output import table
from resume_hooks.sessions import rename
from resume_hooks.sessions.rename import LabelChange


@click.command("rename")
@click.argument("locator", metavar="SESSION", shell_complete=complete_locator)
@click.argument("title")
@click.option("--force", is_flag=True, help="Even if another session of the project has that title.")
@dry_run_option
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Give SESSION the title TITLE.

    A record is added to the end of its file, as Claude Code's own /rename does; the session gets no newer by it. The
    title then names it here, in the client's picker, and in /resume TITLE. Titles stay unique within a project.

    \b
    Examples:
      resume-hooks rename 5e12a303 "Fix the parser"
      resume-hooks rename "Fix the parser" "Parser, first try" --dry-run
    """
    change = rename.renamed(options.located(), options.title, options.where, force=options.force)
    answer(options, change, "title")


def answer(options: VerbOptions, change: LabelChange, what: str) -> None:
    """Make a change unless it is a dry run, and say what was done; ``what`` is a title or a tag."""
    written = bool(change.records) and not options.dry_run
    if written:
        rename.write(change)
    data = {
        "session_id": change.session.session_id,
        "file": change.session.path,
        "old": change.old,
        "new": change.new,
        "written": written,
    }

    def text() -> str:
        if not change.records:
            return f"Its {what} is {change.new or 'none'} already. Nothing was written."
        facts = [(f"new {what}", change.new or "none"), (f"old {what}", change.old or "none")]
        facts += [("id", change.session.session_id), ("file", change.session.path)]
        return table(facts) + ("" if written else "\n\nNothing was written.")

    options.emit(data, text, change.warnings)
