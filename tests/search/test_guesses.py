"""Words that nobody said as they were typed: misspelled, a part of a longer one, of another language, an identifier."""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome
from tests.search.asking import marked, search, sessions, talk

SAID = [
    "we receive a webhook for each shipment and schedule its retry",
    "Die Datenbankverbindung bricht nach jedem Neustart ab, größere Abfragen hängen",
    "parseHTTPResponse calls retry_after_seconds in src/net/http_client.py",
    "the firewall drops the connection when the certificate is exhausted",
]

ASKED = {
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
"""What was typed, and the numbers of what it finds, the best first."""


@pytest.fixture
def home(config_home: ConfigHome) -> ConfigHome:
    """Each of it said in a session of its own."""
    for number, words in enumerate(SAID, 1):
        talk(config_home, number, words)
    return config_home


@pytest.mark.parametrize("query", ASKED)
def test_found(home: ConfigHome, query: str) -> None:
    """The best first; umlauts count with and without their dots, and as pairs of letters."""
    assert sessions(search(home, query)) == ASKED[query]


@pytest.mark.parametrize(
    ("query", "marks"),
    [
        ("recieve", {"receive"}),
        ("Verbindung", {"Datenbankverbindung"}),
        ("parseHTTPResponse", {"parseHTTPResponse"}),
        ("hangen", {"hängen"}),
    ],
)
def test_marked(home: ConfigHome, query: str, marks: set[str]) -> None:
    """The replacement of the typed word is marked in the text."""
    assert marked(search(home, query)) == marks


@pytest.mark.parametrize("query", ['"recieve"', '"Verbindung"', '"HTTPResponse"', '"certifi"'])
def test_a_phrase_is_never_guessed(home: ConfigHome, query: str) -> None:
    """A quoted word must match exactly."""
    assert search(home, query).hits == []


def test_excluded_words_are_never_guessed(home: ConfigHome) -> None:
    """A misspelled excluded word hides nothing."""
    assert sessions(search(home, "webhook -recieve")) == [1]
    assert sessions(search(home, "webhook -receive")) == []


def test_where_nothing_is_found_no_word_of_another_project_is_named(home: ConfigHome) -> None:
    """A word that is like it, or holds it, was said elsewhere alone."""
    talk(home, 9, "the Kundenverzeichnis of acme", cwd="/elsewhere")
    found = search(home, "verzeichniss", folders=("/nowhere",))
    assert (found.hits, found.how) == ([], "no match for verzeichniss")


def test_a_part_of_a_word_is_searched_where_nothing_else_is_found(home: ConfigHome) -> None:
    """Also of a word that was only said elsewhere.

    One that is there, or not alone, is meant as it is.
    """
    talk(home, 9, "a wall and a Verbindung", cwd="/elsewhere")
    assert sessions(search(home, "Verbindung")) == [9]
    found = search(home, "Verbindung", folders=(CWD,))
    assert (sessions(found), found.how) == ([2], "'Verbindung' as a part of datenbankverbindung")
    assert sessions(search(home, "wall", folders=(CWD,))) == [4]
    found = search(home, "irewal connections", folders=(CWD,))
    assert (sessions(found), found.how) == ([4], "no match for irewal")
    assert marked(search(home, "wall")) == {"wall"}
