"""Search the team's sessions: send the query of the local search to the server, and order the hits.

The search first requires all words, then any of them, then words that begin with them.
``turn_reading`` reads the turns that the server ranks and checks them for the quoted phrases. The
order depends on the number of matching words and on how close together they are. Your own hits are
mixed with those of others, and no member can fill the answer while others have hits.
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
"""Turns that the server ranks per query; ranking long rows is slow, and the newest fifty suffice."""

_READ = 1_000
"""The maximum number of turns with the words of a phrase whose texts are read to find the phrase itself."""

_MOST_PAGES = 100
"""The maximum number of pages to request, even if many texts do not contain the words that the server reports."""

_INSTANT = timedelta(microseconds=1)
_AHEAD = timedelta(days=1)
"""How far the clock of another machine may be ahead; turns with later times are not requested."""

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
    """The result of a search.

    ``searched`` is the number of turns read for a phrase if older turns were left unread, else 0.
    """

    hits: list[TeamHit]
    searched: int = 0


class Narrowing(NamedTuple):
    """Which turns to search: since a time (ISO 8601), only your own, or those of a project.

    The default is all turns.
    """

    since: str | None = None
    mine: bool = False
    project: str = ""


EVERY = Narrowing()


def find_in_team(
    words: Sequence[str], db: Database, among: Narrowing = EVERY, *, most: int
) -> Found:
    """Return the ``most`` best hits. Raise UsageError if the query has no searchable words."""
    query = parse_query(words)
    queries = asked_of(query)
    search = _Search(query, db, among, most)
    found = search.run(queries)
    is_filled = len(found.hits) >= most and not any(hit.mine for hit in found.hits)
    if among.mine or not (search.is_used_up or is_filled) or db.is_late():
        return found
    own = _Search(query, db, among._replace(mine=True), most).run(
        queries[: search.asked]
    )  # hits of others left no room for your own
    return found._replace(hits=_best_hits([*found.hits, *own.hits], most))


class _Search:
    """Requests turns until there are enough hits from more than one member.

    ``asked`` counts the queries. ``is_used_up`` is true if the search stopped although there may be
    more turns.
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
        """Return the best hits of the queries, with those of stricter queries first."""
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
        """The turns that were read; without a phrase, only those whose texts contain the words."""
        return len(self._known) - (0 if self._has_phrases else self._db.refused - self._before)

    def _add_answers(self, asked: str, hits: list[TeamHit]) -> None:
        """Append the hits of one query, newest turns first.

        A member with many turns already is excluded from further pages.
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
                    # There may be more turns at this instant. If none was new, there are too many
                    # of them.
                    _INSTANT
                )

    def _page(self, asked: str, until: datetime, without: list[str]) -> tuple[list[Turn], bool]:
        """Return the turns before ``until``, and whether there may be older ones."""
        since, mine, project = self._among
        refused = self._db.refused
        told = (asked, since or "-infinity", _RANKED, mine, project, until, without)
        turns = self._db.rows(_FIND, told, _TURN)
        found = [turn for turn in turns if turn.at < until]
        self._db.refused += len(turns) - len(found)
        return found, len(found) + self._db.refused - refused >= _RANKED


def _best_hits(hits: list[TeamHit], most: int) -> list[TeamHit]:
    """Return the ``most`` best hits by score, of which one member has at most half."""
    best: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        best.setdefault(hit.reference, hit)  # the same turn from two machines
    return sorted(shared_out(best.values(), most)[:most], key=lambda hit: -hit.score)


def _fair_count(hits: list[TeamHit], most: int) -> int:
    """Return the number of hits, counting at most one share for each other member."""
    own = {hit.reference for hit in hits if hit.mine}
    turns = set()
    for hit in hits:
        if not hit.mine:
            turns.add((hit.owner, hit.reference))
    others = Counter(owner for owner, _ in turns)
    return len(own) + sum(min(count, share_of(most)) for count in others.values())


def asked_of(query: Query) -> list[str]:
    """Return the query in PostgreSQL's syntax, strictest form first.

    Every form requires all words of a phrase.
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
    """Return the stem of a word as the server stores it."""
    return quote_word(stem(form))


def _term_query(term: Term, word: Callable[[str], str]) -> str:
    """Return a term as a query: all its words, each whole or as its parts."""
    tokens = []
    for whole, *parts in term.forms:
        if parts and not term.exact:
            in_parts = f" | ({' & '.join(map(word, parts))})"
        else:
            in_parts = ""
        tokens.append(f"({word(whole)}{in_parts})")
    return f"({' & '.join(tokens)})"
