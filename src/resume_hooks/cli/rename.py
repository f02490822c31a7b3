"""``rename``: gives a session a title, as ``/rename`` does in the client."""

from __future__ import annotations

import click

from resume_hooks.cli.output import complete_locator, dry_run_option, emit, json_option, located, table
from resume_hooks.paths import Where
from resume_hooks.sessions import rename
from resume_hooks.sessions.rename import LabelChange


@click.command("rename")
@click.argument("locator", shell_complete=complete_locator)
@click.argument("title")
@click.option("--force", is_flag=True, help="Even if another session of the project has that title.")
@dry_run_option
@json_option
def command(locator: str, title: str, force: bool, dry_run: bool, as_json: bool) -> None:
    """Give LOCATOR the title TITLE.

    A record is added to the end of its file, as Claude Code's own /rename does; the session gets no newer by it. The
    title then names it here, in the client's picker, and in /resume TITLE. Titles stay unique within a project.

    \b
    Examples:
      resume-hooks rename 5e12a303 "Fix the parser"
      resume-hooks rename "Fix the parser" "Parser, first try" --dry-run
    """
    change = rename.renamed(located(locator), title, Where(), force=force)
    answer("rename", change, "title", dry_run=dry_run, as_json=as_json)


def answer(verb: str, change: LabelChange, what: str, *, dry_run: bool, as_json: bool) -> None:
    """Make a change, unless it is only to be shown, and say what came of it."""
    written = bool(change.records) and not dry_run
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

    emit(verb, data, text, as_json=as_json, warnings=change.warnings)
