"""The dial: what a handoff of each size would carry of a session, told of one digest that was read once.

What it says is measured on that digest; a session that takes too long to read has sizes of which
only the most that each can hold is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive.opening_size import name_of
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from resume_hooks.derive.fresh_child import FreshPlan

SIZES = (1_000, 4_000, 12_000, 24_000)
"""Tokens of the sizes that are always told of, beside the usual one."""

AMPLE = 10**9  # characters, more than any session has to say
CALL = 4_000  # characters that no call with its result takes
SPARE = 400  # characters that may be missing of what is still called whole: a row or two of a list
LISTS = 1_000  # tokens up to which an opening holds the lists and the last answer, and little other talk


class DialSize(NamedTuple):
    """A ``size`` as it is typed, and the tokens of context ``after`` a handoff of that size.

    Of ``whole`` tokens, which an opening without a limit would have, ``cut`` stay behind; None
    where that was not measured. ``has_calls``: nothing does, and room is left for the latest calls.
    ``is_lists``: something does, and beside the lists and the last answer there is little.
    """

    size: str
    after: int
    cut: int | None = None
    whole: int = 0
    has_calls: bool = False
    is_lists: bool = False


def dial_of(planned: FreshPlan, conversation: int) -> tuple[DialSize, ...]:
    """Every size, of the plan of a handoff of the usual one; ``conversation`` are the tokens that the session holds."""
    # The sizes of a long session are told without a digest.
    from resume_hooks.reading.digest.entries import Digest
    from resume_hooks.reading.digest.opening import CHARACTERS, LEAST_CALLS, characters, opening

    contents, known = planned.contents, planned.sizes.after
    digest, usual = contents.digest or Digest(), contents.tokens
    said = {}
    for tokens in _offered_sizes(usual):
        said[tokens] = len(opening(digest, characters(tokens)).text)
    whole = len(opening(digest, AMPLE).text)
    carried = len(planned.carried.text)
    fixed = known - carried / CHARACTERS_PER_TOKEN
    # Where calls with their results leave room, all of them are there, and a larger size holds no
    # more.
    spoken = round(conversation * CHARACTERS_PER_TOKEN)
    if carried + CALL < said[usual] + _calls_room(usual, said[usual]):
        all_calls = carried - said[usual]
    else:
        all_calls = spoken
    found = []
    for tokens, length in said.items():
        calls = min(_calls_room(tokens, length), all_calls, max(0, spoken - length))
        calls = calls if calls >= LEAST_CALLS else 0
        if tokens == usual:
            after = known
        else:
            after = round(fixed + (length + calls) / CHARACTERS_PER_TOKEN)
        # The calls are counted at the usual size alone: a larger one holds at least those.
        if tokens > usual:
            after = max(after, known)
        elif tokens < usual:
            after = min(after, known)
        missing = whole - length
        cut = missing // CHARACTERS if missing > SPARE else 0
        found.append(
            DialSize(
                size=name_of(tokens),
                after=after,
                cut=cut,
                whole=whole // CHARACTERS,
                has_calls=not cut and calls > 0,
                is_lists=cut > 0 and tokens <= LISTS,
            )
        )
    return tuple(found)


def _calls_room(tokens: int, length: int) -> int:
    """Characters of an opening of a size that calls may fill behind ``length`` characters of it."""
    from resume_hooks.reading.digest.opening import CALLS, characters  # as above

    room = characters(tokens)
    return min(room - length, round(room * CALLS))


def unmeasured_dial(fixed: int, usual: int) -> tuple[DialSize, ...]:
    """Every size with the most that it leaves, ``fixed`` tokens without a digest; ``usual`` is the usual size."""
    return tuple(DialSize(name_of(tokens), fixed + tokens) for tokens in _offered_sizes(usual))


def _offered_sizes(usual: int) -> Iterator[int]:
    """The sizes that are told of, in tokens."""
    yield from sorted({*SIZES, usual})
