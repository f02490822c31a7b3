"""The state of the chooser: its sessions, the typed words, the matches and hits, and the chosen session.

It needs no terminal. Invariant: if any session matches, one is chosen, and it is on the visible
page. The best match is chosen unless the user moved to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.clock import format_minute
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.search import listing
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.registry import agent_at
from resume_hooks.system.text import collapse_line

if TYPE_CHECKING:
    from resume_hooks.search.engine import Searcher
    from resume_hooks.search.hits import Hit

SHORTEST = 2  # letters of a query; a shorter one is not searched
MOST = 20  # hits for a query
MOST_READ = 100  # records to read for an exact phrase

TITLE = "title"  # the role of a title
WHO = {"prompt": "you", "reply": "the model"}  # the speaker of a role; other roles keep their names

UPDATE_SECONDS = 1.5  # seconds for updating the index; the heading names the remaining files


class Said(NamedTuple):
    """A turn that contains the typed words: its sessions, original first, its strength, and its text.

    ``place`` is the position of the first hit word in ``snippet``. ``reference`` names the record,
    ``""`` for a title.
    """

    sessions: tuple[str, ...]
    strength: str
    about: str
    snippet: str
    place: int
    reference: str = ""


def said_of(searcher: Searcher, text: str) -> list[Said]:
    """Return the best turns that contain the words; none if the words are too short."""
    from resume_hooks.search.query import parse_query

    if len(text.strip()) < SHORTEST:
        return []
    try:
        query = parse_query([text])
    except UsageError:  # it has no word yet
        return []
    if query.terms:
        return [_said_of_hit(hit) for hit in searcher.search([query], MOST, reads=MOST_READ).hits]
    return []


def _said_of_hit(hit: Hit) -> Said:
    about = " · ".join(
        part
        for part in (WHO.get(hit.role, hit.role), f"turn {hit.turn}", format_minute(hit.time))
        if part
    )
    place = hit.marks[0][0] if hit.marks else 0
    reference = "" if hit.role == TITLE else hit.reference  # a title is not in a record
    return Said(hit.sessions, hit.strength, about, hit.snippet, place, reference)


class Listed(NamedTuple):
    """A session of the list: its row and its first prompt, which its title may not contain."""

    row: ListedSession
    prompt: str = ""


class _Entry(NamedTuple):
    """A session, its searchable text in case-folded form, and its first prompt.

    ``title`` is the case-folded beginning of its row.
    """

    row: ListedSession
    title: str
    text: str
    prompt: str


class Choices:
    """The sessions to choose from; ``fitting`` are those that match the typed words.

    First come sessions with all words in their titles, then those with the words in other fields,
    each in listing order. Sessions whose turns contain the words follow, best first. A ``-word``
    excludes the sessions with that word in their titles.
    """

    def __init__(self, typed: str = "") -> None:
        self._words, self._without = _words_of(typed)
        self._entries: list[_Entry] = []
        self._by_id: dict[str, _Entry] = {}
        self._titled: list[ListedSession] = []
        self._others: list[ListedSession] = []
        self._told: Sequence[Said] = ()
        self._said: dict[str, Said] = {}
        """The hits of sessions that match only by a turn."""
        self._quotes: dict[str, Said] = {}
        """The best hit of each session, whether or not its fields match."""
        self.fitting: list[ListedSession] = []
        self._moved = False
        self._at = 0
        self._top = 0

    @property
    def count(self) -> int:
        """The number of sessions so far."""
        return len(self._entries)

    @property
    def chosen_session(self) -> ListedSession | None:
        """The chosen session, or None if no session matches."""
        if self.fitting:
            return self.fitting[self._at]
        return None

    def add(self, found: Iterable[Listed]) -> None:
        """Add sessions; the choice stays if the user moved to it, or if no new session matches better."""
        new = []
        for one in found:
            new.append(_Entry(one.row, _folded_title(one.row), _folded_fields(one), one.prompt))
        self._entries += new
        self._by_id.update((entry.row.session_id, entry) for entry in new)
        titled, others = self._fitting(new)
        self._titled += titled
        self._others += others
        self._show()

    def search(self, typed: str) -> None:
        """Show the sessions that match the typed words.

        The chosen session stays if no other matches better; else the first match is chosen.

        The hits of the previous words stay until those of the new words arrive.
        """
        words, without = _words_of(typed)
        if (words, without) == (self._words, self._without):
            return
        self._words, self._without, self._moved = words, without, False
        self._titled, self._others = self._fitting(self._entries)
        if not words:
            self._told = ()
        self._show()

    def tell(self, said: Sequence[Said]) -> None:
        """Set the hits of the words, best first."""
        self._told = said
        self._show()

    def said_in(self, row: ListedSession) -> Said | None:
        """Return the hit of a session that matches only by a turn, else None."""
        return self._said.get(row.session_id)

    def quote_of(self, row: ListedSession) -> Said | None:
        """Return the best hit of a session, or None if it has none."""
        return self._quotes.get(row.session_id)

    def prompt_of(self, row: ListedSession) -> str:
        """Return a session's first prompt."""
        return self._by_id[row.session_id].prompt

    def move(self, by: int) -> None:
        """Move the choice down by some lines, but not past the ends."""
        self._at = max(0, min(self._at + by, len(self.fitting) - 1))
        self._moved = bool(self.fitting)

    def page(self, height: int) -> Sequence[tuple[ListedSession, bool]]:
        """Return the ``height`` visible sessions, each with whether it is chosen.

        Scroll only as far as needed.
        """
        lowest = max(0, len(self.fitting) - height)
        self._top = min(max(self._top, self._at - height + 1, 0), self._at, lowest)
        rows = self.fitting[self._top : self._top + height]
        return [(row, place == self._at) for place, row in enumerate(rows, self._top)]

    def _show(self) -> None:
        """Collect the matches, and keep the choice unless the user did not move to it and another matches better."""
        before, at = self.chosen_session, self._at
        self._said, self._quotes = {}, {}
        for one in self._told:
            first = next(
                (session_id for session_id in one.sessions if session_id in self._by_id), None
            )
            if first is None or not self._has_no_refused_word(self._by_id[first]):
                continue
            self._quotes.setdefault(first, one)
            if not self._holds(self._by_id[first].text):
                self._said.setdefault(first, one)
        said = [self._by_id[session_id].row for session_id in self._said]
        self.fitting = [*self._titled, *self._others, *said]
        if self._moved:
            among = self.fitting
        else:
            among = self._titled or self._others or said[:1]
        lost = min(at, len(self.fitting) - 1) if self._moved else 0
        self._at = max(0, next((place for place, row in enumerate(among) if row is before), lost))

    def _holds(self, text: str) -> bool:
        return all(word in text for word in self._words)

    def _has_no_refused_word(self, entry: _Entry) -> bool:
        """Check that the title contains no ``-word``."""
        return not any(
            re.search(rf"(?<!\w){re.escape(word)}(?!\w)", entry.title) for word in self._without
        )

    def _fitting(
        self, entries: Iterable[_Entry]
    ) -> tuple[list[ListedSession], list[ListedSession]]:
        """Return the sessions with all words in their titles, and those with the words in other fields."""
        titled, others = [], []
        for entry in filter(self._has_no_refused_word, entries):
            if self._holds(entry.title):
                titled.append(entry.row)
            elif self._holds(entry.text):
                others.append(entry.row)
        return titled, others


