"""Search as one call: the index brought up to date, the words looked up, the best turns read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resume_hooks.errors import UsageError
from resume_hooks.index.opening import Opened, opened_index
from resume_hooks.index.updating import Progress
from resume_hooks.searching.hits import Hit, Hits
from resume_hooks.searching.query import Query, parse
from resume_hooks.searching.ranking import FAIR, GOOD, NOISE, Ranking, TurnHit
from resume_hooks.searching.scope import Scope, enter, needed_folders
from resume_hooks.searching.terms import Lookup, Terms


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    ``hits`` are the best, ``total`` how many turns fitted. ``how`` says in words how the query was taken, ``notes``
    what the user should know of the index; ``helpers`` counts one-question headless runs that were left out.
    """

    query: Query
    hits: list[Hit]
    total: int
    how: str
    notes: list[str]
    helpers: int


def find(
    words: Sequence[str],
    scope: Scope,
    environ: Mapping[str, str],
    *,
    most: int = 10,
    limit: float = float("inf"),
    progress: Progress | None = None,
) -> Found:
    """The ``most`` best hits for ``words`` in ``scope``, of an index brought up to date within ``limit`` seconds.

    UsageError where nothing in the words can be looked up, or where there is neither a word nor a narrow scope.
    """
    query = parse(words)
    if not query.terms and not scope.narrow:
        raise UsageError("No words to search for", "Give some words, or --file, --tool, --branch, --role or --since.")
    with opened_index(environ, limit=limit, progress=progress, needed=needed_folders(scope, environ)) as index:
        return _search(index, query, scope, most)


def _search(index: Opened, query: Query, scope: Scope, most: int) -> Found:
    helpers = enter(index.db, scope)
    terms = Terms(index.db)
    lookups = [terms.look_up(term) for term in query.terms]
    without = [terms.look_up(term) for term in query.excluded if not term.exact]
    ranking = Ranking(index.db, scope, without, time.time())
    nowhere = [found.term.text for found in lookups if found.term.exact and not found.expression]
    turns = [] if nowhere else _turns(ranking, terms, lookups) if lookups else ranking.latest(most * 2)
    hits = Hits(index.db, query, lookups).best(turns, most)
    total = len(turns) if not query.phrases else len(hits)
    return Found(query, hits, total, _how(lookups, hits), index.notes, helpers)


def _turns(ranking: Ranking, terms: Terms, lookups: Sequence[Lookup]) -> list[TurnHit]:
    """The turns that fit, by the words that were typed, else by related ones too.

    A word that is nowhere, and that nothing related stands for, is most likely what was asked about: then only what
    fits well by all the others is worth showing.
    """
    turns = ranking.turns(lookups)
    if turns and turns[0].fit >= GOOD:
        return _without_noise(turns)
    related = {place: other for place, found in enumerate(lookups) if (other := terms.related(found))}
    if any(found.how == "nowhere" and place not in related for place, found in enumerate(lookups)):
        return []
    return _without_noise(ranking.loose(lookups, related) if related else turns)


def _without_noise(turns: Sequence[TurnHit]) -> list[TurnHit]:
    best = turns[0].fit if turns else 0.0
    return [turn for turn in turns if turn.fit >= max(FAIR, NOISE * best)]


def _how(lookups: Sequence[Lookup], hits: Sequence[Hit]) -> str:
    """How the query was taken: all its words or most of them, and what stands for words that are nowhere."""
    said = [sentence for found in lookups if (sentence := _taken(found))]
    if len(lookups) > 1 and hits:
        whole = sum(not hit.missing for hit in hits)
        said.insert(0, "all words" if whole == len(hits) else f"all words in {whole}, most in {len(hits) - whole}")
    return "; ".join(said)


def _taken(found: Lookup) -> str:
    if found.how == "nowhere":
        return f"nowhere: {found.term.text}"
    if found.how == "word":
        return ""
    return (
        f"'{found.term.text}' as a {found.how} of {', '.join(found.stems[:4])}{', …' if len(found.stems) > 4 else ''}"
    )
