"""How many columns of a terminal a text takes, and a text cut to some of them."""

from __future__ import annotations

import unicodedata

_NO_WIDTH = {"Mn", "Me", "Cf"}  # kinds of characters that take no column


def width(text: str) -> int:
    """The columns that ``text`` takes on a terminal: two for a wide letter, none for an accent."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def fitted(text: str, most: int) -> str:
    """``text``, cut to ``most`` columns with an ellipsis."""
    if width(text) <= most:
        return text
    if most < 1:
        return ""
    taken = 0
    for place, letter in enumerate(text):
        taken += _columns(letter)
        if taken > most - 1:
            return f"{text[:place].rstrip()}…"
    return text


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
