"""What the API says of a conversation that it refuses, and the defects of a file that each such sentence is about."""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.maintenance.fsck import damaged_bytes, messages
from resume_hooks.maintenance.fsck.findings import Defect, DefectReport, Kind


class KnownRefusal(NamedTuple):
    """Phrases of one kind of refusal, in small letters and without backticks, and the defects that lead to it."""

    phrases: tuple[str, ...]
    kinds: frozenset[Kind]


_THINKING = frozenset({messages.UNSIGNED, messages.TEXTLESS, messages.REDACTED, messages.ALTERED})
_PAIRS = frozenset(
    {messages.REPEATED_CALL, messages.REPEATED_RESULT, messages.LATE, messages.UNANSWERED, messages.ORPHAN}
)
_BLANK = frozenset({messages.BLANK_PROMPT, messages.BLANK_BLOCK, messages.EMPTY_MESSAGE})

REFUSALS = (
    KnownRefusal(("thinking block", "redacted_thinking", "thinking.signature", "thinking.thinking"), _THINKING),
    KnownRefusal(
        (
            "tool_use ids were found without tool_result",
            "unexpected tool_use_id",
            "tool_use ids must be unique",
            "tool_use must have a single result",
            # what clients since 2.1.112 say in place of the four
            "tool use concurrency issues",
            "orphaned tool_result",
            "duplicate tool_use id",
        ),
        _PAIRS | {messages.RESULT_FIRST},
    ),
    KnownRefusal(("text content blocks must", "must have non-empty content"), _BLANK),
    KnownRefusal(("surrogate", "not valid json"), frozenset({damaged_bytes.SURROGATE})),
    KnownRefusal(
        ("first message must use the user role",), frozenset({messages.NO_PROMPT_FIRST, messages.RESULT_FIRST})
    ),
)

_STATUS = re.compile(r"\b400\b")


def defects_behind(message: str) -> frozenset[Kind]:
    """The defects that an API error may come from; none for an error that no conversation's form is the reason of."""
    said = message.lower().replace("`", "")
    if not _STATUS.search(said):
        return frozenset()
    found = (refusal.kinds for refusal in REFUSALS if any(phrase in said for phrase in refusal.phrases))
    return frozenset[Kind]().union(*found)


def reasons(report: DefectReport, kinds: frozenset[Kind]) -> list[Defect]:
    """The findings of these kinds."""
    return [finding for group in report.groups if group.kind in kinds for finding in group.findings]
