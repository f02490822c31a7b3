"""What a session that went back says of itself: the facts for the model, and the card on the screen."""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks.clock import minute
from resume_hooks.derive.child.draft import Draft
from resume_hooks.parts.marks.mark import Mark
from resume_hooks.sessions.lineage_block import unmarked
from resume_hooks.sessions.opening_layout import REPORT
from resume_hooks.sessions.record_references import SHORT, TranscriptNames
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


class Told(NamedTuple):
    """What a session that went back is told of: the user's ``report`` and what a fork ``found``, each ``""`` for none.

    ``left_out`` is what it does not hold, ``lost`` why the mark can't be found any more, ``""`` where it does.
    """

    mark: Mark
    report: str
    left_out: LeftOut | None
    lost: str
    found: str


def model_text(child: Draft, told: Told) -> str:
    """What the model reads: the child's lineage, where it stands, what a fork found, and the report."""
    mark, left_out, lost = told.mark, told.left_out, told.lost
    since = minute(mark.started_at)
    place = f"at a mark that the user set, {since}"
    if mark.left:
        place = f"where a fork, the parent session, left {mark.left}, {since}; what the fork found is told below"
    where = f"The conversation above is as it was {place}."
    if lost:
        where = f"Of the earlier conversation nothing is loaded: {mark.what.lower()} ({since}) can't be found any more"
        where += f" ({lost})."
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
    lines.append("Files, git and running processes did not go back: they are as that work left them.")
    lines += ["", told.found] if told.found else []
    lines += ["", REPORT, unmarked(told.report)] if told.report else []
    return encodable("\n".join(lines))


def card(told: Told) -> str:
    """What the screen shows of the child."""
    mark, left_out, lost = told.mark, told.left_out, told.lost
    goal = f": {one_line(plain(mark.goal), SHOWN)}" if mark.goal else ""
    began = f"**Back** to {minute(mark.started_at)}{goal}."
    if mark.left:
        began = f"**Back** to where the fork left `{mark.left[:SHORT]}`, {minute(mark.started_at)}."
    if lost:
        began = f"**Back** with the report alone; {mark.what.lower()}{goal} can't be found any more ({lost})."
    rest = (
        f"{'The conversation' if lost else 'What followed'} can be read on demand ({left_out.span})."
        if left_out
        else "Nothing had followed it."
    )
    return "\n\n".join(
        [
            began,
            *([f"**Report:** {one_line(plain(told.report), SHOWN)}"] if told.report else []),
            *(["A digest of what the fork found is loaded."] if told.found else []),
            f"{rest} Files, git and processes are as that work left them.",
        ]
    )
