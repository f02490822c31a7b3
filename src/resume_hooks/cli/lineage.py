"""A session's lineage: its ancestors, the first of them, or its descendants."""

from __future__ import annotations

import io
from collections.abc import Iterator
from textwrap import indent

import click

from resume_hooks import questions
from resume_hooks.cli.verbs.sessions import LineageOptions
from resume_hooks.clock import format_minute
from resume_hooks.errors import UsageError
from resume_hooks.sessions.lineage import LEFT, MISSING, Ancestor, Descendant, Family, without_trims
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.invocation import shell_command

WIDEST_LABEL = 160  # columns for a title of wide letters with its kind
UNASKED = "No session was named: this is the lineage of the latest one here. {} lists the others."


def lineage(options: LineageOptions) -> None:
    """Print the ancestors and the session itself, or the first of them, or the descendants.

    If a part's option was given, the part returns the rows and notes. It gets the options and the
    function for the local rows, which raises SessionNotFound.
    """
    options.refuse_together("continued", "original", "derived")
    if options.derived:
        _print_derived(options)
        return
    if options.tree or options.everything:
        raise UsageError("--tree and --all belong to --derived", "Add --derived.")
    notes: list[str] = []
    lineages = options.asked_of_parts(questions.lineage_by_option)
    if lineages:
        rows, notes = lineages[0](options, _local_lineage)
    else:
        rows = _local_lineage(options)
    if options.original:
        shown = rows[:1]
    elif options.continued:
        shown = without_trims(rows)
    else:
        shown = rows
    if options.locator:
        taken = ""
    else:
        taken = f"\n\n{click.style(UNASKED.format(shell_command('sessions')), dim=True)}"
    options.emit(
        {"rows": shown},
        lambda: f"{ancestor_line(rows[0]) if options.original else ancestors_text(shown)}{taken}",
        notes,
    )


def _local_lineage(options: LineageOptions) -> list[Ancestor]:
    return Family(options.where).lineage(options.locate_session(foreign=True).path)


def ancestors_text(rows: list[Ancestor]) -> str:
    """Return rows as text, numbered from the oldest."""
    return "\n".join(
        f"{click.style(f'{number}.', bold=True)} {ancestor_line(row)}"
        for number, row in enumerate(rows, 1)
    )


def ancestor_line(row: Ancestor) -> str:
    """Return a row as text: title, how it was derived, then id, dates, size and file."""
    if row.status == MISSING:
        named = f"\n   {row.session_file}" if row.session_file else ""
        return (
            f"{click.style('(file gone)', fg='yellow')}\n   "
            f"{row.session_id or '(id unknown)'}{named}"
        )
    if row.status == "private":
        return f"{click.style('(private, or never pushed)', fg='yellow')}\n   {row.session_id}"
    dates = f"{format_minute(row.created)} .. {format_minute(row.ended)}"
    kept = click.style(LEFT.get(row.status, ""), fg="yellow")
    owned = f" · {row.owner} on {row.machine}" if row.owner else ""
    place = row.session_file or shell_command(f"team pull {row.owner}:{row.session_id}")
    return f"{row.title_and_origin}{kept}{owned}\n   {row.session_id} · {dates} · {size_text(row.size)}\n   {place}"


def _print_derived(options: LineageOptions) -> None:
    if options.asked_of_parts(questions.lineage_by_option):
        raise UsageError("--derived shows only the sessions of this machine", "Leave --team out.")
    session = options.locate_session(foreign=True)
    family = Family(options.where)
    found = family.descendants(session.session_id)
    if not options.everything:
        parents = {child.parent_session_id for child in found}
        found = [c for c in found if c.row.session_id in parents or not family.is_given_up(c.row)]

    def text() -> str:
        if not found:
            return f"{session.session_id} has no descendants yet."
        if options.tree:
            return _descendants_tree(session.session_id, found)
        return _descendants_text(session.session_id, found)

    options.emit({"rows": [child.row for child in found]}, text)


def _descendants_text(root_id: str, found: list[Descendant]) -> str:
    """Return every row below its parent, indented by two columns in each generation."""

    def below(parent_id: str, depth: int) -> Iterator[str]:
        for child in found:
            if child.parent_session_id == parent_id:
                yield indent(ancestor_line(child.row), "  " * depth)
                yield from below(child.row.session_id, depth + 1)

    return "\n".join(below(root_id, 0))


def _descendants_tree(root_id: str, found: list[Descendant]) -> str:
    # rich draws the tree; only this view needs it.
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    branches = {root_id: Tree(Text(root_id))}
    for child in found:
        label = Text(f"{child.row.title_and_origin}\n{child.row.session_id}")
        branches[child.row.session_id] = branches[child.parent_session_id].add(label)
    out = io.StringIO()
    # Never wrap a line: an id on two lines cannot be copied. A child is four columns deeper than
    # its parent.
    width = WIDEST_LABEL + 4 * len(found)
    Console(file=out, width=width, no_color=True).print(branches[root_id])
    return out.getvalue().rstrip("\n")
