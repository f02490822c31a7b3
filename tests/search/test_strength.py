"""Tests of the strength of a hit.

A hit is strong if a turn or record contains all words of the question, and weak if it contains few.
"""

from __future__ import annotations

import pytest

from resume_hooks.search.hits import (
    FAIR_CONFIDENCE,
    STRONG_CONFIDENCE,
    hit_probability,
    strength_of_confidence,
)
from tests.builders import ConfigHome, custom_title, session_id
from tests.search.asking import search_home, write_talk

QUESTION = "linter ignores generated protobuf stubs under vendored folders"


@pytest.fixture
def home_with_one_answer(config_home: ConfigHome) -> ConfigHome:
    """Return a home with one turn that has all words of the question. Other turns have one word each."""
    write_talk(
        config_home,
        1,
        "the linter ignores all generated protobuf stubs that are under the vendored folders",
    )
    for number in range(2, 12):
        write_talk(
            config_home, number, f"tune the linter for task {number}", f"it is tuned, task {number}"
        )
    return config_home


@pytest.mark.parametrize(
    "query", [QUESTION, f"why {QUESTION}?", '"generated protobuf stubs"', "protobuf stubs"]
)
def test_a_hit_with_all_words_is_strong(home_with_one_answer: ConfigHome, query: str) -> None:
    """The record that contains all words of a query is the first hit, and the hit is strong."""
    hit = search_home(home_with_one_answer, query).hits[0]
    assert (hit.session_id[:8], hit.strength, hit.missing_words) == ("00000001", "strong", ())


def test_a_hit_with_one_common_word_is_weak(home_with_one_answer: ConfigHome) -> None:
    """A hit that has only one word of the question is weak.

    If all hits are weak, the result says that nothing is close.
    """
    found = search_home(home_with_one_answer, QUESTION)
    assert {hit.strength for hit in found.hits[1:]} == {"weak"}
    found = search_home(
        home_with_one_answer, "linter crashes whenever kubernetes restarts nodes during upgrades"
    )
    assert found.hits
    assert found.has_only_weak_hits
    assert {hit.words for hit in found.hits} == {("linter",)}


def test_nothing_close_is_reported_only_for_weak_hits(config_home: ConfigHome) -> None:
    """The result says that nothing is close if no hit is better than weak."""
    for number in range(1, 4):
        write_talk(
            config_home,
            number,
            "the linter skips whatever a compiler wrote",
            "the vendored folders hold stubs of it",
        )
    found = search_home(
        config_home,
        "why does the linter overlook machine-made sources somewhere below third parties",
    )
    assert found.has_only_weak_hits
    found = search_home(config_home, "linter skips whatever a compiler wrote")
    assert not found.has_only_weak_hits


def test_a_title_in_the_question_finds_its_session(home_with_one_answer: ConfigHome) -> None:
    """A query that is a session's title gives a strong hit in that session."""
    write_talk(
        home_with_one_answer,
        20,
        "the test of this fails on CI",
        custom_title("Flaky upload", session_id(20)),
    )
    hit = search_home(home_with_one_answer, "flaky upload").hits[0]
    assert (hit.session_id, hit.strength) == (session_id(20), "strong")


def test_the_strongest_hit_is_first(home_with_one_answer: ConfigHome) -> None:
    """The first hit has the highest confidence. Each confidence is between 0 and 1."""
    sure = [hit.confidence for hit in search_home(home_with_one_answer, QUESTION).hits]
    assert sure[0] == max(sure)
    assert all(0 <= one <= 1 for one in sure)


@pytest.mark.parametrize(
    ("confidence", "strength"),
    [
        (1.0, "strong"),
        (STRONG_CONFIDENCE, "strong"),
        (0.59, "fair"),
        (FAIR_CONFIDENCE, "fair"),
        (0.24, "weak"),
        (0.0, "weak"),
    ],
)
def test_each_strength_has_a_minimum_confidence(confidence: float, strength: str) -> None:
    """Each of the strengths "strong", "fair" and "weak" has a minimum confidence."""
    assert strength_of_confidence(confidence) == strength


def test_each_factor_raises_the_confidence() -> None:
    """The confidence rises with each factor.

    The factors are the share of the question's words in the turn and in the record, the nearness of
    the words, the rank, and the number of words.
    """
    least = hit_probability(0.2, 0.2, 0.0, 6, 0.4, 1)
    better = [(0.9, 0.2, 0.0, 6, 0.4, 1), (0.2, 0.9, 0.0, 6, 0.4, 1), (0.2, 0.2, 1.0, 6, 0.4, 1)]
    for one in [*better, (0.2, 0.2, 0.0, 6, 2.0, 1), (0.2, 0.2, 0.0, 12, 0.4, 1)]:
        assert hit_probability(*one) > least
    assert hit_probability(0.2, 0.2, 0.0, 900, 0.4, 1) == hit_probability(0.2, 0.2, 0.0, 12, 0.4, 1)


def test_several_weak_wordings_are_weaker_than_a_good_one() -> None:
    """A hit that is weak in several wordings has a lower confidence than a good hit in a single wording."""
    assert hit_probability(0.5, 0.5, 0.5, 6, 1.2, 3) < hit_probability(0.5, 0.5, 0.5, 6, 1.2, 1)


def test_other_wordings_do_not_weaken_the_hit_of_a_phrase(home_with_one_answer: ConfigHome) -> None:
    """A hit for a phrase is just as strong if the search has other wordings that do not find the hit."""
    alone = search_home(home_with_one_answer, '"generated protobuf stubs"').hits[0]
    among = search_home(
        home_with_one_answer,
        '"generated protobuf stubs"',
        other_wordings=["ignored by the linter", "task"],
    ).hits[0]
    assert (among.reference, among.strength) == (alone.reference, "strong")
