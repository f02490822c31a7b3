"""Search the team's words: the query of the local search, asked of the server, and its hits in their order.

All words first, then any of them, then their beginnings. What the server ranks is read
(``turn_reading``), compared with the phrases that were asked for, and put in the order of the words
that it has and how near they stand. One's own stand beside others', and nobody's fill the answer
while others have some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.parts.team import rows as columns
from resume_hooks.parts.team.connect import until_late
from resume_hooks.parts.team.pieces import quote_word
from resume_hooks.parts.team.rows import Database, Form
from resume_hooks.parts.team.turn_reading import (
    LOOKED_AT,
    TeamHit,
    Turn,
    TurnReader,
    share_of,
    shared_out,
)
from resume_hooks.search.index.tokenize import stem
from resume_hooks.search.query import Query, Term, parse_query

_RANKED = 50
"""Turns that the server ranks: long rows of words are slow to rank, and the newest fifty tell enough."""

_READ = 1_000
"""Turns that have the words of a phrase whose texts are read at most, to see which of them have the phrase."""

_MOST_PAGES = 100
"""Pages of turns that are asked for at most, however many texts lack the words that the server says they have."""

_INSTANT = timedelta(microseconds=1)
_AHEAD = timedelta(days=1)
"""How far another machine's clock may be ahead; what claims to be from later is not asked for."""

_FIND = (
    "select session::text, part::text, record::text, extract(epoch from at)::float8::text, rank::text, said_by::text,"
    " mine::text from team.find(%s::tsquery, %s::timestamptz, %s, %s, %s, %s::timestamptz, %s::name[])"
)
_TURN = Form(
    Turn,
    (
        columns.row_number, columns.row_number, columns.count, columns.epoch, columns.real, columns.login,
        columns.truth,
    ),
)  # fmt: skip


class Found(NamedTuple):
    """What answers; ``searched``: so many turns with a phrase's words were looked at, and older ones were not."""

    hits: list[TeamHit]
    searched: int = 0


class Narrowing(NamedTuple):
    """Among which turns is looked: from an instant on (ISO 8601), one's own, a project's.

    By default all.
    """

    since: str | None = None
    mine: bool = False
    project: str = ""


EVERY = Narrowing()


def find_in_team(
    words: Sequence[str], db: Database, among: Narrowing = EVERY, *, most: int
) -> Found:
    """The ``most`` best hits. UsageError where nothing in the words can be looked up."""
    query = parse_query(words)
    queries = asked_of(query)
    search = _Search(query, db, among, most)
    found = search.run(queries)
    is_filled = len(found.hits) >= most and not any(hit.mine for hit in found.hits)
    if among.mine or not (search.is_used_up or is_filled) or db.is_late():
        return found
    own = _Search(query, db, among._replace(mine=True), most).run(
        queries[: search.asked]
    )  # others' left no room
    return found._replace(hits=_best_hits([*found.hits, *own.hits], most))


