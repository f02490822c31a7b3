"""Tests of hits for words and phrases, and of the notes that explain the search."""

from __future__ import annotations

import pytest

from tests.builders import ConfigHome, session_id, tool_result, tool_use, user, write_session
from tests.search.asking import (
    marked_words,
    search_home,
    session_and_line_numbers_of_hits,
    session_numbers,
    write_talk,
)
from tests.search.index.probe import uuid_of_text

SENTENCES = [
    "the connection\n  pool is exhausted",
    "we drop Redis; the art of the start",
    "We dropped the indexes of the database",
    "dropping an index of several databases after the decision to deploy",
    "getUserName in src/foo/bar_baz.py fails with E501",
    "Café crème, naïve: --no-verify, see .env, #123 and C++",
    "to be or not to be",
    "hash deadbeefcafe1234f00d of kebab-case-name and dotted.name.here",
    "concatenate the strings",
    "日本語のテスト and \u0130stanbul \U0001f389",
]

SENTENCES_BY_QUERY = {
    '"connection pool"': {0},
    '"CONNECTION POOL"': {0},
    '"pool connection"': set(),
    '"connection poo"': set(),
    '"start of"': set(),
    '"art of the start"': {1},
    '"to be or not to be"': {6},
    '"drop"': {1},
    '"cafe creme"': {5},
    '"CAFÉ CRÈME"': {5},
    '"--no-verify"': {5},
    '"\u65e5\u672c"': {9},
    '"user name"': set(),
    '"getUserName in"': {4},
    "drop": {1, 2, 3},
    "dropped": {1, 2, 3},
    "indexing": {2, 3},
    "database": {2, 3},
    "databases": {2, 3},
    "decisions": {3},
    "deployed": {3},
    "getusername": {4},
    "user": {4},
    "bar_baz.py": {4},
    "src/foo/bar_baz.py": {4},
    "foo/bar_baz": {4},
    "baz": {4},
    "E501": {4},
    "e501": {4},
    "--no-verify": {5},
    ".env": {5},
    "#123": {5},
    "C++": {5},
    "cafe": {5},
    "naive": {5},
    "deadbee": {7},
    "istanbul": {9},
    "ISTANBUL": {9},
    "\u65e5\u672c\u8a9e": {9},
    "\u30c6\u30b9\u30c8": {9},
    "drop -redis": {2, 3},
    "drop -indexes -redis": set(),
    'drop -"drop redis"': {2, 3},
    "index -data": {2, 3},
    "index -cat": {2, 3},
    "strings -catenate": {8},
    "quux": set(),
}  # fmt: skip
"""Queries, and the numbers of the sentences that each finds."""

SENTENCES_BY_IDENTIFIER = {
    "getUserName": [4, 7],
    "get_user_name": [4, 7],
    "UserName": [4, 7],
    "user_id": [4],
    "kebab-case-name": [7, 4],
    "dotted.name": [7, 4],
}
"""Identifiers, and for each the numbers of the sentences that contain it or its parts.

The sentence with the most parts is first.
"""


@pytest.fixture(scope="module")
def home_with_sentences(tmp_path_factory: pytest.TempPathFactory) -> ConfigHome:
    """Return a home with a separate session for each sentence."""
    made = ConfigHome.at(tmp_path_factory.mktemp("said"))
    for line, words in enumerate(SENTENCES):
        write_talk(made, line + 1, words)
    return made


@pytest.mark.parametrize("query", SENTENCES_BY_QUERY)
def test_exactly_the_matching_records_are_found(
    home_with_sentences: ConfigHome, query: str
) -> None:
    """A query finds exactly the sentences with its words, whatever their inflection, case and accents."""
    found = search_home(home_with_sentences, query)
    assert session_and_line_numbers_of_hits(found) == [
        (line + 1, 0) for line in sorted(SENTENCES_BY_QUERY[query])
    ]
    assert found.matching_turn_count == len(found.hits)


@pytest.mark.parametrize("query", SENTENCES_BY_IDENTIFIER)
def test_whole_identifiers_precede_their_parts(home_with_sentences: ConfigHome, query: str) -> None:
    """A sentence that contains the whole identifier precedes a sentence that contains some of its parts."""
    assert [
        number - 1 for number in session_numbers(search_home(home_with_sentences, query))
    ] == SENTENCES_BY_IDENTIFIER[query]


@pytest.mark.parametrize(
    ("query", "expected_marks"),
    [
        ('"connection pool"', {"connection pool"}),
        ("dropped", {"drop", "dropped", "dropping"}),
        ("cafe", {"Café"}),
        ("name -dotted", {"Name"}),
        ("UserName", {"UserName", "name"}),
        ("istanbul", {"\u0130stanbul"}),
        ("\u65e5\u672c\u8a9e", {"日本語"}),
    ],
)
def test_marks_cover_phrases_and_accented_words(
    home_with_sentences: ConfigHome, query: str, expected_marks: set[str]
) -> None:
    """The marks of a hit cover whole phrases, and cover words with accents even if the query has none."""
    assert marked_words(search_home(home_with_sentences, query)) == expected_marks


