"""Search the team's sessions: send the query to the server, and rank the hits.

The first query requires all words of the search. If it returns too few hits, the second query
requires any of the words, and the third query any word that begins with one of them. The server
ranks the matching turns. ``read_turns`` then reads their text and looks for the quoted phrases. The
score of a hit depends on how many of the words it contains and on how close together they are. If
several members have hits, at most half of the returned hits are from one member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.parts.team import rows as columns
from resume_hooks.parts.team.chunks import quote_word
from resume_hooks.parts.team.connect import suppress_answer_timeout
from resume_hooks.parts.team.read_turns import (
    TURNS_PER_BATCH,
    MatchingTurn,
    TeamHit,
    TurnReader,
    compute_max_per_member,
    reorder_items_fairly_by_member,
)
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.search.index.tokenize import stem_word
from resume_hooks.search.query import Query, Term, parse_query

_MAX_RANKED_TURNS = 50
"""The maximum number of turns that the server ranks per query. Ranking is slow for turns with many
words."""

_MAX_TURNS_READ_PER_SEARCH = 1_000
"""The maximum number of turns to read in order to find a phrase. The server cannot search for a
phrase, only for its words."""

_MAX_PAGES = 100
"""The maximum number of pages to request per query. A query could reach this limit if the server
returns turns whose text does not contain the words."""

_POSTGRES_TIME_RESOLUTION = timedelta(microseconds=1)
_MAX_CLOCK_SKEW = timedelta(days=1)
"""How far another machine's clock may be ahead of this machine's clock. Turns with later times are
not requested."""

_FIND_TURNS_QUERY = (
    "select session::text, part::text, record::text, extract(epoch from at)::float8::text, rank::text, said_by::text,"
    " mine::text from team.find(%s::tsquery, %s::timestamptz, %s, %s, %s, %s::timestamptz, %s::name[])"
)
_TURN_ROW_FORMAT = RowFormat(
    MatchingTurn,
    (
        columns.parse_row_id, columns.parse_row_id, columns.parse_count,
        columns.parse_epoch_time, columns.parse_finite_number, columns.parse_login,
        columns.parse_boolean,
    ),
)  # fmt: skip


class SearchResult(NamedTuple):
    """The hits of a search.

    If a search for a phrase stopped before the last turn, ``searched_turn_count`` is the number of
    turns that it has read. Otherwise, it is 0, which means that all turns were searched.
    """

    hits: list[TeamHit]
    searched_turn_count: int = 0


class SearchScope(NamedTuple):
    """The turns to search. By default, these are all turns.

    ``start_time`` (ISO 8601) excludes earlier turns. ``only_own`` excludes the turns of other
    members, and ``project`` excludes the turns of other projects.
    """

    start_time: str | None = None
    only_own: bool = False
    project: str = ""


ALL_TURNS_SCOPE = SearchScope()


def search_team(
    words: Sequence[str], db: Database, scope: SearchScope = ALL_TURNS_SCOPE, *, max_hits: int
) -> SearchResult:
    """Return the best ``max_hits`` hits. Raise UsageError if the query has no searchable words."""
    query = parse_query(words)
    queries = build_text_search_queries(query)
    search = _TeamSearch(query, db, scope, max_hits)
    result = search.run(queries)
    others_fill_result = len(result.hits) >= max_hits and not any(hit.is_own for hit in result.hits)
    if (
        scope.only_own
        or not (search.stopped_early or others_fill_result)
        or db.has_passed_deadline()
    ):
        return result
    # Turns of other members may have displaced your own, so search only your own turns.
    own_result = _TeamSearch(query, db, scope._replace(only_own=True), max_hits).run(
        queries[: search.query_count]
    )
    return result._replace(hits=_select_best_hits([*result.hits, *own_result.hits], max_hits))


class _TeamSearch:
    """Requests turns until there are enough hits from several members.

    ``query_count`` is the number of queries that were sent. ``stopped_early`` is true if the search
    stopped before it had requested all turns.
    """

    def __init__(self, query: Query, db: Database, scope: SearchScope, max_hits: int) -> None:
        self._db, self._scope, self._max_hits = db, scope, max_hits
        self._has_phrases = any(term.is_phrase for term in (*query.terms, *query.excluded_terms))
        if self._has_phrases:
            self._max_turns_per_member = _MAX_TURNS_READ_PER_SEARCH // 2
        else:
            self._max_turns_per_member = max(_MAX_RANKED_TURNS, max_hits)
        self._reader = TurnReader(query, db)
        self._seen_turns: set[tuple[int, int]] = set()
        self._refused_rows_before = db.refused_row_count
        self._has_unread_turns = False
        self.query_count = 0
        self.stopped_early = False

    def run(self, queries: list[str]) -> SearchResult:
        """Send the queries until there are enough hits, and return the best hits.

        ``queries`` is sorted strictest first. The hits of a stricter query come first.
        """
        hits: list[TeamHit] = []
        for query in queries:
            if self._db.has_passed_deadline():
                break
            self.query_count += 1
            query_hits: list[TeamHit] = []
            with suppress_answer_timeout(self._db):
                self._add_hits(query, query_hits)
            hits = [*hits, *_select_best_hits(query_hits, self._max_hits - len(hits))]
            if len(hits) >= self._max_hits or (
                not self._has_phrases and self._searched_turn_count >= self._max_hits
            ):
                break
        return SearchResult(
            _select_best_hits(hits, self._max_hits),
            len(self._seen_turns) if self._has_unread_turns and len(hits) < self._max_hits else 0,
        )

    @property
    def _searched_turn_count(self) -> int:
        """The number of turns that were searched.

        If the search contains no phrase, turns whose text lacks the words are not counted here, but
        as invalid rows.
        """
        return len(self._seen_turns) - (
            0 if self._has_phrases else self._db.refused_row_count - self._refused_rows_before
        )

    def _add_hits(self, query: str, hits: list[TeamHit]) -> None:
        """Request pages of turns, newest first, and append the hits of one query to ``hits``.

        A member with many turns in these pages is excluded from the later requests.
        """
        end_time, turn_counts = datetime.now(UTC) + _MAX_CLOCK_SKEW, Counter[str]()
        for page in range(1, _MAX_PAGES + 1):
            if (
                _count_balanced_hits(hits, self._max_hits) >= self._max_hits
                or self._db.has_passed_deadline()
            ):
                break
            earlier_turns, is_full_page = self._fetch_turns_before(
                query,
                end_time,
                [
                    login
                    for login in turn_counts
                    if turn_counts[login] >= self._max_turns_per_member
                ],
            )
            turn_counts.update(turn.owner for turn in earlier_turns if not turn.is_own)
            new_turns = [
                turn
                for turn in sorted(earlier_turns, key=lambda turn: -turn.rank)
                if turn[1:3] not in self._seen_turns
            ]
            self._seen_turns.update(turn[1:3] for turn in new_turns)
            read_limit = max(TURNS_PER_BATCH, self._max_hits)
            hits += self._reader.read_hits(
                reorder_items_fairly_by_member(new_turns, read_limit),
                read_limit,
                is_exact=not self._has_phrases,
            )
            is_last_page = not (is_full_page and earlier_turns)
            has_read_enough = (
                self._searched_turn_count >= _MAX_TURNS_READ_PER_SEARCH or page == _MAX_PAGES
            )
            self.stopped_early = self.stopped_early or (has_read_enough and not is_last_page)
            self._has_unread_turns = self._has_phrases and not is_last_page and has_read_enough
            if is_last_page or has_read_enough:
                break
            end_time = min(turn.start_time for turn in earlier_turns)
            if new_turns:
                end_time += (
                    # Several turns can have the same time as the oldest turn of this page, and this
                    # page may not contain all of them. The next page therefore includes this time
                    # again. If this page contains no new turn, the next page excludes it.
                    _POSTGRES_TIME_RESOLUTION
                )

    def _fetch_turns_before(
        self, query: str, end_time: datetime, excluded_owners: list[str]
    ) -> tuple[list[MatchingTurn], bool]:
        """Return a page of turns before ``end_time``, and whether there may be older turns that match."""
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
        turns = self._db.fetch_rows(_FIND_TURNS_QUERY, values, _TURN_ROW_FORMAT)
        earlier_turns = [turn for turn in turns if turn.start_time < end_time]
        self._db.refused_row_count += len(turns) - len(earlier_turns)
        return earlier_turns, len(
            earlier_turns
        ) + self._db.refused_row_count - refused_before >= _MAX_RANKED_TURNS


def _select_best_hits(hits: list[TeamHit], max_hits: int) -> list[TeamHit]:
    """Return the ``max_hits`` hits with the highest scores, highest first.

    If several members have hits, at most half of the returned hits are from one member.
    """
    hits_by_turn: dict[str, TeamHit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        hits_by_turn.setdefault(hit.reference, hit)  # Two machines may have pushed the same turn.
    return sorted(
        reorder_items_fairly_by_member(hits_by_turn.values(), max_hits)[:max_hits],
        key=lambda hit: -hit.score,
    )


def _count_balanced_hits(hits: list[TeamHit], max_hits: int) -> int:
    """Return how many hits remain if ``compute_max_per_member`` limits every member except you."""
    own_references = {hit.reference for hit in hits if hit.is_own}
    turns = set()
    for hit in hits:
        if not hit.is_own:
            turns.add((hit.owner, hit.reference))
    owner_counts = Counter(owner for owner, _ in turns)
    return len(own_references) + sum(
        min(count, compute_max_per_member(max_hits)) for count in owner_counts.values()
    )


def build_text_search_queries(query: Query) -> list[str]:
    """Return variants of a query in PostgreSQL's syntax, strictest first.

    Every variant requires all words of a quoted phrase.
    """
    exclusions = "".join(
        f" & !({_build_term_query(term, quote_stem)})"
        for term in query.excluded_terms
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
    """Return the stem of a word as a quoted term for PostgreSQL."""
    return quote_word(stem_word(word))


def _build_term_query(term: Term, quote_word_form: Callable[[str], str]) -> str:
    """Return a query for one term of the search, in PostgreSQL's syntax.

    The query requires each word of the term. If a word consists of parts, like ``snake_case``, a
    text that contains all the parts also matches.
    """
    tokens = []
    for word_text, *parts in term.forms:
        if parts and not term.is_phrase:
            parts_query = f" | ({' & '.join(map(quote_word_form, parts))})"
        else:
            parts_query = ""
        tokens.append(f"({quote_word_form(word_text)}{parts_query})")
    return f"({' & '.join(tokens)})"
