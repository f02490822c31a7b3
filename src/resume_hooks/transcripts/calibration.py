"""Calibration: the token cost of each piece, derived from the growth of the API's counts between answers.

Each request's input grew by exactly the content added since the previous request. This growth is
distributed over the records in between, so savings add up to the tokens actually paid for. Without
counts, the session's own ratio is used. Tokens that were counted once and are missing later were
either thinking, which the API drops after a turn, or outputs that the client cleared from its
memory; the client sends the latter again on resume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.trimmable_pieces import MEDIA, THINKING, Piece, Pieces

PLAUSIBLE_RATIOS = (
    1.2,
    8.0,
)  # plausible characters per token of text; outside this range, other content grew
# minimum characters per token of thinking, which is mostly visible only as encrypted data
MIN_THOUGHT_RATIO = 1.5
MIN_GROWTH = 1_000  # tokens of growth that a session needs to determine its own ratio


class TokenScale:
    """The token cost of pieces.

    ``ratio`` applies to records without counts; ``again`` are tokens missing from the last count.

    ``dropped`` are tokens of thinking that an earlier count included and the last count lacks.
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
        """Return a piece's cost each time the conversation is sent."""
        if piece.kind == THINKING:
            return piece.characters * self._thoughts.get(piece.number, 1 / self.ratio)
        return piece.tokens + piece.characters * self._texts.get(piece.number, 1 / self.ratio)

    def tokens_of_text(self, number: int, characters: int) -> float:
        """Return the cost of a text with this number of characters in the record ``number``."""
        return characters * self._texts.get(number, 1 / self.ratio)


class _Gap(NamedTuple):
    """The additions between two requests: the growth in tokens, and the characters of each kind of content."""

    nodes: tuple[Node, ...]
    growth: int
    text: int
    thought: int
    media: int


def calibrate_tokens(
    chain: Sequence[Node], pieces: Pieces, default_ratio: float = tokens.CHARACTERS_PER_TOKEN
) -> TokenScale:
    """Calibrate a live chain; ``usual`` is the ratio for a chain that is too short to determine its own."""
    # Content that was trimmed in place had another size when it was counted.
    gaps = []
    for gap in _counted_gaps(chain, pieces):
        if not any(node.number in pieces.origins for node in gap.nodes):
            gaps.append(gap)
    ratio = _ratio_of_gaps(gaps, default_ratio)
    shares = []
    thought_tokens, other_tokens = [], []
    growth = 0
    for gap in gaps:
        share = _share_growth(gap, ratio)
        shares.append((gap, share))
        thought_tokens.append(gap.thought * share.thought)
        other_tokens.append(gap.text * share.text + gap.media)
        growth += gap.growth
    thinking = sum(thought_tokens)
    missing = max(0.0, sum(other_tokens) + thinking - growth)
    lasting = max(0.0, 1 - missing / thinking) if thinking else 0.0
    texts: dict[int, float] = {}
    thoughts: dict[int, float] = {}
    for gap, share in shares:
        for node in gap.nodes:
            texts[node.number] = share.text
            thoughts[node.number] = share.thought * lasting
    again = 0
    if not pieces.origins and any(node.subtype == records.CLEARED for node in chain):
        again = round(max(0.0, missing - thinking))
    return TokenScale(ratio, texts, thoughts, again, dropped=round(min(missing, thinking)))


def _ratio_of_gaps(gaps: Sequence[_Gap], default_ratio: float) -> float:
    """Return the characters of text per token, from gaps without thinking, within plausible limits."""
    characters = growth = 0
    for gap in gaps:
        if not gap.thought and gap.growth > gap.media:
            characters += gap.text
            growth += gap.growth - gap.media
    ratio = characters / growth if growth > MIN_GROWTH else default_ratio
    return min(max(ratio, PLAUSIBLE_RATIOS[0]), PLAUSIBLE_RATIOS[1])


class _Share(NamedTuple):
    """Tokens per character for the two kinds of text in a gap."""

    text: float
    thought: float


def _share_growth(gap: _Gap, ratio: float) -> _Share:
    """Divide a gap's growth: first text at the usual ratio, then thinking gets the remainder.

    Text gets any growth that is left after that.
    """
    room = gap.growth - gap.media - gap.text / ratio
    thinking = min(max(0.0, room), gap.thought / MIN_THOUGHT_RATIO)
    if gap.text:
        text = (gap.growth - gap.media - thinking) / gap.text
    else:
        text = 0.0
    plausible = text > 0 and PLAUSIBLE_RATIOS[0] <= 1 / text <= PLAUSIBLE_RATIOS[1]
    return _Share(text if plausible else 1 / ratio, thinking / gap.thought if gap.thought else 0.0)


def _counted_gaps(chain: Sequence[Node], pieces: Pieces) -> Iterable[_Gap]:
    """Yield the gaps between counted requests.

    Messages kept from before a compaction are skipped.
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
