"""Make untrusted text safe for a terminal by removing control characters, and compute its width.

Titles, folders and branches come from transcripts, which may have been written by anyone. This
module needs only the standard library and Python 3.9.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

_ESCAPE_SEQUENCE_EXPRESSION = (
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\x9d\n]*(?:\x07|\x1b\\\\|\x9c)"
)
"""Matches a whole escape sequence that sets a colour, moves the cursor, or sets a title or a link.

From all other sequences, only the escape character is removed. Most patterns are compiled when they
are first used, because every hook imports this module.
"""

_LINE_BREAK_EXPRESSION = "\r\n?|[\x0b\x0c\x85\u2028\u2029]"
_CONTROL_CHARACTERS = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Control characters, and characters that change the order of text on the screen or are invisible.
"""

_CONTROL_PATTERN = f"[{_CONTROL_CHARACTERS}]"
_SURROGATE_EXPRESSION = "[\ud800-\udfff]"
# Matches any character that ``plain_text`` removes or replaces.
_UNSAFE_CHARACTER_PATTERN = re.compile(f"[{_CONTROL_CHARACTERS}\x0b-\r\u2028\u2029\ud800-\udfff]")
# A word with at least this many characters may be a token, a key or an address with a password, so
# it is not cut in the middle.
MIN_LONG_WORD_CHARACTERS = 16
# If a line begins with a long word that ``shorten_line`` must cut, this number of the word's
# characters is kept.
LONG_WORD_PREFIX_CHARACTERS = 8

_VISIBLE_ASCII = "".join(map(chr, range(33, 127)))
_PATH_BEGINNING_EXPRESSION = r"[\"'`(<\[]*(?:[A-Za-z][A-Za-z+]*:/|\.{0,2}|~)/"


def remove_escape_sequences(text: str) -> str:
    """Remove escape sequences, whose letters would otherwise become part of the next word."""
    if "\x1b" in text or "\x9b" in text:
        return re.sub(_ESCAPE_SEQUENCE_EXPRESSION, "", text)
    return text


def plain_text(text: str) -> str:
    """Remove control characters except tabs and line feeds.

    Other line breaks become line feeds, and unpaired surrogates become U+FFFD.
    """
    # Most texts are plain, and this check takes only a tenth of the time of the replacements.
    if not _UNSAFE_CHARACTER_PATTERN.search(text):
        return text
    lines = re.sub(_LINE_BREAK_EXPRESSION, "\n", re.sub(_ESCAPE_SEQUENCE_EXPRESSION, "", text))
    return re.sub(_SURROGATE_EXPRESSION, "\ufffd", re.sub(_CONTROL_PATTERN, "", lines))


# Matches a web address. It must not be escaped, because the client makes it a link.
_WEB_ADDRESS_EXPRESSION = r"(https?://\S+)"
# Matches a character that has a meaning in Markdown at any position.
_MARKDOWN_SIGN_EXPRESSION = r"[\\`*_~\[\]<&|]"
_TEXT_BEFORE_BLOCK_SIGN_EXPRESSION = (
    r"\s*(?=[-+](?:\s|$)|#+(?:\s|$)|>|-{2,}\s*$|=+\s*$)|\s*\d{1,9}(?=[.)](?:\s|$))"
)
"""Matches the text before a character that would turn the line into a list item, a heading, a quote
or a rule."""


def escape_markdown(text: str) -> str:
    """Escape ``text`` so that a program that displays Markdown shows every character of it.

    Lines that Markdown displays as code, which are indented lines after an empty line, are not
    escaped.
    """
    lines = []
    is_code, is_below_empty = False, False
    for line in text.split("\n"):
        is_code = line.startswith(("    ", "\t")) and (is_code or is_below_empty)
        is_below_empty = not line.strip()
        if is_code:
            lines.append(line)
        else:
            lines.append(_escape_line(line))
    return "\n".join(lines)


def _escape_line(line: str) -> str:
    parts = []
    rest = line
    text_before_marker = re.match(_TEXT_BEFORE_BLOCK_SIGN_EXPRESSION, line)
    if text_before_marker:
        parts.append(text_before_marker[0] + "\\")
        rest = line[text_before_marker.end() :]
    for index, part in enumerate(re.split(_WEB_ADDRESS_EXPRESSION, rest)):
        is_address = index % 2 == 1
        if is_address:
            parts.append(part)
        else:
            parts.append(re.sub(_MARKDOWN_SIGN_EXPRESSION, r"\\\g<0>", part))
    return "".join(parts)


