"""A document as plain text: for people in a terminal, and for grep. Nothing is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from resume_hooks.clock import minute
from resume_hooks.parts.share.export import parts
from resume_hooks.parts.share.export.parts import MARKS, SPEAKERS, AgentPart, CallPart, Part
from resume_hooks.reading.char_budget import indent_text
from resume_hooks.reading.render import fields_text
from resume_hooks.system.text import plain, plain_line

RULE = "=" * 80


def as_text(document: Iterable[Part]) -> Iterator[str]:
    """The document, piece by piece; each ends with a line feed."""
    for part in document:
        yield from _lines(part, "")


def _lines(part: Part, indent: str) -> Iterator[str]:
    if isinstance(part, CallPart):
        yield from _call(part, indent)
    elif isinstance(part, AgentPart):
        yield from _agent(part, indent)
    else:
        yield _shifted(_plain(part), indent) + "\n"


def _plain(part: Part) -> str:
    match part:
        case parts.SessionPart():
            facts = (f"{name}: {plain_line(value)}\n" for name, value in part.facts)
            return f"{RULE}\n{plain_line(part.title)}\n{''.join(facts)}{RULE}\n"
        case parts.TurnPart():
            return f"--- {plain_line(' · '.join([part.name, *part.facts]))} ---\n"
        case parts.TextPart():
            when = f" · {minute(part.time)}" if part.time else ""
            return f"{SPEAKERS[part.who].upper()}{when}\n{plain(part.text)}\n"
        case parts.ThinkingPart():
            return f"THINKING\n{indent_text(plain(part.text))}\n"
        case parts.NotePart():
            return f"[{plain_line(part.what)}]\n{indent_text(plain(part.text))}\n"
        case parts.MediaPart():
            return f"[{plain_line(part.about)}]\n"
        case parts.EndPart():
            return "\n".join([RULE, *part.sentences])
    return ""


def _call(call: CallPart, indent: str) -> Iterator[str]:
    head = f"-> {call.name} {call.about}".rstrip() + (f" ({call.state})" if call.state else "")
    yield _shifted(f"{plain_line(head)}\n", indent)
    given = "\n".join(f"[{MARKS.get(status, ' ')}] {words}" for status, words in call.tasks) or fields_text(call.given)
    if given and not (call.about and given.partition(": ")[2] == call.about):
        yield _shifted(indent_text(plain(given)) + "\n", indent)
    if call.agent is not None:
        yield from _agent(call.agent, f"{indent}  ")
    if call.answer is not None:
        yield _shifted(indent_text(f"=> {plain(call.answer.text)}".rstrip()) + "\n", indent)
    yield "\n"


def _agent(agent: AgentPart, indent: str) -> Iterator[str]:
    yield _shifted(f"[sub-agent {plain_line(agent.kind)}: {plain_line(agent.name)}]\n", indent)
    for part in agent.parts:
        yield from _lines(part, f"{indent}  ")


def _shifted(text: str, indent: str) -> str:
    """A text with each line that holds something moved to the right."""
    if not indent:
        return text
    return "\n".join(f"{indent}{line}" if line else line for line in text.split("\n"))
