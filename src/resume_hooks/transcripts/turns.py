"""Turns as people count them: prompts in the order of the file, from 1.

Such a number does not change if a session grows or is compacted; numbers within the live chain
would.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.errors import UsageError
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.records import USER, Record, is_prompt

TURN_HELP = "Turns are 12, 12-15, 12- (to the end), last, or -3 (the last three)."

_TURN_RANGE = re.compile(r"(?:([0-9]{1,7})(-)?((?<=-)[0-9]{1,7})?|last|-([0-9]{1,7}))")


def opens_turn(record: Record, *, subagent: bool = False) -> bool:
    """Check whether a record opens the next turn.

    In a sub-agent's own file every record is marked as a side chain.
    """
    return is_prompt(
        {**record, "isSidechain": False} if subagent and record.get("type") == USER else record
    )


class TurnRange(NamedTuple):
    """Requested turns: ``first`` to ``last`` (None: to the end), or the last ``last_count`` ones."""

    first: int
    last: int | None
    last_count: int = 0

    def numbers_among(self, count: int) -> range:
        """Return the requested numbers among ``count`` turns; 0 precedes the first prompt.

        Raise UsageError if none of the turns exists.
        """
        if self.last_count:
            first = max(1, count - self.last_count + 1)
        else:
            first = self.first
        if first > count:
            if count:
                remedy = f"It has turns 1 to {count}."
            else:
                remedy = "It has no turns; --turns 0 shows its records."
            raise UsageError(f"No turn {first} in this session", remedy)
        return range(first, min(count, count if self.last is None else self.last) + 1)


def parse_turns(text: str) -> TurnRange:
    """Parse a request for turns: ``12``, ``12-15``, ``12-``, ``last``, ``-3``.

    Raise UsageError for anything else.
    """
    match = _TURN_RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"'{collapse_line(plain_line(text), 40)}' is not a range of turns", TURN_HELP
        )
    first, dash, last, from_end = match.groups()
    if first is None:
        count = int(from_end or 1)
        if not count:
            raise UsageError("'-0' is not a range of turns", TURN_HELP)
        return TurnRange(0, None, count)
    if last:
        end = int(last)
    elif dash:
        end = None
    else:
        end = int(first)
    if end is not None and end < int(first):
        raise UsageError(f"'{text.strip()}' ends before it begins", TURN_HELP)
    return TurnRange(int(first), end)
