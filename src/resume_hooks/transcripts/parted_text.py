"""A text of ours in parts: the client takes 10,000 characters of each hook, so that several hooks bring a long one.

Invariant: the parts of a text, put together in their order, are that text to the letter, and no
part is longer than ``MOST``. Lengths are in UTF-16 units, as the client counts. Standard library
and Python 3.9: the session hooks write here before the engine is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from resume_hooks.system.text import cut_to_utf16_units, utf16_length
from resume_hooks.transcripts.bookkeeping import FURTHER_PART

MOST = (
    9_800  # units of a part; the client takes 10,000, and puts a preview in place of a longer one
)
PARTS = 4  # the hooks that bring one each: hooks/hooks.json
LONGEST = 38_500  # units of a text for which so many parts always suffice
_ROOM = MOST - 100  # without the words that say which part it is
_NEAR = 100  # units before the end of a part in which a line that has to be cut is cut where a sentence ends

_ANY_ORDER = "(the parts may stand in any order)"
_FIRST = f"(Part 1 of {{}} of what this session starts with {_ANY_ORDER})"
_FURTHER = f"{FURTHER_PART}: part {{}} of {{}} {_ANY_ORDER}:"
_NUMBER = re.escape("{}")


def parts_of(text: str) -> list[str]:
    """The parts of a text of at most ``LONGEST`` units, each with its number.

    The text itself where it fits one.

    They end where lines end; within a line only where one is longer than a part, or the parts would
    not suffice.
    """
    if utf16_length(text) <= MOST:
        return [text]
    pieces = _by_lines(text)
    if len(pieces) > PARTS:
        pieces = _filled(text)
    first, *others = pieces
    line, end, rest = first.partition("\n")
    if not end:  # one line longer than a part: nothing stands before it
        line, rest = "", first
    count = len(pieces)
    headed = f"{line}{end}{_FIRST.format(count)}\n{rest}"
    return [
        headed,
        *(f"{_FURTHER.format(number, count)}\n{piece}" for number, piece in enumerate(others, 2)),
    ]


def put_together(texts: Iterable[str]) -> list[str]:
    """The texts that hooks brought, one that came in parts whole again, as far as all of it came."""
    first_line = re.compile(f"(?:[^\\n]*\\n)?({_pattern(_FIRST)}\\n)")
    further_line = re.compile(f"{_pattern(_FURTHER)}\\n")
    whole: list[str] = []
    parts: list[tuple[int, str]] = []
    at = 0  # where the text stands that came in parts
    for text in texts:
        if found := further_line.match(text):
            parts.append((int(found[1]), text[found.end() :]))
        elif found := first_line.match(text):
            at = len(whole)
            parts.append((1, text[: found.start(1)] + text[found.end(1) :]))
        else:
            whole.append(text)
    if parts:
        whole.insert(at, "".join(text for _, text in sorted(parts)))
    return whole


def _pattern(line: str) -> str:
    """The regular expression of a line that says which part of how many it is."""
    return re.escape(line).replace(_NUMBER, "([2-9])")


def _by_lines(text: str) -> list[str]:
    """The text in pieces of whole lines; a line that is longer than a piece is cut."""
    pieces: list[str] = []
    left = 0  # units that the last piece has room for
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        if utf16_length(line) <= left:
            pieces[-1] += line
            left -= utf16_length(line)
        else:
            pieces += _filled(line)
            left = _ROOM - utf16_length(pieces[-1])
    return pieces


def _filled(text: str) -> list[str]:
    """The text in as few pieces as there can be."""
    pieces = []
    while utf16_length(text) > _ROOM:
        pieces.append(_until_a_sentence_ends(text))
        text = text[len(pieces[-1]) :]
    return [*pieces, text]


def _until_a_sentence_ends(text: str) -> str:
    """As much of a text as a piece holds, up to the end of a line, of a sentence or of a word, if one is near."""
    piece = cut_to_utf16_units(text, _ROOM)
    near = len(cut_to_utf16_units(text, _ROOM - _NEAR))
    for end in ("\n", ". ", " "):
        at = piece.rfind(end, near)
        if at >= 0:
            return piece[: at + len(end)]
    return piece
