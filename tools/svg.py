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

MIN_COLUMN_COUNT = 80
"""The minimum number of columns of a picture."""

FONT = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
BACKGROUND, TEXT, FAINT, EDGE = "#16181d", "#d7dae0", "#8b919c", "#3b4048"
"""The colours of the background, the text, faint text, and the edge that separates the window from
a dark page."""

SECONDS_PER_SCREEN = 3
"""The number of seconds for which an animation shows each screen."""

_NAMED_COLOURS = {
    "black": "#3b4048", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "yellow": "#e5c07b",
    "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d7dae0", "default": "",
}  # fmt: skip
_TEXT_PATTERN = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)


class Cell(NamedTuple):
    """A character and its style. The colours have the names that pyte uses."""

    character: str
    text_colour: str = "default"
    background_colour: str = "default"
    is_bold: bool = False
    is_reversed: bool = False


def draw_picture(rows: Sequence[Sequence[Cell]], title: str) -> str:
    """Return a picture of the rows as a window with a title."""
    return _draw_window(
        [rows], title, [*(_draw_row(row, number) for number, row in enumerate(rows))]
    )


def draw_animation(frames: Sequence[Sequence[Sequence[Cell]]], title: str) -> str:
    """Return a picture of a window that shows several screens, one after the other.

    If the reader's system reduces motion, the middle screen is shown.
    """
    whole = len(frames) * SECONDS_PER_SCREEN
    moves = [
        f"g{{animation:show {whole}s step-end infinite}}",
        f"@keyframes show{{0%{{opacity:1}}{100 / len(frames):.4g}%,100%{{opacity:0}}}}",
        *(
            f"g:nth-of-type({number + 1}){{animation-delay:{number * SECONDS_PER_SCREEN - whole}s}}"
            for number in range(len(frames))
        ),
        "@media (prefers-reduced-motion:reduce){g{animation:none}}",
    ]
    drawn_frames = []
    for number, rows in enumerate(frames):
        drawn_rows = [_draw_row(row, row_number) for row_number, row in enumerate(rows)]
        opacity = int(number == len(frames) // 2)
        drawn_frames.append(f'<g opacity="{opacity}">{"".join(drawn_rows)}</g>')
    return _draw_window(frames, title, [f"<style>{''.join(moves)}</style>", *drawn_frames])


def _draw_window(
    frames: Sequence[Sequence[Sequence[Cell]]], title: str, content_lines: Sequence[str]
) -> str:
    """Return a picture of a window that is large enough for all ``frames``, with the given content.

    The picture also contains the words of the screens as a description, for people who can't see
    it.
    """
    columns = max(
        [MIN_COLUMN_COUNT, *(len(_extract_row_text(row)) for rows in frames for row in rows)]
    )
    width, height = (
        round(columns * WIDTH + 2 * MARGIN),
        BAR + max(map(len, frames)) * HEIGHT + MARGIN,
    )
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    dots = "".join(
        f'<circle cx="{20 + 18 * number}" cy="17" r="5.5" fill="{colour}"/>'
        for number, colour in enumerate(("#e06c75", "#e5c07b", "#98c379"))
    )
    words = escape("\n".join(_extract_row_text(row) for rows in frames for row in rows))
    frame = (
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="9" '
        f'fill="{BACKGROUND}" stroke="{EDGE}"/>'
    )
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


def extract_lines(svg: str) -> list[str]:
    """Return the lines of text in the description of a picture."""
    found = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    return unescape(found[1]).split("\n") if found else []


def extract_drawn_text(svg: str) -> str:
    """Return all text that a picture draws, without white space."""
    return "".join("".join(unescape(text).split()) for text in _TEXT_PATTERN.findall(svg))


def _extract_row_text(row: Sequence[Cell]) -> str:
    return "".join(cell.character for cell in row).rstrip()


def _draw_row(row: Sequence[Cell], number: int) -> str:
    """Return the SVG of a row: first the background, then the words.

    Successive cells with the same style are drawn together.
    """
    top, place, backgrounds, letters = BAR + number * HEIGHT, 0, [], []
    for look, run in groupby(row, key=lambda cell: cell[1:]):
        text = "".join(cell.character or " " for cell in run)
        fore, back = _choose_colours(Cell("", *look))
        x = MARGIN + place * WIDTH
        if back:
            backgrounds.append(
                f'<rect x="{x:.1f}" y="{top}" width="{len(text) * WIDTH:.1f}" height="{HEIGHT}" fill="{back}"/>'
            )
        letters += _draw_words(text, place, top, fore, is_bold=look[2])
        place += len(text)
    return "".join([*backgrounds, *letters])


def _draw_words(
    text: str, column: int, top_pixels: int, colour: str, *, is_bold: bool
) -> list[str]:
    """Return the SVG of the words in a row of cells. ``column`` is the number of the first cell.

    Each word is drawn as wide as its cells in every font.
    """
    weight = ' font-weight="700"' if is_bold else ""
    return [
        f'<text x="{MARGIN + (column + word.start()) * WIDTH:.1f}" y="{top_pixels + 13}" '
        f'textLength="{len(word[0]) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs" fill="{colour}"{weight}>'
        f"{escape(word[0])}</text>"
        for word in re.finditer(r"\S+", text)
    ]


def _choose_colours(cell: Cell) -> tuple[str, str]:
    fore, back = _convert_colour(cell.text_colour) or TEXT, _convert_colour(cell.background_colour)
    return (back or BACKGROUND, fore) if cell.is_reversed else (fore, back)


def _convert_colour(colour: str) -> str:
    if re.fullmatch(r"[0-9a-f]{6}", colour):
        return f"#{colour}"
    return (
        FAINT if colour == "brightblack" else _NAMED_COLOURS.get(colour.removeprefix("bright"), "")
    )
