"""Search the team's sessions: send the query of a local search to the server, and rank the hits.

The search first requires all words, then any of the words, then any word with one of them as a
prefix. ``turn_reading`` reads the turns that the server ranks and checks them for quoted phrases.
The rank depends on the number of matching words and on how close together they are. Your own hits
are mixed with those of others, and no member can fill the result while others have hits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.parts.team import rows as columns
from resume_hooks.parts.team.connect import stop_when_late
from resume_hooks.parts.team.pieces import quote_word
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.turn_reading import (
    HITS_PER_READ,
    FoundTurn,
    TeamHit,
    TurnReader,
    member_share,
    share_among_members,
)
from resume_hooks.search.index.tokenize import stem
from resume_hooks.search.query import Query, Term, parse_query

_RANKED_TURNS = 50
"""The maximum number of turns that the server ranks per query. Ranking long rows is slow, and fifty turns suffice."""

_READ_TURNS = 1_000
"""The maximum number of turns to read in search of a phrase. The server only finds the phrase's words."""

_MOST_PAGES = 100
"""The maximum number of pages to request, even if few texts contain the words that the server reports."""

_SMALLEST_STEP = timedelta(microseconds=1)
_CLOCK_SKEW = timedelta(days=1)
"""The maximum clock difference to another machine. Turns further in the future are not requested."""

_FIND_QUERY = (
    "select session::text, part::text, record::text, extract(epoch from at)::float8::text, rank::text, said_by::text,"
    " mine::text from team.find(%s::tsquery, %s::timestamptz, %s, %s, %s, %s::timestamptz, %s::name[])"
)
_TURN_FORMAT = RowFormat(
    FoundTurn,
    (
        columns.parse_row_number, columns.parse_row_number, columns.parse_count,
        columns.parse_epoch, columns.parse_number, columns.parse_login,
        columns.parse_boolean,
    ),
)  # fmt: skip


class SearchResult(NamedTuple):
    """The result of a search.

    If a search for a phrase did not read all turns, ``searched`` is the number of turns that it
    read. Otherwise it is 0.
    """

    hits: list[TeamHit]
    searched: int = 0


class Scope(NamedTuple):
    """The turns to search: since a time (ISO 8601), only your own, or those of a project.

    By default all turns are searched.
    """

    since: str | None = None
    mine: bool = False
    project: str = ""


ALL_TURNS = Scope()


def search_team(
    words: Sequence[str], db: Database, scope: Scope = ALL_TURNS, *, most: int
) -> SearchResult:
    """Return the best ``most`` hits. Raise UsageError if the query has no searchable words."""
    query = parse_query(words)
    queries = build_queries(query)
    search = _Search(query, db, scope, most)
    result = search.run(queries)
    is_filled = len(result.hits) >= most and not any(hit.mine for hit in result.hits)
    if scope.mine or not (search.is_used_up or is_filled) or db.is_late():
        return result
    own_result = _Search(query, db, scope._replace(mine=True), most).run(
        queries[: search.asked]
    )  # the hits of others displaced your own hits
    return result._replace(hits=_best_hits([*result.hits, *own_result.hits], most))


