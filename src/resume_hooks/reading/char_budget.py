"""Texts within a budget of characters: shared so that one huge piece crowds out no other, never exceeded.

Whatever is left out is said where it stood, with the words that get it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resume_hooks.system.text import format_count

INDENT = (
    "  "  # before every line of foreign text, so that a line at the margin is always one of ours
)
VOICE = 4  # how much more of the room a prompt or an answer gets than the output of a tool
LEAST = 160  # characters that a cut text has at least with its notice; a shorter text is useless
GAP = 160  # characters that are kept free for the line that tells of a gap
TAIL_SHARE = 3  # of the output of a tool a third of the room is for its end, where errors stand
WHOLE = 20_000  # characters of a record that ``read`` prints unasked
CUT, CUT_HINT = "…", "… --max-chars 0"  # how a cut line ends, and with the words that print all
HINTED = 3 * len(
    CUT_HINT
)  # characters from which on the words have room, so that the marker before them stays whole
SPARE = 20  # characters by which the line of a gap may be longer than that of the widest one: numbers of turns grow

_AT_MARGIN = re.compile(r"(?<=\n)(?=[^\s])")

Gap = Callable[[int, int], str]
"""The line that stands for the pieces from the first to the last of these places, both left out."""


class TextPiece(NamedTuple):
    """A ``head`` at the margin and the ``body`` below it; ``command`` prints the whole of it.

    ``voice``: a person or the model speaks, so that it is kept before what tools say. ``missing``
    characters were taken out of the middle of a body that is longer than any room there is
    (``cut_middle``).
    """

    head: str
    body: str
    command: str
    voice: bool
    missing: int = 0

    @property
    def length(self) -> int:
        """Characters of the whole piece, with the line feed at its end."""
        return len(self.head) + 1 + (len(self.body) + 1 if self.body else 0)

    @property
    def least(self) -> int:
        """The least characters of the piece."""
        return len(self.head) + 1 + (min(len(self.body), LEAST) + 1 if self.body else 0)


def indent_text(text: str) -> str:
    """Foreign text as a body: every line set off from the margin, blank ends cut."""
    if text.strip():
        return "\n".join(f"{INDENT}{line}".rstrip() for line in text.strip("\n").split("\n"))
    return ""


def cut_middle(text: str, limit: int) -> tuple[str, int]:
    """A text without the middle that no answer of ``limit`` characters could hold, and its length; 0: no limit."""
    reach = 2 * limit + LEAST
    if not limit or len(text) <= 2 * reach:
        return text, 0
    return text[:reach] + text[-reach:], len(text) - 2 * reach


def page_end(text: str, start: int, limit: int) -> int:
    """Where a page of a text ends that begins at ``start`` and has at most ``limit`` characters; 0: no limit.

    Before a line at the margin, so that an indented message stays in one piece; if that leaves half
    of the page empty, after any line; if that does, too, anywhere.
    """
    end = start + limit
    if not limit or len(text) <= end:
        return len(text)
    half = start + max(1, limit // 2)
    at_margin = max(
        (found.start() for found in _AT_MARGIN.finditer(text, half, end + 1)), default=0
    )
    return at_margin or text.rfind("\n", half, end) + 1 or end


def fit(opening: str, pieces: Sequence[TextPiece], limit: int, gap: Gap) -> str:
    """``opening`` and the pieces in at most ``limit`` characters with the last line feed; 0 sets no limit."""
    if not limit or len(opening) + 1 + sum(piece.length for piece in pieces) <= limit:
        texts = [opening]
        for piece in pieces:
            texts += filter(None, (piece.head, piece.body))
        return "\n".join(texts)
    kept = _choose_pieces(pieces, limit - len(opening) - 1)
    room = limit
    for _ in range(
        3
    ):  # what is promised of each gap and notice is generous; once more where it was not
        text = "\n".join([opening, *_lay_out_pieces(pieces, kept, room - len(opening) - 1, gap)])
        if len(text) < limit:
            return text
        room -= len(text) - limit + 1
    return cut_lines(text, limit)


def fit_ends(opening: str, blocks: Sequence[str], limit: int, gap: Gap) -> str:
    """``opening`` and as many blocks of both ends as ``limit`` characters hold; 0 sets no limit."""
    whole = "\n".join([opening, *blocks])
    if not blocks or not limit or len(whole) < limit:
        return cut_lines(whole, limit) if limit else whole
    first, last = 0, len(blocks)
    room = limit - len(opening) - len(gap(0, len(blocks) - 1)) - SPARE
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
    """The last resort for a budget of a few characters: the part that fits with a sign and a line feed."""
    if len(text) < limit:
        return text
    room = max(0, limit - 1)
    sign = (CUT_HINT if room >= HINTED else CUT)[:room]
    return text[: room - len(sign)].rstrip() + sign


def shares(sizes: Sequence[int], weights: Sequence[int], room: int) -> list[int]:
    """``room`` shared out by weight.

    What one does not need goes to the others, so that the short ones stay whole.
    """
    given = [0] * len(sizes)
    waiting = []
    for place, size in enumerate(sizes):
        if size:
            waiting.append(place)
    while waiting and room > 0:
        level = room / sum(weights[place] for place in waiting)
        small = []
        for place in waiting:
            if sizes[place] <= level * weights[place]:
                small.append(place)
        for place in small or waiting:
            given[place] = sizes[place] if small else int(level * weights[place])
        if not small:
            break
        room -= sum(sizes[place] for place in small)
        waiting = [place for place in waiting if not given[place]]
    return given


def cut_piece(piece: TextPiece, room: int) -> str:
    """The body of a piece in ``room`` characters, with the notice of what is missing.

    The notice alone if need be.
    """
    body = piece.body
    if len(body) <= room:
        return body
    notice = (
        f"{INDENT}… {format_count(len(body) + piece.missing, 'more character')}: {piece.command}"
    )
    left = room - len(notice) - 2
    if left < len(INDENT) + 20:
        return f"{INDENT}… {format_count(len(body) + piece.missing, 'character')}: {piece.command}"
    # A call that was shortened ends with the same command, which the notice has.
    if piece.voice or body.endswith(f"{piece.command})"):
        tail = 0
    else:
        tail = left // TAIL_SHARE
    notice = f"{INDENT}… {format_count(len(body) - left + piece.missing, 'more character')}: {piece.command}"
    if tail > len(INDENT):
        last = f"{INDENT}{body[len(body) - tail + len(INDENT) :].lstrip()}"
    else:
        last = ""
    return "\n".join(part for part in (body[: left - tail].rstrip(), notice, last) if part)


def _choose_pieces(pieces: Sequence[TextPiece], room: int) -> list[bool]:
    """Choose the pieces that stay: all if their least fits, else the voices from the first on, then the others."""
    kept = [True] * len(pieces)
    if sum(piece.least for piece in pieces) <= room:
        return kept
    kept = [False] * len(pieces)
    room -= GAP
    for voice in (True, False):
        for place, piece in enumerate(pieces):
            if piece.voice is not voice:
                continue
            splits = (
                place > 0 and not kept[place - 1] and place + 1 < len(kept) and not kept[place + 1]
            )
            room -= piece.least + (GAP if splits else 0)  # one gap becomes two
            if room < 0:
                return kept
            kept[place] = True
    return kept


def _lay_out_pieces(
    pieces: Sequence[TextPiece], kept: Sequence[bool], room: int, gap: Gap
) -> list[str]:
    gaps = {start: gap(start, end) for start, end in _gaps_between(kept)}
    stay = [place for place, here in enumerate(kept) if here]
    fixed = sum(len(line) + 1 for line in gaps.values()) + sum(
        len(pieces[place].head) + 2 for place in stay
    )
    sizes = [len(pieces[place].body) for place in stay]
    given = shares(sizes, [VOICE if pieces[place].voice else 1 for place in stay], room - fixed)
    rooms = dict(zip(stay, given, strict=True))
    lines = []
    for place, piece in enumerate(pieces):
        if place in rooms:
            lines += [piece.head, cut_piece(piece, rooms[place])]
        elif place in gaps:
            lines.append(gaps[place])
    return [line for line in lines if line]


def _gaps_between(kept: Sequence[bool]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for place, here in enumerate(kept):
        if here:
            continue
        if found and found[-1][1] == place - 1:
            found[-1] = found[-1][0], place
        else:
            found.append((place, place))
    return found
