"""Draw the cells of a terminal as an SVG picture without external fonts or scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape
from itertools import groupby
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN, BAR = 8.4, 18, 16, 34
"""The width and the height of a cell, the margin around the cells, and the height of the title bar,
in pixels."""

LEAST = 80
"""The minimum number of columns of a picture."""

FONT = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
GROUND, TEXT, FAINT, EDGE = "#16181d", "#d7dae0", "#8b919c", "#3b4048"
"""The colours of the background, the text, faint text, and the edge that separates the window from
a dark page."""

SECONDS = 3
"""The number of seconds for which an animation shows each screen."""

_NAMED_COLOURS = {
    "black": "#3b4048", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "yellow": "#e5c07b",
    "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d7dae0", "default": "",
}  # fmt: skip
_TEXT = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)


class Cell(NamedTuple):
    """A character and its style. The colours have the names that pyte uses."""

    character: str
    fore: str = "default"
    back: str = "default"
    bold: bool = False
    reverse: bool = False


def picture(rows: Sequence[Sequence[Cell]], title: str) -> str:
    """Return a picture of the rows as a window with a title."""
    return _draw_window([rows], title, [*(_row(row, number) for number, row in enumerate(rows))])


def animation(frames: Sequence[Sequence[Sequence[Cell]]], title: str) -> str:
    """Return a picture of a window that shows several screens, one after the other.

    If the reader's system reduces motion, the middle screen is shown.
    """
    whole = len(frames) * SECONDS
    moves = [
        f"g{{animation:show {whole}s step-end infinite}}",
        f"@keyframes show{{0%{{opacity:1}}{100 / len(frames):.4g}%,100%{{opacity:0}}}}",
        *(
            f"g:nth-of-type({number + 1}){{animation-delay:{number * SECONDS - whole}s}}"
            for number in range(len(frames))
        ),
        "@media (prefers-reduced-motion:reduce){g{animation:none}}",
    ]
    drawn_frames = [
        f'<g opacity="{int(number == len(frames) // 2)}">{"".join(_row(row, at) for at, row in enumerate(rows))}</g>'
        for number, rows in enumerate(frames)
    ]
    return _draw_window(frames, title, [f"<style>{''.join(moves)}</style>", *drawn_frames])


def _draw_window(
    frames: Sequence[Sequence[Sequence[Cell]]], title: str, content_lines: Sequence[str]
) -> str:
    """Return a picture of a window that is large enough for all ``frames``, with the given content.

    The picture also contains the words of the screens as a description, for people who can't see
    it.
    """
    columns = max([LEAST, *(len(_words(row)) for rows in frames for row in rows)])
    width, height = (
        round(columns * WIDTH + 2 * MARGIN),
        BAR + max(map(len, frames)) * HEIGHT + MARGIN,
    )
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    dots = "".join(
        f'<circle cx="{20 + 18 * number}" cy="17" r="5.5" fill="{colour}"/>'
        for number, colour in enumerate(("#e06c75", "#e5c07b", "#98c379"))
    )
    words = escape("\n".join(_words(row) for rows in frames for row in rows))
    frame = f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="9" fill="{GROUND}" stroke="{EDGE}"/>'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}" font-size="14">',
        f"<title>{escape(title)}</title>",
        f"<desc>{words}</desc>",
        f"{frame}{dots}",
        f'<text x="{width / 2:.0f}" y="22" fill="{FAINT}" font-size="12.5" text-anchor="middle">{escape(title)}</text>',
        *content_lines,
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def lines_of(svg: str) -> list[str]:
    """Return the lines of text in the description of a picture."""
    found = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    return unescape(found[1]).split("\n") if found else []


def drawn(svg: str) -> str:
    """Return all text that a picture draws, without white space."""
    return "".join("".join(unescape(text).split()) for text in _TEXT.findall(svg))


def _words(row: Sequence[Cell]) -> str:
    return "".join(cell.character for cell in row).rstrip()


def _row(row: Sequence[Cell], number: int) -> str:
    """Return the SVG of a row: first the background, then the words.

    Successive cells with the same style are drawn together.
    """
    top, place, behind, letters = BAR + number * HEIGHT, 0, [], []
    for look, run in groupby(row, key=lambda cell: cell[1:]):
        text = "".join(cell.character or " " for cell in run)
        fore, back = _colours(Cell("", *look))
        x = MARGIN + place * WIDTH
        if back:
            behind.append(
                f'<rect x="{x:.1f}" y="{top}" width="{len(text) * WIDTH:.1f}" height="{HEIGHT}" fill="{back}"/>'
            )
        letters += _letters(text, place, top, fore, bold=look[2])
        place += len(text)
    return "".join([*behind, *letters])


def _letters(text: str, place: int, top: int, fore: str, *, bold: bool) -> list[str]:
    """Return the SVG of the words in ``text``, each at the position of its cells in any font."""
    weight = ' font-weight="700"' if bold else ""
    return [
        f'<text x="{MARGIN + (place + word.start()) * WIDTH:.1f}" y="{top + 13}" '
        f'textLength="{len(word[0]) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs" fill="{fore}"{weight}>'
        f"{escape(word[0])}</text>"
        for word in re.finditer(r"\S+", text)
    ]


def _colours(cell: Cell) -> tuple[str, str]:
    fore, back = _hex(cell.fore) or TEXT, _hex(cell.back)
    return (back or GROUND, fore) if cell.reverse else (fore, back)


def _hex(colour: str) -> str:
    if re.fullmatch(r"[0-9a-f]{6}", colour):
        return f"#{colour}"
    return (
        FAINT if colour == "brightblack" else _NAMED_COLOURS.get(colour.removeprefix("bright"), "")
    )
