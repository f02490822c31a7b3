"""Rows of the chooser as text of a given width in columns, whatever the width of their characters.

Pure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import accumulate

from resume_hooks.clock import span
from resume_hooks.hooks.session_list.state import Said
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import PARTIAL
from resume_hooks.sessions.child_titles import kind_beside
from resume_hooks.system.text import fit_columns, plain_line, width

MARK, NO_MARK = "> ", "  "  # what the chosen row begins with; colours may be off

BRANCH = 18  # columns that a branch may fill
STRENGTH = 6  # columns that the word for how sure a hit is fills
TITLE = 44  # columns that a title may fill before what was said
INDENT = "    "  # before the words below a title
NARROW = 30  # columns of a row below which what was said is left out
END = 16  # columns that the end of a title may fill which tells a child's kind and number


def cut_to_columns(text: str, columns: int) -> str:
    """``text`` on one line in at most so many columns."""
    if columns > 0:
        return fit_columns(plain_line(text), columns)
    return ""


def cut_title(text: str, columns: int) -> str:
    """A title cut before the end that tells children of one session apart: ``Fix the pa… · handoff 2``."""
    front, dot, end = plain_line(text).rpartition(" · ")
    room = columns - width(dot + end)
    if not dot or width(end) > END or room < END or width(front) <= room:
        return cut_to_columns(text, columns)
    return f"{cut_to_columns(front, room)}{dot}{end}"


def fill_columns(text: str, columns: int, *, right: bool = False) -> str:
    """``text`` cut, and filled with spaces, to exactly so many columns."""
    shown = cut_to_columns(text, columns)
    blanks = " " * (columns - width(shown))
    if right:
        return blanks + shown
    return shown + blanks


def age_text(row: ListedSession, now: float) -> str:
    """How long ago a session was written; ``open`` while a client may have it so."""
    if row.open:
        return "open"
    return span(max(0, int(now - row.mtime)))


def turns_text(row: ListedSession) -> str:
    """How many turns a session has; ``""`` where its listing does not tell, since the preview beside it counts them."""
    if row.turns is None:
        return ""
    return f"{row.turns} turn{'' if row.turns == 1 else 's'}"


def context_percent_text(row: ListedSession) -> str:
    """How full its context is, in per cent; ``""`` where its end does not tell."""
    if row.percent is None:
        return ""
    if row.context.is_estimate:
        return f"~{row.percent} %"
    return f"{row.percent} %"


_FACTS: Sequence[tuple[int, int, Callable[[ListedSession, float], str]]] = (
    (110, BRANCH, lambda row, _: row.branch),
    (80, 10, lambda row, _: kind_beside(row.title, row.kind) if row.parent_id else ""),
    (70, 10, lambda row, _: turns_text(row)),
    (50, 6, lambda row, _: context_percent_text(row)),
    (30, 8, age_text),
)
"""What stands behind a title: the columns of the list from which on it is shown, its own, the words."""


def session_line(row: ListedSession, columns: int, now: float, *, chosen: bool) -> str:
    """The line of a session: a mark, its title, and what there is room for.

    Exactly so many columns.
    """
    facts = "".join(
        f" {fill_columns(words(row, now), own, right=True)}"
        for least, own, words in _FACTS
        if columns >= least
    )
    room = columns - len(MARK) - width(facts)
    return f"{MARK if chosen else NO_MARK}{fill_columns(cut_title(session_name(row), room), room)}{facts}"


def session_name(row: ListedSession) -> str:
    """What a session is called: whose it is where not this client's, or that its prompts alone are left; its tag."""
    if row.agent == NAME:
        whose = ""
    else:
        whose = f"{row.agent}{' only' if row.agent in PARTIAL else ''} · "
    tag = f"#{row.tag} " if row.tag else ""
    return f"{whose}{tag}{row.title}"


def hit_line(row: ListedSession, said: Said, columns: int, *, chosen: bool) -> str:
    """The line of a session in which the words were said: its title, how sure that is, and the words around them."""
    room = columns - len(MARK) - STRENGTH - 1
    own = min(TITLE, room * 2 // 5) if room >= NARROW else max(0, room)
    title = fill_columns(cut_title(session_name(row), own), own)
    if room >= NARROW:
        words = f"  {snippet_from_words(said.snippet, said.place, room - width(title) - 2)}"
    else:
        words = ""
    return fill_columns(
        f"{MARK if chosen else NO_MARK}{title} {said.strength:>{STRENGTH}}{words}", columns
    )


def hit_rows(row: ListedSession, said: Said, columns: int, *, chosen: bool) -> list[str]:
    """Two lines of a session: its title with how sure that is, who spoke, and below it the words in context."""
    facts = cut_to_columns(f" {said.strength} · {said.about}", columns * 3 // 5)
    room = columns - len(MARK) - width(facts)
    words = snippet_from_words(said.snippet, said.place, columns - len(INDENT))
    return [
        f"{MARK if chosen else NO_MARK}{fill_columns(cut_title(session_name(row), room), room)}{facts}",
        _line_below_title(words, columns),
    ]


def first_prompt_rows(
    row: ListedSession, prompt: str, columns: int, now: float, *, chosen: bool
) -> list[str]:
    """Two lines of a session that fits by its name: the usual one, and below it how its first prompt begins."""
    return [
        session_line(row, columns, now, chosen=chosen),
        _line_below_title(f"you, at first: {prompt}" if prompt else "", columns),
    ]


def _line_below_title(words: str, columns: int) -> str:
    return fill_columns(f"{INDENT}{words}", columns)


def snippet_from_words(snippet: str, place: int, columns: int) -> str:
    """What was said, from a little before the first of the words, which stands at ``place``."""
    start = max(0, place - columns // 3)
    if not start:
        return snippet
    return f"… {snippet[start:].lstrip()}"


def wrap_to_columns(text: str, columns: int, most: int) -> list[str]:
    """``text`` on at most so many lines of so many columns, cut between words where there are any."""
    lines: list[str] = []
    rest = plain_line(text)
    while rest and columns > 1:
        if len(lines) == most - 1:
            return [*lines, cut_to_columns(rest, columns)]
        end = max(1, sum(taken <= columns for taken in accumulate(map(width, rest[: 4 * columns]))))
        space = rest.rfind(" ", 1, end + 1) if end < len(rest) else -1
        if space > 0:
            line, rest = (rest[:space], rest[space + 1 :])
        else:
            line, rest = (rest[:end], rest[end:])
        lines.append(line)
    return lines


def home_short(folder: str) -> str:
    """A folder for people, with ``~`` for the home."""
    home = os.path.expanduser("~")
    if folder == home or folder.startswith(home + os.sep):
        return f"~{folder[len(home) :]}"
    return folder
