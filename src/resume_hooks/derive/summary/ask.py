"""The asking: a session told to a model in as many calls as it takes, and one more that joins what they came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from resume_hooks.derive.model.port import Model
from resume_hooks.derive.summary.as_text import notes_text
from resume_hooks.derive.summary.chunks import Material
from resume_hooks.derive.summary.form import Summary
from resume_hooks.errors import HeadlessFailed

TASK = """\
Write the summary of a working session of a coding assistant for the assistant that goes on with the work in a fresh \
session. It has not seen this session, but can read any record of it by its number. Say what it needs to know and \
nothing that it does not: goal, where the work stands, what the user demanded or ruled out (verbatim where it is \
short), decisions with their reasons, what was done, how things are here, what failed and why, what is open, what \
remains. The latest counts most; what was overtaken later is left out. Be concrete: names, paths, commands, values. \
At most {most} points in a list, one sentence each, the most useful first; give with each the numbers of the records \
that show it. Invent nothing: where the material does not say, leave it out. Write in the user's language."""

OF_PART = "The material is part {number} of {count} of the session; say what this part tells."
OF_NOTES = (
    "The material is what {count} parts of the session came to, oldest first, and a digest made without a model. Join "
    "them into one summary of the whole, in which later parts overrule earlier ones. Keep the numbers of the records."
)
WISH = "The user who asked for the summary wrote:"

POINTS = 8

Progress = Callable[[int, int], None]
"""Called before each call of the model with its number, from 1, and how many there are."""


def calls_for(material: Material) -> int:
    """How often a model is asked."""
    return len(material.parts) + (len(material.parts) > 1)


def summarise(model: Model, material: Material, digest: str, wish: str, *, limit: float, progress: Progress) -> Summary:
    """The summary of a whole session, within ``limit`` seconds. HeadlessFailed where one call gives no answer."""
    if not material.parts:
        raise HeadlessFailed("the session holds nothing to summarise")
    count = calls_for(material)
    answers: list[Summary] = []
    deadline = time.monotonic() + limit
    for number, (task, text) in enumerate(_calls(material, digest, wish, answers), 1):
        progress(number, count)
        left = deadline - time.monotonic()
        if left <= 0:
            raise HeadlessFailed(f"it took over {limit:.0f} s: {number - 1} of {count} calls were answered")
        answers.append(model.ask(task, text, Summary, limit=left).data)
    return answers[-1]


def _calls(material: Material, digest: str, wish: str, answers: list[Summary]) -> Iterator[tuple[str, str]]:
    """Each call's task and text; the last one of several is told what the ``answers`` to those before it were."""
    parts = material.parts
    for number, part in enumerate(parts, 1):
        place = OF_PART.format(number=number, count=len(parts)) if len(parts) > 1 else ""
        yield _task(place, wish), part.text if len(parts) > 1 else f"{part.text}\n\n{digest}"
    if len(parts) > 1:
        notes = notes_text(answers, material.session_id, material.numbers)
        yield _task(OF_NOTES.format(count=len(parts)), wish), f"{notes}\n\n{digest}"


def _task(place: str, wish: str) -> str:
    """The whole task, with what the user wants of it."""
    asked = f"{WISH}\n{wish.strip()}" if wish.strip() else ""
    return "\n\n".join(part for part in (TASK.format(most=POINTS), place, asked) if part)
