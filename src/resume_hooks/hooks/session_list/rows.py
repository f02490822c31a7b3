"""Format the rows of the session list as text with an exact width in columns.

Wide characters count as two columns. The functions of this module have no side effects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import accumulate

from resume_hooks.clock import format_duration
from resume_hooks.hooks.session_list.state import TurnHit
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import NAMES_OF_AGENTS_WITH_PARTIAL_SESSIONS
from resume_hooks.sessions.child_titles import kind_unless_in_title
from resume_hooks.system.text import fit_to_columns, plain_line, text_width

# marks at the beginning of rows: of the chosen row, and of every other row; without colours, only
# the mark shows which row is chosen
CHOSEN_MARK, OTHER_MARK = (
    "> ",
    "  ",
)

BRANCH_COLUMNS = 18  # the width in columns of a branch's name
STRENGTH_COLUMNS = 6  # the width in columns of a hit's strength
MAX_TITLE_COLUMNS = 44  # the maximum width in columns of a title before a hit's text
INDENT = "    "  # the indent of the line below a title
MIN_HIT_COLUMNS = 30  # the minimum width in columns of a row that shows a hit's text
# the maximum width in columns of the end of a title, which is a child's kind and number
MAX_TITLE_END_COLUMNS = 16


def cut_to_columns(text: str, columns: int) -> str:
    """Return ``text`` on one line, cut to a width of ``columns``."""
    if columns > 0:
        return fit_to_columns(plain_line(text), columns)
    return ""


def cut_title(text: str, columns: int) -> str:
    """Return a title of at most ``columns`` columns, for example ``Fix the pa… · handoff 2``.

    If the title is too long, its middle is left out, and its ending stays, because the ending
    distinguishes the children of a session. If the ending itself is too long, the title is cut at
    the right like any other text.
    """
    beginning, separator, title_end = plain_line(text).rpartition(" · ")
    max_beginning = columns - text_width(separator + title_end)
    if (
        not separator
        or text_width(title_end) > MAX_TITLE_END_COLUMNS
        or max_beginning < MAX_TITLE_END_COLUMNS
        or text_width(beginning) <= max_beginning
    ):
        return cut_to_columns(text, columns)
    return f"{cut_to_columns(beginning, max_beginning)}{separator}{title_end}"


def fill_columns(text: str, columns: int, *, align_right: bool = False) -> str:
    """Return ``text``, cut or padded with spaces to a width of exactly ``columns``."""
    cut_text = cut_to_columns(text, columns)
    padding = " " * (columns - text_width(cut_text))
    if align_right:
        return padding + cut_text
    return cut_text + padding


def age_text(row: ListedSession, now: float) -> str:
    """Return the time since the session was last written, or ``open`` if a client may have it open."""
    if row.is_open:
        return "open"
    return format_duration(max(0, int(now - row.mtime)))


def turn_count_text(row: ListedSession) -> str:
    """Return the number of turns as text, or ``""`` if the number is unknown."""
    if row.turn_count is None:
        return ""
    return f"{row.turn_count} turn{'' if row.turn_count == 1 else 's'}"


def context_percent_text(row: ListedSession) -> str:
    """Return the percentage of the context that is in use, or ``""`` if it is unknown."""
    if row.context_percent is None:
        return ""
    if row.context.is_estimate:
        return f"~{row.context_percent} %"
    return f"{row.context_percent} %"


_FACT_COLUMNS: Sequence[tuple[int, int, Callable[[ListedSession, float], str]]] = (
    (110, BRANCH_COLUMNS, lambda row, _: row.branch),
    (80, 10, lambda row, _: kind_unless_in_title(row.title, row.kind) if row.parent_id else ""),
    (70, 10, lambda row, _: turn_count_text(row)),
    (50, 6, lambda row, _: context_percent_text(row)),
    (30, 8, age_text),
)
"""The facts after a title. For each fact: the minimum width of a list that shows the fact, the
fact's own width, and the function that returns the fact's text."""


def session_line(row: ListedSession, columns: int, now: float, *, is_chosen: bool) -> str:
    """Return the row of a session with its title, and with as many facts as fit.

    The row is exactly ``columns`` columns wide.
    """
    facts = "".join(
        f" {fill_columns(fact_text(row, now), fact_columns, align_right=True)}"
        for min_columns, fact_columns, fact_text in _FACT_COLUMNS
        if columns >= min_columns
    )
    title_columns = columns - len(CHOSEN_MARK) - text_width(facts)
    title = fill_columns(cut_title(session_name(row), title_columns), title_columns)
    return f"{CHOSEN_MARK if is_chosen else OTHER_MARK}{title}{facts}"


def session_name(row: ListedSession) -> str:
    """Return a session's title with its tag. A session of another agent has the agent's name too."""
    if row.agent == CLAUDE_NAME:
        agent_text = ""
    else:
        agent_text = (
            f"{row.agent}{' only' if row.agent in NAMES_OF_AGENTS_WITH_PARTIAL_SESSIONS else ''} · "
        )
    tag = f"#{row.tag} " if row.tag else ""
    return f"{agent_text}{tag}{row.title}"


def hit_line(row: ListedSession, turn: TurnHit, columns: int, *, is_chosen: bool) -> str:
    """Return the row of a session with a hit: its title, the strength, and the text near the words."""
    remaining_columns = columns - len(CHOSEN_MARK) - STRENGTH_COLUMNS - 1
    title_columns = (
        min(MAX_TITLE_COLUMNS, remaining_columns * 2 // 5)
        if remaining_columns >= MIN_HIT_COLUMNS
        else max(0, remaining_columns)
    )
    title = fill_columns(cut_title(session_name(row), title_columns), title_columns)
    if remaining_columns >= MIN_HIT_COLUMNS:
        max_columns = remaining_columns - text_width(title) - 2
        hit_text = f"  {cut_snippet_start(turn.snippet, turn.match_position, max_columns)}"
    else:
        hit_text = ""
    return fill_columns(
        f"{CHOSEN_MARK if is_chosen else OTHER_MARK}{title} {turn.strength:>{STRENGTH_COLUMNS}}{hit_text}",
        columns,
    )


def hit_rows(row: ListedSession, turn: TurnHit, columns: int, *, is_chosen: bool) -> list[str]:
    """Return two rows for a session with a hit: title, strength and speaker, and below them the text."""
    facts = cut_to_columns(f" {turn.strength} · {turn.description}", columns * 3 // 5)
    title_columns = columns - len(CHOSEN_MARK) - text_width(facts)
    hit_text = cut_snippet_start(turn.snippet, turn.match_position, columns - len(INDENT))
    title = fill_columns(cut_title(session_name(row), title_columns), title_columns)
    return [
        f"{CHOSEN_MARK if is_chosen else OTHER_MARK}{title}{facts}",
        _line_below_title(hit_text, columns),
    ]


def first_prompt_rows(
    row: ListedSession, prompt: str, columns: int, time_now: float, *, is_chosen: bool
) -> list[str]:
    """Return two rows for a session: its usual row, and below it the beginning of its first prompt."""
    return [
        session_line(row, columns, time_now, is_chosen=is_chosen),
        _line_below_title(f"first prompt: {prompt}" if prompt else "", columns),
    ]


def _line_below_title(text: str, columns: int) -> str:
    return fill_columns(f"{INDENT}{text}", columns)


def cut_snippet_start(snippet: str, position: int, columns: int) -> str:
    """Return a snippet that begins shortly before the first matching word, which is at ``position``."""
    start = max(0, position - columns // 3)
    if not start:
        return snippet
    return f"… {snippet[start:].lstrip()}"


def wrap_to_columns(text: str, columns: int, max_lines: int) -> list[str]:
    """Return ``text`` on at most ``max_lines`` lines of ``columns`` columns.

    Lines are broken at spaces if possible. Text that does not fit is cut.
    """
    lines: list[str] = []
    remaining = plain_line(text)
    while remaining and columns > 1:
        if len(lines) == max_lines - 1:
            return [*lines, cut_to_columns(remaining, columns)]
        end = max(
            1,
            sum(
                total_width <= columns
                for total_width in accumulate(map(text_width, remaining[: 4 * columns]))
            ),
        )
        space = remaining.rfind(" ", 1, end + 1) if end < len(remaining) else -1
        if space > 0:
            line, remaining = (remaining[:space], remaining[space + 1 :])
        else:
            line, remaining = (remaining[:end], remaining[end:])
        lines.append(line)
    return lines


def shorten_home(folder: str) -> str:
    """Return a folder with ``~`` in place of the user's home folder, for display."""
    home = os.path.expanduser("~")
    if folder == home or folder.startswith(home + os.sep):
        return f"~{folder[len(home) :]}"
    return folder
