"""The table of a digest's sections.

The table contains each section's name, heading and limits, and says whether the digest of a later
session keeps the section. The rows have the same order as the sections in an opening. The talk
comes after the first groups of sections and before the lists.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class SectionGroup(Enum):
    """The place at which an opening shows a section."""

    NOW = "now"
    """The section comes before the last request and the last answer."""
    OPEN = "open"
    """The section comes after the last answer, together with the other sections of the open work.
    Each row starts with the section's name."""
    BINDING = "binding"
    """The section comes between the open work and the talk."""
    LIST = "list"
    """The section comes after the talk."""
    SPARE = "spare"
    """The section comes at the end of the opening, if space is left."""


class Section(NamedTuple):
    """One section of the digest.

    ``group`` is its place in an opening. ``max_fraction`` and ``max_characters`` limit its size in
    an opening. ``max_row_characters`` limits the length of a row, and ``max_stored_bytes`` limits
    the size that a child stores. ``is_knowledge`` means that the section is also useful for a
    different task on the same code. ``is_current`` means that the section describes the current
    state, so that a child's digest does not include its ancestors' entries.
    """

    name: str
    heading: str
    group: SectionGroup
    max_fraction: float
    max_characters: int
    max_row_characters: int
    max_stored_bytes: int
    is_knowledge: bool = False
    is_current: bool = False


_NOW, _OPEN, _BINDING, _LIST, _SPARE = SectionGroup
NOW_SECTION = Section("now", "now", _NOW, 0.15, 2_400, 500, 3_000, is_current=True)
NEXT_STEP_SECTION = Section(
    "next", "next step by the talk", _OPEN, 0.05, 1_600, 400, 2_500, is_current=True
)
PENDING_SECTION = Section("pending", "pending", _OPEN, 0.06, 1_500, 480, 2_500, is_current=True)
QUESTIONS_SECTION = Section(
    "questions", "asked and not answered", _OPEN, 0.06, 900, 400, 1_500, is_current=True
)
TODO_SECTION = Section("todos", "to do", _OPEN, 0.08, 1_200, 160, 2_500, is_current=True)
CODE_MARKS_SECTION = Section(
    "marks", "left in the code", _OPEN, 0.04, 900, 200, 1_500, is_current=True
)
ERRORS_SECTION = Section(
    "errors", "failed at its last run", _OPEN, 0.06, 1_600, 420, 2_500, is_current=True
)
CONSTRAINTS_SECTION = Section(
    "constraints", "rules that the user set", _BINDING, 0.12, 3_600, 320, 8_000, is_knowledge=True
)
ANSWERS_SECTION = Section(
    "answers",
    "what the user chose when asked",
    _BINDING,
    0.08,
    2_400,
    400,
    5_000,
    is_knowledge=True,
)
SKILLS_SECTION = Section(
    "skills",
    "loaded skills: remaining steps, and rules",
    _BINDING,
    0.06,
    4_000,
    420,
    6_000,
    is_current=True,
)
INSTRUCTIONS_SECTION = Section(
    "instructions",
    "instructions of the project: rules that concern this work, and commands",
    _BINDING,
    0.08,
    4_200,
    700,
    6_000,
    is_current=True,
)
CHANGED_FILES_SECTION = Section(
    "changed", "files changed", _LIST, 0.25, 6_000, 160, 9_000, is_knowledge=True
)
COMMANDS_SECTION = Section(
    "commands", "commands to run again", _LIST, 0.2, 6_000, 600, 9_000, is_knowledge=True
)
FAILURES_SECTION = Section(
    "failures",
    "commands that never worked, and what worked instead",
    _LIST,
    0.06,
    4_000,
    480,
    7_000,
    is_knowledge=True,
)
REFUSALS_SECTION = Section(
    "refusals", "refused when it was tried", _LIST, 0.06, 1_000, 300, 2_000, is_knowledge=True
)
ARTEFACTS_SECTION = Section(
    "artefacts", "commits and pull requests", _LIST, 0.05, 1_200, 160, 2_000, is_knowledge=True
)
OTHER_COMMANDS_SECTION = Section(
    "others", "other commands that worked", _SPARE, 0.2, 5_000, 600, 7_000, is_knowledge=True
)
READ_FILES_SECTION = Section(
    "read", "files read, not changed", _SPARE, 0.1, 1_600, 160, 2_000, is_knowledge=True
)

SECTIONS = (
    NOW_SECTION, NEXT_STEP_SECTION, PENDING_SECTION, QUESTIONS_SECTION, TODO_SECTION,
    CODE_MARKS_SECTION, ERRORS_SECTION, CONSTRAINTS_SECTION, ANSWERS_SECTION, SKILLS_SECTION,
    INSTRUCTIONS_SECTION, CHANGED_FILES_SECTION, COMMANDS_SECTION, FAILURES_SECTION,
    REFUSALS_SECTION, ARTEFACTS_SECTION, OTHER_COMMANDS_SECTION, READ_FILES_SECTION,
)  # fmt: skip
"""Every section, in the order of the sections in an opening."""

UNKNOWN_STATUS_NOTE = "exit status not recorded"
"""The note on a command whose exit status is not in the transcript."""

SECTION_NAMES = tuple(section.name for section in SECTIONS)
