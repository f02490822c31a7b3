"""A long text of ours in parts: the client accepts 10,000 characters from each hook, so several hooks deliver it.

Invariant: the parts, joined in order, are exactly the text, and no part is longer than
``MAX_PART_UNITS``. Lengths are in UTF-16 units, as the client counts. Standard library and Python
3.9: the session hooks use this module before the engine is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from resume_hooks.system.text import cut_to_utf16_units, utf16_length
from resume_hooks.transcripts.metadata_records import LATER_PART_BEGINNING

# units of a part; the client replaces a text of more than 10,000 by a preview
MAX_PART_UNITS = 9_800
MAX_PARTS = 4  # the number of hooks in hooks/hooks.json that deliver one part each
MAX_TEXT_UNITS = 38_500  # a text of this many units always fits into ``MAX_PARTS`` parts
_MAX_PIECE_UNITS = MAX_PART_UNITS - 100  # without the words that number the part
# a long line is cut at the end of a sentence, which is searched in this many last units of a part
_SENTENCE_SEARCH_UNITS = 100

_ANY_ORDER_NOTE = "(the parts may stand in any order)"
_FIRST_PART_LINE = f"(Part 1 of {{}} of what this session starts with {_ANY_ORDER_NOTE})"
_LATER_PART_HEADER = f"{LATER_PART_BEGINNING}: part {{}} of {{}} {_ANY_ORDER_NOTE}:"
_NUMBER_FIELD = re.escape("{}")


def split_into_parts(text: str) -> list[str]:
    """Split a text of at most ``MAX_TEXT_UNITS`` units into numbered parts.

    Return the text itself if it fits into one part.

    Parts end where lines end. A line is cut only if it is longer than a part, or if there would be
    too many parts.
    """
    if utf16_length(text) <= MAX_PART_UNITS:
        return [text]
    pieces = _split_by_lines(text)
    if len(pieces) > MAX_PARTS:
        pieces = _split_into_fewest(text)
    first, *others = pieces
    line, end, rest = first.partition("\n")
    if not end:  # a line is longer than a part and has no line before it
        line, rest = "", first
    count = len(pieces)
    first_part = f"{line}{end}{_FIRST_PART_LINE.format(count)}\n{rest}"
    return [
        first_part,
        *(
            f"{_LATER_PART_HEADER.format(number, count)}\n{piece}"
            for number, piece in enumerate(others, 2)
        ),
    ]


def join_parts(texts: Iterable[str]) -> list[str]:
    """Return the texts of hooks, with the parts of a split text joined, as far as they arrived."""
    first_line = re.compile(f"(?:[^\\n]*\\n)?({_pattern_of_part_line(_FIRST_PART_LINE)}\\n)")
    later_part_header = re.compile(f"{_pattern_of_part_line(_LATER_PART_HEADER)}\\n")
    joined_texts: list[str] = []
    parts: list[tuple[int, str]] = []
    text_index = 0  # the position of the joined text
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


def _pattern_of_part_line(line: str) -> str:
    """Return the regular expression of a line that numbers a part."""
    return re.escape(line).replace(_NUMBER_FIELD, "([2-9])")


def _split_by_lines(text: str) -> list[str]:
    """Split a text into pieces of whole lines; cut a line that is longer than a piece."""
    pieces: list[str] = []
    remaining_units = 0  # remaining units in the last piece
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        if utf16_length(line) <= remaining_units:
            pieces[-1] += line
            remaining_units -= utf16_length(line)
        else:
            pieces += _split_into_fewest(line)
            remaining_units = _MAX_PIECE_UNITS - utf16_length(pieces[-1])
    return pieces


def _split_into_fewest(text: str) -> list[str]:
    """Split a text into as few pieces as possible."""
    pieces = []
    while utf16_length(text) > _MAX_PIECE_UNITS:
        pieces.append(_cut_at_sentence(text))
        text = text[len(pieces[-1]) :]
    return [*pieces, text]


def _cut_at_sentence(text: str) -> str:
    """Return the first piece of a text. It ends with a line, a sentence or a word if one ends near the limit."""
    piece = cut_to_utf16_units(text, _MAX_PIECE_UNITS)
    search_start = len(cut_to_utf16_units(text, _MAX_PIECE_UNITS - _SENTENCE_SEARCH_UNITS))
    for end in ("\n", ". ", " "):
        end_index = piece.rfind(end, search_start)
        if end_index >= 0:
            return piece[: end_index + len(end)]
    return piece
