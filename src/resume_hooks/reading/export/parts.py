"""What a document is made of, in the order in which it is read; every text in it is already fit to leave the machine.

The values are the same for each form of document. Nothing here is escaped yet: that is for who writes the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.clock import minute
from resume_hooks.reading.outline import BRANCH, COMPACTED
from resume_hooks.system.text import counted
from resume_hooks.transcripts.records import Record, objects, string

USER, ASSISTANT, SUMMARY = "user", "assistant", "summary"
"""Whose words they are; a summary is what a compaction, or a handoff, left for the model."""

SPEAKERS = {USER: "User", ASSISTANT: "Assistant", SUMMARY: "Summary"}
PLACES = {COMPACTED: "before a compaction", BRANCH: "on a branch that was left"}
MARKS = {"completed": "x", "in_progress": "~"}  # the states of a task in a list of them


class TurnPart(NamedTuple):
    """The head of a turn. ``tokens`` is the context after it, 0 if nobody counted; ``line`` that of its prompt.

    ``place`` is live, compacted or branch, as in an outline. ``number`` 0 is what stands before the first prompt.
    """

    number: int
    line: int
    time: str
    words: str
    place: str
    tokens: int
    tools: dict[str, int]
    failed: int


class SessionPart(NamedTuple):
    """The head of a session: what it is, and the turns that will be told, so that a table can stand before them.

    ``taken_over`` counts records that an earlier session of the same document already told.
    """

    session_id: str
    title: str
    project: str
    branch: str
    created: str
    ended: str
    kind: str
    parent: str
    tokens: int
    models: tuple[str, ...]
    versions: str
    turns: tuple[TurnPart, ...]
    taken_over: int
    damaged: int


class TextPart(NamedTuple):
    """Words: ``who`` is USER, ASSISTANT or SUMMARY. ``line`` is the record's, counted from 0."""

    who: str
    text: str
    time: str
    line: int


class ThinkingPart(NamedTuple):
    """What the model thought."""

    text: str
    line: int


class NotePart(NamedTuple):
    """What neither of the two said: a compaction, an error of the API, the output of a local command."""

    what: str
    text: str
    line: int


class MediaPart(NamedTuple):
    """An image or a document; ``data`` is base64, ``""`` if it was left out or is held elsewhere."""

    kind: str
    media_type: str
    data: str
    about: str


class ResultPart(NamedTuple):
    """What a call was answered with."""

    parts: tuple[str | MediaPart, ...]
    failed: bool


class AgentPart(NamedTuple):
    """A sub-agent's own conversation, told once, when the iterator is walked."""

    name: str
    kind: str
    parts: Iterator[Part]


class CallPart(NamedTuple):
    """A call of a tool: ``about`` is what it is about in one line, ``given`` its input."""

    tool: str
    about: str
    given: Record
    answer: ResultPart | None
    agent: AgentPart | None
    line: int


class EndPart(NamedTuple):
    """The end of the document: what was left out of it, by kind; None if nothing was looked for."""

    secrets: dict[str, int] | None
    pictures: int
    cut: int


Part = SessionPart | TurnPart | TextPart | ThinkingPart | NotePart | MediaPart | CallPart | AgentPart | EndPart


def session_facts(session: SessionPart) -> list[tuple[str, str]]:
    """What a document tells of a session, name and value; nothing of what is not known."""
    came = f"{session.kind} of {session.parent}" if session.parent else ""
    facts = [
        ("Session", session.session_id),
        ("Project", session.project),
        ("Branch", session.branch),
        ("Time", f"{minute(session.created)} to {minute(session.ended)} UTC"),
        ("Turns", f"{len(session.turns):,}"),
        ("Context", counted(session.tokens, "token") if session.tokens else ""),
        ("Models", ", ".join(session.models)),
        ("Client", session.versions),
        ("Came from", came),
        ("Taken over", f"{counted(session.taken_over, 'record')}, told above" if session.taken_over else ""),
        ("Damaged", f"{counted(session.damaged, 'line')} could not be read" if session.damaged else ""),
    ]
    return [(name, value) for name, value in facts if value]


def turn_name(turn: TurnPart) -> str:
    """What a turn is called."""
    return f"Turn {turn.number}"


def turn_facts(turn: TurnPart) -> list[str]:
    """What a turn came to, in a few words each."""
    tools = [f"{name} {count}" if count > 1 else name for name, count in list(turn.tools.items())[:6]]
    more = len(turn.tools) - len(tools)
    facts = (
        minute(turn.time),
        ", ".join([*tools, f"{more} more"] if more > 0 else tools),
        f"{turn.failed:,} failed" if turn.failed else "",
        counted(turn.tokens, "token") if turn.tokens else "",
        PLACES.get(turn.place, ""),
    )
    return [fact for fact in facts if fact]


def called_name(called: CallPart) -> str:
    """The tool of a call; of an answer whose call is not in the session what it is."""
    return called.tool or "Result without its call"


def state_of(called: CallPart) -> str:
    """How a call ended, ``""`` if nothing is to be said of that."""
    if called.answer is None:
        return "no answer"
    return "failed" if called.answer.failed else ""


def tasks_of(given: Record) -> list[tuple[str, str]]:
    """The tasks in the input of a call that writes a list of them: state and words."""
    return [(string(row, "status"), string(row, "content")) for row in objects(given.get("todos"))]


def left_out(ending: EndPart) -> list[str]:
    """What a document does not hold, a sentence each."""
    if ending.secrets is None:
        said = ["Nothing was taken out: secrets and home folders stand as they were."]
    elif ending.secrets:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(ending.secrets.items()))
        said = [f"{counted(sum(ending.secrets.values()), 'secret')} taken out ({kinds}). Home folders are shown as ~."]
    else:
        said = ["No secrets were found. Home folders are shown as ~."]
    if ending.cut:
        said.append(f"{counted(ending.cut, 'long text')} cut, each with a notice.")
    if ending.pictures:
        said.append(f"{counted(ending.pictures, 'image')} were not looked into for secrets.")
    return said
