"""``lineage``: print a session's ancestors, its first ancestor, or its descendants."""

from __future__ import annotations

import io
from collections.abc import Iterator
from textwrap import indent

import click

from resume_hooks import questions
from resume_hooks.cli.verbs.sessions import LineageOptions
from resume_hooks.clock import format_minute
from resume_hooks.errors import UsageError
from resume_hooks.sessions.lineage import (
    MISSING_STATUS,
    REMARKS_BY_STATUS,
    Ancestor,
    Descendant,
    LineageFinder,
    omit_trimmed_sessions,
)
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.invocation import shell_command

# the width in columns that the tree reserves for a session's title and kind
MAX_LABEL_COLUMNS = 160
DEFAULT_SESSION_HINT = (
    "No session was named: this is the lineage of this folder's latest session. "
    "{} lists the other sessions."
)


def print_lineage(options: LineageOptions) -> None:
    """Print a session with its ancestors, or only the first ancestor, or the descendants.

    An installed part may add an option, such as ``--team``. If the option was given, a function of
    the part returns the rows and notes to print. This function can call ``_read_lineage_on_this_machine`` for
    the rows from this machine.
    """
    options.refuse_combination("omit_trimmed_sessions", "only_first_session", "show_descendants")
    if options.show_descendants:
        _print_descendants(options)
        return
    if options.as_tree or options.include_replaced_handoffs:
        raise UsageError("--tree and --all need --derived", "Add --derived.")
    notes: list[str] = []
    part_lineages = options.find_part_functions(questions.find_lineage_with_part_option)
    if part_lineages:
        rows, notes = part_lineages[0](options, _read_lineage_on_this_machine)
    else:
        rows = _read_lineage_on_this_machine(options)
    if options.only_first_session:
        shown_rows = rows[:1]
    elif options.omit_trimmed_sessions:
        shown_rows = omit_trimmed_sessions(rows)
    else:
        shown_rows = rows
    if options.locator:
        default_hint = ""
    else:
        default_hint = (
            f"\n\n{click.style(DEFAULT_SESSION_HINT.format(shell_command('sessions')), dim=True)}"
        )
    options.print_answer(
        {"rows": shown_rows},
        lambda: (
            f"{ancestor_line(rows[0]) if options.only_first_session else ancestors_text(shown_rows)}{default_hint}"
        ),
        notes,
    )


def _read_lineage_on_this_machine(options: LineageOptions) -> list[Ancestor]:
    return LineageFinder(options.where).find_lineage(
        options.locate_session(allow_other_agents=True).path
    )


def ancestors_text(rows: list[Ancestor]) -> str:
    """Return the rows of a lineage as text, numbered from the oldest session."""
    return "\n".join(
        f"{click.style(f'{number}.', bold=True)} {ancestor_line(row)}"
        for number, row in enumerate(rows, 1)
    )


def ancestor_line(row: Ancestor) -> str:
    """Return one row of a lineage as two or three lines of text.

    The title and the kind come first, then the id, the dates and the size, then the file.
    """
    if row.status == MISSING_STATUS:
        file_text = f"\n   {row.session_file}" if row.session_file else ""
        return (
            f"{click.style('(file gone)', fg='yellow')}\n   "
            f"{row.session_id or '(id unknown)'}{file_text}"
        )
    if row.status == "private":
        return f"{click.style('(private, or never pushed)', fg='yellow')}\n   {row.session_id}"
    dates = f"{format_minute(row.created_at)} .. {format_minute(row.ended_at)}"
    archived_text = click.style(REMARKS_BY_STATUS.get(row.status, ""), fg="yellow")
    owner_text = f" · {row.owner} on {row.machine}" if row.owner else ""
    file_or_command = row.session_file or shell_command(f"team pull {row.owner}:{row.session_id}")
    return (
        f"{row.title_and_origin}{archived_text}{owner_text}\n   "
        f"{row.session_id} · {dates} · {format_bytes(row.size)}\n   {file_or_command}"
    )


def _print_descendants(options: LineageOptions) -> None:
    if options.find_part_functions(questions.find_lineage_with_part_option):
        raise UsageError("--derived shows only the sessions of this machine", "Leave --team out.")
    session = options.locate_session(allow_other_agents=True)
    lineage_finder = LineageFinder(options.where)
    descendants = lineage_finder.find_descendants(session.session_id)
    if not options.include_replaced_handoffs:
        parents = {child.parent_session_id for child in descendants}
        descendants = [
            c
            for c in descendants
            if c.row.session_id in parents or not lineage_finder.is_row_superseded(c.row)
        ]

    def format_descendants() -> str:
        if not descendants:
            return f"{session.session_id} has no descendants yet."
        if options.as_tree:
            return _draw_descendants_tree(session.session_id, descendants)
        return _format_descendant_list(session.session_id, descendants)

    options.print_answer({"rows": [child.row for child in descendants]}, format_descendants)


def _format_descendant_list(root_id: str, descendants: list[Descendant]) -> str:
    """Return the descendants as text, each child below its parent and indented by two more columns."""

    def descendant_lines(parent_id: str, depth: int) -> Iterator[str]:
        for child in descendants:
            if child.parent_session_id == parent_id:
                yield indent(ancestor_line(child.row), "  " * depth)
                yield from descendant_lines(child.row.session_id, depth + 1)

    return "\n".join(descendant_lines(root_id, 0))


def _draw_descendants_tree(root_id: str, descendants: list[Descendant]) -> str:
    # Imported late because only the tree needs rich.
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    branches = {root_id: Tree(Text(root_id))}
    for child in descendants:
        label = Text(f"{child.row.title_and_origin}\n{child.row.session_id}")
        branches[child.row.session_id] = branches[child.parent_session_id].add(label)
    output = io.StringIO()
    # The console is wide enough for every line, because an id that is broken into two lines can't
    # be copied. Each generation is indented by four more columns.
    columns = MAX_LABEL_COLUMNS + 4 * len(descendants)
    Console(file=output, width=columns, no_color=True).print(branches[root_id])
    return output.getvalue().rstrip("\n")
