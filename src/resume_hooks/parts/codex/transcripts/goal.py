"""Read the goal of a Codex thread from its rollout (the .jsonl file).

The user sets a goal with ``/goal``, and the model updates it. Codex itself reads the goal from its
own database. This module does not use the database, because it may be locked and contains no goal
for a copied or archived rollout. In Codex 0.169 and 0.171, rollouts contain the same goals as the
database.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.lines import ITEM_LINE, RolloutLine
from resume_hooks.transcripts.records import Record, get_mapping, get_string, parse_record

# The type of the event that Codex writes after the user has set a goal or changed its status.
GOAL_EVENT_TYPE = "thread_goal_updated"
# The tools with which the model changes a goal's status or creates a goal. Their output contains
# the goal.
UPDATE_GOAL_TOOL, CREATE_GOAL_TOOL = "update_goal", "create_goal"
COMPLETE_STATUS = "complete"

_GOAL_TEXT_PATTERN = re.compile(r'^User set the goal: (".*")$', re.MULTILINE)
_GOAL_STATUS_PATTERN = re.compile(r'^User set goal status: "(\w+)"\.?$', re.MULTILINE)
_GOAL_CLEARED_TEXT = "User cleared the goal."


class Goal(NamedTuple):
    """The user's goal for a thread.

    ``status`` is the name that Codex uses for the goal's status, for example ``active``,
    ``paused``, ``blocked`` or ``complete``.
    """

    objective: str
    status: str


class GoalTracker:
    """Keeps a thread's current goal (``goal``) up to date from the lines that are given to ``add_line``."""

    def __init__(self) -> None:
        self.goal: Goal | None = None
        self._calls: set[str] = set()

    def add_line(self, line: RolloutLine) -> bool:
        """Process the next line. Return whether the line has changed the goal."""
        previous_goal = self.goal
        if line.event_type() == GOAL_EVENT_TYPE:
            self._set_goal(get_mapping(line.payload, "goal"))
        elif line.kind == ITEM_LINE:
            self._update_goal_from_item(line.payload)
        return self.goal != previous_goal

    def _update_goal_from_item(self, item: Record) -> None:
        kind = codex_items.item_type(item)
        if kind == "function_call" and get_string(item, "name") in {
            UPDATE_GOAL_TOOL,
            CREATE_GOAL_TOOL,
        }:
            self._calls.add(codex_items.call_id(item))
        elif kind == "function_call_output" and codex_items.call_id(item) in self._calls:
            self._set_goal(
                get_mapping(
                    parse_record(codex_items.item_text(item).encode("utf-8", "replace")) or {},
                    "goal",
                )
            )
        elif codex_items.is_goal_notice(item) and _GOAL_CLEARED_TEXT in codex_items.item_text(item):
            self.goal = None

    def _set_goal(self, goal_record: Record) -> None:
        if objective := get_string(goal_record, "objective").strip():
            self.goal = Goal(objective, get_string(goal_record, "status"))


def parse_goal_text_and_status(goal_notice: Record) -> tuple[str, str]:
    """Return the text and the status of a goal from Codex's notice that the user changed the goal.

    A notice contains either a text or a status, and the other value is returned as ``""``. The
    status is ``clear``, ``paused`` or ``active``.
    """
    text = codex_items.item_text(goal_notice)
    if objective := _GOAL_TEXT_PATTERN.search(text):
        return _parse_quoted_text(objective[1]), ""
    if status := _GOAL_STATUS_PATTERN.search(text):
        return "", status[1]
    return "", "clear" if _GOAL_CLEARED_TEXT in text else ""


def _parse_quoted_text(quoted_text: str) -> str:
    try:
        value = orjson.loads(quoted_text)
    except orjson.JSONDecodeError:
        value = quoted_text[1:-1]
    return str(value)
