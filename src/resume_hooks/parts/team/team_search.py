"""Search the team's sessions: send the query of a local search to the server, and rank the hits.

The search first requires all words, then any of the words, then any word with one of them as a
prefix. ``read_turns`` reads the turns that the server ranks and checks them for quoted phrases.
The rank depends on the number of matching words and on how close together they are. Your own hits
are mixed with those of others, and no member can fill the result while others have hits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.parts.team import rows as columns
from resume_hooks.parts.team.chunks import quote_word
from resume_hooks.parts.team.connect import suppress_late_answers
from resume_hooks.parts.team.read_turns import (
    HITS_PER_READ,
    MatchingTurn,
    TeamHit,
    TurnReader,
    balance_members,
    limit_per_member,
)
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.search.index.tokenize import stem_word
from resume_hooks.search.query import Query, Term, parse_query

_MAX_RANKED_TURNS = 50
"""The maximum number of turns that the server ranks per query. Ranking long rows is slow, and fifty turns suffice."""

_MAX_READ_TURNS = 1_000
"""The maximum number of turns to read in search of a phrase. The server only finds the phrase's words."""

_MAX_PAGES = 100
"""The maximum number of pages to request, even if few texts contain the words that the server reports."""

_MIN_TIME_STEP = timedelta(microseconds=1)
_MAX_CLOCK_SKEW = timedelta(days=1)
"""The maximum clock difference to another machine. Turns further in the future are not requested."""

_FIND_QUERY = (
    "select session::text, part::text, record::text, extract(epoch from at)::float8::text, rank::text, said_by::text,"
    " mine::text from team.find(%s::tsquery, %s::timestamptz, %s, %s, %s, %s::timestamptz, %s::name[])"
)
_TURN_FORMAT = RowFormat(
    MatchingTurn,
    (
        columns.parse_row_number, columns.parse_row_number, columns.parse_count,
        columns.parse_epoch, columns.parse_finite_number, columns.parse_login,
        columns.parse_boolean,
    ),
)  # fmt: skip


class SearchResult(NamedTuple):
    """The result of a search.

    If a search for a phrase did not read all turns, ``searched_turn_count`` is the number of turns
    that it read. Otherwise it is 0.
    """

    hits: list[TeamHit]
    searched_turn_count: int = 0


class SearchScope(NamedTuple):
    """The turns to search: since a time (ISO 8601), only your own, or those of a project.

    By default all turns are searched.
    """

    start_time: str | None = None
    only_own: bool = False
    project: str = ""


ALL_TURNS = SearchScope()


def search_team(
    words: Sequence[str], db: Database, scope: SearchScope = ALL_TURNS, *, max_hits: int
) -> SearchResult:
    """Return the best ``max_hits`` hits. Raise UsageError if the query has no searchable words."""
    query = parse_query(words)
    queries = build_queries(query)
    search = _Search(query, db, scope, max_hits)
    result = search.run(queries)
    has_enough_hits = len(result.hits) >= max_hits and not any(hit.is_own for hit in result.hits)
    if scope.only_own or not (search.stopped_early or has_enough_hits) or db.has_passed_deadline():
        return result
    own_result = _Search(query, db, scope._replace(only_own=True), max_hits).run(
        queries[: search.query_count]
    )  # the hits of others have displaced your own, so search those again
    return result._replace(hits=_select_best_hits([*result.hits, *own_result.hits], max_hits))


