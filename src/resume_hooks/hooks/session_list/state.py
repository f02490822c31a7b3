"""The state of a list of sessions: the typed words, the matching sessions, and the chosen one.

This module needs no terminal. Invariant: if any session matches, a matching session is chosen, and
it is among the visible rows. The best match is chosen until the user moves to another session.
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
from resume_hooks.sessions.agents.registry import agent_of_path
from resume_hooks.system.text import collapse_line

if TYPE_CHECKING:
    from resume_hooks.search.hits import Hit
    from resume_hooks.search.run_search import Searcher

MIN_QUERY_LETTERS = 2  # the minimum number of typed characters for which the turns are searched
MAX_LISTED_HITS = 20  # the maximum number of hits
MAX_READ_RECORDS = 100  # the maximum number of records that are read to find an exact phrase

TITLE_ROLE = "title"  # the role of a hit in a title
# The displayed names of two roles. Other roles are displayed with their own names.
SPEAKER_NAMES = {"prompt": "you", "reply": "the model"}

# the time limit in seconds for updating the index; the heading shows how many files were not
# indexed
MAX_INDEX_UPDATE_SECONDS = 1.5


class TurnHit(NamedTuple):
    """A turn that contains the typed words.

    ``session_ids`` are all sessions with this turn, the original first. ``match_position`` is the
    index of the first matching word in ``snippet``. ``reference`` names the record; it is empty for
    a hit in a title.
    """

    session_ids: tuple[str, ...]
    strength: str
    description: str
    snippet: str
    match_position: int
    reference: str = ""


def find_turns_with_words(searcher: Searcher, text: str) -> list[TurnHit]:
    """Return the turns that match the words best. Return no turns if the text is too short."""
    # Imported late because only a search needs it.
    from resume_hooks.search.query import parse_query

    if len(text.strip()) < MIN_QUERY_LETTERS:
        return []
    try:
        query = parse_query([text])
    except UsageError:  # The text contains no word yet.
        return []
    if query.terms:
        return [
            _make_turn_hit(hit)
            for hit in searcher.search([query], MAX_LISTED_HITS, max_reads=MAX_READ_RECORDS).hits
        ]
    return []


def _make_turn_hit(hit: Hit) -> TurnHit:
    about = " · ".join(
        part
        for part in (
            SPEAKER_NAMES.get(hit.role, hit.role),
            f"turn {hit.turn_number}",
            format_minute(hit.time),
        )
        if part
    )
    position = hit.marks[0][0] if hit.marks else 0
    reference = "" if hit.role == TITLE_ROLE else hit.reference  # A title has no record.
    return TurnHit(hit.session_ids, hit.strength, about, hit.snippet, position, reference)


class ListEntry(NamedTuple):
    """A session of the list: its row, and its first prompt, which may differ from its title."""

    row: ListedSession
    first_prompt: str = ""


class _SearchableEntry(NamedTuple):
    """A session, and the texts in which the typed words are looked up.

    ``title`` is the title with the tag, and ``text`` contains all other fields that can be
    searched, both in lower case. ``prompt`` is the first prompt as the user typed it.
    """

    row: ListedSession
    title: str
    text: str
    prompt: str


class Choices:
    """The sessions to choose from. ``matches`` are the sessions that match the typed words.

    Sessions with all words in their titles come first, then sessions with the words in other
    fields, both in the order of the list. Sessions with the words in a turn follow, best first.
    ``-word`` excludes sessions whose title contains the word.
    """

    def __init__(self, typed_text: str = "") -> None:
        self._words, self._excluded_words = _split_off_excluded_words(typed_text)
        self._entries: list[_SearchableEntry] = []
        self._entries_by_id: dict[str, _SearchableEntry] = {}
        self._title_matches: list[ListedSession] = []
        self._other_matches: list[ListedSession] = []
        self._hits: Sequence[TurnHit] = ()
        self._hits_of_turn_matches: dict[str, TurnHit] = {}
        """For each session that matches only because of a turn, the hit in this turn."""
        self._best_hits: dict[str, TurnHit] = {}
        """For each session with a hit, its best hit."""
        self.matches: list[ListedSession] = []
        self._has_moved = False
        self._chosen_index = 0
        self._first_visible_index = 0

    @property
    def session_count(self) -> int:
        """Number of sessions that were added."""
        return len(self._entries)

    @property
    def chosen_session(self) -> ListedSession | None:
        """The chosen session, or None if no session matches."""
        if self.matches:
            return self.matches[self._chosen_index]
        return None

    def add_entries(self, new_entries: Iterable[ListEntry]) -> None:
        """Add sessions to the list.

        The chosen session stays chosen if the user has moved to it, or if no added session matches
        better.
        """
        entries = []
        for new_entry in new_entries:
            entries.append(
                _SearchableEntry(
                    new_entry.row,
                    _casefold_title(new_entry.row),
                    _casefold_fields(new_entry),
                    new_entry.first_prompt,
                )
            )
        self._entries += entries
        self._entries_by_id.update((entry.row.session_id, entry) for entry in entries)
        title_matches, other_matches = self._split_into_title_and_other_matches(entries)
        self._title_matches += title_matches
        self._other_matches += other_matches
        self._update_matches()

    def filter_by_words(self, typed_text: str) -> None:
        """Show the sessions that match the typed words, and choose the best match.

        The chosen session stays chosen if no other session matches better. The hits for the
        previous words stay until ``set_hits`` is called.
        """
        words, excluded_words = _split_off_excluded_words(typed_text)
        if (words, excluded_words) == (self._words, self._excluded_words):
            return
        self._words, self._excluded_words, self._has_moved = words, excluded_words, False
        self._title_matches, self._other_matches = self._split_into_title_and_other_matches(
            self._entries
        )
        if not words:
            self._hits = ()
        self._update_matches()

    def set_hits(self, hits: Sequence[TurnHit]) -> None:
        """Set the turns that match the typed words, best first."""
        self._hits = hits
        self._update_matches()

    def find_turn_hit(self, row: ListedSession) -> TurnHit | None:
        """Return the hit in a session that matches only because of a turn. Return None for any other session."""
        return self._hits_of_turn_matches.get(row.session_id)

    def best_hit(self, row: ListedSession) -> TurnHit | None:
        """Return the best hit in a session, or None if it has no hit."""
        return self._best_hits.get(row.session_id)

    def first_prompt_of_row(self, row: ListedSession) -> str:
        """Return a session's first prompt."""
        return self._entries_by_id[row.session_id].prompt

    def move_choice(self, row_count: int) -> None:
        """Move the choice down by a number of rows, up for a negative number. Stop at both ends of the list."""
        self._chosen_index = max(0, min(self._chosen_index + row_count, len(self.matches) - 1))
        self._has_moved = bool(self.matches)

    def visible_rows(self, height: int) -> Sequence[tuple[ListedSession, bool]]:
        """Return the visible sessions, at most ``height``, and for each whether it is chosen.

        The list scrolls only as far as is needed to show the chosen session.
        """
        last_top = max(0, len(self.matches) - height)
        self._first_visible_index = min(
            max(self._first_visible_index, self._chosen_index - height + 1, 0),
            self._chosen_index,
            last_top,
        )
        rows = self.matches[self._first_visible_index : self._first_visible_index + height]
        return [
            (row, index == self._chosen_index)
            for index, row in enumerate(rows, self._first_visible_index)
        ]

    def _update_matches(self) -> None:
        """Collect the matching sessions again, and keep or replace the chosen session.

        The chosen session stays chosen if the user has moved to it, or if no other session matches
        better.
        """
        former_choice, former_index = self.chosen_session, self._chosen_index
        self._hits_of_turn_matches, self._best_hits = {}, {}
        for hit in self._hits:
            session_id_of_hit = next(
                (session_id for session_id in hit.session_ids if session_id in self._entries_by_id),
                None,
            )
            if session_id_of_hit is None or not self._entry_has_no_excluded_word(
                self._entries_by_id[session_id_of_hit]
            ):
                continue
            self._best_hits.setdefault(session_id_of_hit, hit)
            if not self._text_has_all_words(self._entries_by_id[session_id_of_hit].text):
                self._hits_of_turn_matches.setdefault(session_id_of_hit, hit)
        hit_rows = [
            self._entries_by_id[session_id].row for session_id in self._hits_of_turn_matches
        ]
        self.matches = [*self._title_matches, *self._other_matches, *hit_rows]
        if self._has_moved:
            candidates = self.matches
        else:
            candidates = self._title_matches or self._other_matches or hit_rows[:1]
        fallback_index = min(former_index, len(self.matches) - 1) if self._has_moved else 0
        self._chosen_index = max(
            0,
            next(
                (index for index, row in enumerate(candidates) if row is former_choice),
                fallback_index,
            ),
        )

    def _text_has_all_words(self, text: str) -> bool:
        return all(word in text for word in self._words)

    def _entry_has_no_excluded_word(self, entry: _SearchableEntry) -> bool:
        """Check that the session's title contains none of the excluded words."""
        return not any(
            re.search(rf"(?<!\w){re.escape(word)}(?!\w)", entry.title)
            for word in self._excluded_words
        )

    def _split_into_title_and_other_matches(
        self, entries: Iterable[_SearchableEntry]
    ) -> tuple[list[ListedSession], list[ListedSession]]:
        """Return the sessions with all words in their titles, and those with the words in other fields."""
        title_matches, other_matches = [], []
        for entry in filter(self._entry_has_no_excluded_word, entries):
            if self._text_has_all_words(entry.title):
                title_matches.append(entry.row)
            elif self._text_has_all_words(entry.text):
                other_matches.append(entry.row)
        return title_matches, other_matches


