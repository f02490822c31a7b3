"""Define the result of a search: the hits, and notes on files that were not searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.search.hits import Hit
from resume_hooks.search.query import Query
from resume_hooks.sessions.session_files import hidden_folders_remedy

NO_SESSIONS_MESSAGE = "There are no sessions to search"


class ProvisionalSession(NamedTuple):
    """A session that contains words of the query but is not indexed yet.

    ``words`` are the query's words that occur in the session's file or in its sub-agents' files.
    ``missing_words`` are the query's other words.
    """

    session_id: str
    file: str
    title: str
    words: tuple[str, ...]
    missing_words: tuple[str, ...]


class SearchResult(NamedTuple):
    """The result of a search.

    ``hits`` are the best hits, and ``matching_turn_count`` is the number of matching turns. If
    ``has_more`` is true, there may be more matching turns. ``interpretation`` is a sentence on how
    the queries were interpreted. ``notes`` are sentences on the index and on folders that could not
    be searched.

    ``omitted_run_count`` is the number of matching headless runs that were left out because they
    contain a single question. ``provisional_sessions`` are sessions that contain some of the words
    but are not indexed yet. ``unindexed_file_count`` is the number of files that are not indexed
    yet and could not be checked for a match.
    """

    queries: tuple[Query, ...]
    hits: list[Hit]
    matching_turn_count: int
    has_more: bool
    interpretation: str
    notes: list[str]
    omitted_run_count: int
    provisional_sessions: list[ProvisionalSession]
    unindexed_file_count: int

    @property
    def is_complete(self) -> bool:
        """Whether every file that may contain the words was searched."""
        return not self.provisional_sessions and not self.unindexed_file_count

    @property
    def wordings(self) -> list[str]:
        """The text of each wording of the question, the question itself first."""
        return [query.text for query in self.queries]

    @property
    def has_only_weak_hits(self) -> bool:
        """Whether every hit is weak. In this case, the answer may be missing or use other words."""
        has_terms = any(query.terms for query in self.queries)
        return has_terms and all(hit.strength == "weak" for hit in self.hits)


def notes_on_unsearched_folders(file_count: int, unlistable_folders: Sequence[str]) -> list[str]:
    """Return notes if there are no files to search, or if some folders cannot be listed."""
    if unlistable_folders:
        return [
            f"{'Not all' if file_count else 'Nothing'} could be searched.{hidden_folders_remedy(unlistable_folders)}"
        ]
    if file_count:
        return []
    return [NO_SESSIONS_MESSAGE]
