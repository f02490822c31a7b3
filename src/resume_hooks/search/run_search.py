"""Search all sessions: update the index, look up the words, and read the best turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from resume_hooks.errors import IndexDamaged, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.search.hits import MAX_READ_RECORDS, BestHits, HitMaker, Wording
from resume_hooks.search.index.changed_files import FileSearch, UnindexedFile
from resume_hooks.search.index.connect import OpenIndex, open_index
from resume_hooks.search.query import Query, Term, parse_query
from resume_hooks.search.ranking import Ranking, TermLookups, combine_rankings
from resume_hooks.search.result import ProvisionalSession, SearchResult, notes_on_unsearched_folders
from resume_hooks.search.scope import (
    Scope,
    ScopeConditions,
    conditions_of_scope,
    find_files_in_scope,
    make_file_filter,
    needed_folder_names,
    notes_on_unknown_values,
    unlistable_folders_in_scope,
)
from resume_hooks.search.sources import Sources
from resume_hooks.sessions.transcript_files import read_owning_session_id
from resume_hooks.transcripts.head_tail import HeadTail

if TYPE_CHECKING:
    from resume_hooks.search.index.update import ProgressCallback

# Maximum number of records to check if the query has no words.
MAX_LATEST_RECORDS = 5_000
MAX_PROVISIONAL_SESSIONS = 5  # maximum number of unindexed sessions that a result lists
MAX_LISTED_WORDS = 4  # maximum number of words that a sentence lists


class Searcher:
    """Searches an open index within one scope.

    A ``Searcher`` can answer several questions. It finds the files in the scope only once, and it
    looks up each word only once.
    """

    def __init__(self, index: OpenIndex, scope: Scope, where: Where) -> None:
        self._index = index
        self._scope = scope
        self._where = where
        self._files_in_scope = find_files_in_scope(index.db, scope, where)
        self._terms = TermLookups(index.postings)
        self._conditions_and_sources: dict[frozenset[int], tuple[ScopeConditions, Sources]] = {}
        self._unlistable_folders = unlistable_folders_in_scope(scope, where)

    def search(
        self, queries: Sequence[Query], max_hits: int, *, max_reads: int = MAX_READ_RECORDS
    ) -> SearchResult:
        """Return the best hits, at most ``max_hits``, for a question with one or more wordings.

        To verify phrases, at most ``max_reads`` records are read.
        """
        # The files of the asking session are left out, because they contain the question.
        unread_files = []
        for file in self._index.unindexed_files:
            if _session_id_of_file(file) != self._scope.asking_session_id:
                unread_files.append(file)
        terms: list[Term] = []
        for query in queries:
            terms.extend(query.terms)
        unindexed_terms = _terms_in_files(unread_files, terms)
        best_hits, interpretation = self._search_all_files(
            queries, max_hits, max_reads, unindexed_terms
        )
        notes = [*self._index.notes]
        if not best_hits.hits:
            notes += notes_on_unknown_values(self._index.postings, self._scope)
        files = len(self._files_in_scope.file_ids) + len(self._index.unindexed_files)
        notes += notes_on_unsearched_folders(files, self._unlistable_folders)
        return SearchResult(
            queries=tuple(queries),
            hits=best_hits.hits,
            matching_turn_count=best_hits.matching_turn_count,
            has_more=best_hits.has_unread_records,
            interpretation=interpretation,
            notes=notes,
            omitted_run_count=len(best_hits.omitted_run_ids),
            provisional_sessions=list(
                islice(_provisional_sessions(unread_files, terms), MAX_PROVISIONAL_SESSIONS)
            ),
            unindexed_file_count=self._count_unchecked_files(unread_files, terms, unindexed_terms),
        )

    def _search_all_files(
        self,
        queries: Sequence[Query],
        max_hits: int,
        max_reads: int,
        unindexed_terms: Collection[Term],
    ) -> tuple[BestHits, str]:
        """Return the best hits in all files in scope, and a sentence on how the queries were interpreted.

        If headless runs take the places of other hits, also search without the headless runs.
        """
        ordinary_files = self._files_in_scope.file_ids
        best_hits, interpretation = self._search_files(
            queries,
            max_hits,
            max_reads,
            ordinary_files | self._files_in_scope.headless_file_ids,
            unindexed_terms,
        )
        if best_hits.omitted_run_ids and len(best_hits.hits) < max_hits:
            ordinary_hits, _ = self._search_files(
                queries, max_hits, max_reads, ordinary_files, unindexed_terms
            )
            hits = ordinary_hits.hits + [hit for hit in best_hits.hits if hit.is_headless]
            hits.sort(key=lambda hit: -hit.score)
            best_hits = ordinary_hits._replace(
                hits=hits[:max_hits], omitted_run_ids=best_hits.omitted_run_ids
            )
        return best_hits, interpretation

    def _count_unchecked_files(
        self,
        unread_files: Sequence[UnindexedFile],
        terms: Sequence[Term],
        unindexed_terms: Collection[Term],
    ) -> int:
        """Return the number of unindexed files that may contain a match.

        If a file was searched for all terms, its result is known, so it is not counted.
        ``unindexed_terms`` are the terms that at least one of the ``unread_files`` contains.
        """
        checked_files = [file for file in unread_files if file.term_numbers is not None]
        if checked_files and not all(
            term.is_phrase
            or term in unindexed_terms
            or self._terms.look_up_exact_words(term).is_in_index
            for term in terms
        ):
            # If a term was found nowhere, it may be misspelled, and even a file without any of the
            # terms may contain the correct spelling.
            checked_files = [file for file in checked_files if file.term_numbers]
        return len(self._index.unindexed_files) - len(checked_files)

    def _search_files(
        self,
        queries: Sequence[Query],
        max_hits: int,
        max_reads: int,
        file_ids: frozenset[int],
        unindexed_terms: Collection[Term],
    ) -> tuple[BestHits, str]:
        """Return the best hits in these files, and a sentence on how the queries were interpreted.

        ``unindexed_terms`` are the terms that occur in files that are not indexed yet.
        """
        if file_ids not in self._conditions_and_sources:
            conditions = conditions_of_scope(
                self._index.db,
                self._index.postings,
                self._scope,
                file_ids,
                self._files_in_scope.file_count,
            )
            self._conditions_and_sources[file_ids] = (
                conditions,
                Sources(self._index, file_ids, self._where),
            )
        conditions, sources = self._conditions_and_sources[file_ids]
        wordings, rankings, is_capped = [], [], False
        for query in queries:
            lookups = [self._terms.look_up(term) for term in query.terms]
            exclusions = []
            for term in query.excluded_terms:
                if not term.is_phrase:
                    exclusions.append(self._terms.look_up_exact_words(term))
            ranking = Ranking(self._index.postings, conditions, exclusions, query.period)
            if lookups:
                turns = ranking.rank_turns(lookups)
            else:
                turns = ranking.latest_turns(MAX_LATEST_RECORDS)
            if turns:
                wider_lookups = lookups
            else:
                wider_lookups = [self._terms.look_up_inside_words(lookup) for lookup in lookups]
            if wider_lookups != lookups:
                lookups, turns = wider_lookups, ranking.rank_turns(wider_lookups)
            wordings.append(Wording(query, lookups))
            rankings.append(turns)
            is_capped = is_capped or ranking.has_unread_records
        best_hits = HitMaker(
            sources, wordings, max_reads, self._files_in_scope.headless_file_ids
        ).best_hits(combine_rankings(rankings), max_hits)
        notes: dict[str, None] = {}
        for wording in wordings:
            notes.update(dict.fromkeys(_interpretation_notes(wording, best_hits, unindexed_terms)))
        return best_hits._replace(
            has_unread_records=best_hits.has_unread_records or is_capped
        ), "; ".join(notes)


def search_index(
    words: Sequence[str],
    scope: Scope,
    where: Where,
    *,
    other_wordings: Sequence[str] = (),
    max_hits: int = 10,
    max_seconds: float = float("inf"),
    progress: ProgressCallback | None = None,
) -> SearchResult:
    """Update the index, and return the best hits for ``words``, at most ``max_hits``.

    The update takes at most ``max_seconds`` seconds. ``other_wordings`` are other wordings of the
    same question. Turns that rank high for several wordings come first.

    Raise UsageError if no word can be looked up, or if there are no words and the scope limits
    neither the kind nor the time of the records.
    """
    queries = [parse_query(words), *(parse_query([text]) for text in other_wordings)]
    if not all(query.terms for query in queries) and not scope.selects_records:
        raise UsageError(
            "No words to search for",
            "Give some words, or --file, --tool, --branch, --role or --since.",
        )

    def search_index_once(index: OpenIndex) -> SearchResult:
        return Searcher(index, scope, where).search(queries, max_hits)

    return search_updated_index(
        search_index_once,
        scope,
        where,
        file_search_for_queries(queries, scope, where),
        max_seconds=max_seconds,
        progress=progress,
    )


def search_updated_index(
    search: Callable[[OpenIndex], SearchResult],
    scope: Scope,
    where: Where,
    file_search: FileSearch | None,
    *,
    max_seconds: float,
    progress: ProgressCallback | None,
) -> SearchResult:
    """Update the index for at most ``max_seconds`` seconds, then return the result of ``search`` on it.

    Files with the words in ``file_search`` are indexed first.
    """

    def open_and_search() -> SearchResult:
        folder_names = needed_folder_names(scope, where)
        with open_index(
            where,
            max_seconds=max_seconds,
            progress=progress,
            folder_names=folder_names,
            file_search=file_search,
        ) as index:
            return search(index)

    try:
        return open_and_search()
    except IndexDamaged:  # The damaged index was deleted, so this call builds a new one.
        return open_and_search()


def file_search_for_queries(
    queries: Sequence[Query], scope: Scope, where: Where
) -> FileSearch | None:
    """Return the words to look for in unindexed files, or None if the queries have no words."""
    terms = []
    for query in queries:
        for term in query.terms:
            terms.append(term.forms)
    if terms:
        return FileSearch(tuple(terms), make_file_filter(scope, where))
    return None


def _session_id_of_file(unread_file: UnindexedFile) -> str:
    return unread_file.file.session_id or read_owning_session_id(unread_file.file.path)


def _terms_in_files(files: Sequence[UnindexedFile], terms: Sequence[Term]) -> set[Term]:
    """Return the terms that occur in at least one of these files."""
    term_numbers = set[int]()
    for file in files:
        term_numbers.update(file.term_numbers or ())
    return {term for number, term in enumerate(terms) if number in term_numbers}


def _provisional_sessions(
    files: Sequence[UnindexedFile], terms: Sequence[Term]
) -> Iterator[ProvisionalSession]:
    """Yield the sessions that contain some of the terms but are not indexed yet.

    They are in the same order as in ``files``.
    """
    names = [term.display_name for term in terms]
    listed_ids = set[str]()
    for unread_file in files:
        session_id, file, term_numbers = _session_id_of_file(unread_file), *unread_file
        if term_numbers and session_id not in listed_ids:
            listed_ids.add(session_id)
            words = dict.fromkeys(
                name for number, name in enumerate(names) if number in term_numbers
            )
            missing = tuple(name for name in dict.fromkeys(names) if name not in words)
            with contextlib.suppress(SessionNotFound):  # The file was deleted in the meantime.
                yield ProvisionalSession(
                    session_id, file.path, HeadTail(file.path).title, tuple(words), missing
                )


def _interpretation_notes(
    wording: Wording, best_hits: BestHits, unindexed_terms: Collection[Term]
) -> Iterator[str]:
    """Yield notes on replaced words, words without a match, excluded words and the preferred period."""
    for lookup in wording.lookups:
        # The index does not contain the term, or the words that replaced it led to no hits.
        if lookup.kind == "nowhere" or (not best_hits.hits and lookup.kind != "word"):
            if lookup.term not in unindexed_terms:
                yield f"no match for {lookup.term.display_name}"
        elif lookup.kind != "word":
            kind_text = _LOOKUP_KIND_TEXTS[lookup.kind]
            words_text = _quote_words(lookup.replacement_words)
            yield f"'{lookup.term.display_name}' as {kind_text} {words_text}"
    if wording.query.period:
        yield f"turns of {wording.query.period.text} first"
    if wording.query.excluded_terms:
        yield f"without {_quote_words([term.display_name for term in wording.query.excluded_terms])}"
    if best_hits.has_unread_records and not best_hits.hits:
        yield "not all records could be read, so there may be matches"


_LOOKUP_KIND_TEXTS = {
    "beginning": "a beginning of",
    "part": "a part of",
    "parts": "its parts",
    "alike": "a misspelling of",
}


def _quote_words(words: Sequence[str]) -> str:
    return f"{', '.join(words[:MAX_LISTED_WORDS])}{', …' if len(words) > MAX_LISTED_WORDS else ''}"
