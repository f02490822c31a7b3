"""What the chooser knows: the sessions so far, what was typed, which of them fit or say it, which one is chosen.

Without a terminal. Invariant: something is chosen wherever something fits, and it is on the page
that is shown; what nobody moved to is not chosen before what fits better.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.clock import minute
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.search import listing
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.registry import agent_at
from resume_hooks.system.text import one_line

if TYPE_CHECKING:
    from resume_hooks.search.engine import Searcher
    from resume_hooks.search.hits import Hit

SHORTEST = 2  # letters that are worth looking for
MOST = 20  # turns that are found for some words
MOST_READ = 100  # records that are read in search of an exact phrase

TITLE = "title"  # the role of a title
WHO = {"prompt": "you", "reply": "the model"}  # who speaks, by role; of the others the role says it

UPDATE_SECONDS = 1.5  # for which the index is brought up to date; what is left then is said


class Said(NamedTuple):
    """A turn that says what was typed: its sessions, the first one first, how sure that is, and the words in it.

    ``place`` is where in ``snippet`` the first of the words stands, ``reference`` names the record;
    ``""`` of a title.
    """

    sessions: tuple[str, ...]
    strength: str
    about: str
    snippet: str
    place: int
    reference: str = ""


def said_of(searcher: Searcher, text: str) -> list[Said]:
    """The best turns that say these words; none for words that are too short to be looked for."""
    from resume_hooks.search.query import parse_query

    if len(text.strip()) < SHORTEST:
        return []
    try:
        query = parse_query([text])
    except UsageError:  # there is no word in it yet
        return []
    if query.terms:
        return [_said_of_hit(hit) for hit in searcher.search([query], MOST, reads=MOST_READ).hits]
    return []


def _said_of_hit(hit: Hit) -> Said:
    about = " · ".join(
        part for part in (WHO.get(hit.role, hit.role), f"turn {hit.turn}", minute(hit.time)) if part
    )
    place = hit.marks[0][0] if hit.marks else 0
    reference = "" if hit.role == TITLE else hit.reference  # nothing is said there
    return Said(hit.sessions, hit.strength, about, hit.snippet, place, reference)


class Listed(NamedTuple):
    """A session that came: its row, and the words of its first prompt, which its title may not hold."""

    row: ListedSession
    prompt: str = ""


class _Entry(NamedTuple):
    """A session, the text that it is searched by, case folded, and its first prompt.

    ``title`` is what its line begins with.
    """

    row: ListedSession
    title: str
    text: str
    prompt: str


class Choices:
    """The sessions to choose from; ``fitting`` are those that fit what was typed.

    First those whose title holds all words, then those that hold them elsewhere in their rows, each
    in the order in which they came; then those in which it was said, the best first. None with a
    ``-word`` in its title.
    """

    def __init__(self, typed: str = "") -> None:
        self._words, self._without = _words_of(typed)
        self._entries: list[_Entry] = []
        self._by_id: dict[str, _Entry] = {}
        self._titled: list[ListedSession] = []
        self._others: list[ListedSession] = []
        self._told: Sequence[Said] = ()
        self._said: dict[str, Said] = {}
        """Those that are told of sessions that fit by that alone."""
        self._quotes: dict[str, Said] = {}
        """The best one of each session, whatever it fits by."""
        self.fitting: list[ListedSession] = []
        self._moved = False
        self._at = 0
        self._top = 0

    @property
    def count(self) -> int:
        """How many sessions came so far."""
        return len(self._entries)

    @property
    def chosen_session(self) -> ListedSession | None:
        """The session that is chosen, None while none fits."""
        if self.fitting:
            return self.fitting[self._at]
        return None

    def add(self, found: Iterable[Listed]) -> None:
        """Take more sessions; what was moved to stays chosen, and so does what fits as well as the new ones."""
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
        """Show what holds all these words.

        What was chosen stays so where none fits better, else the first one is.

        What was said of the words before stays, until it is known where these were.
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
        """Take the turns in which the words were said, the best first."""
        self._told = said
        self._show()

    def said_in(self, row: ListedSession) -> Said | None:
        """What was said in a session that fits by that alone, else None."""
        return self._said.get(row.session_id)

    def quote_of(self, row: ListedSession) -> Said | None:
        """The best turn of a session that says the words, None where none does."""
        return self._quotes.get(row.session_id)

    def prompt_of(self, row: ListedSession) -> str:
        """The first prompt of a session."""
        return self._by_id[row.session_id].prompt

    def move(self, by: int) -> None:
        """Choose the one so many lines farther down; the ends are not passed."""
        self._at = max(0, min(self._at + by, len(self.fitting) - 1))
        self._moved = bool(self.fitting)

    def page(self, height: int) -> Sequence[tuple[ListedSession, bool]]:
        """The ``height`` sessions that are shown, each with whether it is chosen.

        Moves no farther than it must.
        """
        lowest = max(0, len(self.fitting) - height)
        self._top = min(max(self._top, self._at - height + 1, 0), self._at, lowest)
        rows = self.fitting[self._top : self._top + height]
        return [(row, place == self._at) for place, row in enumerate(rows, self._top)]

    def _show(self) -> None:
        """Put together what fits, and choose: what was moved to, else what was chosen, unless something fits better."""
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
        """Whether no ``-word`` stands in its title."""
        return not any(
            re.search(rf"(?<!\w){re.escape(word)}(?!\w)", entry.title) for word in self._without
        )

    def _fitting(
        self, entries: Iterable[_Entry]
    ) -> tuple[list[ListedSession], list[ListedSession]]:
        """Those that hold all words: the ones whose title does, and the others."""
        titled, others = [], []
        for entry in filter(self._has_no_refused_word, entries):
            if self._holds(entry.title):
                titled.append(entry.row)
            elif self._holds(entry.text):
                others.append(entry.row)
        return titled, others


def _words_of(typed: str) -> tuple[list[str], list[str]]:
    """The words that are to be there, and those that are not: ``-word``, as a search has it."""
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
    """The sessions of the project of ``cwd``, or of all, newest first.

    Those of this client, or of ``everyone``.
    """
    for row in listing.list_project(cwd, where, everywhere=everywhere, everyone=everyone):
        try:
            prompt = agent_at(row.path, where).ends(row.path).first_prompt
        except SessionNotFound:
            continue  # deleted since it was listed
        yield Listed(row, one_line(prompt, PROMPT))