@pytest.mark.parametrize(
    ("query", "expected_interpretation"),
    [
        ("drop", ""),
        ("deadbee", "'deadbee' as a beginning of deadbeefcafe1234f00d"),
        ("ncaten", "'ncaten' as a part of concaten"),
        ("get_user_name", "'get_user_name' as its parts get, user, name"),
        ("dorpping", "'dorpping' as a misspelling of drop"),
        ("drop index", ""),
        ("drop -redis", "without redis"),
        ("quux", "no match for quux"),
        ('"quux"', 'no match for "quux"'),
        ("drop in June 2025", "turns of 2025-06-01 to 2025-06-30 first"),
    ],
)
def test_the_result_explains_how_the_query_was_interpreted(
    home_with_sentences: ConfigHome, query: str, expected_interpretation: str
) -> None:
    """The result explains how the query was interpreted, for example that a word was misspelled."""
    assert search_home(home_with_sentences, query).interpretation == expected_interpretation


def test_every_word_of_a_small_home_is_found(config_home: ConfigHome) -> None:
    """In a home with few messages, every word is found, even if a message is very long."""
    long = " ".join(f"filler{number}" for number in range(20_000))
    write_talk(config_home, 1, "the parser is slow", f"the parser {long} needle", "parser")
    for word in ("parser", "the", "slow", "needle", "filler777"):
        assert search_home(config_home, word).hits, word


def test_a_phrase_is_found_in_the_last_of_many_records(config_home: ConfigHome) -> None:
    """A phrase is found in the last record of a turn whose other records contain only single words of it."""
    records = [
        tool_result(f"c{n}", "pool, connection; " * 9, uuid=uuid_of_text(n), parent=None)
        for n in range(100)
    ]
    write_talk(
        config_home,
        1,
        "go",
        *records,
        tool_result("z", "a connection\npool " + "x " * 500, uuid=uuid_of_text("z"), parent=None),
    )
    found = search_home(config_home, '"connection pool"')
    assert session_and_line_numbers_of_hits(found) == [(1, 101)]
    assert marked_words(found) == {"connection pool"}


def test_a_phrase_may_span_numbered_lines(config_home: ConfigHome) -> None:
    """A phrase is found even if it spans several lines that the client numbered."""
    shown = "     1\u2192def alpha(\n     2\u2192    beta):\n"
    write_talk(config_home, 1, "go", tool_result("c", shown, uuid=uuid_of_text("c"), parent=None))
    found = search_home(config_home, '"alpha( beta)"')
    assert [hit.snippet for hit in found.hits] == ["def alpha( beta):"]


def test_the_snippet_shows_the_phrase(config_home: ConfigHome) -> None:
    """The snippet shows the phrase, even if the phrase is far from the start of the text."""
    write_talk(config_home, 1, "go", "x " * 300_000 + "the needle phrase " + "y " * 300_000)
    (hit,) = search_home(config_home, '"needle phrase"').hits
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["needle phrase"]
    assert len(hit.snippet) < 300


def test_two_phrases_may_be_in_one_turn(config_home: ConfigHome) -> None:
    """A turn is a hit for two phrases if the prompt contains one and the answer contains the other.

    A turn that contains only one of the phrases is not a hit.
    """
    write_talk(
        config_home,
        1,
        "is the connection pool full?",
        "the retry policy is off",
        "the connection pool",
        "no",
    )
    (hit,) = search_home(config_home, '"connection pool" "retry policy"').hits
    assert (hit.turn_number, hit.missing_words) == (1, ())


def test_a_turn_with_several_matches_is_one_hit(config_home: ConfigHome) -> None:
    """A turn with several matching records is one hit."""
    write_talk(
        config_home,
        1,
        "retry the upload",
        tool_use(
            "c",
            uuid=uuid_of_text("c"),
            parent=None,
            name="Bash",
            tool_input={"command": "retry upload"},
        ),
        tool_result("c", "retry upload ok", uuid=uuid_of_text("r"), parent=None),
    )
    found = search_home(config_home, "retry upload")
    assert (found.matching_turn_count, len(found.hits)) == (1, 1)


def test_repeated_messages_are_one_hit(config_home: ConfigHome) -> None:
    """Messages with the same text are one hit in each session, with the number of repetitions."""
    again = [
        user("please run the linter now", uuid=f"{n:08x}-0000-4000-8000-000000000000")
        for n in range(4)
    ]
    write_session(config_home.project(), session_id(1), again)
    write_talk(config_home, 2, "please run the linter now")
    hits = search_home(config_home, "linter").hits
    assert sorted((hit.session_id, hit.repetition_count) for hit in hits) == [
        (session_id(1), 3),
        (session_id(2), 0),
    ]


def test_the_newer_of_two_equal_hits_is_first(config_home: ConfigHome) -> None:
    """Of two hits that match equally well, the newer one is first."""
    write_talk(config_home, 1, "tune the linter a", ts="2020-01-01T00:00:00Z")
    write_talk(config_home, 2, "tune the linter b", ts="2999-01-01T00:00:00Z")
    assert [hit.session_id for hit in search_home(config_home, "linter").hits] == [
        session_id(2),
        session_id(1),
    ]
