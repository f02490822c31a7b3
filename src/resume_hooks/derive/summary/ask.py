"""Ask a model for the summary of a session: in as many calls as it takes, and one more that joins their answers."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.model.port import ModelCalls
from resume_hooks.derive.summary.form import Summary, notes_text
from resume_hooks.derive.summary.parts import SummaryMaterial
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


def summarise(model: ModelCalls, material: SummaryMaterial, digest: str, wish: str) -> Summary:
    """The summary of a whole session. HeadlessFailed if one of the calls gives no answer."""
    if not material.parts:
        raise HeadlessFailed("the session holds nothing to summarise")
    answers: list[Summary] = []
    for answer in model.ask_all(_calls(material, digest, wish, answers), material.calls, Summary):
        answers.append(answer)  # noqa: PERF402 - the last call is made from the answers before it
    return answers[-1]


def _calls(material: SummaryMaterial, digest: str, wish: str, answers: list[Summary]) -> Iterator[tuple[str, str]]:
    """Each call's task and text; the last one of several is given the ``answers`` to those before it."""
    parts = material.parts
    for number, part in enumerate(parts, 1):
        place = OF_PART.format(number=number, count=len(parts)) if len(parts) > 1 else ""
        yield _task(place, wish), part.text if len(parts) > 1 else f"{part.text}\n\n{digest}"
    if len(parts) > 1:
        notes = notes_text(answers, material.session_id, material.numbers)
        yield _task(OF_NOTES.format(count=len(parts)), wish), f"{notes}\n\n{digest}"


def _task(place: str, wish: str) -> str:
    """The whole task, with what the user wants of it."""
    wanted = f"{WISH}\n{wish.strip()}" if wish.strip() else ""
    return "\n\n".join(part for part in (TASK.format(most=POINTS), place, wanted) if part)