TAG_BRACKET = "\u2039"
"""The character that replaces the angle bracket of a tag, so that programs display the tag as text.
"""


def replace_matches(text: str, changes: Sequence[tuple[re.Pattern[str], str]]) -> str:
    """Replace every match of each pattern.

    Full-width letters and invisible characters can hide a match. If a hidden match is found, the
    whole result is reduced to plain letters.
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


def replace_surrogates(text: str) -> str:
    """Replace each unpaired surrogate, which UTF-8 cannot encode, with a question mark."""
    return text.encode("utf-8", "replace").decode()


def replace_all_surrogates(value: Any) -> Any:
    """Apply ``replace_surrogates`` to every string in a JSON value, including keys."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {
            replace_all_surrogates(key): replace_all_surrogates(inner)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [replace_all_surrogates(inner) for inner in value]
    return value


def plain_line(text: str) -> str:
    """Return ``text`` as ``plain_text`` does, and also replace line feeds and tabs with spaces.

    Repeated spaces are kept, because they may belong to a path.
    """
    return plain_text(text).replace("\n", " ").replace("\t", " ")


def shorten_line(line: str, max_characters: int) -> str:
    """Cut a line to ``max_characters``, with an ellipsis at its end.

    A long word is not cut in the middle, because half a token would not be recognized as a secret.
    The whole word is left out, or, for a path or an address, the part after its last slash. If
    nothing else remains of the line, the beginning of the word is kept.
    """
    if len(line) <= max_characters:
        return line
    head, rest = line[: max_characters - 1], line[max_characters - 1 :][:MIN_LONG_WORD_CHARACTERS]
    start = len(head.rstrip(_VISIBLE_ASCII))
    continuation = len(rest) - len(rest.lstrip(_VISIBLE_ASCII))
    if (
        continuation
        and start < len(head)
        and len(head) - start + continuation >= MIN_LONG_WORD_CHARACTERS
    ):
        if re.match(_PATH_BEGINNING_EXPRESSION, head[start:]):
            kept_length = head.rfind("/") + 1
        else:
            kept_length = start
        head = head[: kept_length or LONG_WORD_PREFIX_CHARACTERS]
    return head.rstrip() + "…"


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units, which is the length that JavaScript clients use."""
    if text.isascii():
        return len(text)
    return len(_encode_utf16(text)) // 2


def cut_to_utf16_units(text: str, max_units: int) -> str:
    """Return the longest prefix of a text that has at most ``max_units`` UTF-16 units."""
    if text.isascii():
        return text[:max_units]
    return _encode_utf16(text)[: 2 * max_units].decode("utf-16-le", "ignore")


def _encode_utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "replace")


def format_count(count: int, noun: str) -> str:
    """Format a number with its noun. The noun is in the plural unless the number is one."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def collapse_line(text: str, max_characters: int) -> str:
    """Replace each run of white space in ``text`` with a space, and cut the result with ``shorten_line``."""
    return shorten_line(" ".join(text.split()), max_characters)


def quote_name(name: str) -> str:
    """Put a name in quotes if it contains unusual characters, for use in a sentence."""
    if _PLAIN_NAME_PATTERN.fullmatch(name):
        return name
    return '"{}"'.format(name.replace('"', "'"))


_PLAIN_NAME_PATTERN = re.compile(r"[\w./@+#=~-]+")

_ZERO_WIDTH_CATEGORIES = {"Mn", "Me", "Cf"}  # Unicode categories of characters that take no column


def text_width(text: str) -> int:
    """Return the number of columns that ``text`` takes on a terminal.

    A wide letter takes two columns, and a separate accent takes none.
    """
    if text.isascii():
        return len(text)
    return sum(map(_letter_width, text))


def fit_to_columns(text: str, max_columns: int) -> str:
    """Cut ``text`` to ``max_columns`` on a terminal, with an ellipsis at its end."""
    if text_width(text) <= max_columns:
        return text
    if max_columns < 1:
        return ""
    used_columns = 0
    for position, letter in enumerate(text):
        used_columns += _letter_width(letter)
        if used_columns > max_columns - 1:
            return f"{text[:position].rstrip()}…"
    return text


def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in _ZERO_WIDTH_CATEGORIES:
        return 0
    if unicodedata.east_asian_width(letter) in "WF":
        return 2
    return 1
