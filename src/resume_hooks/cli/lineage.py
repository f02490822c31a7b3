"""``lineage``: a session's ancestors, oldest first."""

from __future__ import annotations

import click

from resume_hooks.cli.verbs.sessions import LineageOptions
from resume_hooks.clock import minute
from resume_hooks.sessions.lineage import LEFT, MISSING, Ancestor, Family, without_trims
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.invocation import typed

UNASKED = "No session was named: this is the lineage of the latest one here. {} lists the others."


def lineage(options: LineageOptions) -> None:
    """Print the ancestors, the session itself last."""
    rows = _rows(options)
    shown = without_trims(rows) if options.continued else rows
    taken = "" if options.locator else f"\n\n{click.style(UNASKED.format(typed('sessions')), dim=True)}"
    options.emit({"rows": shown}, lambda: f"{render(shown)}{taken}")


def _rows(options: LineageOptions) -> list[Ancestor]:
    """The lineage as it is here; or as a part has it whose option was given.

    The part is given the options and the function for the former, which raises SessionNotFound.
    """
    asked = options.asked_of_parts()
    rows: list[Ancestor] = asked[0](options, _here) if asked else _here(options)
    return rows


def _here(options: LineageOptions) -> list[Ancestor]:
    return Family(options.where).lineage(options.located(foreign=True).path)


def render(rows: list[Ancestor]) -> str:
    """Rows for people, numbered from the oldest."""
    return "\n".join(f"{click.style(f'{number}.', bold=True)} {line(row)}" for number, row in enumerate(rows, 1))


def line(row: Ancestor) -> str:
    """One row: title, how derived, then id, dates, size and file."""
    if row.status == MISSING:
        named = f"\n   {row.session_file}" if row.session_file else ""
        return f"{click.style('(file gone)', fg='yellow')}\n   {row.session_id or '(id unknown)'}{named}"
    if row.status == "private":
        return f"{click.style('(private, or never pushed)', fg='yellow')}\n   {row.session_id}"
    dates = f"{minute(row.created)} .. {minute(row.ended)}"
    kept = click.style(LEFT.get(row.status, ""), fg="yellow")
    owned = f" · {row.owner} on {row.machine}" if row.owner else ""
    place = row.session_file or typed(f"team pull {row.owner}:{row.session_id}")
    return f"{row.title} · {row.kind}{kept}{owned}\n   {row.session_id} · {dates} · {size_text(row.size)}\n   {place}"
