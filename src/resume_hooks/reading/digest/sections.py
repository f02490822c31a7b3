"""The sections of a digest, one row each: name, heading, room in an opening, and use in later digests.

The order of the table is the order in which an opening shows them; the talk stands between those
that come before it and the lists behind it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Group(Enum):
    """The place of a section in an opening."""

    NOW = "now"
    """Before the last request and the last answer."""
    OPEN = "open"
    """Behind those: what is left to do, one block of one heading, each row with its section's."""
    BINDING = "binding"
    """Between these and the talk."""
    LIST = "list"
    """Behind the talk."""
    SPARE = "spare"
    """At the end, in room that nothing else needs."""


class Section(NamedTuple):
    """One section.

    It stands in ``group``. Of an opening it may take ``share``, a part of 1, and at most ``most``
    characters; a row of it ``row`` characters. ``stored`` are the bytes that a child keeps of it.
    ``is_knowledge``: it serves another task on the same code, too. ``is_current``: only what the
    latest session says of it counts.
    """

    name: str
    heading: str
    group: Group
    share: float
    most: int
    row: int
    stored: int
    is_knowledge: bool = False
    is_current: bool = False


_NOW, _OPEN, _BINDING, _LIST, _SPARE = Group
NOW = Section("now", "now", _NOW, 0.15, 2_400, 500, 3_000, is_current=True)
PENDING = Section("pending", "pending", _OPEN, 0.06, 1_500, 480, 2_500, is_current=True)
QUESTIONS = Section(
    "questions", "asked and not answered", _OPEN, 0.06, 900, 400, 1_500, is_current=True
)
TODOS = Section("todos", "to do", _OPEN, 0.08, 1_200, 160, 2_500, is_current=True)
MARKS = Section("marks", "left in the code", _OPEN, 0.04, 900, 200, 1_500, is_current=True)
ERRORS = Section("errors", "still fails", _OPEN, 0.06, 1_600, 420, 2_500, is_current=True)
CONSTRAINTS = Section(
    "constraints", "rules that the user set", _BINDING, 0.12, 3_600, 320, 8_000, is_knowledge=True
)
ANSWERS = Section(
    "answers",
    "what the user chose when asked",
    _BINDING,
    0.08,
    2_400,
    400,
    5_000,
    is_knowledge=True,
)
SKILLS = Section(
    "skills",
    "skills that were loaded: steps that are left, and rules",
    _BINDING,
    0.06,
    4_000,
    420,
    6_000,
    is_current=True,
)
CHANGED = Section("changed", "files changed", _LIST, 0.25, 6_000, 160, 9_000, is_knowledge=True)
COMMANDS = Section(
    "commands", "commands to run again", _LIST, 0.2, 6_000, 600, 9_000, is_knowledge=True
)
FAILURES = Section(
    "failures", "failed, and what worked instead", _LIST, 0.06, 4_000, 480, 7_000, is_knowledge=True
)
REFUSALS = Section(
    "refusals", "refused when it was tried", _LIST, 0.06, 1_000, 300, 2_000, is_knowledge=True
)
ARTEFACTS = Section(
    "artefacts", "commits and pull requests", _LIST, 0.05, 1_200, 160, 2_000, is_knowledge=True
)
OTHERS = Section(
    "others", "other commands that worked", _SPARE, 0.2, 5_000, 600, 7_000, is_knowledge=True
)
READ = Section("read", "files read, not changed", _SPARE, 0.1, 1_600, 160, 2_000, is_knowledge=True)

SECTIONS = (
    NOW, PENDING, QUESTIONS, TODOS, MARKS, ERRORS, CONSTRAINTS, ANSWERS, SKILLS,
    CHANGED, COMMANDS, FAILURES, REFUSALS, ARTEFACTS, OTHERS, READ,
)  # fmt: skip
"""Every section, in the order in which an opening shows them."""

NAMES = tuple(section.name for section in SECTIONS)
