"""Ask a model which contents of an offer can go, in as many calls as it takes, and keep what counts of its answers.

Invariant: a choice counts once, and only for a number that was in the text of that very call.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, Field, StrictInt

from resume_hooks.derive.model.port import Model, ModelCalls, Progress, Spent
from resume_hooks.errors import HeadlessFailed
from resume_hooks.parts.smart_trim.offer import Offer
from resume_hooks.parts.smart_trim.plan import Verdict, of_model
from resume_hooks.parts.smart_trim.prompt import parts

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

LEAST_COST = 0.0001  # US dollars that are worth mentioning
WITHOUT = "Nothing was written. Without a model: resume-hooks trim {session}"


class ModelChoice(BaseModel):
    """One piece that can go."""

    number: StrictInt = Field(description="the number of the piece, as shown")
    description: str = Field(description="what was there, at most 12 words")
    rationale: str = Field(description="why it is no longer needed, at most 15 words")


class ModelAnswer(BaseModel):
    """The pieces that can go; none is an answer too."""

    choices: list[ModelChoice]


class ModelVerdicts(NamedTuple):
    """What the model chose. ``unknown`` were numbers that it was not shown, ``twice`` were named more than once."""

    verdicts: tuple[Verdict, ...] = ()
    unknown: int = 0
    twice: int = 0
    spent: Spent = Spent()


def ask(model: Model, offer: Offer, instructions: str, limit: float, progress: Progress) -> ModelVerdicts:
    """Ask about every part of the offer, within ``limit`` seconds in all. HeadlessFailed if one call fails."""
    shown, calls = parts(offer), ModelCalls(model, limit, progress)
    verdicts: list[Verdict] = []
    unknown = twice = 0
    tasks = ((task(instructions), part.text) for part in shown)
    try:
        for part, answer in zip(shown, calls.ask_all(tasks, len(shown), ModelAnswer), strict=True):
            known = [choice for choice in answer.choices if choice.number in part.numbers]
            first = {choice.number: choice for choice in reversed(known)}
            verdicts += [of_model(offer, one.number, one.description, one.rationale) for one in first.values()]
            unknown += len(answer.choices) - len(known)
            twice += len(known) - len(first)
    except HeadlessFailed as error:
        message = f"The model chose nothing: {error.message}{_paid(calls.spent)}"
        without = WITHOUT.format(session=offer.scanned.session.session_id)
        raise HeadlessFailed(message, f"{error.remedy} {without}".strip(), calls.spent.cost_usd) from error
    return ModelVerdicts(tuple(verdicts), unknown, twice, calls.spent)


def _paid(spent: Spent) -> str:
    """What was spent for nothing."""
    cost = spent.cost_usd or 0.0
    return f" ({cost:.4f} USD were spent)" if cost >= LEAST_COST else ""


def task(instructions: str) -> str:
    """The whole task, with what the user wants."""
    return "\n\n".join([TASK, WISHES, instructions.strip(), HINTED] if instructions.strip() else [TASK])
