"""Tests of queries with words that a message contains in another form.

A word of the query may be misspelled, part of a longer word, or an identifier in another form.
"""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome
from tests.search.asking import marked_words, search_home, session_numbers, write_talk

SENTENCES = [
    "we receive a webhook for each shipment and schedule its retry",
    "Die Datenbankverbindung bricht nach jedem Neustart ab, größere Abfragen hängen",
    "parseHTTPResponse calls retry_after_seconds in src/net/http_client.py",
    "the firewall drops the connection when the certificate is exhausted",
]

SESSIONS_BY_QUERY = {
    "recieve": [1],
    "shedule": [1],
    "shipement": [1],
    "certifcate": [4],
    "conection": [4],
    "exhuasted": [4],
    "Verbindung": [2],
    "Datenbank": [2],
    "Neustarts": [2],
    "GROESSERE": [2],
    "Grössere": [2],
    "grossere": [2],
    "haengen": [2],
    "irewal": [4],
    "parseHTTPResponse": [3],
    "parsehttpresponse": [3],
    "HTTPResponse": [3],
    "retry_after_seconds": [3, 1],
    "retryAfterSeconds": [3, 1],
    "after_seconds": [3],
    "http_client.py": [3],
    "src/net/http_client.py": [3],
    "net/http": [3],
    "Warum bricht die Verbindung nach dem Neustart ab?": [2],
    "Welche Abfragen hängen?": [2],
}
"""Queries, and the numbers of the sessions that each query finds, best first."""


@pytest.fixture
def home_with_sentences(config_home: ConfigHome) -> ConfigHome:
    """Return a home with a separate session for each sentence."""
    for number, words in enumerate(SENTENCES, 1):
        write_talk(config_home, number, words)
    return config_home


@pytest.mark.parametrize("query", SESSIONS_BY_QUERY)
def test_words_in_another_form_are_found(home_with_sentences: ConfigHome, query: str) -> None:
    """A query with another form of a word finds the word's sessions, best first.

    Umlauts may be written without dots or as two letters: the query "GROESSERE" finds "größere".
    """
    assert session_numbers(search_home(home_with_sentences, query)) == SESSIONS_BY_QUERY[query]


@pytest.mark.parametrize(
    ("query", "expected_marks"),
    [
        ("recieve", {"receive"}),
        ("Verbindung", {"Datenbankverbindung"}),
        ("parseHTTPResponse", {"parseHTTPResponse"}),
        ("hangen", {"hängen"}),
    ],
)
def test_the_snippet_marks_the_word_that_was_found(
    home_with_sentences: ConfigHome, query: str, expected_marks: set[str]
) -> None:
    """The snippet marks the word that was found for the query's word, for example "receive" for "recieve"."""
    assert marked_words(search_home(home_with_sentences, query)) == expected_marks


@pytest.mark.parametrize("query", ['"recieve"', '"Verbindung"', '"HTTPResponse"', '"certifi"'])
def test_quoted_words_must_match_exactly(home_with_sentences: ConfigHome, query: str) -> None:
    """A quoted word that is misspelled or only a part of a word finds nothing."""
    assert search_home(home_with_sentences, query).hits == []


def test_a_misspelled_excluded_word_hides_no_hit(home_with_sentences: ConfigHome) -> None:
    """If an excluded word is misspelled, it hides no hit."""
    assert session_numbers(search_home(home_with_sentences, "webhook -recieve")) == [1]
    assert session_numbers(search_home(home_with_sentences, "webhook -receive")) == []


def test_no_word_of_another_project_is_suggested(home_with_sentences: ConfigHome) -> None:
    """A similar word that occurs only in another project is not suggested."""
    write_talk(home_with_sentences, 9, "the Kundenverzeichnis of acme", cwd="/elsewhere")
    found = search_home(home_with_sentences, "verzeichniss", folders=("/nowhere",))
    assert (found.hits, found.interpretation) == ([], "no match for verzeichniss")


def test_a_part_of_a_word_matches_only_without_other_hits(home_with_sentences: ConfigHome) -> None:
    """A query matches part of a longer word only if no message of the project has the query as a word.

    In a query of several words, each word must match as a whole word.
    """
    write_talk(home_with_sentences, 9, "a wall and a Verbindung", cwd="/elsewhere")
    assert session_numbers(search_home(home_with_sentences, "Verbindung")) == [9]
    found = search_home(home_with_sentences, "Verbindung", folders=(CWD,))
    assert (session_numbers(found), found.interpretation) == (
        [2],
        "'Verbindung' as a part of datenbankverbindung",
    )
    assert session_numbers(search_home(home_with_sentences, "wall", folders=(CWD,))) == [4]
    found = search_home(home_with_sentences, "irewal connections", folders=(CWD,))
    assert (session_numbers(found), found.interpretation) == ([4], "no match for irewal")
    assert marked_words(search_home(home_with_sentences, "wall")) == {"wall"}
