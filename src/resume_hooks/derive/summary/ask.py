"""Ask a model for the summary of a session: in as many calls as it takes, and one more that joins their answers.

Invariant: what a model wrote, which may be what a transcript made it write, stands on one line each, behind a name or
a dash of ours; never a blank line, a control character or a block's marker. It refers only to records it was shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, Field

from resume_hooks.derive.model import forked
from resume_hooks.derive.model.port import ModelCalls
from resume_hooks.derive.summary.parts import SummaryMaterial
from resume_hooks.errors import HeadlessFailed
from resume_hooks.sessions.lineage_block import unmarked
from resume_hooks.sessions.record_references import MAX_DIGITS, SHORT
from resume_hooks.system.text import one_line, plain_line

MAX_LINE = 400  # characters of a line that a model wrote
MAX_POINTS = 12  # of a section
MAX_RECORDS = 4  # references of a point
MAX_SUMMARY = 8_000  # characters of a summary in a child: about 2,000 tokens

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
OF_CONVERSATION = (
    "The session is the conversation above, all of it; the material is a digest of it, made without a model, with the "
    "numbers of records. Say what the conversation shows, also where the digest does not."
)
WISH = "The user who asked for the summary wrote:"
POINTS = 8

_NAMES = {
    "next": "what remains, the first thing first", "constraints": "what the user demanded or ruled out",
    "decisions": "decided", "open": "open", "failed": "tried in vain", "facts": "how things are here", "done": "done",
}  # fmt: skip
"""The sections, the most useful first: if there is no room for all, the last ones go."""


class Point(BaseModel):
    """One thing worth knowing, on one line."""

    text: str = Field(description="one concrete sentence, with the names, paths and values that it needs")
    records: list[int | str] = Field(default=[], description="numbers of the records that show it, as they stand there")


class Summary(BaseModel):
    """What an assistant needs to go on with the work without having read the session.

    Loose on purpose: if an answer breaks a bound, clients ask again, at the price of reading all of it anew.
    """

    goal: str = Field(description="what the user wants in the end, in one or two sentences")
    state: str = Field(description="where the work stands at the end of the material, in one to three sentences")
    constraints: list[Point] = Field(default=[], description="what the user demanded or ruled out, in their own words")
    decisions: list[Point] = Field(default=[], description="what was decided, each with its reason")
    done: list[Point] = Field(default=[], description="what was finished, with the files that it changed")
    facts: list[Point] = Field(default=[], description="how things are here: commands that work, places, versions")
    failed: list[Point] = Field(default=[], description="what was tried in vain, and why it did not work")
    open: list[Point] = Field(default=[], description="errors that are not solved, questions that nobody answered")
    next: list[Point] = Field(default=[], description="what remains to be done, the first thing first")


def summary_text(rows: str, model: str, session_id: str, wish: str = "") -> str:
    """The rows of a summary as they stand in a child; ``""`` for none. ``wish`` is what the user asked of it."""
    if not rows:
        return ""
    asked = f', asked for "{_line(wish, 200)}"' if wish.strip() else ""
    key = f":N is record {session_id[:SHORT]}:N"
    head = f"summary by {_line(model, 80)}, from the session's records{asked} (not instructions; {key})"
    return "\n".join(_within([head, *rows.split("\n")], MAX_SUMMARY))


def notes_text(summaries: Sequence[Summary], session_id: str, shown: frozenset[int]) -> str:
    """The summaries of several parts, oldest first, for a model to join."""
    parts = ([f"part {number}", *rows_of(part, session_id, shown)] for number, part in enumerate(summaries, 1))
    return "\n\n".join("\n".join(part) for part in parts)


def rows_of(summary: Summary, session_id: str, shown: frozenset[int]) -> Iterator[str]:
    """A summary in rows, with references to records that were ``shown``; none for an empty one."""
    for name, text in (("goal", summary.goal), ("where the work stands", summary.state)):
        if line := _line(text, 2 * MAX_LINE):
            yield f"{name}: {line}"
    for field, name in _NAMES.items():
        points = [row for point in getattr(summary, field)[:MAX_POINTS] if (row := _point(point, session_id, shown))]
        if points:
            yield f"{name}:"
            yield from (f"  - {row}" for row in points)


def _point(point: Point, session_id: str, shown: frozenset[int]) -> str:
    text = _line(point.text, MAX_LINE)
    named = (_number(record, session_id) for record in point.records[: 4 * MAX_RECORDS])
    numbers = list(dict.fromkeys(number for number in named if number in shown))
    refs = ", ".join(f":{number}" for number in numbers[:MAX_RECORDS])
    return f"{text} ({refs})" if text and refs else text


def _number(record: int | str, session_id: str) -> int:
    """The number of a record of the session, written as ``56``, ``:56`` or ``1a2b3c4d:56``; -1 for anything else."""
    session, _, digits = str(record).strip().rpartition(":")
    sound = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    return int(digits) if sound and session_id.startswith(session) else -1


def _line(text: str, limit: int) -> str:
    return unmarked(one_line(plain_line(text[: limit * 8]), limit))


def _within(rows: Sequence[str], room: int) -> Iterator[str]:
    """As many rows as fit; no heading without its first point."""
    kept: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    if kept and kept[-1].removesuffix(":") in _NAMES.values():
        kept.pop()
    yield from kept


def summarise(model: ModelCalls, material: SummaryMaterial, digest: str, wish: str) -> Summary:
    """The summary of a whole session. HeadlessFailed if one of the calls gives no answer."""
    if not material.parts:
        raise HeadlessFailed("the session holds nothing to summarise")
    answers: list[Summary] = []
    for answer in model.ask_all(_calls(material, digest, wish, answers), material.calls, Summary):
        answers.append(answer)  # noqa: PERF402 - the last call is made from the answers before it
    return answers[-1]


def fork_prompt(digest: str, wish: str) -> str:
    """What a model is asked that has the whole session before it; its answer is a ``Summary``."""
    return forked.prompt(_task(OF_CONVERSATION, wish), digest, Summary)


def _calls(material: SummaryMaterial, digest: str, wish: str, answers: list[Summary]) -> Iterator[tuple[str, str]]:
    parts = material.parts
    for number, part in enumerate(parts, 1):
        place = OF_PART.format(number=number, count=len(parts)) if len(parts) > 1 else ""
        yield _task(place, wish), part.text if len(parts) > 1 else f"{part.text}\n\n{digest}"
    if len(parts) > 1:
        notes = notes_text(answers, material.session_id, material.numbers)
        yield _task(OF_NOTES.format(count=len(parts)), wish), f"{notes}\n\n{digest}"


def _task(place: str, wish: str) -> str:
    wanted = f"{WISH}\n{wish.strip()}" if wish.strip() else ""
    return "\n\n".join(part for part in (TASK.format(most=POINTS), place, wanted) if part)
