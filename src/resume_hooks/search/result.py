"""The result of a search: hits, and what the user should know of the places that were not searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.search.hits import Hit
from resume_hooks.search.query import Query
from resume_hooks.sessions.session_files import where_hidden

NO_SESSION = "No session is there to be searched"


class Provisional(NamedTuple):
    """A session that is not indexed yet, by the words that stand in its file, or in one of its sub-agents'."""

    session_id: str
    file: str
    title: str
    words: tuple[str, ...]
    missing: tuple[str, ...]


class SearchResult(NamedTuple):
    """What a search came to.

    ``hits`` are the best, ``total`` how many turns fitted, or ``more`` than that. ``how`` says in
    words how the queries were taken, ``notes`` what the user should know of the index; ``helpers``
    counts headless runs of one question that fit and were left out. Of files that are not indexed
    yet ``provisional`` are those that hold some of the words, and ``unread`` counts those of which
    that can't be told: as no file holds a word as it was typed, theirs may be like it.
    ``suggestions`` are words to ask with where nothing is close.
    """

    queries: tuple[Query, ...]
    hits: list[Hit]
    total: int
    more: bool
    how: str
    notes: list[str]
    helpers: int
    provisional: list[Provisional]
    unread: int
    suggestions: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether everything was looked at that may hold the words."""
        return not self.provisional and not self.unread

    @property
    def wordings(self) -> list[str]:
        """What was asked: the words, then each further wording."""
        return [query.text for query in self.queries]

    @property
    def nothing_close(self) -> bool:
        """Whether no hit is more than weak: what is meant was never said, or in other words."""
        asked = any(query.terms for query in self.queries)
        return asked and all(hit.strength == "weak" for hit in self.hits)


def unsearched(files: int, hidden: Sequence[str]) -> list[str]:
    """What to say where there was nothing to search, or where folders can't be listed."""
    if hidden:
        return [f"{'Not all' if files else 'Nothing'} could be searched.{where_hidden(hidden)}"]
    if files:
        return []
    return [NO_SESSION]
