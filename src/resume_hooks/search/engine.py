"""Search in one call: update the index, look the words up, and read the best turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from resume_hooks.errors import IndexDamaged, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.search.hits import MAX_READ_RECORDS, BestHits, HitMaker, Wording
from resume_hooks.search.index.changes import Sought, UnreadFile
from resume_hooks.search.index.connect import OpenIndex, opened_index
from resume_hooks.search.query import Query, Term, parse_query
from resume_hooks.search.ranking import Ranking, Terms, combine_rankings
from resume_hooks.search.result import Provisional, SearchResult, unsearched
from resume_hooks.search.scope import (
    Limits,
    Scope,
    file_filter,
    find_files_in_scope,
    limits_of_scope,
    needed_folders,
    unknown_values,
    unlistable_in_scope,
)
from resume_hooks.search.sources import Sources
from resume_hooks.sessions.transcript_files import owning_session
from resume_hooks.transcripts.head_tail import HeadTail

if TYPE_CHECKING:
    from resume_hooks.search.index.update import Progress

MAX_LATEST = 5_000  # the number of records to check if the query only requests a kind of record
MAX_PROVISIONAL = 5  # the maximum number of unindexed sessions that a result lists
MAX_NAMED_WORDS = 4  # the maximum number of words in a list


class Searcher:
    """Searches of an open index in one scope.

    Lookups that do not depend on the query's words are done once.
    """

    def __init__(self, index: OpenIndex, scope: Scope, where: Where) -> None:
        self._index = index
        self._scope = scope
        self._where = where
        self._files_in_scope = find_files_in_scope(index.db, scope, where)
        self._terms = Terms(index.words)
        self._groups: dict[frozenset[int], tuple[Limits, Sources]] = {}
        self._unlistable_folders = unlistable_in_scope(scope, where)

    def search(
        self, queries: Sequence[Query], most: int, *, reads: int = MAX_READ_RECORDS
    ) -> SearchResult:
        """Return the ``most`` best hits for a question with one or more wordings.

        To verify phrases, at most ``reads`` records are read.
        """
        # The files that are not indexed yet, except those of the asking session, which contain the
        # question.
        unread_files = []
        for file in self._index.unread:
            if _session_of(file) != self._scope.asking:
                unread_files.append(file)
        terms: list[Term] = []
        for query in queries:
            terms.extend(query.terms)
        unindexed_terms = _terms_in_files(unread_files, terms)
        best, interpretation = self._best_in_all_files(queries, most, reads, unindexed_terms)
        notes = [*self._index.notes]
        if not best.hits:
            notes += unknown_values(self._index.words, self._scope)
        files = len(self._files_in_scope.files) + len(self._index.unread)
        notes += unsearched(files, self._unlistable_folders)
        result = SearchResult(
            queries=tuple(queries),
            hits=best.hits,
            total=best.total,
            more=best.more,
            how=interpretation,
            notes=notes,
            helpers=len(best.passed_over),
            provisional=list(islice(_provisional(unread_files, terms), MAX_PROVISIONAL)),
            unread=self._count_unread(unread_files, terms, unindexed_terms),
        )
        if result.nothing_close:
            return result._replace(suggestions=self._suggestions(result))
        return result

    def _best_in_all_files(
        self, queries: Sequence[Query], most: int, reads: int, unindexed_terms: Collection[Term]
    ) -> tuple[BestHits, str]:
        """Return the best hits in all files, and how the queries were interpreted.

        If headless runs hide other hits, the search is repeated without the headless runs.
        """
        ordinary_files = self._files_in_scope.files
        best, interpretation = self._best_in_files(
            queries, most, reads, ordinary_files | self._files_in_scope.headless, unindexed_terms
        )
        if best.passed_over and len(best.hits) < most:
            ordinary, _ = self._best_in_files(queries, most, reads, ordinary_files, unindexed_terms)
            hits = ordinary.hits + [hit for hit in best.hits if hit.headless]
            hits.sort(key=lambda hit: -hit.score)
            best = ordinary._replace(hits=hits[:most], passed_over=best.passed_over)
        return best, interpretation

    def _count_unread(
        self,
        unread_files: Sequence[UnreadFile],
        terms: Sequence[Term],
        unindexed_terms: Collection[Term],
    ) -> int:
        """Return the number of unindexed files that may contain a match but could not be checked.

        ``unindexed_terms`` are those of the ``terms`` that occur in the ``unread_files``.
        """
        checked_files = [file for file in unread_files if file.held is not None]
        if checked_files and not all(
            term.exact or term in unindexed_terms or self._terms.look_up_strictly(term).known
            for term in terms
        ):
            # A file without any of the terms may still contain the correct form of a misspelled
            # term.
            checked_files = [file for file in checked_files if file.held]
        return len(self._index.unread) - len(checked_files)

    def _suggestions(self, result: SearchResult) -> tuple[str, ...]:
        """Return words that the user can add to a question without close hits."""
        # imported late: only questions without close hits need it
        from resume_hooks.search.suggestions import suggest_words

        lookups = []
        for query in result.queries:
            for term in query.terms:
                lookups.append(self._terms.look_up(term))
        known_stems = set()
        for lookup in lookups:
            for name in lookup.marks:
                known_stems.add(name)
        return suggest_words(result.hits, known_stems, self._index.words)

    def _best_in_files(
        self,
        queries: Sequence[Query],
        most: int,
        reads: int,
        files: frozenset[int],
        unindexed_terms: Collection[Term],
    ) -> tuple[BestHits, str]:
        """Return the best hits in some files, and how the queries were interpreted.

        ``unindexed_terms`` are the terms that occur in files that are not indexed yet.
        """
        if files not in self._groups:
            limits_of_files = limits_of_scope(
                self._index.db, self._index.words, self._scope, files, self._files_in_scope.known
            )
            self._groups[files] = limits_of_files, Sources(self._index, files, self._where)
        limits_of_files, sources = self._groups[files]
        wordings, rankings, is_capped = [], [], False
        for query in queries:
            lookups = [self._terms.look_up(term) for term in query.terms]
            exclusions = []
            for term in query.excluded:
                if not term.exact:
                    exclusions.append(self._terms.look_up_strictly(term))
            ranking = Ranking(self._index.words, limits_of_files, exclusions, query.when)
            if lookups:
                turns = ranking.turns(lookups)
            else:
                turns = ranking.latest(MAX_LATEST)
            if turns:
                wider_lookups = lookups
            else:
                wider_lookups = [self._terms.look_up_in_others(lookup) for lookup in lookups]
            if wider_lookups != lookups:
                lookups, turns = wider_lookups, ranking.turns(wider_lookups)
            wordings.append(Wording(query, lookups))
            rankings.append(turns)
            is_capped = is_capped or ranking.capped
        best = HitMaker(sources, wordings, reads, self._files_in_scope.headless).best(
            combine_rankings(rankings), most
        )
        notes: dict[str, None] = {}
        for wording in wordings:
            notes.update(dict.fromkeys(_interpretation_notes(wording, best, unindexed_terms)))
        return best._replace(more=best.more or is_capped), "; ".join(notes)


def search_index(
    words: Sequence[str],
    scope: Scope,
    where: Where,
    *,
    also: Sequence[str] = (),
    most: int = 10,
    limit: float = float("inf"),
    progress: Progress | None = None,
) -> SearchResult:
    """Return the ``most`` best hits for ``words`` in ``scope``, after updating the index for up to ``limit`` seconds.

    ``also`` are other wordings of the same question. A turn that ranks high for several wordings
    comes first.

    Raise UsageError if no word can be looked up, or if there are no words and the scope is not
    narrow.
    """
    queries = [parse_query(words), *(parse_query([text]) for text in also)]
    if not all(query.terms for query in queries) and not scope.selects_records:
        raise UsageError(
            "No words to search for",
            "Give some words, or --file, --tool, --branch, --role or --since.",
        )

    def search(index: OpenIndex) -> SearchResult:
        return Searcher(index, scope, where).search(queries, most)

    return in_index(
        search, scope, where, sought_words(queries, scope, where), limit=limit, progress=progress
    )


def in_index(
    search: Callable[[OpenIndex], SearchResult],
    scope: Scope,
    where: Where,
    sought: Sought | None,
    *,
    limit: float,
    progress: Progress | None,
) -> SearchResult:
    """Return the result of a search. Update the index for up to ``limit`` seconds, ``sought`` files first."""

    def search_opened() -> SearchResult:
        needed = needed_folders(scope, where)
        with opened_index(
            where, limit=limit, progress=progress, needed=needed, sought=sought
        ) as index:
            return search(index)

    try:
        return search_opened()
    except IndexDamaged:  # the damaged index was deleted and will be rebuilt
        return search_opened()


def sought_words(queries: Sequence[Query], scope: Scope, where: Where) -> Sought | None:
    """Return the words to look for in files that are not indexed yet.

    Return None if the query only requests a kind of record.
    """
    terms = []
    for query in queries:
        for term in query.terms:
            terms.append(term.forms)
    if terms:
        return Sought(tuple(terms), file_filter(scope, where))
    return None


def _session_of(unread: UnreadFile) -> str:
    return unread.file.session_id or owning_session(unread.file.path)


def _terms_in_files(files: Sequence[UnreadFile], terms: Sequence[Term]) -> set[Term]:
    """Return the terms that occur in at least one of these files."""
    term_numbers = set[int]()
    for file in files:
        term_numbers.update(file.held or ())
    return {term for number, term in enumerate(terms) if number in term_numbers}


def _provisional(files: Sequence[UnreadFile], terms: Sequence[Term]) -> Iterator[Provisional]:
    """Yield the sessions that are not indexed yet and contain some of the words, those with the most words first."""
    names = [term.name for term in terms]
    listed_ids = set[str]()
    for unread in files:
        session_id, file, term_numbers = _session_of(unread), *unread
        if term_numbers and session_id not in listed_ids:
            listed_ids.add(session_id)
            words = dict.fromkeys(
                name for number, name in enumerate(names) if number in term_numbers
            )
            missing = tuple(name for name in dict.fromkeys(names) if name not in words)
            with contextlib.suppress(SessionNotFound):  # the file was deleted in the meantime
                yield Provisional(
                    session_id, file.path, HeadTail(file.path).title, tuple(words), missing
                )


def _interpretation_notes(
    wording: Wording, best: BestHits, unindexed_terms: Collection[Term]
) -> Iterator[str]:
    """Yield notes on how a query was interpreted: replacements for missing words, and omitted words."""
    for lookup in wording.lookups:
        if lookup.how == "nowhere" or (
            not best.hits and lookup.how != "word"
        ):  # words that occur only in other projects do not help
            if lookup.term not in unindexed_terms:
                yield f"no match for {lookup.term.name}"
        elif lookup.how != "word":
            yield f"'{lookup.term.name}' as {_KIND_TEXTS[lookup.how]} {_quote_words(lookup.names)}"
    if wording.query.when:
        yield f"said {wording.query.when.text} first"
    if wording.query.excluded:
        yield f"without {_quote_words([term.name for term in wording.query.excluded])}"
    if best.more and not best.hits:
        yield "not all could be read, it may be there"


_KIND_TEXTS = {
    "beginning": "a beginning of",
    "part": "a part of",
    "parts": "its parts",
    "alike": "a misspelling of",
}


def _quote_words(words: Sequence[str]) -> str:
    return f"{', '.join(words[:MAX_NAMED_WORDS])}{', …' if len(words) > MAX_NAMED_WORDS else ''}"
