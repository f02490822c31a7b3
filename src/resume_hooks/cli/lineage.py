"""``lineage``: a session's ancestors, oldest first."""

from __future__ import annotations

import click

from resume_hooks.archive.retention.ancestors import archive_ancestors
from resume_hooks.cli.options import VerbOptions, as_one_value, json_option, locator_argument
from resume_hooks.clock import minute
from resume_hooks.sessions.lineage import LEFT, MISSING, Ancestor, Family, without_trims
from resume_hooks.sessions.lineage_block import size_text


@click.command("lineage")
@locator_argument
@click.option("--continued", is_flag=True, help="Leave trimmed sessions out.")
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Show a session's ancestors, oldest first, the session itself last.

    An ancestor whose file is gone is shown as missing, or as an archived copy if the vault has one.

    \b
    Examples:
      resume-hooks lineage
      resume-hooks lineage 5e12a303 --continued
      resume-hooks lineage "Fix the parser" --json
    """
    rows = Family(options.where).lineage(options.located(foreign=True).path)
    archive_ancestors(rows[:-1], options.where)  # nothing else notices a fork that the client made
    shown = without_trims(rows) if options.continued else rows
    options.emit({"rows": shown}, lambda: render(shown))


def render(rows: list[Ancestor]) -> str:
    """Rows for people, numbered from the oldest."""
    return "\n".join(f"{click.style(f'{number}.', bold=True)} {line(row)}" for number, row in enumerate(rows, 1))


def line(row: Ancestor) -> str:
    """One row: title, how derived, then id, dates, size and file."""
    if row.status == MISSING:
        named = f"\n   {row.session_file}" if row.session_file else ""
        return f"{click.style('(file gone)', fg='yellow')}\n   {row.session_id or '(id unknown)'}{named}"
    how = row.kind if row.kind == row.derivation_type else f"{row.derivation_type} by {row.kind}"
    dates = f"{minute(row.created)} .. {minute(row.ended)}"
    kept = click.style(LEFT.get(row.status, ""), fg="yellow")
    return f"{row.title} · {how}{kept}\n   {row.session_id} · {dates} · {size_text(row.size)}\n   {row.session_file}"
