"""The goal of a thread, as set by ``/goal`` and updated by the model, read from its rollout.

Codex itself uses the goal in its own database. We do not read that: it may be locked, and it has no
entry for a copied or archived rollout. Both agree on 0.169 and 0.171.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.lines import ITEM, RolloutLine
from resume_hooks.transcripts.records import Record, mapping, parse, string

UPDATED = (
    # the event that follows when the user sets a goal or changes its status
    "thread_goal_updated"
)
REPORTED, BEGUN = (
    "update_goal",
    "create_goal",
)  # tools with which the model sets or updates the goal; their output contains it
COMPLETE = "complete"

_SET = re.compile(r'^User set the goal: (".*")$', re.MULTILINE)
_STATE = re.compile(r'^User set goal status: "(\w+)"\.?$', re.MULTILINE)
_CLEARED = "User cleared the goal."


class Goal(NamedTuple):
    """The user's goal for a thread, and Codex's word for its status: active, paused, blocked, complete..."""

    objective: str
    status: str


class GoalState:
    """The goal as it changes line by line; ``goal`` is None until one is set."""

    def __init__(self) -> None:
        self.goal: Goal | None = None
        self._calls: set[str] = set()

    def take(self, line: RolloutLine) -> bool:
        """Process the next line, and return whether it changed the goal."""
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
    """Return the goal that a note sets, and the status that it sets; one of them is ``""``.

    The status is ``clear``, ``paused`` or ``active``.
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
