"""The asking: what a model is told to do with an offer, in as many calls as it takes, and what counts of its answers.

Invariant: a choice counts once, and only for a number that was in the text of that very call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import BaseModel, Field, StrictInt

from resume_hooks.derive.model.port import Metered, Model, Spent
from resume_hooks.derive.trim.smart.offer import Offer
from resume_hooks.derive.trim.smart.telling import Part, parts
from resume_hooks.derive.trim.smart.verdicts import Verdict, of_model
from resume_hooks.errors import HeadlessFailed
from resume_hooks.system.text import counted

TASK = """\
You help a user to go on with a long working session of a coding assistant. The conversation is close to the limit of \
its context, so contents that nobody needs any more are replaced by short placeholders. Nothing is lost: each \
placeholder says where the original is, and the assistant can read it again.

You are given an outline of the conversation, how it ends, and numbered pieces of it. Of each piece you see its size, \
what became of it, and its beginning and end. Choose the pieces that are no longer needed to go on with the work:
- outputs that nothing refers to any more, such as listings, searches and logs whose findings were said in words;
- attempts that were abandoned, and their errors;
- versions of files or texts that were superseded;
- what stands elsewhere in the conversation as well.
Keep what the work at the end builds on: current contents of files being worked on, decisions, requirements, facts \
that were not said again, errors that are still open. When in doubt, keep it.

For each piece that you choose give its number, a description that tells the assistant what was there in at most 12 \
words (what it was and its result, such as "test run, 3 failures in test_parser, fixed later"), and a rationale for \
the user in at most 15 words. Choose nothing if nothing can go. Pieces that you don't name stay as they are."""

WISHES = "The user's own instructions, which count before all of this:"

HINTED = (
    "Where a note says that a piece was superseded, repeated or undone, it can go unless these instructions want it."
)


LEAST_COST = 0.0001
"""US dollars that are worth telling."""

WITHOUT = "Nothing was written. Without a model: resume-hooks trim."


class Row(BaseModel):
    """One piece that can go."""

    number: StrictInt = Field(description="the number of the piece, as shown")
    description: str = Field(description="what was there, at most 12 words")
    rationale: str = Field(description="why it is no longer needed, at most 15 words")


class Answer(BaseModel):
    """The pieces that can go; none is an answer too."""

    choices: list[Row]


class Asked(NamedTuple):
    """What the model chose. ``unknown`` were numbers that it was not shown, ``twice`` were named more than once."""

    verdicts: tuple[Verdict, ...]
    unknown: int
    twice: int
    spent: Spent


Progress = Callable[[int, int], None]
"""Called before each call of the model with its number, from 1, and how many there are."""


def ask(model: Model, offer: Offer, instructions: str, limit: float, progress: Progress) -> Asked:
    """Ask for every part of the offer, within ``limit`` seconds in all. HeadlessFailed where one call fails."""
    shown, metered = parts(offer), Metered(model)
    deadline = time.monotonic() + limit
    asked = Asked((), 0, 0, metered.spent)
    for number, part in enumerate(shown, 1):
        progress(number, len(shown))
        try:
            left = _left(deadline, f"after {limit:g} s it had answered {number - 1} of {counted(len(shown), 'call')}")
            asked = _asked(asked, metered, offer, part, task(instructions), left)
        except HeadlessFailed as error:
            message = f"The model chose nothing: {error.message}{_paid(metered.spent)}"
            remedy = f"{error.remedy} {WITHOUT}".strip()
            raise HeadlessFailed(message, remedy, metered.spent.cost_usd) from error
    return asked


def _paid(spent: Spent) -> str:
    """What was spent for nothing."""
    cost = spent.cost_usd or 0.0
    return f" ({cost:.4f} USD were spent)" if cost >= LEAST_COST else ""


def _left(deadline: float, otherwise: str) -> float:
    """Seconds until ``deadline``; HeadlessFailed where there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise HeadlessFailed(otherwise, "Give it more time (--timeout).")
    return left


def task(instructions: str) -> str:
    """The whole task, with what the user wants."""
    return "\n\n".join([TASK, WISHES, instructions.strip(), HINTED] if instructions.strip() else [TASK])


def _asked(so_far: Asked, model: Metered, offer: Offer, part: Part, instructions: str, limit: float) -> Asked:
    """One call more."""
    rows = model.ask(instructions, part.text, Answer, limit=limit).data.choices
    known = [row for row in rows if row.number in part.numbers]
    first = {row.number: row for row in reversed(known)}
    return Asked(
        (*so_far.verdicts, *_verdicts(offer, list(first.values()))),
        so_far.unknown + len(rows) - len(known),
        so_far.twice + len(known) - len(first),
        model.spent,
    )


def _verdicts(offer: Offer, rows: Sequence[Row]) -> list[Verdict]:
    return [of_model(offer, row.number, row.description, row.rationale) for row in rows]
