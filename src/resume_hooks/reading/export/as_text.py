"""A document as plain text: for people in a terminal, and for grep. Nothing is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from resume_hooks.clock import minute
from resume_hooks.reading.char_budget import indented
from resume_hooks.reading.export.parts import (
    MARKS,
    SPEAKERS,
    AgentPart,
    CallPart,
    EndPart,
    MediaPart,
    NotePart,
    Part,
    SessionPart,
    TextPart,
    ThinkingPart,
    TurnPart,
    called_name,
    left_out,
    session_facts,
    state_of,
    tasks_of,
    turn_facts,
    turn_name,
)
from resume_hooks.reading.render import fields_text
from resume_hooks.system.text import plain, plain_line

RULE = "=" * 80


def as_text(parts: Iterable[Part]) -> Iterator[str]:
    """The document of these parts, piece by piece; each ends with a line feed."""
    for part in parts:
        yield from _lines(part, "")


def _lines(part: Part, indent: str) -> Iterator[str]:
    if isinstance(part, CallPart):
        yield from _called(part, indent)
    elif isinstance(part, AgentPart):
        yield from _agent(part, indent)
    else:
        yield _shifted(_shown(part), indent) + "\n"


def _shown(part: SessionPart | TurnPart | TextPart | ThinkingPart | NotePart | MediaPart | EndPart) -> str:
    if isinstance(part, SessionPart):
        facts = (f"{name}: {plain_line(value)}\n" for name, value in session_facts(part))
        return f"{RULE}\n{plain_line(part.title)}\n{''.join(facts)}{RULE}\n"
    if isinstance(part, TurnPart):
        head = " · ".join([turn_name(part), *turn_facts(part)])
        return f"--- {plain_line(head)} ---\n"
    if isinstance(part, TextPart):
        when = f" · {minute(part.time)}" if part.time else ""
        return f"{SPEAKERS[part.who].upper()}{when}\n{plain(part.text)}\n"
    if isinstance(part, ThinkingPart):
        return f"THINKING\n{indented(plain(part.text))}\n"
    if isinstance(part, NotePart):
        return f"[{plain_line(part.what)}]\n{indented(plain(part.text))}\n"
    if isinstance(part, MediaPart):
        return f"[{plain_line(part.about)}]\n"
    return "\n".join([RULE, *left_out(part)])


def _called(called: CallPart, indent: str) -> Iterator[str]:
    state = state_of(called)
    head = f"-> {called_name(called)} {called.about}".rstrip() + (f" ({state})" if state else "")
    yield _shifted(f"{plain_line(head)}\n", indent)
    tasks = tasks_of(called.given)
    given = "\n".join(f"[{MARKS.get(status, ' ')}] {words}" for status, words in tasks) or fields_text(called.given)
    if given and not (called.about and given.partition(": ")[2] == called.about):
        yield _shifted(indented(plain(given)) + "\n", indent)
    if called.agent is not None:
        yield from _agent(called.agent, f"{indent}  ")
    if called.answer is not None:
        texts = (part if isinstance(part, str) else f"[{part.about}]" for part in called.answer.parts)
        yield _shifted(indented(f"=> {plain(chr(10).join(texts))}".rstrip()) + "\n", indent)
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
