"""Search as one call: the index brought up to date, the words looked up, the best turns read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.search.hits import Best, Hit, Hits
from resume_hooks.search.index.connect import OpenIndex, opened_index
from resume_hooks.search.index.database import IndexDamaged
from resume_hooks.search.index.update import Progress
from resume_hooks.search.query import Query, parse
from resume_hooks.search.ranking import FAIR, GOOD, NOISE, PERHAPS, SURE, Ranking, TurnHit
from resume_hooks.search.scope import Scope, enter, needed_folders, unknown, unseen
from resume_hooks.search.terms import Lookup, Terms
from resume_hooks.sessions.session_files import where_hidden

FEW = 3  # words up to which a query is a handful of them and no question
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
    files, helpers = enter(index.db, scope)
    terms = Terms(index.db)
    lookups = _looked_up(terms, query)
    without = [terms.strictly(term) for term in query.excluded if not term.exact]
    ranking = Ranking(index.db, scope, without, time.time())
    turns, related = _turns(ranking, terms, lookups) if lookups else (ranking.latest(), {})
    best = Hits(index.db, query, lookups, related, where).best(turns, most)
    missing = [] if best.hits else unknown(index.db, scope)
    notes = [*index.notes, *missing, *_unsearched(files, unseen(scope, where))]
    how = "; ".join(_how(query, lookups, related, best))
    more = best.more or ranking.capped
    return SearchResult(query, best.hits, best.total, more, how, notes, helpers)


def _unsearched(files: int, hidden: Sequence[str]) -> list[str]:
    """What to say where there was nothing to search, or where folders can't be listed."""
    if hidden:
        return [f"{'Not all' if files else 'Nothing'} could be searched.{where_hidden(hidden)}"]
    return [] if files else ["No session is there to be searched"]


def _looked_up(terms: Terms, query: Query) -> list[Lookup]:
    """The terms as the index has them; for one of a few it is also asked whether it is a part of words."""
    left = len(query.terms) <= FEW
    lookups: list[Lookup] = []
    for term in query.terms:
        lookups.append(terms.look_up(term, part=left))
        left = left and lookups[-1].how in {"word", "beginning"}
    return lookups


def _turns(ranking: Ranking, terms: Terms, lookups: Sequence[Lookup]) -> tuple[list[TurnHit], dict[int, Lookup]]:
    """The turns that fit, by the words that were typed, else by related ones too; and the related ones that helped.

    A word that is nowhere, and that nothing related stands for, is most likely what a question was about: then only
    what fits well by all the others is worth showing. Of a few words it is left out.
    """
    exact = any(lookup.term.exact for lookup in lookups)
    if exact and not all(lookup.rows for lookup in lookups if lookup.term.exact):
        return [], {}
    turns = ranking.turns(lookups)
    if turns and turns[0].fit >= GOOD:
        return _without_noise(turns, lookups), {}
    related = {place: other for place, lookup in enumerate(lookups) if (other := terms.related(lookup))}
    unknown = {place for place, lookup in enumerate(lookups) if not lookup.rows and place not in related}
    if unknown and not exact:
        if len(lookups) > FEW or 2 * len(unknown) > len(lookups):
            return [], {}
        lookups = [lookup._replace(weight=0.0) if place in unknown else lookup for place, lookup in enumerate(lookups)]
        turns = ranking.turns(lookups)
    if not related or _said(turns, lookups):
        return _without_noise(turns, lookups), {}
    chosen = _without_noise(ranking.loose(lookups, related), lookups)
    helped = {place for turn in chosen for place, share in turn.terms.items() if share == PERHAPS}
    return chosen, {place: other for place, other in related.items() if place in helped}


def _said(turns: Sequence[TurnHit], lookups: Sequence[Lookup]) -> bool:
    """Whether a record has all of a few words as they were typed: then nothing else was meant by them."""
    known = sum(lookup.weight > 0 for lookup in lookups)
    return known <= FEW and any(_whole(turn, known) for turn in turns)


def _without_noise(turns: Sequence[TurnHit], lookups: Sequence[Lookup]) -> list[TurnHit]:
    """The turns that are worth reading; where none fits well, those in which one record has all that was typed.

    How well a turn fits tells little of a single word, and nothing of a phrase: whoever asks for it wants every place.
    """
    if any(lookup.term.exact for lookup in lookups):
        return list(turns)
    least = max(FAIR, NOISE * turns[0].fit) if turns else FAIR
    known = [lookup for lookup in lookups if lookup.weight]
    single = len(known) == 1 and known[0].how != "parts"
    chosen = [turn for turn in turns if turn.fit >= least or (single and _whole(turn, 1))]
    return chosen or [turn for turn in turns if _whole(turn, len(known))]


def _whole(turn: TurnHit, count: int) -> bool:
    """Whether one record of a turn has all terms as they were typed."""
    return any(sum(share == SURE for share in record.terms.values()) == count for record in turn.records)


def _how(query: Query, lookups: Sequence[Lookup], related: Mapping[int, Lookup], best: Best) -> Iterator[str]:
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
    for place, lookup in enumerate(lookups):
        if lookup.how == "nowhere":
            yield f"no match for {lookup.term.name}"
        elif lookup.how != "word":
            yield f"'{lookup.term.name}' as {_KINDS[lookup.how]} {_listed(lookup.names)}"
        if place in related:
            yield f"'{lookup.term.name}' also as {_listed(related[place].names)}"
    if query.excluded:
        yield f"without {_listed([term.name for term in query.excluded])}"
    if best.more:
        yield "not all could be read, there may be more"


_KINDS = {"beginning": "a beginning of", "part": "a part of", "parts": "its parts"}


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:NAMED])}{', …' if len(words) > NAMED else ''}"
