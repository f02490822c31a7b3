"""Search as one call: the index brought up to date, the words looked up, the best turns read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.search.hits import Best, Hit, Hits
from resume_hooks.search.index.connect import OpenIndex, opened_index
from resume_hooks.search.index.errors import IndexDamaged
from resume_hooks.search.index.update import Progress
from resume_hooks.search.query import Query, parse
from resume_hooks.search.ranking import Ranking
from resume_hooks.search.scope import Scope, enter, limits, needed_folders, unknown, unseen
from resume_hooks.search.terms import Lookup, Terms
from resume_hooks.sessions.session_files import where_hidden

MOST_LATEST = 5_000  # records that are looked at where only their kind was asked for
NAMED = 4  # words that an answer names of many


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search came to.

    ``hits`` are the best, ``total`` how many turns fitted, or ``more`` than that. ``how`` says in words how the query
    was taken, ``notes`` what the user should know of the index; ``helpers`` counts one-question headless runs left out.
    """

    query: Query
    hits: list[Hit]
    total: int
    more: bool
    how: str
    notes: list[str]
    helpers: int


def find(
    words: Sequence[str],
    scope: Scope,
    where: Where,
    *,
    most: int = 10,
    limit: float = float("inf"),
    progress: Progress | None = None,
) -> SearchResult:
    """The ``most`` best hits for ``words`` in ``scope``, of an index brought up to date within ``limit`` seconds.

    UsageError where nothing in the words can be looked up, or where there is neither a word nor a narrow scope.
    """
    query = parse(words)
    if not query.terms and not scope.narrow:
        raise UsageError("No words to search for", "Give some words, or --file, --tool, --branch, --role or --since.")

    def search() -> SearchResult:
        needed = needed_folders(scope, where)
        with opened_index(where, limit=limit, progress=progress, needed=needed) as index:
            return _search(index, query, scope, most, where)

    try:
        return search()
    except IndexDamaged:  # it is removed by now, and is made anew
        return search()


def _search(index: OpenIndex, query: Query, scope: Scope, most: int, where: Where) -> SearchResult:
    entered = enter(index.db, scope)
    terms = Terms(index.words)
    lookups = [terms.look_up(term) for term in query.terms]
    without = [terms.strictly(term) for term in query.excluded if not term.exact]
    ranking = Ranking(index.words, limits(index.db, index.words, scope, entered), without, time.time())
    turns = ranking.turns(lookups) if lookups else ranking.latest(MOST_LATEST)
    best = Hits(index, query, lookups, entered.files, where).best(turns, most)
    missing = [] if best.hits else unknown(index.words, scope)
    notes = [*index.notes, *missing, *_unsearched(len(entered.files), unseen(scope, where))]
    how = "; ".join(_how(query, lookups, best))
    more = best.more or ranking.capped
    return SearchResult(query, best.hits, best.total, more, how, notes, entered.helpers)


def _unsearched(files: int, hidden: Sequence[str]) -> list[str]:
    """What to say where there was nothing to search, or where folders can't be listed."""
    if hidden:
        return [f"{'Not all' if files else 'Nothing'} could be searched.{where_hidden(hidden)}"]
    return [] if files else ["No session is there to be searched"]


def _how(query: Query, lookups: Sequence[Lookup], best: Best) -> Iterator[str]:
    """How the query was taken: all its words or most of them, and what stands for words that are nowhere."""
    if len(lookups) > 1 and best.hits:
        whole = sum(not hit.missing for hit in best.hits)
        shown = len(best.hits)
        yield (
            "all words"
            if whole == shown
            else f"all words in {whole} of these {shown}"
            if whole
            else "some of the words"
        )
    for lookup in lookups:
        if lookup.how == "nowhere":
            yield f"no match for {lookup.term.name}"
        elif lookup.how != "word":
            yield f"'{lookup.term.name}' as {_KINDS[lookup.how]} {_listed(lookup.names)}"
    if query.excluded:
        yield f"without {_listed([term.name for term in query.excluded])}"
    if best.more:
        yield "not all could be read, there may be more"


_KINDS = {"beginning": "a beginning of", "part": "a part of", "parts": "its parts", "alike": "misspelled, for"}


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:NAMED])}{', …' if len(words) > NAMED else ''}"
