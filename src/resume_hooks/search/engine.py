"""Search as one call: the index brought up to date, the words looked up, the best turns read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resume_hooks.errors import IndexDamaged, UsageError
from resume_hooks.paths import Where
from resume_hooks.search.hits import MOST_READ, Best, Hit, Hits, Wording
from resume_hooks.search.index.connect import OpenIndex, opened_index
from resume_hooks.search.index.update import Progress
from resume_hooks.search.query import Query, parse
from resume_hooks.search.ranking import CANDIDATES, Ranking, TurnHit, fused
from resume_hooks.search.scope import Scope, enter, limits, needed_folders, unknown, unseen
from resume_hooks.search.sources import Sources
from resume_hooks.search.terms import Lookup, Terms
from resume_hooks.sessions.session_files import where_hidden

MOST_LATEST = 5_000  # records that are looked at where only their kind was asked for
FEW = 5  # turns below which words are also looked for within others
NAMED = 4  # words that an answer names of many
NO_SESSION = "No session is there to be searched"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search came to.

    ``hits`` are the best, ``total`` how many turns fitted, or ``more`` than that. ``how`` says in words how the queries
    were taken, ``notes`` what the user should know of the index; ``helpers`` counts headless runs of one question that
    were left out.
    """

    queries: tuple[Query, ...]
    hits: list[Hit]
    total: int
    more: bool
    how: str
    notes: list[str]
    helpers: int

    @property
    def wordings(self) -> list[str]:
        """What was asked: the words, then each further wording."""
        return [query.text for query in self.queries]

    @property
    def weak(self) -> bool:
        """Whether there are hits and none is more than weak."""
        asked = any(query.terms for query in self.queries)
        return asked and bool(self.hits) and all(hit.strength == "weak" for hit in self.hits)


class Searcher:
    """Searches an open index within a scope, as often as asked; what no word changes is looked up once."""

    def __init__(self, index: OpenIndex, scope: Scope, where: Where) -> None:
        self._index = index
        self._scope = scope
        self._entered = enter(index.db, scope, where)
        self._within = limits(index.db, index.words, scope, self._entered)
        self._terms = Terms(index.words)
        self._sources = Sources(index, self._entered.files, where)
        self._hidden = unseen(scope, where)

    def search(self, queries: Sequence[Query], most: int, *, reads: int = MOST_READ) -> SearchResult:
        """The ``most`` best hits for a question in one or several wordings; for phrases ``reads`` records are read."""
        wordings, rankings, capped = [], [], False
        for query in queries:
            lookups = [self._terms.look_up(term) for term in query.terms]
            without = [self._terms.strictly(term) for term in query.excluded if not term.exact]
            ranking = Ranking(self._index.words, self._within, without, query.when, time.time())
            found = ranking.turns(lookups) if lookups else ranking.latest(MOST_LATEST)
            if (wider := self._wider(lookups, found)) != lookups:
                lookups, found = wider, ranking.turns(wider)
            wordings.append(Wording(query, lookups))
            rankings.append(found)
            capped = capped or ranking.capped
        best = Hits(self._sources, wordings, reads).best(fused(rankings), most)
        missing = [] if best.hits else unknown(self._index.words, self._scope)
        notes = [*self._index.notes, *missing, *_unsearched(len(self._entered.files), self._hidden)]
        how = "; ".join(dict.fromkeys(part for wording in wordings for part in _how(wording, best)))
        more = best.more or capped
        return SearchResult(tuple(queries), best.hits, best.total, more, how, notes, self._entered.helpers)

    def _wider(self, lookups: Sequence[Lookup], found: Sequence[TurnHit]) -> list[Lookup]:
        """The words that none of the best turns has as parts of others, too; all of them where few turns were found."""
        had = set().union(*(hit.terms for hit in found[:CANDIDATES])) if len(found) >= FEW else set()
        return [look if place in had else self._terms.in_others(look) for place, look in enumerate(lookups)]


def find(
    words: Sequence[str],
    scope: Scope,
    where: Where,
    *,
    also: Sequence[str] = (),
    most: int = 10,
    limit: float = float("inf"),
    progress: Progress | None = None,
) -> SearchResult:
    """The ``most`` best hits for ``words`` in ``scope``, of an index brought up to date within ``limit`` seconds.

    ``also`` are further wordings of the same question: what several of them find well comes first.

    UsageError where nothing in the words can be looked up, or where there is neither a word nor a narrow scope.
    """
    queries = [parse(words), *(parse([text]) for text in also)]
    if not all(query.terms for query in queries) and not scope.narrow:
        raise UsageError("No words to search for", "Give some words, or --file, --tool, --branch, --role or --since.")

    def search() -> SearchResult:
        needed = needed_folders(scope, where)
        with opened_index(where, limit=limit, progress=progress, needed=needed) as index:
            return Searcher(index, scope, where).search(queries, most)

    try:
        return search()
    except IndexDamaged:  # it is removed by now, and is made anew
        return search()


def _unsearched(files: int, hidden: Sequence[str]) -> list[str]:
    """What to say where there was nothing to search, or where folders can't be listed."""
    if hidden:
        return [f"{'Not all' if files else 'Nothing'} could be searched.{where_hidden(hidden)}"]
    return [] if files else [NO_SESSION]


def _how(wording: Wording, best: Best) -> Iterator[str]:
    """How a query was taken: what stands for words that are nowhere, and what was left out."""
    for lookup in wording.lookups:
        if lookup.how == "nowhere" or (not best.hits and lookup.how != "word"):  # other projects' words are no help
            yield f"no match for {lookup.term.name}"
        elif lookup.how != "word":
            yield f"'{lookup.term.name}' as {_KINDS[lookup.how]} {_listed(lookup.names)}"
    if wording.query.when:
        yield f"said {wording.query.when.text} first"
    if wording.query.excluded:
        yield f"without {_listed([term.name for term in wording.query.excluded])}"
    if best.more and not best.hits:
        yield "not all could be read, it may be there"


_KINDS = {
    "beginning": "a beginning of",
    "part": "a part of",
    "parts": "its parts",
    "alike": "a misspelling of",
    "in others": "itself and a part of",
}


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:NAMED])}{', …' if len(words) > NAMED else ''}"
