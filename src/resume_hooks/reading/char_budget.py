"""Shorten texts so that they fit into a limited number of characters.

Each text gets a share of the space, and the limit is never exceeded. A notice replaces each omitted
text. The notice contains the command that prints the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resume_hooks.system.text import format_count

# The prefix of every line of foreign text. A line without the prefix comes from this program.
INDENT = "  "
MESSAGE_SPACE_WEIGHT = 4  # A message gets this many times as much space as a tool's output.
# The minimum number of characters of a shortened text, including the notice about the omitted text.
MIN_TEXT_CHARACTERS = 160
# The number of characters reserved for a line that replaces omitted pieces.
RESERVED_GAP_CHARACTERS = 160
# The end of a tool's output gets one third of the output's space, because errors are at the end.
TAIL_SPACE_DIVISOR = 3
# The command ``read`` shortens a record only if it has more characters than this.
MAX_WHOLE_RECORD_CHARACTERS = 20_000
# The end of a shortened line, without and with the option that prints the whole text.
CUT_SIGN, CUT_HINT = "…", "… --max-chars 0"
# A shortened line ends with the hint only if it has at least this number of characters.
MIN_HINT_CHARACTERS = 3 * len(CUT_HINT)
# The line that replaces omitted pieces may be this many characters longer than estimated, because
# turn numbers differ in length.
GAP_TOLERANCE_CHARACTERS = 20

_UNINDENTED_LINE_START_PATTERN = re.compile(r"(?<=\n)(?=[^\s])")

DescribeGap = Callable[[int, int], str]
"""A function that returns the line that replaces the omitted pieces. Its arguments are the indexes
of the first and the last omitted piece."""


class TextPiece(NamedTuple):
    """A text of the output: a ``heading`` without indentation, and an indented ``body``.

    ``read_command`` is the command that prints the whole text. ``is_spoken`` means that the text is
    a message of the user or the model. A message has priority over tool output.
    ``cut_character_count`` is the number of characters that were cut out of the middle of the body.
    """

    heading: str
    body: str
    read_command: str
    is_spoken: bool
    cut_character_count: int = 0

    @property
    def character_count(self) -> int:
        """The number of characters of the whole piece, including the final line feed."""
        return len(self.heading) + 1 + (len(self.body) + 1 if self.body else 0)

    @property
    def min_characters(self) -> int:
        """The minimum number of characters that a shortened form of the piece needs."""
        return (
            len(self.heading)
            + 1
            + (min(len(self.body), MIN_TEXT_CHARACTERS) + 1 if self.body else 0)
        )


def indent_text(text: str) -> str:
    """Indent every line of a text from a transcript. Remove blank lines at its start and end."""
    if text.strip():
        return "\n".join(f"{INDENT}{line}".rstrip() for line in text.strip("\n").split("\n"))
    return ""


def cut_middle_and_count_characters(text: str, max_characters: int) -> tuple[str, int]:
    """Remove the middle of a text that would exceed ``max_characters`` characters in any format.

    Return the text and the number of removed characters. If ``max_characters`` is 0, nothing is
    removed.
    """
    max_kept_characters = 2 * max_characters + MIN_TEXT_CHARACTERS
    if not max_characters or len(text) <= 2 * max_kept_characters:
        return text, 0
    return text[:max_kept_characters] + text[-max_kept_characters:], len(
        text
    ) - 2 * max_kept_characters


def find_page_end(text: str, start: int, max_characters: int) -> int:
    """Return the end of the page that starts at ``start``.

    The page has at most ``max_characters`` characters (0: no limit). It ends before an unindented
    line, so that no indented message is split. If half of the page would then be empty, it ends
    after any line. If that is also impossible, it ends in the middle of a line.
    """
    end = start + max_characters
    if not max_characters or len(text) <= end:
        return len(text)
    half_page = start + max(1, max_characters // 2)
    margin_start = max(
        (
            match.start()
            for match in _UNINDENTED_LINE_START_PATTERN.finditer(text, half_page, end + 1)
        ),
        default=0,
    )
    return margin_start or text.rfind("\n", half_page, end) + 1 or end


def fit_pieces(
    head_text: str, pieces: Sequence[TextPiece], max_characters: int, describe_gap: DescribeGap
) -> str:
    """Return ``head_text`` and the pieces in at most ``max_characters`` characters (0: no limit).

    The limit includes the final line feed.
    """
    if (
        not max_characters
        or len(head_text) + 1 + sum(piece.character_count for piece in pieces) <= max_characters
    ):
        texts = [head_text]
        for piece in pieces:
            texts += filter(None, (piece.heading, piece.body))
        return "\n".join(texts)
    is_kept = _choose_pieces(pieces, max_characters - len(head_text) - 1)
    available_characters = max_characters
    # If the space that was reserved for gaps and notices was too small, try again with less space
    # for the texts.
    for _ in range(3):
        text = "\n".join(
            [
                head_text,
                *_format_pieces(
                    pieces, is_kept, available_characters - len(head_text) - 1, describe_gap
                ),
            ]
        )
        if len(text) < max_characters:
            return text
        available_characters -= len(text) - max_characters + 1
    return cut_lines(text, max_characters)


def fit_both_ends(
    head_text: str, blocks: Sequence[str], max_characters: int, describe_gap: DescribeGap
) -> str:
    """Return ``head_text``, and as many of the first and last blocks as fit into ``max_characters``.

    If ``max_characters`` is 0, there is no limit.
    """
    full_text = "\n".join([head_text, *blocks])
    if not blocks or not max_characters or len(full_text) < max_characters:
        return cut_lines(full_text, max_characters) if max_characters else full_text
    first, last = 0, len(blocks)
    available_characters = (
        max_characters
        - len(head_text)
        - len(describe_gap(0, len(blocks) - 1))
        - GAP_TOLERANCE_CHARACTERS
    )
    while first < last:
        takes_last = len(blocks) - last <= first
        available_characters -= len(blocks[last - 1] if takes_last else blocks[first]) + 1
        if available_characters < 1:
            break
        first, last = (first, last - 1) if takes_last else (first + 1, last)
    return cut_lines(
        "\n".join([head_text, *blocks[:first], describe_gap(first, last - 1), *blocks[last:]]),
        max_characters,
    )


def cut_lines(text: str, max_characters: int) -> str:
    """Cut a text at its end if it is too long, and add a sign that shows the cut."""
    if len(text) < max_characters:
        return text
    available_characters = max(0, max_characters - 1)
    sign = (CUT_HINT if available_characters >= MIN_HINT_CHARACTERS else CUT_SIGN)[
        :available_characters
    ]
    return text[: available_characters - len(sign)].rstrip() + sign


def divide_characters(
    sizes: Sequence[int], weights: Sequence[int], available_characters: int
) -> list[int]:
    """Divide ``available_characters`` among texts in proportion to their weights.

    Space that a text does not need is divided among the other texts.
    """
    shares = [0] * len(sizes)
    open_indexes = []
    for index, size in enumerate(sizes):
        if size:
            open_indexes.append(index)
    while open_indexes and available_characters > 0:
        characters_per_weight = available_characters / sum(weights[index] for index in open_indexes)
        whole_indexes = []
        for index in open_indexes:
            if sizes[index] <= characters_per_weight * weights[index]:
                whole_indexes.append(index)
        for index in whole_indexes or open_indexes:
            shares[index] = (
                sizes[index] if whole_indexes else int(characters_per_weight * weights[index])
            )
        if not whole_indexes:
            break
        available_characters -= sum(sizes[index] for index in whole_indexes)
        open_indexes = [index for index in open_indexes if not shares[index]]
    return shares


def cut_piece(piece: TextPiece, available_characters: int) -> str:
    """Return the body of a piece, shortened to ``available_characters`` characters.

    A notice says how many characters are missing. If nothing else fits, only the notice is
    returned.
    """
    body = piece.body
    if len(body) <= available_characters:
        return body
    notice = f"{INDENT}… {format_count(len(body) + piece.cut_character_count, 'more character')}: {piece.read_command}"
    text_characters = available_characters - len(notice) - 2
    if text_characters < len(INDENT) + 20:
        return f"{INDENT}… {format_count(len(body) + piece.cut_character_count, 'character')}: {piece.read_command}"
    # No notice is added to a shortened call, which already ends with the command that the notice
    # would contain.
    if piece.is_spoken or body.endswith(f"{piece.read_command})"):
        tail_characters = 0
    else:
        tail_characters = text_characters // TAIL_SPACE_DIVISOR
    omitted_characters = len(body) - text_characters + piece.cut_character_count
    notice = f"{INDENT}… {format_count(omitted_characters, 'more character')}: {piece.read_command}"
    if tail_characters > len(INDENT):
        tail_text = f"{INDENT}{body[len(body) - tail_characters + len(INDENT) :].lstrip()}"
    else:
        tail_text = ""
    return "\n".join(
        part
        for part in (body[: text_characters - tail_characters].rstrip(), notice, tail_text)
        if part
    )


def _choose_pieces(pieces: Sequence[TextPiece], available_characters: int) -> list[bool]:
    """Return for each piece whether it is kept in the text.

    If there is enough space for the minimum sizes of all pieces, all are kept. Otherwise as many as
    possible are kept: messages first, starting with the oldest, and then other pieces.
    """
    is_kept = [True] * len(pieces)
    if sum(piece.min_characters for piece in pieces) <= available_characters:
        return is_kept
    is_kept = [False] * len(pieces)
    available_characters -= RESERVED_GAP_CHARACTERS
    for is_message in (True, False):
        for index, piece in enumerate(pieces):
            if piece.is_spoken is not is_message:
                continue
            splits = (
                index > 0
                and not is_kept[index - 1]
                and index + 1 < len(is_kept)
                and not is_kept[index + 1]
            )
            # The kept piece divides a gap into two gaps.
            available_characters -= piece.min_characters + (
                RESERVED_GAP_CHARACTERS if splits else 0
            )
            if available_characters < 0:
                return is_kept
            is_kept[index] = True
    return is_kept


def _format_pieces(
    pieces: Sequence[TextPiece],
    is_kept: Sequence[bool],
    available_characters: int,
    describe_gap: DescribeGap,
) -> list[str]:
    gaps = {start: describe_gap(start, end) for start, end in _find_gaps(is_kept)}
    for line in gaps.values():
        available_characters -= len(line) + 1
    sizes, weights = [], []
    for piece, kept_flag in zip(pieces, is_kept, strict=True):
        if kept_flag:
            available_characters -= len(piece.heading) + 2
            sizes.append(len(piece.body))
            weights.append(MESSAGE_SPACE_WEIGHT if piece.is_spoken else 1)
    shares = iter(divide_characters(sizes, weights, available_characters))
    lines = []
    for index, piece in enumerate(pieces):
        if is_kept[index]:
            lines += [piece.heading, cut_piece(piece, next(shares))]
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
