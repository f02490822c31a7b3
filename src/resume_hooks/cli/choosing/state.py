"""What the chooser knows: the sessions so far, what was typed, which of them fit, which one is chosen.

Pure, without a terminal. Invariant: something is chosen wherever something fits, and it is on the page that is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.listing import Row


class Found(NamedTuple):
    """A session that came: its row, and the words of its first prompt, which its title may not hold."""

    row: Row
    prompt: str = ""


class _Entry(NamedTuple):
    """A session and the text that it is searched by, case folded."""

    row: Row
    text: str


class Choices:
    """The sessions to choose from, in the order in which they came; ``fitting`` are those that hold all words typed."""

    def __init__(self, typed: str = "") -> None:
        self._words = _words_of(typed)
        self._entries: list[_Entry] = []
        self.fitting: list[Row] = []
        self._at = 0
        self._top = 0

    @property
    def count(self) -> int:
        """How many sessions came so far."""
        return len(self._entries)

    @property
    def chosen(self) -> Row | None:
        """The session that is chosen, None while none fits."""
        return self.fitting[self._at] if self.fitting else None

    def add(self, found: Iterable[Found]) -> None:
        """Take more sessions; what was chosen stays so."""
        new = [_Entry(one.row, _searched(one)) for one in found]
        self._entries += new
        self.fitting += [entry.row for entry in new if self._fits(entry)]

    def search(self, typed: str) -> None:
        """Show what holds all these words; what was chosen stays so where it fits, else the first one is."""
        words, before = _words_of(typed), self.chosen
        if words == self._words:
            return
        self._words = words
        self.fitting = [entry.row for entry in self._entries if self._fits(entry)]
        self._at = next((place for place, row in enumerate(self.fitting) if row is before), 0)

    def move(self, by: int) -> None:
        """Choose the one so many lines farther down; the ends are not passed."""
        self._at = max(0, min(self._at + by, len(self.fitting) - 1))

    def page(self, height: int) -> Sequence[tuple[Row, bool]]:
        """The ``height`` sessions that are shown, each with whether it is chosen; moves no farther than it must."""
        lowest = max(0, len(self.fitting) - height)
        self._top = min(max(self._top, self._at - height + 1, 0), self._at, lowest)
        rows = self.fitting[self._top : self._top + height]
        return [(row, place == self._at) for place, row in enumerate(rows, self._top)]

    def _fits(self, entry: _Entry) -> bool:
        return all(word in entry.text for word in self._words)


def _words_of(typed: str) -> list[str]:
    return typed.casefold().split()


def _searched(found: Found) -> str:
    row = found.row
    named = (row.title, row.tag, row.agent_name, row.branch, row.session_id, row.folder, found.prompt)
    return "\n".join(part for part in named if part).casefold()
