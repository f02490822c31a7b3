"""How the chooser looks: a head, the words that are typed, the list, a preview where there is room, a line of keys.

Invariant: every window is drawn at whatever size there is; what there is no room for is left out, the list last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import (
    ConditionalContainer,
    Container,
    Dimension,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl, UIContent, UIControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style

from resume_hooks.hooks.session_list.preview import KINDS, facts
from resume_hooks.hooks.session_list.rows import cut, listed, told, wrapped
from resume_hooks.hooks.session_list.state import Choices
from resume_hooks.search.listing import ListedSession

SHORT_HELP = "Enter opens · Tab preview · Ctrl+A all projects · Esc closes"
ASK = " · F1 or ? all keys"
LONG_HELP = (
    "type words      sessions that hold all of them: title, tag, branch, folder, id, first prompt; then what was said",
    "Up Down PgUp PgDn Home End    move          Enter    opens          Esc, Ctrl+C    closes",
    "Tab             what the preview shows: outline, lineage, table of all ways",
    "Ctrl+A          all projects, or this one alone          Ctrl+U    forget the words",
    "Ctrl+B          undo compaction: opens a fork from before it",
    "Ctrl+Y          copy the command that starts the client          F1, and ? where no word is typed    these lines",
)
BESIDE = 140  # columns of a terminal from which on the preview stands beside the list: the table takes 78
BELOW = 18  # rows of a terminal from which on the preview stands below the list
NARROWEST = 44  # columns of a terminal from which on a preview below can be read
TALL = 14  # rows of a terminal from which on all keys can be shown beside a list
PREVIEW_COLUMNS = 79
SAID = 5  # lines of what was said in a preview
STYLE = Style.from_dict(
    {
        "head": "bold",
        "chosen": "reverse",
        "aside": "ansibrightblack",
        "kind": "underline",
        "message": "bold",
    }
)


class Place(NamedTuple):
    """Where a preview is shown in a terminal of some size: beside the list, below it, or nowhere."""

    beside: bool
    below: bool


def place(columns: int, rows: int) -> Place:
    """Where there is room for a preview."""
    beside = columns >= BESIDE and rows >= 8
    return Place(beside, not beside and rows >= BELOW and columns >= NARROWEST)


class Shown(Protocol):
    """What the view asks of the chooser."""

    choices: Choices
    kind: str
    message: str
    helps: bool

    def head(self) -> str:
        """What is listed, and how much of it."""

    def nothing(self) -> str:
        """Why the list is empty."""

    def preview(self, row: ListedSession) -> Sequence[str]:
        """The lines of the preview of a session."""

    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""


class _Lines(UIControl):
    def __init__(self, make: Callable[[int, int], list[tuple[str, str]]]) -> None:
        self._make = make

    def create_content(self, width: int, height: int) -> UIContent:
        lines = self._make(width, height)

        def line(number: int) -> StyleAndTextTuples:
            return [lines[number]]

        return UIContent(line, len(lines), show_cursor=False)


def layout(shown: Shown, typed: Buffer) -> Layout:
    """All of the screen; ``typed`` is where words are typed."""
    search = Window(
        BufferControl(typed, input_processors=[BeforeInput("search: ", style="class:aside")]),
        height=1,
        dont_extend_height=True,
    )
    beside = _when(lambda: place(*shown.size()).beside, _preview(shown, width=Dimension.exact(PREVIEW_COLUMNS)))
    below = _when(
        lambda: place(*shown.size()).below, _preview(shown, height=lambda: Dimension.exact(shown.size()[1] // 2))
    )
    line = _when(lambda: place(*shown.size()).beside, Window(width=1, char="│", style="class:aside"))
    message = FormattedTextControl(lambda: [("class:message", shown.message)])
    said = Window(message, wrap_lines=True, height=Dimension(min=1, max=4), dont_extend_height=True)
    rows = Window(_Lines(lambda width, height: _rows(shown, width, height)), height=Dimension(min=1, weight=1))

    def foot() -> str:  # how to see all keys is said where there is room for them
        return SHORT_HELP + ASK if shown.size()[1] >= TALL else SHORT_HELP

    return Layout(
        HSplit(
            [
                _when(lambda: shown.size()[1] >= 4, _line(shown.head, "class:head")),
                search,
                VSplit([rows, line, beside]),
                below,
                _when(lambda: bool(shown.message), said),
                _when(lambda: shown.helps and shown.size()[1] >= TALL, _help(shown)),
                _when(lambda: shown.size()[1] >= 6, _line(foot, "class:aside")),
            ]
        ),
        focused_element=search,
    )


def _when(holds: Callable[[], bool], container: Container) -> Container:
    return ConditionalContainer(container, Condition(holds))


def _line(text: Callable[[], str], style: str) -> Window:
    return Window(_Lines(lambda width, _: [(style, cut(text(), width))]), height=1, dont_extend_height=True)


def _help(shown: Shown) -> Window:
    def lines(width: int, _height: int) -> list[tuple[str, str]]:
        return [("class:aside", part) for line in LONG_HELP for part in wrapped(line, width, 3)]

    def height() -> Dimension:
        return Dimension(min=len(LONG_HELP), preferred=len(lines(shown.size()[0], 0)))

    return Window(_Lines(lines), height=height, dont_extend_height=True)


def _rows(shown: Shown, width: int, height: int) -> list[tuple[str, str]]:
    now = time.time()
    page = shown.choices.page(height)
    if not page:
        return [("class:aside", cut(shown.nothing(), width))]
    lines = []
    for row, chosen in page:
        said = shown.choices.said_in(row)
        line = told(row, said, width, chosen=chosen) if said else listed(row, width, now, chosen=chosen)
        lines.append(("class:chosen" if chosen else "", line))
    return lines


def _said(shown: Shown, row: ListedSession, width: int) -> list[str]:
    """Where the words were said in a session that fits by that alone."""
    said = shown.choices.said_in(row)
    return ["", f"{said.strength} · {said.about}", *wrapped(said.snippet, width, SAID)] if said else []


def _preview(shown: Shown, **size: object) -> Window:
    def lines(width: int, height: int) -> list[tuple[str, str]]:
        row = shown.choices.chosen
        if row is None:
            return [("", "")]
        kinds = "  ".join(f"[{kind}]" if kind == shown.kind else kind for kind in KINDS)
        text = [kinds, *facts(row), *_said(shown, row, width), "", *shown.preview(row)]
        styles = ["class:kind", "class:head"]
        return [(styles[at] if at < len(styles) else "", cut(line, width)) for at, line in enumerate(text[:height])]

    return Window(_Lines(lines), **size)  # type: ignore[arg-type]
