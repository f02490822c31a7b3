"""Draw a terminal as a picture: cells become SVG, without any external font or script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape
from itertools import groupby
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN, BAR = 8.4, 18, 16, 34
"""The sizes in pixels of a cell, of the frame, and of the bar at the top."""

LEAST = 80
"""The number of columns of the narrowest picture."""

FONT = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
GROUND, TEXT, FAINT, EDGE = "#16181d", "#d7dae0", "#8b919c", "#3b4048"
"""The colour of the edge, which separates the window from a dark page."""

SECONDS = 3
"""The number of seconds for which each screen of an animation is shown."""

_NAMED_COLOURS = {
    "black": "#3b4048", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "yellow": "#e5c07b",
    "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d7dae0", "default": "",
}  # fmt: skip
_TEXT = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)


class Cell(NamedTuple):
    """A character and its style; colours have the names of pyte."""

    character: str
    fore: str = "default"
    back: str = "default"
    bold: bool = False
    reverse: bool = False


def picture(rows: Sequence[Sequence[Cell]], title: str) -> str:
    """Return the rows as a window with a title."""
    return _draw_window([rows], title, [*(_row(row, number) for number, row in enumerate(rows))])


def animation(frames: Sequence[Sequence[Sequence[Cell]]], title: str) -> str:
    """Return screens in one window, one after the other. Without animation, a middle screen is shown."""
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
    """Return a window that is large enough for all screens, with its content.

    The window also contains its words, for people who can't see it.
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
    """Return the lines of a picture as text."""
    found = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    return unescape(found[1]).split("\n") if found else []


def drawn(svg: str) -> str:
    """Return everything that is drawn, without white space."""
    return "".join("".join(unescape(text).split()) for text in _TEXT.findall(svg))


def _words(row: Sequence[Cell]) -> str:
    return "".join(cell.character for cell in row).rstrip()


def _row(row: Sequence[Cell], number: int) -> str:
    """Return a row: first the background, then the letters, one run of equal style at a time."""
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
    """Return the words of a run, each at the position of its cells, whatever the font is."""
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
