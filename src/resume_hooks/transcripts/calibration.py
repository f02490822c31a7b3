"""Calibration: what each piece costs, from what the API counted between one answer and the next.

The input of a request grew by exactly what was added since the one before: that growth is shared
out among the records between the two, so that savings add up to what was really paid. Without
counts, the session's own ratio is used. What was counted once and is missing later was either
thinking, which the API drops when a turn is over, or outputs that the client noted to have cleared
from its memory; those it sends again on resume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.trimmable_pieces import MEDIA, THINKING, Piece, Pieces

PLAUSIBLE = (
    1.2,
    8.0,
)  # characters a token that text can have; anything beyond was something else that grew
MIN_THOUGHT_RATIO = (
    1.5  # characters a token of thinking at least; most of it is known by its encryption alone
)
MIN_GROWTH = 1_000  # tokens from which on a session tells its own ratio


class Scale:
    """Tokens of pieces; ``ratio`` stands in for records without one, ``again`` are what the last count misses.

    ``dropped`` are tokens of thinking that were counted once, and which the last count lacks.
    """

    def __init__(
        self,
        ratio: float,
        texts: dict[int, float],
        thoughts: dict[int, float],
        again: int = 0,
        dropped: int = 0,
    ) -> None:
        self.ratio = ratio
        self.again = again
        self.dropped = dropped
        self._texts = texts
        self._thoughts = thoughts

    def tokens(self, piece: Piece) -> float:
        """What a piece costs each time the conversation is sent."""
        if piece.kind == THINKING:
            return piece.characters * self._thoughts.get(piece.number, 1 / self.ratio)
        return piece.tokens + piece.characters * self._texts.get(piece.number, 1 / self.ratio)

    def tokens_of_text(self, number: int, characters: int) -> float:
        """What a text of so many characters would cost in the record ``number``."""
        return characters * self._texts.get(number, 1 / self.ratio)


class _Gap(NamedTuple):
    """What was added between two requests: the growth in tokens, and characters of each kind that make it up."""

    nodes: tuple[Node, ...]
    growth: int
    text: int
    thought: int
    media: int


def calibrate(
    chain: Sequence[Node], pieces: Pieces, usual: float = tokens.CHARACTERS_PER_TOKEN
) -> Scale:
    """The scale of a live chain; ``usual`` is the ratio of one that is too short to tell its own."""
    # What was trimmed in place had another size when it was counted.
    gaps = []
    for gap in _gaps(chain, pieces):
        if not any(node.number in pieces.origins for node in gap.nodes):
            gaps.append(gap)
    plain = []
    for gap in gaps:
        if not gap.thought and gap.growth > gap.media:
            plain.append(gap)
    grown = sum(gap.growth - gap.media for gap in plain)
    if grown > MIN_GROWTH:
        ratio = sum(gap.text for gap in plain) / grown
    else:
        ratio = usual
    ratio = min(max(ratio, PLAUSIBLE[0]), PLAUSIBLE[1])
    shared = [_share_growth(gap, ratio) for gap in gaps]
    thinking = sum(gap.thought * share.thought for gap, share in zip(gaps, shared, strict=True))
    added = sum(gap.text * share.text + gap.media for gap, share in zip(gaps, shared, strict=True))
    missing = max(0.0, added + thinking - sum(gap.growth for gap in gaps))
    lasting = max(0.0, 1 - missing / thinking) if thinking else 0.0
    texts = {}
    for gap, share in zip(gaps, shared, strict=True):
        for node in gap.nodes:
            texts[node.number] = share.text
    thoughts = {}
    for gap, share in zip(gaps, shared, strict=True):
        for node in gap.nodes:
            thoughts[node.number] = share.thought * lasting
    cleared = any(node.subtype == records.CLEARED for node in chain) and not pieces.origins
    again = round(max(0.0, missing - thinking)) if cleared else 0
    return Scale(ratio, texts, thoughts, again, dropped=round(min(missing, thinking)))


class _Share(NamedTuple):
    """Tokens a character of the two kinds of text in a gap."""

    text: float
    thought: float


def _share_growth(gap: _Gap, ratio: float) -> _Share:
    """How a gap's growth is shared out: text first, at the usual ratio; thinking what is left.

    Then text again.
    """
    room = gap.growth - gap.media - gap.text / ratio
    thinking = min(max(0.0, room), gap.thought / MIN_THOUGHT_RATIO)
    if gap.text:
        text = (gap.growth - gap.media - thinking) / gap.text
    else:
        text = 0.0
    plausible = text > 0 and PLAUSIBLE[0] <= 1 / text <= PLAUSIBLE[1]
    return _Share(text if plausible else 1 / ratio, thinking / gap.thought if gap.thought else 0.0)


def _gaps(chain: Sequence[Node], pieces: Pieces) -> Iterable[_Gap]:
    """The stretches between the requests that were counted.

    Messages kept from before a compaction tell nothing.
    """
    thought: Counter[int] = Counter()
    media: Counter[int] = Counter()
    for piece in pieces.found:
        if piece.kind == THINKING:
            thought[piece.number] += piece.characters
        elif piece.kind == MEDIA:
            media[piece.number] += piece.tokens
    floor = chain[0].number if chain and chain[0].boundary else -1
    between: list[Node] = []
    before: Node | None = None
    for node in chain:
        counted = node.input_tokens > 0 and node.number > floor
        if counted and before is not None and node.message_id != before.message_id:
            yield _Gap(
                tuple(between),
                growth=node.input_tokens - before.input_tokens,
                text=sum(
                    row.characters - pieces.visible_thoughts.get(row.number, 0) for row in between
                ),
                thought=sum(thought[row.number] for row in between),
                media=sum(media[row.number] for row in between),
            )
            between = []
        if counted:
            before = node
        if before is not None:
            between.append(node)
