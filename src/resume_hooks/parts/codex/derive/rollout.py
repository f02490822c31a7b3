"""The lines of a rollout: what the client was told so far as items, with the events that its screen and lists show.

The form is that of clients up to 0.146, which later ones resume as well: one file that needs no other, without the
numbers, pointers and counts of the parent. A count that is nearly full would have the client compact at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.history import OWN_ID
from resume_hooks.parts.codex.transcripts.lines import CONTEXT, EVENT, ITEM, META, OPENING, RolloutLine
from resume_hooks.system.text import encodable
from resume_hooks.transcripts.raw_edit import encode

Payload = dict[str, Any]

WORLD = "world_state"

_LEFT_OUT = frozenset({"history_mode", "history_base", "forked_from_ordinal_exclusive", "parent_thread_id"})
"""What ties a file to others; a child stands alone."""


class Told(NamedTuple):
    """Something the model is told: an item of the API, when it was said, its id, and marks that no model sees."""

    payload: Payload
    at: str
    uuid: str
    marks: Mapping[str, Any] = {}


class Identity(NamedTuple):
    """Who a child is: its id, the instant, its parent's id, and the fields of ours that its first line holds."""

    session_id: str
    at: str
    parent_id: str
    head: Mapping[str, Any]


def meta_line(meta: Payload, who: Identity) -> bytes:
    """The first line, after ``meta``, the parent's; newer fields than the parent's client knew are not added."""
    payload = {key: value for key, value in meta.items() if key not in _LEFT_OUT}
    payload |= {"id": who.session_id, "timestamp": who.at, "source": "cli"}
    if "session_id" in payload:
        payload["session_id"] = who.session_id
    if who.parent_id:
        payload["forked_from_id"] = who.parent_id
    return _line(META, payload, who.at, who.head)


def told_lines(told: Sequence[Told], context: Iterable[RolloutLine] = ()) -> Iterator[bytes]:
    """The lines of what was said; ``context`` are records with which the client knows what it need not tell again.

    They stand before the last item: what follows them, the client takes for told after them.
    """
    for place, item in enumerate(told):
        if place == len(told) - 1:
            yield from (_line(line.kind, line.payload, line.timestamp) for line in context)
        if event := _event(item.payload):
            yield _line(EVENT, event, item.at)
        yield _line(ITEM, item.payload, item.at, {OWN_ID: item.uuid, **item.marks})


class Context:
    """What the client believes to have told the model of its surroundings; it is fed with a thread's lines."""

    def __init__(self) -> None:
        self._world: list[RolloutLine] = []
        self._turn: RolloutLine | None = None

    def take(self, line: RolloutLine) -> None:
        """Take in the next line."""
        if line.kind == CONTEXT:
            self._turn = line
        elif line.kind == WORLD:
            if line.payload.get("full"):
                self._world.clear()
            self._world.append(line)

    @property
    def lines(self) -> list[RolloutLine]:
        """The last whole state with what changed since, and the last turn's settings."""
        return [*self._world, *([self._turn] if self._turn else [])]


def fresh_lines(told: Payload, answer: Payload, title: str, turn: str, at: str) -> list[bytes]:
    """A child that holds nothing of its parent but what we tell: one message each of the user and of the assistant.

    ``title`` stands on the screen and in lists in the place of the first.
    """
    return [
        _line(EVENT, {"type": "task_started", "turn_id": turn, "model_context_window": None}, at),
        _line(EVENT, _said("user_message", title), at),
        _line(ITEM, told, at, {OPENING: True}),
        _line(EVENT, _said("agent_message", of_items.text(answer)), at),
        _line(ITEM, answer, at),
        _line(EVENT, {"type": "task_complete", "turn_id": turn, "last_agent_message": None}, at),
    ]


def message(role: str, text: str) -> Payload:
    """A message of the user or of the assistant."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": encodable(text)}]}


def _event(payload: Payload) -> Payload | None:
    """What the screen shows of an item: words of the user and of the model; the rest it leaves out."""
    if of_items.kind(payload) != of_items.MESSAGE:
        return None
    if payload.get("role") == "assistant":
        return _said("agent_message", of_items.text(payload))
    return _said("user_message", of_items.text(payload)) if of_items.is_prompt(payload) else None


def _said(kind: str, text: str) -> Payload:
    more: Payload = {"images": [], "local_images": [], "text_elements": []} if kind == "user_message" else {}
    return {"type": kind, "message": text, **more}


def _line(kind: str, payload: Payload, at: str, marks: Mapping[str, Any] = {}) -> bytes:
    return encode({"timestamp": at, "type": kind, "payload": payload, **marks}) + b"\n"
