"""Search as one call: update the index, look the words up, read the best turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from resume_hooks.errors import IndexDamaged, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.search.hits import MOST_READ, Best, Hits, Wording
from resume_hooks.search.index.changes import Sought, UnreadFile
from resume_hooks.search.index.connect import OpenIndex, opened_index
from resume_hooks.search.query import Query, Term, parse_query
from resume_hooks.search.ranking import Ranking, Terms, fused
from resume_hooks.search.result import Provisional, SearchResult, unsearched
from resume_hooks.search.scope import (
    Limits,
    Scope,
    enter_scope,
    limits,
    meant,
    needed_folders,
    unknown,
    unseen,
)
from resume_hooks.search.sources import Sources
from resume_hooks.sessions.transcript_files import owning_session
from resume_hooks.transcripts.head_tail import HeadTail

if TYPE_CHECKING:
    from resume_hooks.search.index.update import Progress

MOST_LATEST = 5_000  # records to check if only their kind was requested
MOST_PROVISIONAL = 5  # unindexed sessions with the words that an answer lists
NAMED = 4  # the maximum number of words in a list


class Searcher:
    """Searches of an open index in one scope.

    Lookups that do not depend on the words are done once.
    """

    def __init__(self, index: OpenIndex, scope: Scope, where: Where) -> None:
        self._index = index
        self._scope = scope
        self._where = where
        self._entered = enter_scope(index.db, scope, where)
        self._terms = Terms(index.words)
        self._groups: dict[frozenset[int], tuple[Limits, Sources]] = {}
        self._hidden = unseen(scope, where)

    def search(
        self, queries: Sequence[Query], most: int, *, reads: int = MOST_READ
    ) -> SearchResult:
        """Return the ``most`` best hits for a question in one or several wordings.

        At most ``reads`` records are read for phrases.
        """
        # Files not indexed yet, except those of the asking session, which contain the question.
        late = []
        for file in self._index.unread:
            if _session_of(file) != self._scope.asking:
                late.append(file)
        terms: list[Term] = []
        for query in queries:
            terms.extend(query.terms)
        later = _terms_held(late, terms)
        best, how = self._best_of_all(queries, most, reads, later)
        notes = [*self._index.notes]
        if not best.hits:
            notes += unknown(self._index.words, self._scope)
        files = len(self._entered.files) + len(self._index.unread)
        notes += unsearched(files, self._hidden)
        found = SearchResult(
            queries=tuple(queries),
            hits=best.hits,
            total=best.total,
            more=best.more,
            how=how,
            notes=notes,
            helpers=len(best.passed_over),
            provisional=list(islice(_provisional(late, terms), MOST_PROVISIONAL)),
            unread=self._count_unread(late, terms, later),
        )
        if found.nothing_close:
            return found._replace(suggestions=self._suggestions(found))
        return found

    def _best_of_all(
        self, queries: Sequence[Query], most: int, reads: int, later: Collection[Term]
    ) -> tuple[Best, str]:
        """Return the best hits in all files, and how the queries were interpreted.

        If headless runs hide other hits, the other files are searched again alone.
        """
        ordinary_files = self._entered.files
        best, how = self._best(queries, most, reads, ordinary_files | self._entered.headless, later)
        if best.passed_over and len(best.hits) < most:
            ordinary, _ = self._best(queries, most, reads, ordinary_files, later)
            hits = ordinary.hits + [hit for hit in best.hits if hit.headless]
            hits.sort(key=lambda hit: -hit.score)
            best = ordinary._replace(hits=hits[:most], passed_over=best.passed_over)
        return best, how

    def _count_unread(
        self, late: Sequence[UnreadFile], terms: Sequence[Term], later: Collection[Term]
    ) -> int:
        """Return the number of unindexed files that may contain a match, but could not be checked.

        ``later`` are the ``terms`` in the ``late`` files.
        """
        looked = [file for file in late if file.held is not None]
        if looked and not all(
            term.exact or term in later or self._terms.strictly(term).known for term in terms
        ):
            # A file without any of the terms may contain the word of a misspelled one.
            looked = [file for file in looked if file.held]
        return len(self._index.unread) - len(looked)

    def _suggestions(self, found: SearchResult) -> tuple[str, ...]:
        """Return words to add to a question without close hits."""
        from resume_hooks.search.suggestions import suggested  # needed only without close hits

        lookups = []
        for query in found.queries:
            for term in query.terms:
                lookups.append(self._terms.look_up(term))
        known = set()
        for lookup in lookups:
            for name in lookup.marks:
                known.add(name)
        return suggested(found.hits, known, self._index.words)

    def _best(
        self,
        queries: Sequence[Query],
        most: int,
        reads: int,
        files: frozenset[int],
        later: Collection[Term],
    ) -> tuple[Best, str]:
        """Return the best hits in some files, and how the queries were interpreted.

        ``later`` are the terms in files that are not indexed yet.
        """
        if files not in self._groups:
            within = limits(
                self._index.db, self._index.words, self._scope, files, self._entered.known
            )
            self._groups[files] = within, Sources(self._index, files, self._where)
        within, sources = self._groups[files]
        wordings, rankings, capped = [], [], False
        for query in queries:
            lookups = [self._terms.look_up(term) for term in query.terms]
            without = []
            for term in query.excluded:
                if not term.exact:
                    without.append(self._terms.strictly(term))
            ranking = Ranking(self._index.words, within, without, query.when)
            if lookups:
                found = ranking.turns(lookups)
            else:
                found = ranking.latest(MOST_LATEST)
            if found:
                wider = lookups
            else:
                wider = [self._terms.in_others(lookup) for lookup in lookups]
            if wider != lookups:
                lookups, found = wider, ranking.turns(wider)
            wordings.append(Wording(query, lookups))
            rankings.append(found)
            capped = capped or ranking.capped
        best = Hits(sources, wordings, reads, self._entered.headless).best(fused(rankings), most)
        ways: dict[str, None] = {}
        for wording in wordings:
            ways.update(dict.fromkeys(_how(wording, best, later)))
        return best._replace(more=best.more or capped), "; ".join(ways)


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

    ``also`` are other wordings of the same question: turns that several of them find well come
    first.

    Raise UsageError if no word can be looked up, or without words in a scope that is not narrow.
    """
    queries = [parse_query(words), *(parse_query([text]) for text in also)]
    if not all(query.terms for query in queries) and not scope.narrow:
        raise UsageError(
            "No words to search for",
            "Give some words, or --file, --tool, --branch, --role or --since.",
        )

    def search(index: OpenIndex) -> SearchResult:
        return Searcher(index, scope, where).search(queries, most)

    return in_index(
        search, scope, where, sought(queries, scope, where), limit=limit, progress=progress
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
    """Return the result of a search after updating the index for up to ``limit`` seconds, ``sought`` files first."""

    def search_opened() -> SearchResult:
        needed = needed_folders(scope, where)
        with opened_index(
            where, limit=limit, progress=progress, needed=needed, sought=sought
        ) as index:
            return search(index)

    try:
        return search_opened()
    except IndexDamaged:  # the damaged index was deleted and is rebuilt
        return search_opened()


def sought(queries: Sequence[Query], scope: Scope, where: Where) -> Sought | None:
    """Return the words to look for in files that are not indexed yet.

    Return None if only the kind of record was requested.
    """
    terms = []
    for query in queries:
        for term in query.terms:
            terms.append(term.forms)
    if terms:
        return Sought(tuple(terms), meant(scope, where))
    return None


def _session_of(unread: UnreadFile) -> str:
    return unread.file.session_id or owning_session(unread.file.path)


def _terms_held(files: Sequence[UnreadFile], terms: Sequence[Term]) -> set[Term]:
    """Return the terms that are in some of these files."""
    held = set[int]()
    for file in files:
        held.update(file.held or ())
    return {term for number, term in enumerate(terms) if number in held}


def _provisional(files: Sequence[UnreadFile], terms: Sequence[Term]) -> Iterator[Provisional]:
    """Yield the sessions that contain some of the words but are not indexed yet, most words first."""
    names = [term.name for term in terms]
    known = set[str]()
    for unread in files:
        session_id, file, held = _session_of(unread), *unread
        if held and session_id not in known:
            known.add(session_id)
            words = dict.fromkeys(name for number, name in enumerate(names) if number in held)
            missing = tuple(name for name in dict.fromkeys(names) if name not in words)
            with contextlib.suppress(SessionNotFound):  # deleted in the meantime
                yield Provisional(
                    session_id, file.path, HeadTail(file.path).title, tuple(words), missing
                )


def _how(wording: Wording, best: Best, later: Collection[Term]) -> Iterator[str]:
    """Yield how a query was interpreted: the words that replace missing ones, and omitted words."""
    for lookup in wording.lookups:
        if lookup.how == "nowhere" or (
            not best.hits and lookup.how != "word"
        ):  # words from other projects do not help
            if lookup.term not in later:
                yield f"no match for {lookup.term.name}"
        elif lookup.how != "word":
            yield f"'{lookup.term.name}' as {_KINDS[lookup.how]} {_quote_words(lookup.names)}"
    if wording.query.when:
        yield f"said {wording.query.when.text} first"
    if wording.query.excluded:
        yield f"without {_quote_words([term.name for term in wording.query.excluded])}"
    if best.more and not best.hits:
        yield "not all could be read, it may be there"


_KINDS = {
    "beginning": "a beginning of",
    "part": "a part of",
    "parts": "its parts",
    "alike": "a misspelling of",
}


def _quote_words(words: Sequence[str]) -> str:
    return f"{', '.join(words[:NAMED])}{', …' if len(words) > NAMED else ''}"
