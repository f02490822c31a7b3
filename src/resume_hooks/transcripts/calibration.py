"""Calibrate the token sizes of a session's records with the token counts that the API reports.

Between two requests, the input grows by the content that was added between them. This growth is
divided among the records between the two requests. The sizes of the records therefore add up to the
number of tokens that were paid for. If the API reported no counts, the session's own ratio of
characters per token is used.

Some tokens are counted in one request but missing from a later one. They belong to thinking, which
the API drops after a turn, or to outputs that the client cleared from its memory. The client sends
cleared outputs again on resume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.trimmable_pieces import (
    MEDIA_PIECE,
    THINKING_PIECE,
    Piece,
    PieceCollector,
)

PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE = (
    1.2,
    8.0,
    # Plausible range for a text's number of characters per token. If a number is outside the range,
    # the API counted other content together with the text.
)
# Thinking is assumed to have at least this number of characters per token.
MIN_CHARACTERS_PER_THOUGHT_TOKEN = 1.5
# A session's own ratio is used only if the session grew by more than this number of tokens.
MIN_CONTEXT_GROWTH_TOKENS = 1_000


class TokenScale:
    """Converts the size of pieces from characters to tokens.

    ``characters_per_token`` is used for records that were not calibrated. ``uncounted_tokens`` is
    the number of tokens that the API's last count does not include. ``dropped_thinking_tokens`` is
    the number of thinking tokens that an earlier count of the API included, but that its last count
    no longer includes.
    """

    def __init__(
        self,
        ratio: float,
        texts: dict[int, float],
        thoughts: dict[int, float],
        uncounted_tokens: int = 0,
        dropped_thinking_tokens: int = 0,
    ) -> None:
        self.characters_per_token = ratio
        self.uncounted_tokens = uncounted_tokens
        self.dropped_thinking_tokens = dropped_thinking_tokens
        self._texts = texts
        self._thoughts = thoughts

    def tokens_of_piece(self, piece: Piece) -> float:
        """Return the number of tokens that a piece adds to each request."""
        if piece.kind == THINKING_PIECE:
            return piece.character_count * self._thoughts.get(
                piece.line_number, 1 / self.characters_per_token
            )
        return piece.tokens + piece.character_count * self._texts.get(
            piece.line_number, 1 / self.characters_per_token
        )

    def tokens_of_text(self, line_number: int, character_count: int) -> float:
        """Return the number of tokens of a text with ``character_count`` characters.

        The text belongs to the record in line ``line_number``.
        """
        return character_count * self._texts.get(line_number, 1 / self.characters_per_token)


class _RequestGap(NamedTuple):
    """The content that was added between two requests.

    ``growth_tokens`` is the difference between the token counts of the requests. The characters of text
    and of thinking are counted separately.
    """

    nodes: tuple[Node, ...]
    growth_tokens: int
    text_characters: int
    thinking_characters: int
    media_tokens: int


def calibrate_tokens(
    chain: Sequence[Node],
    pieces: PieceCollector,
    default_ratio: float = tokens.CHARACTERS_PER_TOKEN,
) -> TokenScale:
    """Return the token scale of a live chain.

    If the chain is too short to have its own ratio, ``default_ratio`` is used.
    """
    # The API's count includes the original size of a record that was trimmed in place, so gaps with
    # such a record are skipped.
    gaps = []
    for gap in _iterate_gaps(chain, pieces):
        if not any(node.line_number in pieces.origins for node in gap.nodes):
            gaps.append(gap)
    ratio = _compute_characters_per_token(gaps, default_ratio)
    rates = []
    thought_tokens, other_tokens = [], []
    growth = 0
    for gap in gaps:
        rate = _split_growth_by_content_kind(gap, ratio)
        rates.append((gap, rate))
        thought_tokens.append(gap.thinking_characters * rate.thinking_tokens)
        other_tokens.append(gap.text_characters * rate.text_tokens + gap.media_tokens)
        growth += gap.growth_tokens
    thinking_tokens = sum(thought_tokens)
    missing_tokens = max(0.0, sum(other_tokens) + thinking_tokens - growth)
    counted_share = max(0.0, 1 - missing_tokens / thinking_tokens) if thinking_tokens else 0.0
    text_rates: dict[int, float] = {}
    thought_rates: dict[int, float] = {}
    for gap, rate in rates:
        for node in gap.nodes:
            text_rates[node.line_number] = rate.text_tokens
            thought_rates[node.line_number] = rate.thinking_tokens * counted_share
    uncounted_tokens = 0
    if not pieces.origins and any(
        node.subtype == records.OUTPUTS_CLEARED_SUBTYPE for node in chain
    ):
        uncounted_tokens = round(max(0.0, missing_tokens - thinking_tokens))
    return TokenScale(
        ratio,
        text_rates,
        thought_rates,
        uncounted_tokens,
        dropped_thinking_tokens=round(min(missing_tokens, thinking_tokens)),
    )


def _compute_characters_per_token(gaps: Sequence[_RequestGap], default_ratio: float) -> float:
    """Return the number of characters of text per token, limited to a plausible range.

    Only gaps that contain no thinking are used. If they are too short, return ``default_ratio``.
    """
    characters = growth = 0
    for gap in gaps:
        if not gap.thinking_characters and gap.growth_tokens > gap.media_tokens:
            characters += gap.text_characters
            growth += gap.growth_tokens - gap.media_tokens
    ratio = characters / growth if growth > MIN_CONTEXT_GROWTH_TOKENS else default_ratio
    return min(
        max(ratio, PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[0]), PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[1]
    )


class _TokensPerCharacter(NamedTuple):
    """The tokens per character in a gap, separately for its text and its thinking."""

    text_tokens: float
    thinking_tokens: float


def _split_growth_by_content_kind(
    gap: _RequestGap, characters_per_token: float
) -> _TokensPerCharacter:
    """Divide the context's growth between two requests into tokens of text and tokens of thinking.

    The text gets as many tokens as its length suggests, and the thinking gets the rest up to a
    maximum. What remains beyond this maximum goes to the text too.
    """
    max_thinking_tokens = (
        gap.growth_tokens - gap.media_tokens - gap.text_characters / characters_per_token
    )
    thinking_tokens = min(
        max(0.0, max_thinking_tokens), gap.thinking_characters / MIN_CHARACTERS_PER_THOUGHT_TOKEN
    )
    if gap.text_characters:
        text_rate = (gap.growth_tokens - gap.media_tokens - thinking_tokens) / gap.text_characters
    else:
        text_rate = 0.0
    is_plausible = (
        text_rate > 0
        and PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[0]
        <= 1 / text_rate
        <= PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[1]
    )
    return _TokensPerCharacter(
        text_rate if is_plausible else 1 / characters_per_token,
        thinking_tokens / gap.thinking_characters if gap.thinking_characters else 0.0,
    )


def _iterate_gaps(chain: Sequence[Node], pieces: PieceCollector) -> Iterable[_RequestGap]:
    """Yield the gap between every two consecutive requests that were counted.

    Token counts in messages that a compaction kept are ignored.
    """
    thought_characters: Counter[int] = Counter()
    media_tokens: Counter[int] = Counter()
    for piece in pieces.pieces:
        if piece.kind == THINKING_PIECE:
            thought_characters[piece.line_number] += piece.character_count
        elif piece.kind == MEDIA_PIECE:
            media_tokens[piece.line_number] += piece.tokens
    boundary_line = chain[0].line_number if chain and chain[0].is_boundary else -1
    nodes_between: list[Node] = []
    previous_answer: Node | None = None
    for node in chain:
        is_counted = node.input_tokens > 0 and node.line_number > boundary_line
        if (
            is_counted
            and previous_answer is not None
            and node.message_id != previous_answer.message_id
        ):
            yield _RequestGap(
                tuple(nodes_between),
                growth_tokens=node.input_tokens - previous_answer.input_tokens,
                text_characters=sum(
                    between_node.character_count
                    - pieces.thinking_characters.get(between_node.line_number, 0)
                    for between_node in nodes_between
                ),
                thinking_characters=sum(
                    thought_characters[between_node.line_number] for between_node in nodes_between
                ),
                media_tokens=sum(
                    media_tokens[between_node.line_number] for between_node in nodes_between
                ),
            )
            nodes_between = []
        if is_counted:
            previous_answer = node
        if previous_answer is not None:
            nodes_between.append(node)
