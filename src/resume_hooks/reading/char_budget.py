"""Fit texts into a character budget.

No text crowds out the others, and the budget is never exceeded. A notice replaces each omitted
text. It contains the command that prints the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resume_hooks.system.text import format_count

# the prefix of every line of foreign text, so an unindented line always comes from this program
INDENT = "  "
MESSAGE_WEIGHT = 4  # how many times more space a message gets than a tool's output
# the minimum number of characters in a shortened text with its notice; a shorter text is useless
MIN_CHARACTERS = 160
GAP_CHARACTERS = 160  # the characters reserved for the line that stands for a gap
# the end of a tool's output gets one third of the output's space, because errors are at the end
TAIL_DIVISOR = 3
# the maximum number of characters in a record that ``read`` prints without an option
MAX_WHOLE_CHARACTERS = 20_000
# the end of a shortened line, first without and then with the option that prints everything
CUT_SIGN, CUT_HINT = "…", "… --max-chars 0"
HINT_CHARACTERS = 3 * len(
    CUT_HINT
)  # the minimum number of characters for the hint, so that the marker before it stays whole
# the characters by which a gap's line may exceed the widest one so far, because turn numbers grow
GAP_TOLERANCE = 20

_LINE_AT_MARGIN = re.compile(r"(?<=\n)(?=[^\s])")

DescribeGap = Callable[[int, int], str]
"""A function that returns the line for the omitted pieces, from the first index to the last."""


class TextPiece(NamedTuple):
    """A ``head`` without indentation and an indented ``body``. ``command`` prints the whole piece.

    A piece with ``voice`` is a message of the user or the model, and has priority over tool output.
    ``missing`` is the number of characters that ``cut_middle`` removed from the body.
    """

    head: str
    body: str
    command: str
    voice: bool
    missing: int = 0

    @property
    def length(self) -> int:
        """The number of characters of the whole piece, including the final line feed."""
        return len(self.head) + 1 + (len(self.body) + 1 if self.body else 0)

    @property
    def least(self) -> int:
        """The minimum number of characters that the piece needs."""
        return len(self.head) + 1 + (min(len(self.body), MIN_CHARACTERS) + 1 if self.body else 0)


def indent_text(text: str) -> str:
    """Format foreign text as a body: indent every line, and remove blank lines at both ends."""
    if text.strip():
        return "\n".join(f"{INDENT}{line}".rstrip() for line in text.strip("\n").split("\n"))
    return ""


def cut_middle(text: str, limit: int) -> tuple[str, int]:
    """Remove the middle of a text that is too long for any output of ``limit`` characters.

    Return the text and the number of removed characters. If ``limit`` is 0, nothing is removed.
    """
    reach = 2 * limit + MIN_CHARACTERS
    if not limit or len(text) <= 2 * reach:
        return text, 0
    return text[:reach] + text[-reach:], len(text) - 2 * reach


def find_page_end(text: str, start: int, limit: int) -> int:
    """Return the end of the page that starts at ``start`` and has at most ``limit`` characters (0: no limit).

    The page ends before an unindented line, so an indented message stays whole. If half of the page
    would then be empty, it ends after any line, or otherwise anywhere.
    """
    end = start + limit
    if not limit or len(text) <= end:
        return len(text)
    half = start + max(1, limit // 2)
    at_margin = max(
        (match.start() for match in _LINE_AT_MARGIN.finditer(text, half, end + 1)), default=0
    )
    return at_margin or text.rfind("\n", half, end) + 1 or end


def fit_pieces(opening: str, pieces: Sequence[TextPiece], limit: int, gap: DescribeGap) -> str:
    """Return ``opening`` and the pieces in at most ``limit`` characters (0: no limit), including the last line feed."""
    if not limit or len(opening) + 1 + sum(piece.length for piece in pieces) <= limit:
        texts = [opening]
        for piece in pieces:
            texts += filter(None, (piece.head, piece.body))
        return "\n".join(texts)
    is_kept = _choose_pieces(pieces, limit - len(opening) - 1)
    room = limit
    for _ in range(
        3
        # the space for gaps and notices is estimated generously; if an estimate was too small, try
        # again
    ):
        text = "\n".join([opening, *_lay_out_pieces(pieces, is_kept, room - len(opening) - 1, gap)])
        if len(text) < limit:
            return text
        room -= len(text) - limit + 1
    return cut_lines(text, limit)


def fit_both_ends(opening: str, blocks: Sequence[str], limit: int, gap: DescribeGap) -> str:
    """Return ``opening`` and as many blocks from both ends as fit into ``limit`` characters (0: no limit)."""
    full_text = "\n".join([opening, *blocks])
    if not blocks or not limit or len(full_text) < limit:
        return cut_lines(full_text, limit) if limit else full_text
    first, last = 0, len(blocks)
    room = limit - len(opening) - len(gap(0, len(blocks) - 1)) - GAP_TOLERANCE
    while first < last:
        from_end = len(blocks) - last <= first
        room -= len(blocks[last - 1] if from_end else blocks[first]) + 1
        if room < 1:
            break
        first, last = (first, last - 1) if from_end else (first + 1, last)
    return cut_lines(
        "\n".join([opening, *blocks[:first], gap(first, last - 1), *blocks[last:]]), limit
    )


def cut_lines(text: str, limit: int) -> str:
    """Shorten a text at its end and mark the omission, for a budget of only a few characters."""
    if len(text) < limit:
        return text
    room = max(0, limit - 1)
    sign = (CUT_HINT if room >= HINT_CHARACTERS else CUT_SIGN)[:room]
    return text[: room - len(sign)].rstrip() + sign


def divide_characters(sizes: Sequence[int], weights: Sequence[int], room: int) -> list[int]:
    """Divide ``room`` between texts in proportion to their weights.

    Space that a text does not need is given to the others, so short texts stay whole.
    """
    rooms = [0] * len(sizes)
    open_indexes = []
    for index, size in enumerate(sizes):
        if size:
            open_indexes.append(index)
    while open_indexes and room > 0:
        level = room / sum(weights[index] for index in open_indexes)
        satisfied = []
        for index in open_indexes:
            if sizes[index] <= level * weights[index]:
                satisfied.append(index)
        for index in satisfied or open_indexes:
            rooms[index] = sizes[index] if satisfied else int(level * weights[index])
        if not satisfied:
            break
        room -= sum(sizes[index] for index in satisfied)
        open_indexes = [index for index in open_indexes if not rooms[index]]
    return rooms


def cut_piece(piece: TextPiece, room: int) -> str:
    """Return the body of a piece in ``room`` characters, with a notice about the missing characters.

    If nothing else fits, only the notice is returned.
    """
    body = piece.body
    if len(body) <= room:
        return body
    notice = (
        f"{INDENT}… {format_count(len(body) + piece.missing, 'more character')}: {piece.command}"
    )
    room_for_text = room - len(notice) - 2
    if room_for_text < len(INDENT) + 20:
        return f"{INDENT}… {format_count(len(body) + piece.missing, 'character')}: {piece.command}"
    # A shortened call already ends with the command that the notice would contain.
    if piece.voice or body.endswith(f"{piece.command})"):
        tail = 0
    else:
        tail = room_for_text // TAIL_DIVISOR
    notice = f"{INDENT}… {format_count(len(body) - room_for_text + piece.missing, 'more character')}: {piece.command}"
    if tail > len(INDENT):
        tail_text = f"{INDENT}{body[len(body) - tail + len(INDENT) :].lstrip()}"
    else:
        tail_text = ""
    return "\n".join(
        part for part in (body[: room_for_text - tail].rstrip(), notice, tail_text) if part
    )


def _choose_pieces(pieces: Sequence[TextPiece], room: int) -> list[bool]:
    """Choose the pieces to keep: all if their minimum fits, else as many as fit.

    Messages are chosen first, from the first one on, then the other pieces.
    """
    is_kept = [True] * len(pieces)
    if sum(piece.least for piece in pieces) <= room:
        return is_kept
    is_kept = [False] * len(pieces)
    room -= GAP_CHARACTERS
    for voice in (True, False):
        for index, piece in enumerate(pieces):
            if piece.voice is not voice:
                continue
            splits = (
                index > 0
                and not is_kept[index - 1]
                and index + 1 < len(is_kept)
                and not is_kept[index + 1]
            )
            room -= piece.least + (GAP_CHARACTERS if splits else 0)  # one gap becomes two gaps
            if room < 0:
                return is_kept
            is_kept[index] = True
    return is_kept


def _lay_out_pieces(
    pieces: Sequence[TextPiece], is_kept: Sequence[bool], room: int, gap: DescribeGap
) -> list[str]:
    gaps = {start: gap(start, end) for start, end in _find_gaps(is_kept)}
    for line in gaps.values():
        room -= len(line) + 1
    sizes, weights = [], []
    for piece, kept_flag in zip(pieces, is_kept, strict=True):
        if kept_flag:
            room -= len(piece.head) + 2
            sizes.append(len(piece.body))
            weights.append(MESSAGE_WEIGHT if piece.voice else 1)
    rooms = iter(divide_characters(sizes, weights, room))
    lines = []
    for index, piece in enumerate(pieces):
        if is_kept[index]:
            lines += [piece.head, cut_piece(piece, next(rooms))]
        elif index in gaps:
            lines.append(gaps[index])
    return [line for line in lines if line]


def _find_gaps(is_kept: Sequence[bool]) -> list[tuple[int, int]]:
    gaps: list[tuple[int, int]] = []
    for index, kept_flag in enumerate(is_kept):
        if kept_flag:
            continue
        if gaps and gaps[-1][1] == index - 1:
            gaps[-1] = gaps[-1][0], index
        else:
            gaps.append((index, index))
    return gaps
