"""Define the interface of a searcher, and implement it with our own search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from benchmarks.recall.questions import CorpusHome, Place, list_corpus_files
from resume_hooks.paths import Where
from resume_hooks.search.index.unindexed_files import RawWordSearch, relevance_by_file
from resume_hooks.search.query import parse_query
from resume_hooks.search.result import SearchResult
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.needs import corpus_folder


class Answer(NamedTuple):
    """The answer of a searcher.

    ``hits`` are the turns or files that it found, best first. ``strengths`` are the strengths that
    it gives for the hits, and are empty if it gives none. ``ms`` is the time of the search in
    milliseconds.
    """

    hits: Sequence[Place]
    ms: float
    strengths: Sequence[str] = ()


class Searcher(Protocol):
    """Answers a question in one or several wordings."""

    @property
    def name(self) -> str:
        """The searcher's name in the table."""

    @property
    def finds_turns(self) -> bool:
        """Whether the searcher's hits are turns. Otherwise they are files."""

    def search(self, wordings: Sequence[str], max_hits: int) -> Answer:
        """Return the best hits, and at most ``max_hits`` of them."""


class OwnSearcher:
    """Our own search in all projects."""

    name = "resume-hooks"
    finds_turns = True

    def __init__(self, home: CorpusHome) -> None:
        self._home = home
        # This call builds the index, so that its time is not measured later.
        self.search(["index"], 1)

    def search(self, wordings: Sequence[str], max_hits: int) -> Answer:
        """Return the turns that our search finds."""
        begun = time.perf_counter()
        result = self._search_index(wordings, max_hits)
        ms = milliseconds_since(begun)
        places = [
            Place(self._home.find_path_in_corpus(hit.file), hit.turn_number) for hit in result.hits
        ]
        return Answer(places, ms, [hit.strength for hit in result.hits])

    def _search_index(self, wordings: Sequence[str], max_hits: int) -> SearchResult:
        where = Where(self._home.where)
        scope = Scope(include_helpers=True)
        return search_index(
            wordings[:1], scope, where, other_wordings=wordings[1:], max_hits=max_hits
        )


class RetryingSearcher(OwnSearcher):
    """Our search as an agent uses it.

    If every hit for the first wording is weak, it searches in all wordings.
    """

    name = "resume-hooks, again if all hits are weak"

    def _search_index(self, wordings: Sequence[str], max_hits: int) -> SearchResult:
        first = super()._search_index(wordings[:1], max_hits)
        if first.has_only_weak_hits:
            return super()._search_index(wordings, max_hits)
        return first


class UnindexedSearcher:
    """Our search without an index. The searcher ranks files by the words that their bytes contain."""

    name = "resume-hooks, files not indexed"
    finds_turns = False

    def search(self, wordings: Sequence[str], max_hits: int) -> Answer:
        """Return the files with the highest relevance, and at most ``max_hits`` of them."""
        begun = time.perf_counter()
        words = RawWordSearch(
            [term.forms for text in wordings for term in parse_query([text]).terms]
        )
        looked = {
            name: words.find_words_in_file(str(corpus_folder() / name))
            for name in list_corpus_files()
        }
        worth = relevance_by_file({name: found for name, found in looked.items() if found})
        best = sorted(worth, key=lambda name: -worth[name])[:max_hits]
        return Answer([Place(name, 0) for name in best], milliseconds_since(begun))


def milliseconds_since(start: float) -> float:
    """Return the milliseconds since ``start``, a value of ``time.perf_counter``."""
    return (time.perf_counter() - start) * 1000
