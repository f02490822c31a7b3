"""What the chooser knows: the sessions so far, what was typed, which of them fit, which one is chosen.

Pure, without a terminal. Invariant: something is chosen wherever something fits, and it is on the page that is shown;
what nobody moved to is not chosen before what fits better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.search.listing import ListedSession


class Found(NamedTuple):
    """A session that came: its row, and the words of its first prompt, which its title may not hold."""

    row: ListedSession
    prompt: str = ""


class _Entry(NamedTuple):
    """A session and the text that it is searched by, case folded; ``title`` is what its line begins with."""

    row: ListedSession
    title: str
    text: str


class Choices:
    """The sessions to choose from; ``fitting`` are those that hold all words typed, the ones whose title does first.

    Else they stand in the order in which they came.
    """

    def __init__(self, typed: str = "") -> None:
        self._words = _words_of(typed)
        self._entries: list[_Entry] = []
        self.fitting: list[ListedSession] = []
        self._by_title = 0
        """How many of those that fit do so by their titles."""
        self._moved = False
        self._at = 0
        self._top = 0

    @property
    def count(self) -> int:
        """How many sessions came so far."""
        return len(self._entries)

    @property
    def chosen(self) -> ListedSession | None:
        """The session that is chosen, None while none fits."""
        return self.fitting[self._at] if self.fitting else None

    def add(self, found: Iterable[Found]) -> None:
        """Take more sessions; what was moved to stays chosen, and so does what fits as well as the new ones."""
        new = [_Entry(one.row, _title(one.row), _searched(one)) for one in found]
        self._entries += new
        titled, others = self._fitting(new)
        if titled:
            if self._at >= self._by_title:
                self._at = self._at + len(titled) if self._moved else self._by_title
            self.fitting[self._by_title : self._by_title] = titled
            self._by_title += len(titled)
        self.fitting += others

    def search(self, typed: str) -> None:
        """Show what holds all these words; what was chosen stays so where none fits better, else the first one is."""
        words, before = _words_of(typed), self.chosen
        if words == self._words:
            return
        self._words, self._moved = words, False
        titled, others = self._fitting(self._entries)
        self.fitting, self._by_title = [*titled, *others], len(titled)
        self._at = next((place for place, row in enumerate(titled or others) if row is before), 0)

    def move(self, by: int) -> None:
        """Choose the one so many lines farther down; the ends are not passed."""
        self._at = max(0, min(self._at + by, len(self.fitting) - 1))
        self._moved = bool(self.fitting)

    def page(self, height: int) -> Sequence[tuple[ListedSession, bool]]:
        """The ``height`` sessions that are shown, each with whether it is chosen; moves no farther than it must."""
        lowest = max(0, len(self.fitting) - height)
        self._top = min(max(self._top, self._at - height + 1, 0), self._at, lowest)
        rows = self.fitting[self._top : self._top + height]
        return [(row, place == self._at) for place, row in enumerate(rows, self._top)]

    def _fitting(self, entries: Iterable[_Entry]) -> tuple[list[ListedSession], list[ListedSession]]:
        """Those that hold all words: the ones whose title does, and the others."""
        titled, others = [], []
        for row, title, text in entries:
            if all(word in title for word in self._words):
                titled.append(row)
            elif all(word in text for word in self._words):
                others.append(row)
        return titled, others


def _words_of(typed: str) -> list[str]:
    return typed.casefold().split()


def _title(row: ListedSession) -> str:
    return f"#{row.tag} {row.title}".casefold() if row.tag else row.title.casefold()


def _searched(found: Found) -> str:
    row = found.row
    named = (row.title, row.tag, row.agent_name, row.branch, row.session_id, row.folder, found.prompt)
    return "\n".join(part for part in named if part).casefold()