def _split_off_excluded_words(typed_text: str) -> tuple[list[str], list[str]]:
    """Return the words to find and the excluded words (typed as ``-word``)."""
    words = typed_text.casefold().split()
    excluded_words = []
    for word in words:
        if re.match(r"-[^-]", word):
            excluded_words.append(word[1:])
    return [
        word for word in words if word[1:] not in excluded_words or word[0] != "-"
    ], excluded_words


def _casefold_title(row: ListedSession) -> str:
    if row.tag:
        return f"#{row.tag} {row.title}".casefold()
    return row.title.casefold()


def _casefold_fields(entry: ListEntry) -> str:
    row = entry.row
    fields = (
        row.agent,
        row.title,
        row.tag,
        row.agent_name,
        row.branch,
        row.session_id,
        row.folder,
        entry.first_prompt,
    )
    return "\n".join(part for part in fields if part).casefold()


# A search covers at most this number of characters at the beginning of a session's first prompt.
MAX_PROMPT_CHARACTERS = 400


def list_entries(
    cwd: str, where: Where, *, covers_all_projects: bool, covers_all_agents: bool = False
) -> Iterator[ListEntry]:
    """Yield the sessions of the project with the folder ``cwd``, or of all projects, newest first.

    With ``covers_all_agents``, also yield the sessions of other agents.
    """
    for row in listing.list_project(
        cwd, where, covers_all_projects=covers_all_projects, covers_all_agents=covers_all_agents
    ):
        try:
            prompt = agent_of_path(row.path, where).read_ends(row.path).first_prompt
        except SessionNotFound:
            continue  # The file was deleted after it was listed.
        yield ListEntry(row, collapse_line(prompt, MAX_PROMPT_CHARACTERS))
