"""Split long texts of this plugin into parts for several hooks, and join the parts again.

The client accepts at most 10,000 characters from each hook.

Invariant: the parts, joined in order, are exactly the text, and no part is longer than
``MAX_UTF16_UNITS_PER_PART``. Lengths are counted in UTF-16 units, as in the client. The module uses
only the standard library and runs with Python 3.9, because the session hooks import it before the
engine is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from resume_hooks.system.text import cut_to_utf16_units, utf16_length
from resume_hooks.transcripts.metadata_records import LATER_PART_PREFIX

# Maximum length of a part in UTF-16 units. If a text has more than 10,000 units, the client shows
# only a preview of it.
MAX_UTF16_UNITS_PER_PART = 9_800
MAX_PARTS = 4  # Number of hooks in hooks/hooks.json. Each hook delivers one part.
# A text of at most this number of units always fits into ``MAX_PARTS`` parts.
MAX_TEXT_UTF16_UNITS = 38_500
# Maximum length of a piece. The rest of the part is left for the line with its number.
_MAX_PIECE_UTF16_UNITS = MAX_UTF16_UNITS_PER_PART - 100
# To cut a long line, the end of a sentence is searched for in this many units before the maximum
# length of a piece.
_SENTENCE_SEARCH_UTF16_UNITS = 100

_PARTS_IN_ANY_ORDER_NOTE = "(the parts may stand in any order)"
_FIRST_PART_NOTE = f"(Part 1 of {{}} of what this session starts with {_PARTS_IN_ANY_ORDER_NOTE})"
_LATER_PART_HEADING = f"{LATER_PART_PREFIX}: part {{}} of {{}} {_PARTS_IN_ANY_ORDER_NOTE}:"
_ESCAPED_NUMBER_PLACEHOLDER = re.escape("{}")


def split_into_parts(text: str) -> list[str]:
    """Split a text of at most ``MAX_TEXT_UTF16_UNITS`` units into numbered parts.

    A text that fits into one part is returned unchanged. Parts end at the ends of lines. A line is
    cut only if it is longer than a part, or if there would be more than ``MAX_PARTS`` parts.
    """
    if utf16_length(text) <= MAX_UTF16_UNITS_PER_PART:
        return [text]
    pieces = _split_by_lines(text)
    if len(pieces) > MAX_PARTS:
        pieces = _split_into_fewest_pieces(text)
    first, *others = pieces
    line, end, rest = first.partition("\n")
    if not end:  # The first line is longer than a part.
        line, rest = "", first
    count = len(pieces)
    first_part = f"{line}{end}{_FIRST_PART_NOTE.format(count)}\n{rest}"
    return [
        first_part,
        *(
            f"{_LATER_PART_HEADING.format(number, count)}\n{piece}"
            for number, piece in enumerate(others, 2)
        ),
    ]


def join_parts(texts: Iterable[str]) -> list[str]:
    """Return the texts of hooks, with the parts of each split text joined, even if some parts are missing."""
    first_line = re.compile(f"(?:[^\\n]*\\n)?({_make_part_line_pattern(_FIRST_PART_NOTE)}\\n)")
    later_part_header = re.compile(f"{_make_part_line_pattern(_LATER_PART_HEADING)}\\n")
    joined_texts: list[str] = []
    parts: list[tuple[int, str]] = []
    text_index = 0  # The index at which the joined text is inserted.
    for text in texts:
        if match := later_part_header.match(text):
            parts.append((int(match[1]), text[match.end() :]))
        elif match := first_line.match(text):
            text_index = len(joined_texts)
            parts.append((1, text[: match.start(1)] + text[match.end(1) :]))
        else:
            joined_texts.append(text)
    if parts:
        joined_texts.insert(text_index, "".join(text for _, text in sorted(parts)))
    return joined_texts


def _make_part_line_pattern(line: str) -> str:
    """Return a regular expression that matches a line with the number of a part."""
    return re.escape(line).replace(_ESCAPED_NUMBER_PLACEHOLDER, "([2-9])")


def _split_by_lines(text: str) -> list[str]:
    """Split a text into pieces of whole lines. Only lines that are longer than a piece are cut."""
    pieces: list[str] = []
    remaining_units = 0  # The number of units that still fit into the last piece.
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        if utf16_length(line) <= remaining_units:
            pieces[-1] += line
            remaining_units -= utf16_length(line)
        else:
            pieces += _split_into_fewest_pieces(line)
            remaining_units = _MAX_PIECE_UTF16_UNITS - utf16_length(pieces[-1])
    return pieces


def _split_into_fewest_pieces(text: str) -> list[str]:
    pieces = []
    while utf16_length(text) > _MAX_PIECE_UTF16_UNITS:
        pieces.append(_cut_at_sentence(text))
        text = text[len(pieces[-1]) :]
    return [*pieces, text]


def _cut_at_sentence(text: str) -> str:
    """Return the first piece of a text, with at most ``_MAX_PIECE_UTF16_UNITS`` units.

    If a line, a sentence or a word ends near that length, the piece ends at that point.
    """
    piece = cut_to_utf16_units(text, _MAX_PIECE_UTF16_UNITS)
    search_start = len(
        cut_to_utf16_units(text, _MAX_PIECE_UTF16_UNITS - _SENTENCE_SEARCH_UTF16_UNITS)
    )
    for end in ("\n", ". ", " "):
        end_index = piece.rfind(end, search_start)
        if end_index >= 0:
            return piece[: end_index + len(end)]
    return piece
