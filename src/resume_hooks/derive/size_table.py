"""The contents of a handoff at each size, computed from one digest.

The figures are measured on that digest. If a session takes too long to read, each size has only an
upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive.opening_size import format_size
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from resume_hooks.derive.fresh_child import FreshPlan

USUAL_SIZES = (1_000, 4_000, 12_000, 24_000)
"""The sizes in tokens that are always shown, in addition to the default size."""

UNLIMITED_CHARACTERS = 10**9  # a number of characters larger than any session
MAX_CALL_CHARACTERS = 4_000  # a number of characters larger than any call with its result
# the number of characters that a digest may omit and still count as whole: one or two list rows
NEGLIGIBLE_CHARACTERS = 400
# up to this number of tokens an opening contains the lists, the last answer and few other messages
MAX_LIST_TOKENS = 1_000


class HandoffSize(NamedTuple):
    """A ``size`` such as ``12k``, and the context tokens ``tokens_after`` a handoff of that size.

    ``whole_tokens`` is the size in tokens of an opening without a limit, and ``cut_tokens`` the number of tokens
    that are left out of it, or None if that was not measured. ``has_calls`` means that nothing is
    left out and that the latest calls fit. ``is_lists`` means that the opening contains little
    except the lists and the last answer.
    """

    size: str
    tokens_after: int
    cut_tokens: int | None = None
    whole_tokens: int = 0
    has_calls: bool = False
    is_lists: bool = False


def measure_sizes(plan: FreshPlan, conversation_tokens: int) -> tuple[HandoffSize, ...]:
    """Return every size, measured on the plan of a handoff of the default size.

    ``conversation_tokens`` is the number of tokens of the session's conversation.
    """
    # A long session has no digest, so these modules are not needed for it.
    from resume_hooks.reading.digest.entries import Digest
    from resume_hooks.reading.digest.opening import (
        MIN_CALLS_CHARACTERS,
        TOKEN_CHARACTERS,
        characters_for_tokens,
        format_opening,
    )

    contents, default_after = plan.contents, plan.sizes.tokens_after
    digest, default_tokens = contents.digest or Digest(), contents.tokens
    opening_lengths = {}
    for tokens in _list_sizes(default_tokens):
        opening_lengths[tokens] = len(format_opening(digest, characters_for_tokens(tokens)).text)
    unlimited_length = len(format_opening(digest, UNLIMITED_CHARACTERS).text)
    digest_length = len(plan.digest_opening.text)
    fixed_tokens = default_after - digest_length / CHARACTERS_PER_TOKEN
    # If the calls do not fill their space, the opening has all of them, and a larger size would add
    # none.
    conversation_length = round(conversation_tokens * CHARACTERS_PER_TOKEN)
    if digest_length + MAX_CALL_CHARACTERS < opening_lengths[
        default_tokens
    ] + _characters_for_calls(default_tokens, opening_lengths[default_tokens]):
        all_calls = digest_length - opening_lengths[default_tokens]
    else:
        all_calls = conversation_length
    sizes = []
    for tokens, length in opening_lengths.items():
        call_characters = min(
            _characters_for_calls(tokens, length), all_calls, max(0, conversation_length - length)
        )
        call_characters = call_characters if call_characters >= MIN_CALLS_CHARACTERS else 0
        if tokens == default_tokens:
            tokens_after = default_after
        else:
            tokens_after = round(fixed_tokens + (length + call_characters) / CHARACTERS_PER_TOKEN)
        # The calls are counted at the default size only. A larger size contains at least those
        # calls.
        if tokens > default_tokens:
            tokens_after = max(tokens_after, default_after)
        elif tokens < default_tokens:
            tokens_after = min(tokens_after, default_after)
        missing_length = unlimited_length - length
        cut_tokens = (
            missing_length // TOKEN_CHARACTERS if missing_length > NEGLIGIBLE_CHARACTERS else 0
        )
        sizes.append(
            HandoffSize(
                size=format_size(tokens),
                tokens_after=tokens_after,
                cut_tokens=cut_tokens,
                whole_tokens=unlimited_length // TOKEN_CHARACTERS,
                has_calls=not cut_tokens and call_characters > 0,
                is_lists=cut_tokens > 0 and tokens <= MAX_LIST_TOKENS,
            )
        )
    return tuple(sizes)


def _characters_for_calls(tokens: int, length: int) -> int:
    """Return the number of characters available for calls in an opening with ``length`` other characters."""
    # imported late, for the same reason as in ``measure_sizes``
    from resume_hooks.reading.digest.opening import CALLS_FRACTION, characters_for_tokens

    available_characters = characters_for_tokens(tokens)
    return min(available_characters - length, round(available_characters * CALLS_FRACTION))


def bound_sizes(fixed_tokens: int, default_tokens: int) -> tuple[HandoffSize, ...]:
    """Return every size with its upper bound.

    ``fixed_tokens`` is the number of tokens without a digest, ``default_tokens`` the default size.
    """
    return tuple(
        HandoffSize(format_size(tokens), fixed_tokens + tokens)
        for tokens in _list_sizes(default_tokens)
    )


def _list_sizes(default_tokens: int) -> Iterator[int]:
    """Yield the sizes in tokens, in ascending order."""
    yield from sorted({*USUAL_SIZES, default_tokens})
