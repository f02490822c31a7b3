"""The result of a search: the hits, and notes on what was not searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.search.hits import Hit
from resume_hooks.search.query import Query
from resume_hooks.sessions.session_files import where_hidden

NO_SESSION = "No session is there to be searched"


class Provisional(NamedTuple):
    """A session that is not indexed yet, and the words in its file or in one of its sub-agents' files."""

    session_id: str
    file: str
    title: str
    words: tuple[str, ...]
    missing: tuple[str, ...]


class SearchResult(NamedTuple):
    """The result of a search.

    ``hits`` are the best hits. ``total`` turns fit; if ``more``, there may be others. ``how`` is a
    sentence on how the queries were read, ``notes`` are sentences on the index. ``helpers`` counts
    headless runs of one question that fit and were left out. ``provisional`` lists sessions that
    are not indexed yet and hold some of the words, ``unread`` counts files that are not indexed
    yet and may hold similar words. If nothing is close, ``suggestions`` are words to ask with.
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
        """Whether every file that may hold the words was searched."""
        return not self.provisional and not self.unread

    @property
    def wordings(self) -> list[str]:
        """The words that were typed, then each further wording."""
        return [query.text for query in self.queries]

    @property
    def nothing_close(self) -> bool:
        """Whether every hit is weak: nobody said it, or somebody said it in other words."""
        asked = any(query.terms for query in self.queries)
        return asked and all(hit.strength == "weak" for hit in self.hits)


def unsearched(files: int, hidden: Sequence[str]) -> list[str]:
    """Return the notes if there are no ``files`` to search, or if ``hidden`` folders can't be listed."""
    if hidden:
        return [f"{'Not all' if files else 'Nothing'} could be searched.{where_hidden(hidden)}"]
    if files:
        return []
    return [NO_SESSION]
