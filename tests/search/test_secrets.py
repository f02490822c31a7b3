"""Tests that the snippets and titles of hits contain no secrets."""

from __future__ import annotations

from tests.builders import ConfigHome
from tests.search.asking import marked_words, search_home, write_talk

PASSWORD = "xho9ypjaxtbw"


def test_snippets_and_titles_contain_no_secret(config_home: ConfigHome) -> None:
    """A password on the line after "password:" is hidden in the snippet and the title of a hit.

    The mark on the searched word stays in the right place.
    """
    write_talk(
        config_home,
        1,
        f"Deploy the frontend with:\npassword: >-\n  {PASSWORD}\nand {PASSWORD} again",
        "done",
    )
    found = search_home(config_home, "frontend")
    (hit,) = found.hits
    assert PASSWORD not in hit.title
    assert PASSWORD not in hit.snippet
    assert "[secret removed: password]" in hit.snippet
    assert marked_words(found) == {"frontend"}


def test_a_snippet_and_a_title_without_secrets_are_unchanged(config_home: ConfigHome) -> None:
    """If a message contains no secrets, the snippet and the title of its hit are the message's text."""
    write_talk(config_home, 1, "Deploy the frontend", "done")
    (hit,) = search_home(config_home, "frontend").hits
    assert hit.snippet == hit.title == "Deploy the frontend"