class _Search:
    """Requests turns until there are enough hits from several members.

    ``query_count`` is the number of queries. ``stopped_early`` is true if the search stopped although there
    may be more turns.
    """

    def __init__(self, query: Query, db: Database, scope: SearchScope, max_hits: int) -> None:
        self._db, self._scope, self._max_hits = db, scope, max_hits
        self._has_phrases = any(term.is_phrase for term in (*query.terms, *query.excluded))
        if self._has_phrases:
            self._most_per_member = _MAX_READ_TURNS // 2
        else:
            self._most_per_member = max(_MAX_RANKED_TURNS, max_hits)
        self._reader = TurnReader(query, db)
        self._known: set[tuple[int, int]] = set()
        self._before = db.refused_row_count
        self._more = False
        self.query_count = 0
        self.stopped_early = False

    def run(self, queries: list[str]) -> SearchResult:
        """Return the best hits of all queries. Hits of stricter queries come first."""
        hits: list[TeamHit] = []
        for query in queries:
            if self._db.has_passed_deadline():
                break
            self.query_count += 1
            query_hits: list[TeamHit] = []
            with suppress_late_answers(self._db):
                self._add_hits(query, query_hits)
            hits = [*hits, *_select_best_hits(query_hits, self._max_hits - len(hits))]
            if len(hits) >= self._max_hits or (
                not self._has_phrases and self._read_turn_count >= self._max_hits
            ):
                break
        return SearchResult(
            _select_best_hits(hits, self._max_hits),
            len(self._known) if self._more and len(hits) < self._max_hits else 0,
        )

    @property
    def _read_turn_count(self) -> int:
        """The number of turns that were read.

        Without a phrase in the query, only turns whose texts contain the words count.
        """
        return len(self._known) - (
            0 if self._has_phrases else self._db.refused_row_count - self._before
        )

    def _add_hits(self, query: str, hits: list[TeamHit]) -> None:
        """Append the hits of one query, newest turns first.

        A member who already has many turns is excluded from the next pages.
        """
        end_time, turn_counts = datetime.now(UTC) + _MAX_CLOCK_SKEW, Counter[str]()
        for page in range(1, _MAX_PAGES + 1):
            if (
                _count_balanced_hits(hits, self._max_hits) >= self._max_hits
                or self._db.has_passed_deadline()
            ):
                break
            turns_before, is_full_page = self._fetch_page(
                query,
                end_time,
                [login for login in turn_counts if turn_counts[login] >= self._most_per_member],
            )
            turn_counts.update(turn.owner for turn in turns_before if not turn.is_own)
            new_turns = [
                turn
                for turn in sorted(turns_before, key=lambda turn: -turn.rank)
                if turn[1:3] not in self._known
            ]
            self._known.update(turn[1:3] for turn in new_turns)
            read_limit = max(HITS_PER_READ, self._max_hits)
            hits += self._reader.read_hits(
                balance_members(new_turns, read_limit), read_limit, is_exact=not self._has_phrases
            )
            is_last_page = not (is_full_page and turns_before)
            has_read_enough = self._read_turn_count >= _MAX_READ_TURNS or page == _MAX_PAGES
            self.stopped_early = self.stopped_early or (has_read_enough and not is_last_page)
            self._more = self._has_phrases and not is_last_page and has_read_enough
            if is_last_page or has_read_enough:
                break
            end_time = min(turn.start_time for turn in turns_before)
            if new_turns:
                end_time += (
                    # There may be more turns at this instant, so request it again. If the page had
                    # no new turn, the instant has too many turns, so skip it.
                    _MIN_TIME_STEP
                )

    def _fetch_page(
        self, query: str, end_time: datetime, excluded_owners: list[str]
    ) -> tuple[list[MatchingTurn], bool]:
        """Return the turns before ``end_time``, and whether there may be older turns."""
        start_time, only_own, project = self._scope
        refused_before = self._db.refused_row_count
        values = (
            query,
            start_time or "-infinity",
            _MAX_RANKED_TURNS,
            only_own,
            project,
            end_time,
            excluded_owners,
        )
        turns = self._db.fetch_rows(_FIND_QUERY, values, _TURN_FORMAT)
        turns_before = [turn for turn in turns if turn.start_time < end_time]
        self._db.refused_row_count += len(turns) - len(turns_before)
        return turns_before, len(
            turns_before
        ) + self._db.refused_row_count - refused_before >= _MAX_RANKED_TURNS


def _select_best_hits(hits: list[TeamHit], max_hits: int) -> list[TeamHit]:
    """Return the ``max_hits`` hits with the highest scores, with at most half of them from one member."""
    hits_by_turn: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        hits_by_turn.setdefault(hit.reference, hit)  # the same turn from two machines
    return sorted(
        balance_members(hits_by_turn.values(), max_hits)[:max_hits], key=lambda hit: -hit.score
    )


def _count_balanced_hits(hits: list[TeamHit], max_hits: int) -> int:
    """Return the number of hits. For each other member, count at most one member's share."""
    own_references = {hit.reference for hit in hits if hit.is_own}
    turns = set()
    for hit in hits:
        if not hit.is_own:
            turns.add((hit.owner, hit.reference))
    owner_counts = Counter(owner for owner, _ in turns)
    return len(own_references) + sum(
        min(count, limit_per_member(max_hits)) for count in owner_counts.values()
    )


def build_queries(query: Query) -> list[str]:
    """Return the query's variants in PostgreSQL's syntax, strictest first.

    Every variant requires all words of a phrase.
    """
    exclusions = "".join(
        f" & !({_build_term_query(term, quote_stem)})"
        for term in query.excluded
        if not term.is_phrase
    )
    all_terms = [_build_term_query(term, quote_stem) for term in query.terms]
    exact_terms = []
    for term in query.terms:
        if term.is_phrase:
            exact_terms.append(_build_term_query(term, quote_stem))
    prefix_terms = [
        _build_term_query(term, lambda variant: f"{quote_stem(variant)}:*") for term in query.terms
    ]
    variants = [
        " & ".join(all_terms),
        *(
            [" & ".join(exact_terms)]
            if exact_terms
            else [" | ".join(all_terms), " | ".join(prefix_terms)]
        ),
    ]
    return [f"({variant}){exclusions}" for variant in dict.fromkeys(variants)]


def quote_stem(word: str) -> str:
    """Return the stem of a word as the server stores it."""
    return quote_word(stem_word(word))


def _build_term_query(term: Term, quote_form: Callable[[str], str]) -> str:
    """Return a query for a term. It requires all words of the term, each either whole or as its parts."""
    tokens = []
    for word_text, *parts in term.forms:
        if parts and not term.is_phrase:
            parts_query = f" | ({' & '.join(map(quote_form, parts))})"
        else:
            parts_query = ""
        tokens.append(f"({quote_form(word_text)}{parts_query})")
    return f"({' & '.join(tokens)})"
