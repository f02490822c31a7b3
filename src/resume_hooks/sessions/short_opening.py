"""An opening of ours in little room: the lineage and the next step stay, what lies between them gives way first."""

from __future__ import annotations

from collections.abc import Callable

from resume_hooks.sessions.lineage_block import CLOSING, shortened
from resume_hooks.sessions.opening_records import NEXT_STEP, next_step_of, opening_text

BLOCK_SHARE, STEP_SHARE = 2, 3
"""A lineage has at most half of the room, a next step a third."""


Shorter = Callable[[str, int], str]
"""Makes what stands between lineage and next step fit that many characters; ``""`` where it can't."""


def short_opening(text: str, most: int, whole: str, shorter: Shorter | None = None) -> str:
    """``text`` in at most ``most`` (1,000 or more) characters; ``whole`` is the reference that prints all of it.

    ``""`` where ``text`` is no opening of ours.
    """
    step = next_step_of(text)
    if step is None or len(text) <= most:
        return "" if step is None else text
    block, _, after = text.partition(CLOSING)
    block = shortened(block + CLOSING, most // BLOCK_SHARE)
    if len(step) > most // STEP_SHARE:
        step = step[: most // STEP_SHARE - 1] + "…"
    cut = f"(cut here; all of it: resume-hooks read {whole})"
    between = after.partition(f"\n\n{NEXT_STEP}\n")[0].strip("\n")
    room = most - len(opening_text(block, step, summary=f"\n{cut}"))
    if len(between) > room:
        if shorter is not None and (fitting := shorter(between, room)) and len(fitting) <= room:
            return opening_text(block, step, summary=fitting)
        between = between[: max(0, between.rfind("\n", 0, room + 1))]
    return opening_text(block, step, summary=f"{between}\n{cut}" if between else cut)
