"""The result of a search: the hits, and notes on files that were not searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.search.hits import Hit
from resume_hooks.search.query import Query
from resume_hooks.sessions.session_files import hidden_folders_remedy

NO_SESSION = "There are no sessions to search"


class ProvisionalSession(NamedTuple):
    """A session that is not indexed yet, and the words in its file or in one of its sub-agents' files."""

    session_id: str
    file: str
    title: str
    words: tuple[str, ...]
    missing_words: tuple[str, ...]


class SearchResult(NamedTuple):
    """The result of a search.

    ``hits`` are the best hits, and ``total`` is the number of matching turns. If ``has_more`` is true,
    there may be others. ``how`` is a sentence on how the queries were interpreted, and ``notes``
    are sentences on the index. ``omitted_run_count`` is the number of matching headless runs of one question
    that were omitted. ``provisional_sessions`` lists sessions that are not indexed yet and contain some of
    the words. ``unindexed_count`` is the number of files that are not indexed yet and may contain similar
    words.
    """

    queries: tuple[Query, ...]
    hits: list[Hit]
    total: int
    has_more: bool
    how: str
    notes: list[str]
    omitted_run_count: int
    provisional_sessions: list[ProvisionalSession]
    unindexed_count: int

    @property
    def is_complete(self) -> bool:
        """Whether every file that may contain the words was searched."""
        return not self.provisional_sessions and not self.unindexed_count

    @property
    def wordings(self) -> list[str]:
        """The typed words, followed by each further wording."""
        return [query.text for query in self.queries]

    @property
    def nothing_close(self) -> bool:
        """Whether every hit is weak. The answer may be missing, or may use other words."""
        has_terms = any(query.terms for query in self.queries)
        return has_terms and all(hit.strength == "weak" for hit in self.hits)


def notes_on_unsearched_folders(file_count: int, unlistable_folders: Sequence[str]) -> list[str]:
    """Return notes if ``file_count`` is 0, or if ``unlistable_folders`` folders cannot be listed."""
    if unlistable_folders:
        return [
            f"{'Not all' if file_count else 'Nothing'} could be searched.{hidden_folders_remedy(unlistable_folders)}"
        ]
    if file_count:
        return []
    return [NO_SESSION]
