"""Tests of parsing a query.

Every text is a valid query, unless it contains no word to search for.
"""

from __future__ import annotations

import contextlib
import os
import random

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.search import run_search
from resume_hooks.search.index.connect import OpenIndex, open_index
from resume_hooks.search.query import MAX_TERM_TOKENS, MAX_TERMS, parse_query
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.builders import ConfigHome
from tests.search.asking import search_home, write_talk

QUERY_CASES: list[tuple[list[str], list[str], list[str]]] = [
    (["redis"], ["redis"], []),
    (["drop", "redis"], ["drop", "redis"], []),
    (["drop redis"], ["drop", "redis"], []),
    (['"connection pool" -redis'], ['"connection pool"'], ["redis"]),
    (["connection pool", "size"], ['"connection pool"', "size"], []),
    (["-connection pool", "size"], ["size"], ['"connection pool"']),
    (['size -"connection pool"'], ["size"], ['"connection pool"']),
    (["\u201cconnection pool\u201d"], ['"connection pool"'], []),
    (['"not closed'], ['"not closed"'], []),
    (["why --no-verify"], ["--no-verify"], []),
    (["git - redis"], ["git", "redis"], []),
    (["a-b -c-d"], ["a-b"], ["c-d"]),
    (["Redis redis REDIS"], ["Redis"], []),
    (['drop "drop"'], ["drop", '"drop"'], []),
    (["x -y -Y -y"], ["x"], ["y"]),
    (["why did we drop redis?"], ["drop", "redis?"], []),
    (["what did we do"], ["what", "did", "we", "do"], []),
    (["redis AND NOT (mongo* OR ^col:)"], ["redis", "(mongo*", "^col:)"], []),
    (['""', "redis"], ["redis"], []),
    (["why did we drop redis last week?"], ["drop", "redis"], []),
    (["redis", "in", "June", "-mongo"], ["redis"], ["mongo"]),
    (["-redis in June"], ["June"], ["redis"]),
    (["in June?"], ["June?"], []),
    (['"redis in June" mongo'], ['"redis in June"', "mongo"], []),
    (["redis in June", "mongo"], ['"redis in June"', "mongo"], []),
    (["backup-2026-03-04-x.sql"], ["backup-2026-03-04-x.sql"], []),
    (["redis -yesterday"], ["redis"], ["yesterday"]),
]


@pytest.mark.parametrize(("query_words", "wanted_terms", "excluded_terms"), QUERY_CASES)
def test_a_query_becomes_terms(
    query_words: list[str], wanted_terms: list[str], excluded_terms: list[str]
) -> None:
    """A query is split into wanted and excluded words and phrases, without repetitions.

    Words such as "why did we" and "last week" are dropped, unless the query has no other words.
    """
    query = parse_query(query_words)
    assert [term.display_name for term in query.terms] == wanted_terms
    assert [term.display_name for term in query.excluded_terms] == excluded_terms


@pytest.mark.parametrize("query_text", ["!?", "-redis", '""', "\x00", "x" * 300, '-"a b"'])
def test_a_query_without_words_is_refused(query_text: str) -> None:
    """A query with only punctuation, excluded words or an overlong token raises an error.

    The error contains an example.
    """
    with pytest.raises(UsageError) as raised:
        parse_query([query_text])
    assert "connection pool" in raised.value.remedy
    assert len(raised.value.message) < 150


def test_an_empty_query_is_valid() -> None:
    """An empty query is valid, because filters alone may be enough."""
    assert parse_query([]).terms == ()
    assert parse_query(["  "]).terms == ()


def test_a_pasted_page_becomes_few_terms() -> None:
    """A query of a hundred kilobytes is reduced to at most ``MAX_TERMS`` terms.

    A phrase of that length is reduced to a few tokens, but its text is kept.
    """
    assert len(parse_query(["word%d " * 10_000 % tuple(range(10_000))]).terms) == MAX_TERMS
    (phrase,) = parse_query(['"' + "to be or not " * 8_000 + '"']).terms
    assert (len(phrase.forms), len(phrase.text), len(phrase.display_name)) == (
        MAX_TERM_TOKENS,
        103_999,
        62,
    )


QUERY_PIECES = [
    '"', "'", "\u201c", "AND", "OR", "NOT", "NEAR", "NEAR(linter tuned, 3)", "*", "lint*", "^", "^linter", "(", ")",
    ":", "prompt:", "words : linter", "{prompt reply}:", "-", "--", "+", "-linter", '-"the linter"', "\x00", "\ud800",
    "\udfff", "\n", "\t", " ", "linter", "tuned", '"the linter"', '""', '"a', "%", "_", ";", "/*", "*/",
    "' OR 1=1 --", "\\", "$(x)", "`", "\u200f", "\x1b[31m", "\u00e9", "日本", "\U0001f389", "\u0130", "\u00df",
    "a.b.c", "x" * 70, "x" * 300, "C++", "#1",
]  # fmt: skip


QUERY_COUNT = 1_000 if os.environ.get("RUN_ALL") == "1" else 200


def test_many_random_queries_keep_the_index_valid(config_home: ConfigHome) -> None:
    """Random queries are either answered or refused because they have no words.

    The index still works afterwards.
    """
    write_talk(config_home, 1, "the linter is tuned", "OR NOT near prompt: reply")
    rng = random.Random(4)
    with open_index(config_home.where) as index:
        for _ in range(QUERY_COUNT):
            pieces = [
                rng.choice(QUERY_PIECES) + rng.choice(["", " "])
                for _ in range(rng.randrange(1, 10))
            ]
            _search_randomly(index, pieces if rng.random() < 0.5 else ["".join(pieces)], rng)
    assert search_home(config_home, "linter").matching_turn_count == 1


def _search_randomly(index: OpenIndex, pieces: list[str], rng: random.Random) -> None:
    """Search with one or several wordings, and check the wording numbers of the hits."""
    wordings = [pieces, *([piece] for piece in rng.sample(QUERY_PIECES, rng.randrange(4)))]
    queries = []
    for words in wordings:
        with contextlib.suppress(UsageError):
            queries.append(parse_query(words))
    if asked := [query for query in queries if query.terms]:
        # The index was opened before, so the test covers only the search itself.
        found = run_search.Searcher(index, Scope(), Where()).search(asked, 5)
        assert all(set(hit.wording_numbers) <= set(range(1, len(asked) + 1)) for hit in found.hits)


@pytest.mark.parametrize(
    "query",
    [
        "linter " * 15_000,
        '"' + "the linter is " * 8_000 + '"',
        '"a" ' * 25_000,
        "-a " * 30_000 + "linter",
        "linter." * 15_000,
        "\u65e5\u672c" * 16_000,
        " ".join(f'"w{number} linter"' for number in range(6_000)),
        " ".join(f"-w{number}" for number in range(12_000)) + " linter",
        '"' * 100_001 + "linter",
        "(" * 100_000 + "linter" + ")" * 10,
    ],
    ids=lambda query: query[:12],
)
def test_a_query_of_100_kb_is_answered(config_home: ConfigHome, query: str) -> None:
    """A query of 100 kB is answered, both alone and as an additional wording, and the index stays valid."""
    write_talk(config_home, 1, "the linter is tuned")
    for found in (
        search_index([query], Scope(), config_home.where),
        search_index(["linter"], Scope(), config_home.where, other_wordings=[query, query]),
    ):
        assert found.notes == []
        assert len(found.interpretation) < 6_000