class _Search:
    """Asks for turns until there are hits enough, and not one member's alone.

    ``asked``: how many queries it took. ``is_used_up``: no more turns were asked for though there
    may be some.
    """

    def __init__(self, query: Query, db: Database, among: Narrowing, most: int) -> None:
        self._db, self._among, self._most = db, among, most
        self._has_phrases = any(term.exact for term in (*query.terms, *query.excluded))
        if self._has_phrases:
            self._most_of_one = _READ // 2
        else:
            self._most_of_one = max(_RANKED, most)
        self._reader = TurnReader(query, db)
        self._known: set[tuple[int, int]] = set()
        self._before = db.refused
        self._more = False
        self.asked = 0
        self.is_used_up = False

    def run(self, queries: list[str]) -> Found:
        """The best hits of queries, those of the strictest first."""
        hits: list[TeamHit] = []
        for asked in queries:
            if self._db.is_late():
                break
            self.asked += 1
            answers: list[TeamHit] = []
            with until_late(self._db):
                self._add_answers(asked, answers)
            hits = [*hits, *_best_hits(answers, self._most - len(hits))]
            if len(hits) >= self._most or (not self._has_phrases and self._read >= self._most):
                break
        return Found(
            _best_hits(hits, self._most),
            len(self._known) if self._more and len(hits) < self._most else 0,
        )

    @property
    def _read(self) -> int:
        """Turns that were read; where no phrase is sought without those whose texts did not bear them out."""
        return len(self._known) - (0 if self._has_phrases else self._db.refused - self._before)

    def _add_answers(self, asked: str, hits: list[TeamHit]) -> None:
        """Add the hits of one query, the newest turns' first.

        A member who had many turns is asked for no more.
        """
        until, turns = datetime.now(UTC) + _AHEAD, Counter[str]()
        for page in range(1, _MOST_PAGES + 1):
            if _fair_count(hits, self._most) >= self._most or self._db.is_late():
                break
            found, is_page = self._page(
                asked, until, [login for login in turns if turns[login] >= self._most_of_one]
            )
            turns.update(turn.owner for turn in found if not turn.mine)
            fresh = [
                turn
                for turn in sorted(found, key=lambda turn: -turn.rank)
                if turn[1:3] not in self._known
            ]
            self._known.update(turn[1:3] for turn in fresh)
            looked_at = max(LOOKED_AT, self._most)
            hits += self._reader.hits(
                shared_out(fresh, looked_at), looked_at, is_exact=not self._has_phrases
            )
            is_all = not (is_page and found)
            is_enough = self._read >= _READ or page == _MOST_PAGES
            self.is_used_up = self.is_used_up or (is_enough and not is_all)
            self._more = self._has_phrases and not is_all and is_enough
            if is_all or is_enough:
                break
            until = min(turn.at for turn in found)
            if fresh:
                until += (
                    _INSTANT  # there may be more of that instant; else there are too many of it
                )

    def _page(self, asked: str, until: datetime, without: list[str]) -> tuple[list[Turn], bool]:
        """Turns from before an instant, and whether there may be older ones."""
        since, mine, project = self._among
        refused = self._db.refused
        told = (asked, since or "-infinity", _RANKED, mine, project, until, without)
        turns = self._db.rows(_FIND, told, _TURN)
        found = [turn for turn in turns if turn.at < until]
        self._db.refused += len(turns) - len(found)
        return found, len(found) + self._db.refused - refused >= _RANKED


def _best_hits(hits: list[TeamHit], most: int) -> list[TeamHit]:
    """So many hits by their score, half of them nobody's alone."""
    best: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        best.setdefault(hit.reference, hit)  # the same turn on two machines
    return sorted(shared_out(best.values(), most)[:most], key=lambda hit: -hit.score)


def _fair_count(hits: list[TeamHit], most: int) -> int:
    """How many of some hits count where of no other member's more than a share does."""
    own = {hit.reference for hit in hits if hit.mine}
    turns = set()
    for hit in hits:
        if not hit.mine:
            turns.add((hit.owner, hit.reference))
    others = Counter(owner for owner, _ in turns)
    return len(own) + sum(min(count, share_of(most)) for count in others.values())


def asked_of(query: Query) -> list[str]:
    """The query in the server's form, the strictest first.

    In none a phrase lacks one of its words.
    """
    without = "".join(
        f" & !({_term_query(term, stem_of)})" for term in query.excluded if not term.exact
    )
    every = [_term_query(term, stem_of) for term in query.terms]
    exact = []
    for term in query.terms:
        if term.exact:
            exact.append(_term_query(term, stem_of))
    begun = [_term_query(term, lambda form: f"{stem_of(form)}:*") for term in query.terms]
    forms = [
        " & ".join(every),
        *([" & ".join(exact)] if exact else [" | ".join(every), " | ".join(begun)]),
    ]
    return [f"({form}){without}" for form in dict.fromkeys(forms)]


def stem_of(form: str) -> str:
    """A word as the server has it."""
    return quote_word(stem(form))


def _term_query(term: Term, word: Callable[[str], str]) -> str:
    """A term: every word of it, each whole or by its parts."""
    tokens = []
    for whole, *parts in term.forms:
        if parts and not term.exact:
            in_parts = f" | ({' & '.join(map(word, parts))})"
        else:
            in_parts = ""
        tokens.append(f"({word(whole)}{in_parts})")
    return f"({' & '.join(tokens)})"
