"""Number the turns as users count them: the prompts in the order of the file, from 1.

Unlike numbers in the live chain, these numbers do not change when a session grows or is compacted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.errors import UsageError
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.records import USER, Record, is_prompt

TURN_HELP = "Turns are 12, 12-15, 12- (to the end), last, or -3 (the last three)."

_TURN_RANGE_PATTERN = re.compile(r"(?:([0-9]{1,7})(-)?((?<=-)[0-9]{1,7})?|last|-([0-9]{1,7}))")


def opens_turn(record: Record, *, is_subagent: bool = False) -> bool:
    """Check whether a record starts a new turn.

    ``is_subagent`` must be true for the transcript of a sub-agent, where every record is marked as a
    side chain.
    """
    return is_prompt(
        {**record, "isSidechain": False} if is_subagent and record.get("type") == USER else record
    )


class TurnRange(NamedTuple):
    """The turns that a user requested.

    The range is from ``first_turn`` to ``last_turn`` or, if ``last_turn`` is None, to the end of
    the session. If ``count_of_last_turns`` is not 0, the range is the last ``count_of_last_turns`` turns
    instead.
    """

    first_turn: int
    last_turn: int | None
    count_of_last_turns: int = 0

    def list_turn_numbers(self, turn_count: int) -> range:
        """Return the numbers of the requested turns in a session with ``turn_count`` turns.

        The number 0 stands for the records before the first prompt. Raises UsageError if none of
        the requested turns exists.
        """
        if self.count_of_last_turns:
            first = max(1, turn_count - self.count_of_last_turns + 1)
        else:
            first = self.first_turn
        if first > turn_count:
            if turn_count:
                remedy = f"It has turns 1 to {turn_count}."
            else:
                remedy = "The session has no turns; --turns 0 shows its records."
            raise UsageError(f"No turn {first} in this session", remedy)
        return range(
            first, min(turn_count, turn_count if self.last_turn is None else self.last_turn) + 1
        )


def parse_turns(text: str) -> TurnRange:
    """Parse a request for turns, such as ``12``, ``12-15``, ``12-``, ``last`` or ``-3``.

    Raises UsageError if the text has none of these forms.
    """
    match = _TURN_RANGE_PATTERN.fullmatch(text.strip())
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