def _words_of(typed: str) -> tuple[list[str], list[str]]:
    """Return the required words and the excluded ones: ``-word``, as in a search."""
    words = typed.casefold().split()
    without = []
    for word in words:
        if re.match(r"-[^-]", word):
            without.append(word[1:])
    return [word for word in words if word[1:] not in without or word[0] != "-"], without


def _folded_title(row: ListedSession) -> str:
    if row.tag:
        return f"#{row.tag} {row.title}".casefold()
    return row.title.casefold()


def _folded_fields(found: Listed) -> str:
    row = found.row
    named = (
        row.agent,
        row.title,
        row.tag,
        row.agent_name,
        row.branch,
        row.session_id,
        row.folder,
        found.prompt,
    )
    return "\n".join(part for part in named if part).casefold()


PROMPT = 400  # characters of a first prompt that are searched


def listed_sessions(
    cwd: str, where: Where, *, everywhere: bool, everyone: bool = False
) -> Iterator[Listed]:
    """Yield the sessions of the project of ``cwd``, or of all projects, newest first.

    Include other agents' sessions if ``everyone``.
    """
    for row in listing.list_project(cwd, where, everywhere=everywhere, everyone=everyone):
        try:
            prompt = agent_at(row.path, where).ends(row.path).first_prompt
        except SessionNotFound:
            continue  # deleted after it was listed
        yield Listed(row, collapse_line(prompt, PROMPT))
