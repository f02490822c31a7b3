"""Compute the contents of a handoff of each size from a single digest.

If a session takes too long to read, it has no digest, and the result contains only an upper bound
for each size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive.opening_size import format_size

if TYPE_CHECKING:
    from resume_hooks.derive.fresh_child import FreshChildPlan

USUAL_SIZES_IN_TOKENS = (1_000, 4_000, 12_000, 24_000)
"""The sizes in tokens that the table always shows, in addition to the default size."""

NO_CHARACTER_LIMIT = 10**9  # No session has more characters than this.
MAX_CALL_CHARACTERS = 4_000  # A call and its result have at most this many characters together.
# If a digest omits at most this number of characters (one or two rows of a list), it counts as
# complete.
MAX_NEGLIGIBLE_OMITTED_CHARACTERS = 400
# An opening of at most this size contains only the lists, the last answer and a few other messages.
MAX_TOKENS_FOR_LISTS_ONLY = 1_000


class HandoffSize(NamedTuple):
    """A size of a handoff, and the contents that a handoff of this size would have.

    ``size`` is what the user types, such as ``12k``. ``tokens_after`` is the size of the new
    session's context. ``full_opening_tokens`` is the size of the complete opening, without a limit.
    ``omitted_tokens`` is the number of tokens of the complete opening that do not fit, or None if
    it was not measured.

    ``includes_calls`` is true if the opening omits no text and has space for the latest calls too.
    ``consists_mainly_of_lists`` is true if the opening contains little except the lists and the
    last answer.
    """

    size: str
    tokens_after: int
    omitted_tokens: int | None = None
    full_opening_tokens: int = 0
    includes_calls: bool = False
    consists_mainly_of_lists: bool = False


def measure_handoff_sizes(
    plan: FreshChildPlan, conversation_tokens: int
) -> tuple[HandoffSize, ...]:
    """Return the possible sizes, computed from the plan of a handoff of the default size.

    ``conversation_tokens`` is the size of the session's conversation.
    """
    # Imported here because a long session gets no digest and therefore does not need these modules.
    from resume_hooks.reading.digest.entries import Digest
    from resume_hooks.reading.digest.opening import (
        CHARACTERS_PER_TOKEN,
        MIN_CALLS_CHARACTERS,
        convert_tokens_to_characters,
        format_opening,
    )

    contents, default_after = plan.contents, plan.sizes.tokens_after
    digest, default_tokens = contents.digest or Digest(), contents.opening_tokens
    opening_lengths = {}
    for tokens in _iterate_digest_sizes(default_tokens):
        opening_lengths[tokens] = len(
            format_opening(digest, convert_tokens_to_characters(tokens)).text
        )
    unlimited_length = len(format_opening(digest, NO_CHARACTER_LIMIT).text)
    digest_length = len(plan.digest_opening.text)
    fixed_tokens = default_after - digest_length / CHARACTERS_PER_TOKEN
    # If the calls do not fill the space that is reserved for them, the opening already contains all
    # of them, so a larger opening would not contain more calls.
    conversation_length = round(conversation_tokens * CHARACTERS_PER_TOKEN)
    if digest_length + MAX_CALL_CHARACTERS < opening_lengths[
        default_tokens
    ] + _compute_characters_left_for_calls(default_tokens, opening_lengths[default_tokens]):
        all_calls = digest_length - opening_lengths[default_tokens]
    else:
        all_calls = conversation_length
    sizes = []
    for tokens, length in opening_lengths.items():
        call_characters = min(
            _compute_characters_left_for_calls(tokens, length),
            all_calls,
            max(0, conversation_length - length),
        )
        call_characters = call_characters if call_characters >= MIN_CALLS_CHARACTERS else 0
        if tokens == default_tokens:
            tokens_after = default_after
        else:
            tokens_after = round(fixed_tokens + (length + call_characters) / CHARACTERS_PER_TOKEN)
        # The calls were collected only for the default size. A larger size contains at least as
        # many calls, and a smaller size at most as many.
        if tokens > default_tokens:
            tokens_after = max(tokens_after, default_after)
        elif tokens < default_tokens:
            tokens_after = min(tokens_after, default_after)
        missing_length = unlimited_length - length
        omitted_tokens = (
            missing_length // CHARACTERS_PER_TOKEN
            if missing_length > MAX_NEGLIGIBLE_OMITTED_CHARACTERS
            else 0
        )
        sizes.append(
            HandoffSize(
                size=format_size(tokens),
                tokens_after=tokens_after,
                omitted_tokens=omitted_tokens,
                full_opening_tokens=unlimited_length // CHARACTERS_PER_TOKEN,
                includes_calls=not omitted_tokens and call_characters > 0,
                consists_mainly_of_lists=omitted_tokens > 0 and tokens <= MAX_TOKENS_FOR_LISTS_ONLY,
            )
        )
    return tuple(sizes)


def _compute_characters_left_for_calls(opening_tokens: int, other_characters: int) -> int:
    """Return how many characters of an opening of this size remain for calls."""
    # Imported here because a long session gets no digest and therefore does not need this module.
    from resume_hooks.reading.digest.opening import (
        MAX_CALLS_SPACE_FRACTION,
        convert_tokens_to_characters,
    )

    available_characters = convert_tokens_to_characters(opening_tokens)
    return min(
        available_characters - other_characters,
        round(available_characters * MAX_CALLS_SPACE_FRACTION),
    )


def estimate_max_handoff_sizes(fixed_tokens: int, default_tokens: int) -> tuple[HandoffSize, ...]:
    """Return the possible sizes, each with an upper bound for the context after a handoff.

    ``fixed_tokens`` is the size of the context without a digest. ``default_tokens`` is the default
    size of a digest.
    """
    return tuple(
        HandoffSize(format_size(tokens), fixed_tokens + tokens)
        for tokens in _iterate_digest_sizes(default_tokens)
    )


def _iterate_digest_sizes(default_tokens: int) -> Iterator[int]:
    """Yield the sizes of a digest in tokens, the smallest first."""
    yield from sorted({*USUAL_SIZES_IN_TOKENS, default_tokens})
