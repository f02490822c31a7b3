"""The dial: the contents of a handoff at each size, computed from one digest.

The figures are measured on that digest. For a session that takes too long to read, each size has
only an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive.opening_size import name_of
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from resume_hooks.derive.fresh_child import FreshPlan

SIZES = (1_000, 4_000, 12_000, 24_000)
"""The sizes in tokens that the dial always shows, in addition to the default size."""

AMPLE = 10**9  # characters, more than any session contains
CALL = 4_000  # characters, more than any call with its result takes
# characters that may be missing from a digest that still counts as whole: one or two list rows
SPARE = 400
# tokens up to which an opening contains the lists, the last answer and little other talk
LISTS = 1_000


class DialSize(NamedTuple):
    """A ``size`` such as ``12k``, and the context tokens ``after`` a handoff of that size.

    ``whole`` is the size in tokens of an opening without a limit, and ``cut`` the part of it that
    is left out, or None if that was not measured. ``has_calls`` means that nothing is left out and
    the latest calls fit. ``is_lists`` means that the opening contains little besides the lists and
    the last answer.
    """

    size: str
    after: int
    cut: int | None = None
    whole: int = 0
    has_calls: bool = False
    is_lists: bool = False


def dial_of(planned: FreshPlan, conversation: int) -> tuple[DialSize, ...]:
    """Return every size, from the plan of a handoff of the default size.

    ``conversation`` is the number of tokens of the session's conversation.
    """
    # A long session has no digest and does not need these modules.
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
    # If the calls do not fill their room, all of them are included, and a larger size adds none.
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
        # The calls are counted at the default size only. A larger size contains at least those.
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
    """Return the number of characters available for calls after ``length`` characters of an opening."""
    # imported late, as in dial_of
    from resume_hooks.reading.digest.opening import CALLS, characters

    room = characters(tokens)
    return min(room - length, round(room * CALLS))


def unmeasured_dial(fixed: int, usual: int) -> tuple[DialSize, ...]:
    """Return every size with its upper bound.

    ``fixed`` is the number of tokens without a digest, ``usual`` the default size.
    """
    return tuple(DialSize(name_of(tokens), fixed + tokens) for tokens in _offered_sizes(usual))


def _offered_sizes(usual: int) -> Iterator[int]:
    """Yield the sizes of the dial in tokens, in ascending order."""
    yield from sorted({*SIZES, usual})
