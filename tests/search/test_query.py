"""Queries: what was typed becomes terms; nothing of it is syntax."""

from __future__ import annotations

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.search.query import MOST_TERMS, MOST_TOKENS, parse

TYPED: list[tuple[list[str], list[str], list[str]]] = [
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


@pytest.mark.parametrize(("words", "wanted", "excluded"), TYPED)
def test_terms(words: list[str], wanted: list[str], excluded: list[str]) -> None:
    """Words, phrases and what must not be there, each once; words of questions and of time count only alone."""
    query = parse(words)
    assert [term.name for term in query.terms] == wanted
    assert [term.name for term in query.excluded] == excluded


@pytest.mark.parametrize("words", ["!?", "-redis", '""', "\x00", "x" * 300, '-"a b"'])
def test_nothing_to_look_up(words: str) -> None:
    """Only punctuation, only exclusions, only data: said, with an example."""
    with pytest.raises(UsageError) as raised:
        parse([words])
    assert "connection pool" in raised.value.remedy
    assert len(raised.value.message) < 150


def test_no_words_at_all() -> None:
    """An empty query is one: the scope may be narrow enough."""
    assert parse([]).terms == ()
    assert parse(["  "]).terms == ()


def test_pasted_pages() -> None:
    """A hundred kilobytes are a few terms; a phrase as long has a few tokens, and its text whole."""
    assert len(parse(["word%d " * 10_000 % tuple(range(10_000))]).terms) == MOST_TERMS
    (phrase,) = parse(['"' + "to be or not " * 8_000 + '"']).terms
    assert (len(phrase.forms), len(phrase.text), len(phrase.name)) == (MOST_TOKENS, 103_999, 62)