class _Search:
    """Requests turns until there are enough hits from several members.

    ``asked`` is the number of queries. ``is_used_up`` is true if the search stopped although there
    may be more turns.
    """

    def __init__(self, query: Query, db: Database, among: Scope, most: int) -> None:
        self._db, self._among, self._most = db, among, most
        self._has_phrases = any(term.is_phrase for term in (*query.terms, *query.excluded))
        if self._has_phrases:
            self._most_per_member = _READ_TURNS // 2
        else:
            self._most_per_member = max(_RANKED_TURNS, most)
        self._reader = TurnReader(query, db)
        self._known: set[tuple[int, int]] = set()
        self._before = db.refused
        self._more = False
        self.asked = 0
        self.is_used_up = False

    def run(self, queries: list[str]) -> SearchResult:
        """Return the best hits of all queries. Hits of stricter queries come first."""
        hits: list[TeamHit] = []
        for query in queries:
            if self._db.is_late():
                break
            self.asked += 1
            answers: list[TeamHit] = []
            with stop_when_late(self._db):
                self._add_hits(query, answers)
            hits = [*hits, *_best_hits(answers, self._most - len(hits))]
            if len(hits) >= self._most or (not self._has_phrases and self._read >= self._most):
                break
        return SearchResult(
            _best_hits(hits, self._most),
            len(self._known) if self._more and len(hits) < self._most else 0,
        )

    @property
    def _read(self) -> int:
        """The turns that were read. Unless the query has a phrase, only turns whose texts contain the words."""
        return len(self._known) - (0 if self._has_phrases else self._db.refused - self._before)

    def _add_hits(self, query: str, hits: list[TeamHit]) -> None:
        """Append the hits of one query, newest turns first.

        A member who already has many turns is excluded from the next pages.
        """
        until, turns = datetime.now(UTC) + _CLOCK_SKEW, Counter[str]()
        for page in range(1, _MOST_PAGES + 1):
            if _count_fairly_shared_hits(hits, self._most) >= self._most or self._db.is_late():
                break
            turns_before, is_page = self._fetch_page(
                query, until, [login for login in turns if turns[login] >= self._most_per_member]
            )
            turns.update(turn.owner for turn in turns_before if not turn.mine)
            fresh = [
                turn
                for turn in sorted(turns_before, key=lambda turn: -turn.rank)
                if turn[1:3] not in self._known
            ]
            self._known.update(turn[1:3] for turn in fresh)
            looked_at = max(HITS_PER_READ, self._most)
            hits += self._reader.hits(
                share_among_members(fresh, looked_at), looked_at, is_exact=not self._has_phrases
            )
            is_all = not (is_page and turns_before)
            is_enough = self._read >= _READ_TURNS or page == _MOST_PAGES
            self.is_used_up = self.is_used_up or (is_enough and not is_all)
            self._more = self._has_phrases and not is_all and is_enough
            if is_all or is_enough:
                break
            until = min(turn.at for turn in turns_before)
            if fresh:
                until += (
                    # There may be more turns at this instant, so request it again. If the page had
                    # no new turn, the instant has too many turns, so skip it.
                    _SMALLEST_STEP
                )

    def _fetch_page(
        self, query: str, until: datetime, excluded_owners: list[str]
    ) -> tuple[list[FoundTurn], bool]:
        """Return the turns before ``until``, and whether there may be older turns."""
        since, mine, project = self._among
        refused = self._db.refused
        values = (query, since or "-infinity", _RANKED_TURNS, mine, project, until, excluded_owners)
        turns = self._db.rows(_FIND_QUERY, values, _TURN_FORMAT)
        turns_before = [turn for turn in turns if turn.at < until]
        self._db.refused += len(turns) - len(turns_before)
        return turns_before, len(turns_before) + self._db.refused - refused >= _RANKED_TURNS


def _best_hits(hits: list[TeamHit], most: int) -> list[TeamHit]:
    """Return the ``most`` hits with the highest scores, with at most half of them from one member."""
    best: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        best.setdefault(hit.reference, hit)  # the same turn from two machines
    return sorted(share_among_members(best.values(), most)[:most], key=lambda hit: -hit.score)


def _count_fairly_shared_hits(hits: list[TeamHit], most: int) -> int:
    """Return the number of hits. For each other member, count at most one member's share."""
    own_references = {hit.reference for hit in hits if hit.mine}
    turns = set()
    for hit in hits:
        if not hit.mine:
            turns.add((hit.owner, hit.reference))
    owner_counts = Counter(owner for owner, _ in turns)
    return len(own_references) + sum(
        min(count, member_share(most)) for count in owner_counts.values()
    )


def build_queries(query: Query) -> list[str]:
    """Return the query's variants in PostgreSQL's syntax, strictest first.

    Every variant requires all words of a phrase.
    """
    exclusions = "".join(
        f" & !({_term_query(term, quoted_stem)})" for term in query.excluded if not term.is_phrase
    )
    all_terms = [_term_query(term, quoted_stem) for term in query.terms]
    exact_terms = []
    for term in query.terms:
        if term.is_phrase:
            exact_terms.append(_term_query(term, quoted_stem))
    prefix_terms = [
        _term_query(term, lambda form: f"{quoted_stem(form)}:*") for term in query.terms
    ]
    forms = [
        " & ".join(all_terms),
        *(
            [" & ".join(exact_terms)]
            if exact_terms
            else [" | ".join(all_terms), " | ".join(prefix_terms)]
        ),
    ]
    return [f"({form}){exclusions}" for form in dict.fromkeys(forms)]


def quoted_stem(form: str) -> str:
    """Return the stem of a word as the server stores it."""
    return quote_word(stem(form))


def _term_query(term: Term, word: Callable[[str], str]) -> str:
    """Return a query for a term. It requires all words of the term, each either whole or as its parts."""
    tokens = []
    for word_text, *parts in term.forms:
        if parts and not term.is_phrase:
            in_parts = f" | ({' & '.join(map(word, parts))})"
        else:
            in_parts = ""
        tokens.append(f"({word(word_text)}{in_parts})")
    return f"({' & '.join(tokens)})"
