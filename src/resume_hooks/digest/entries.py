"""What a digest is: entries by section, in the order in which they matter.

Invariant: an entry is one line, so that a digest never holds a blank one and no text out of a transcript can begin
a section of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SECTIONS = (
    "goal", "constraints", "plan", "todos", "decisions", "changed", "commands", "failures", "errors", "last",
    "questions", "artefacts", "read",
)  # fmt: skip
"""Every section by name, the most useful first."""


class Entry(NamedTuple):
    """One line: what was said or done, what is known of it, and where: ``<session id>:<record>``, ``""`` unknown."""

    text: str
    ref: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """Entries by section; ``git`` is one line on the folder's repository, ``unread`` ancestors left out for time."""

    sections: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    git: str = ""
    unread: int = 0

    def of(self, section: str) -> tuple[Entry, ...]:
        """The entries of a section, the most telling first."""
        return self.sections.get(section, ())
