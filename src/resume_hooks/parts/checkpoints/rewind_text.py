"""What a rewound session says of itself: the facts for the model, and the card on the screen."""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks.clock import minute
from resume_hooks.derive.child.draft import Draft
from resume_hooks.parts.checkpoints.checkpoint import Mark
from resume_hooks.sessions.lineage_block import unmarked
from resume_hooks.sessions.opening_layout import REPORT
from resume_hooks.sessions.record_references import TranscriptNames
from resume_hooks.system.text import encodable, one_line, plain

SHOWN = 300
"""Characters of a goal or a report that a card shows."""


class LeftOut(NamedTuple):
    """What is dropped from context: ``first`` and ``last`` record, and the session's names to reach them by.

    ``prompt`` is the id of the first prompt in it before which the client kept the user's files, ``""`` for none.
    """

    names: TranscriptNames
    first: int
    last: int
    prompt: str

    @property
    def span(self) -> str:
        """The two references."""
        first, last = self.names.reference(self.first), self.names.reference(self.last)
        return first if first == last else f"{first} to {last}"


def model_text(child: Draft, mark: Mark, report: str, left_out: LeftOut | None, lost: str) -> str:
    """What the model reads: the child's lineage, where it stands, and the report; ``lost`` is why the mark is."""
    since = minute(mark.started_at)
    where = (
        f"Of the earlier conversation nothing is loaded: its checkpoint of {since} does not resolve any more ({lost})."
        if lost
        else f"The conversation above is as it was at a checkpoint that the user set, {since}."
    )
    lines = [child.block, "", where]
    if mark.goal:
        lines.append(f"What was to be tried from there: {unmarked(one_line(mark.goal, SHOWN))}")
    if left_out is not None:
        stands = "It stands" if lost else "What followed is not loaded: it stands"
        reading = f"read {left_out.names.reference(left_out.first)} --after 20"
        lines.append(
            f"{stands} in records {left_out.span} of the parent session, within reach of the session-search skill "
            f"(`{child.command(f'outline {left_out.names.word}')}`, `{child.command(reading)}`)."
        )
    lines.append("Files, git and running processes were not rewound: they are as that work left them.")
    return encodable("\n".join([*lines, "", REPORT, unmarked(report)]))


def card(mark: Mark, report: str, left_out: LeftOut | None, lost: str) -> str:
    """What the screen shows of the child."""
    goal = f": {one_line(plain(mark.goal), SHOWN)}" if mark.goal else ""
    began = f"**Rewound** to the checkpoint of {minute(mark.started_at)}{goal}."
    if lost:
        began = f"**Rewound** to the root; the checkpoint{goal} does not resolve any more ({lost})."
    rest = (
        f"{'The conversation' if lost else 'What followed'} can be read on demand ({left_out.span})."
        if left_out
        else "Nothing had followed it."
    )
    return "\n\n".join(
        [
            began,
            f"**Report:** {one_line(plain(report), SHOWN)}",
            f"{rest} Files, git and processes were not rewound.",
        ]
    )
