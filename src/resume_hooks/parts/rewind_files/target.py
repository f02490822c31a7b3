"""The prompt that ``--to`` names: a turn by its number, a record by its uuid or reference.

What names no prompt is refused, with the nearest prompts named.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import NoFileHistory, UsageError
from resume_hooks.parts.rewind_files.history import FileHistory, Prompt, State
from resume_hooks.paths import is_session_id
from resume_hooks.sessions import record_references
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.nodes import ancestors

FORMS = "--to takes the number of a turn (as outline counts), last, the uuid of a prompt, or <session>:<line>."
WORDS = 60
"""Characters of a prompt that a message repeats."""


class Target(NamedTuple):
    """What was typed: a ``turn`` (0: the last), or a ``record`` (line or uuid), of ``session`` where that was named."""

    turn: int | None
    record: int | str
    session: str | None


class Aim(NamedTuple):
    """A prompt with the state of files that counts there; not ``exact``: files were edited between that and the prompt.

    ``states`` are all of the prompt's own branch and of those that went on from it.
    """

    prompt: Prompt
    state: State
    exact: bool
    states: tuple[State, ...]


def parse(text: str) -> Target:
    """What ``text`` names. UsageError for what names nothing."""
    wanted = text.strip()
    number = wanted.lower().removeprefix("turn").strip()
    if number.isascii() and number.isdigit() and len(number) <= record_references.MAX_DIGITS and int(number):
        return Target(int(number), 0, None)
    if wanted.lower() == "last":
        return Target(0, 0, None)
    if is_session_id(wanted.lower()):
        return Target(None, wanted, None)
    if ":" in wanted:
        named = record_references.parse(wanted)
        record = named.record.uuid if isinstance(named.record, record_references.RecordOffset) else named.record
        if record != "":
            return Target(None, record, named.session)
    raise UsageError(f"'{one_line(plain_line(text), 60)}' names no message", FORMS)


def aim(history: FileHistory, target: Target) -> Aim:
    """The prompt that is meant, with its state. UsageError, NoFileHistory where there is no such."""
    prompt = _prompt(history, target)
    beside = _Beside(history, prompt)
    states = tuple(state for state in history.states if not beside(state.message))
    reached = [state for state in states if state.line <= prompt.line]
    later = [state for state in states if state.line > prompt.line]
    own = next((state for state in reached if state.message == prompt.uuid), None)
    # 2.1.329 writes none where it ends within milliseconds of the answer (measured, -p).
    same = own or _unedited(history, reached[-1:], prompt) or _unedited(history, later[:1], prompt)
    if same is None and not reached:
        first = next((one for one in history.prompts if later and one.uuid == later[0].message), None)
        raise NoFileHistory(
            f"The client kept no state of the files at or before {told(prompt)}",
            f"The first is at {told(first)}." if first else "Its file history belongs to another branch.",
        )
    return Aim(prompt, same or reached[-1], same is not None, states)


def _unedited(history: FileHistory, nearest: list[State], prompt: Prompt) -> State | None:
    """The nearest state, if no tool wrote a file between it and a prompt: then it is the prompt's as well."""
    for state in nearest:
        start, end = sorted((state.line, prompt.line))
        if not any(start < line < end for line in history.edited):
            return state
    return None


def told(prompt: Prompt) -> str:
    """A prompt in words that name it: its turn or line, and how it begins."""
    place = f"turn {prompt.turn}" if prompt.turn else f"line {prompt.line}"
    return f'{place} "{one_line(prompt.words, WORDS)}"'


def _prompt(history: FileHistory, target: Target) -> Prompt:
    """The prompt that was named. UsageError with its neighbours where it is none."""
    prompts = history.prompts
    if target.turn is not None:
        turns = [one for one in prompts if one.turn]
        found = turns[-1:] if not target.turn else [one for one in turns if one.turn == target.turn]
        if not found:
            there = f"It has turns 1 to {turns[-1].turn}." if turns else "It has no turns."
            raise UsageError(f"No turn {target.turn or 'at all'} in this session", there)
        return found[-1]
    if isinstance(target.record, str):
        wanted = {target.record, target.record.lower()}
        line = next((node.number for uuid, node in history.nodes.items() if uuid in wanted), None)
    else:
        line = target.record
    if line is None:
        raise UsageError(f"No record {target.record} in {history.session.path}", _named(prompts[-3:]))
    prompt = next((one for one in prompts if one.line == line), None)
    if prompt is None:
        place = bisect.bisect([one.line for one in prompts], line)
        raise UsageError(f"Line {line} is no prompt of the user", _named(prompts[max(0, place - 1) : place + 1]))
    return prompt


def _named(prompts: tuple[Prompt, ...]) -> str:
    """The nearest prompts, each with what ``--to`` takes for it."""
    return f"The nearest prompts: {'; '.join(f'{one.uuid} {told(one)}' for one in prompts)}."


class _Beside:
    """Whether a message stands on a branch that left the conversation before a prompt: those states are not its own.

    What has no ancestor in common with the prompt is not beside it: a compaction cuts the links.
    """

    def __init__(self, history: FileHistory, prompt: Prompt) -> None:
        self._nodes = history.nodes
        self._prompt = prompt.uuid
        self._above = set(self._way_up(prompt.uuid))
        self._known: dict[str, bool] = {}

    def __call__(self, message: str) -> bool:
        trail: list[str] = []
        found = False
        for uuid in self._way_up(message):
            if uuid in self._known:
                found = self._known[uuid]
                break
            if uuid in self._above:
                found = bool(trail) and uuid != self._prompt
                break
            trail.append(uuid)
        self._known.update(dict.fromkeys(trail, found))
        return found

    def _way_up(self, uuid: str) -> Iterator[str]:
        """A message and its ancestors, the nearest first; a cycle ends it."""
        known = self._nodes
        trail = ancestors(known.get(uuid), lambda node: known.get(node.parent) if node.parent else None)
        return (node.uuid for node in trail)
