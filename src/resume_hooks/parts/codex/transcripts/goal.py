"""The goal of a thread, as ``/goal`` sets it and its model reports on it, by what its rollout tells.

Codex pursues what stands in a database of its own, which is not read: it may be locked, and of a
copied or an archived rollout it has nothing. What the two tell is the same on 0.169 and 0.171.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.lines import ITEM, RolloutLine
from resume_hooks.transcripts.records import Record, mapping, parse, string

UPDATED = (
    "thread_goal_updated"  # the event of a goal that the user set, or whose state the user changed
)
REPORTED, BEGUN = (
    "update_goal",
    "create_goal",
)  # tools with which the model does; they are answered with the goal
COMPLETE = "complete"

_SET = re.compile(r'^User set the goal: (".*")$', re.MULTILINE)
_STATE = re.compile(r'^User set goal status: "(\w+)"\.?$', re.MULTILINE)
_CLEARED = "User cleared the goal."


class Goal(NamedTuple):
    """What the user wants of a thread, and Codex's word for how it stands: active, paused, blocked, complete..."""

    objective: str
    status: str


class GoalState:
    """The goal as it changes line by line; ``goal`` is None as long as nobody set one."""

    def __init__(self) -> None:
        self.goal: Goal | None = None
        self._calls: set[str] = set()

    def take(self, line: RolloutLine) -> bool:
        """Take in the next line; whether it changed the goal."""
        before = self.goal
        if line.event() == UPDATED:
            self._set_goal(mapping(line.payload, "goal"))
        elif line.kind == ITEM:
            self._take_item(line.payload)
        return self.goal != before

    def _take_item(self, item: Record) -> None:
        kind = of_items.kind(item)
        if kind == "function_call" and string(item, "name") in {REPORTED, BEGUN}:
            self._calls.add(of_items.call_id(item))
        elif kind == "function_call_output" and of_items.call_id(item) in self._calls:
            self._set_goal(
                mapping(parse(of_items.text(item).encode("utf-8", "replace")) or {}, "goal")
            )
        elif of_items.is_goal_note(item) and _CLEARED in of_items.text(item):
            self.goal = None

    def _set_goal(self, told: Record) -> None:
        if objective := string(told, "objective").strip():
            self.goal = Goal(objective, string(told, "status"))


def goal_words(note: Record) -> tuple[str, str]:
    """The goal that the user set, by a note of it.

    Else the word that changed it: ``clear``, ``paused``, ``active``.
    """
    said = of_items.text(note)
    if objective := _SET.search(said):
        return _unquote_word(objective[1]), ""
    if status := _STATE.search(said):
        return "", status[1]
    return "", "clear" if _CLEARED in said else ""


def _unquote_word(word: str) -> str:
    try:
        said = orjson.loads(word)
    except orjson.JSONDecodeError:
        said = word[1:-1]
    return str(said)
