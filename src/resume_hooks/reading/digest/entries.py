"""What a digest is: entries by section, in the order in which they matter.

Invariant: an entry is one line, so that a digest never holds a blank one and no text out of a transcript can begin
a section of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from resume_hooks.reading.digest.prose import LONGEST, cut
from resume_hooks.redaction.texts import redact
from resume_hooks.system.text import plain_line

SECTIONS = (
    "goal", "constraints", "todos", "changed", "commands", "errors", "failures", "decisions", "plan", "last",
    "questions", "artefacts", "read",
)  # fmt: skip
"""Every section by name, the most useful first."""


class Entry(NamedTuple):
    """One line: what was said or done, where (``<session id>:<record>``, ``""`` unknown), and a note on it."""

    text: str
    ref: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """Entries by section.

    ``omitted`` counts those of a section that found no room, ``git`` is one line on the folder's repository. What was
    not read for its size: ``unread`` ancestors and sub-agents, and ``passed_over`` bytes in the middle of the session.
    """

    sections: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    omitted: Mapping[str, int] = field(default_factory=dict)
    git: str = ""
    unread: int = 0
    passed_over: int = 0

    def of(self, section: str) -> tuple[Entry, ...]:
        """The entries of a section, the most telling first."""
        return self.sections.get(section, ())


NOTE = 200
"""Characters of a note on an entry."""


def entry(text: str, place: object, note: str = "", most: int = LONGEST) -> Entry:
    """An entry of foreign text: one line without secrets and what could drive a terminal, at most so many characters.

    The secrets go before the rest is cut: half a token is still one, but looks like none.
    """
    told = cut(plain_line(redact(text[: most * 8])[0]), most)
    return Entry(told, str(place), cut(plain_line(redact(note)[0] if note else ""), NOTE))


def without_secrets(sections: Mapping[str, tuple[Entry, ...]]) -> dict[str, tuple[Entry, ...]]:
    """Sections of which no entry holds a secret, also where another version wrote some of them."""
    return {name: tuple(map(_without, rows)) for name, rows in sections.items()}


def _without(row: Entry) -> Entry:
    return row._replace(text=redact(row.text)[0], note=redact(row.note)[0] if row.note else "")
