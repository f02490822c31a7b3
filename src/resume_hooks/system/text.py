"""Text that can't drive a terminal: control characters of foreign text never reach a screen.

How wide it is there.

Titles, folders and branches come from transcripts, which anybody may have written. Standard
library, Python 3.9.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

_SEQUENCE = (
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\x9d\n]*(?:\x07|\x1b\\\\|\x9c)"
)
"""Whole escape sequences: colours and cursor moves, titles and links.

Of any other only the escape goes.

This and most others are compiled when they are first used, since every hook loads this module.
"""

_BREAK = "\r\n?|[\x0b\x0c\x85\u2028\u2029]"
_CONTROLS = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Controls, and what reorders or hides text on the screen."""

_CONTROL = f"[{_CONTROLS}]"
_SURROGATE = "[\ud800-\udfff]"
_ODD = re.compile(
    f"[{_CONTROLS}\x0b-\r\u2028\u2029\ud800-\udfff]"
)  # anything that ``plain_text`` takes out or replaces
LONG_WORD = 16  # characters; a word of that length may be a token, a key or an address with a password in it
WORD_SHOWN = 8  # characters that are left of such a word if nothing stands before it

_SIGNS = "".join(map(chr, range(33, 127)))
_PATH = r"[\"'`(<\[]*(?:[A-Za-z][A-Za-z+]*:/|\.{0,2}|~)/"


def without_sequences(text: str) -> str:
    """``text`` without escape sequences: colours would stick to the words behind them."""
    if "\x1b" in text or "\x9b" in text:
        return re.sub(_SEQUENCE, "", text)
    return text


def plain_text(text: str) -> str:
    """``text`` with tabs and line feeds as its only controls, and U+FFFD for lone surrogates."""
    if not _ODD.search(text):  # most texts, at a tenth of the time
        return text
    lines = re.sub(_BREAK, "\n", re.sub(_SEQUENCE, "", text))
    return re.sub(_SURROGATE, "\ufffd", re.sub(_CONTROL, "", lines))


QUOTE = "\u2039"
"""Stands for the angle bracket of a tag that is to be plain words."""


def replace_matches(text: str, changes: Sequence[tuple[re.Pattern[str], str]]) -> str:
    """``text`` with every match of each pattern replaced, also those that only its plain letters hold.

    Letters of full width and what nobody sees in a word hide a match: of such a text the plain
    letters stay.
    """
    replaced = _replace_all(text, changes)
    letters = plain_text(replaced)
    if not letters.isascii():
        letters = unicodedata.normalize("NFKC", letters)
    if letters == replaced:
        return replaced
    for pattern, _ in changes:
        if pattern.search(letters):
            return _replace_all(letters, changes)
    return replaced


def _replace_all(text: str, changes: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in changes:
        text = pattern.sub(replacement, text)
    return text


def encodable(text: str) -> str:
    """``text`` with a question mark for each lone surrogate, which UTF-8 can't hold."""
    return text.encode("utf-8", "replace").decode()


def encodable_all(value: Any) -> Any:
    """A JSON value with every string in it ``encodable``."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable_all(key): encodable_all(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable_all(inner) for inner in value]
    return value


def plain_line(text: str) -> str:
    """``text`` as ``plain_text`` has it, on one line.

    Runs of spaces stay, since they may belong to a path.
    """
    return plain_text(text).replace("\n", " ").replace("\t", " ")


def shorten_line(line: str, limit: int) -> str:
    """A line cut to ``limit`` characters with an ellipsis.

    The cut never falls inside a long word: half a token is not recognised as a secret any more. The
    word is left out, a path or an address from its last slash on; if there is nothing else, its
    beginning stays.
    """
    if len(line) <= limit:
        return line
    head, rest = line[: limit - 1], line[limit - 1 :][:LONG_WORD]
    start = len(head.rstrip(_SIGNS))
    more = len(rest) - len(rest.lstrip(_SIGNS))
    if more and start < len(head) and len(head) - start + more >= LONG_WORD:
        if re.match(_PATH, head[start:]):
            kept = head.rfind("/") + 1
        else:
            kept = start
        head = head[: kept or WORD_SHOWN]
    return head.rstrip() + "…"


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units, as clients count that run JavaScript."""
    if text.isascii():
        return len(text)
    return len(_utf16(text)) // 2


def front_units(text: str, most: int) -> str:
    """The longest start of a text that fits in ``most`` UTF-16 units."""
    if text.isascii():
        return text[:most]
    return _utf16(text)[: 2 * most].decode("utf-16-le", "ignore")


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "replace")


def plural(count: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def one_line(text: str, limit: int) -> str:
    """``text`` with its white space collapsed, cut as ``shorten_line`` does."""
    return shorten_line(" ".join(text.split()), limit)


def quoted_name(name: str) -> str:
    """A name as it stands among words of ours: in quotes where it holds more than a name needs, and could go on."""
    if _NAME.fullmatch(name):
        return name
    return '"{}"'.format(name.replace('"', "'"))


_NAME = re.compile(r"[\w./@+#=~-]+")

_NO_WIDTH = {"Mn", "Me", "Cf"}  # kinds of characters that take no column


def width(text: str) -> int:
    """The columns that ``text`` takes on a terminal: two for a wide letter, none for an accent."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def fit_columns(text: str, most: int) -> str:
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
    if unicodedata.east_asian_width(letter) in "WF":
        return 2
    return 1
