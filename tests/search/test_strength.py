"""The strength of a hit: strong if all words are in one place, weak if it has few of them."""

from __future__ import annotations

import pytest

from resume_hooks.search.hits import (
    FAIR_CONFIDENCE,
    STRONG_CONFIDENCE,
    hit_probability,
    strength_of_confidence,
)
from tests.builders import ConfigHome, custom_title, session_id
from tests.search.asking import search, talk

QUESTION = "linter ignores generated protobuf stubs under vendored folders"


@pytest.fixture
def home(config_home: ConfigHome) -> ConfigHome:
    """One turn that says it, and many that have one word of it."""
    talk(
        config_home,
        1,
        "the linter ignores all generated protobuf stubs that are under the vendored folders",
    )
    for number in range(2, 12):
        talk(
            config_home, number, f"tune the linter for task {number}", f"it is tuned, task {number}"
        )
    return config_home


@pytest.mark.parametrize(
    "query", [QUESTION, f"why {QUESTION}?", '"generated protobuf stubs"', "protobuf stubs"]
)
def test_all_that_was_requested(home: ConfigHome, query: str) -> None:
    """A phrase, a few words, a sentence: where one record has it all, it is the first hit, and strong."""
    hit = search(home, query).hits[0]
    assert (hit.session_id[:8], hit.strength, hit.missing_words) == ("00000001", "strong", ())


def test_one_common_word_of_eight(home: ConfigHome) -> None:
    """The hit is shown as weak, even if the other words occur nowhere."""
    found = search(home, QUESTION)
    assert {hit.strength for hit in found.hits[1:]} == {"weak"}
    found = search(home, "linter crashes whenever kubernetes restarts nodes during upgrades")
    assert found.hits
    assert found.nothing_close
    assert {hit.words for hit in found.hits} == {("linter",)}


def test_nothing_close(config_home: ConfigHome) -> None:
    """No hit of the question is more than weak; its own words find a close hit."""
    for number in range(1, 4):
        talk(
            config_home,
            number,
            "the linter skips whatever a compiler wrote",
            "the vendored folders hold stubs of it",
        )
    found = search(
        config_home,
        "why does the linter overlook machine-made sources somewhere below third parties",
    )
    assert found.nothing_close
    found = search(config_home, "linter skips whatever a compiler wrote")
    assert not found.nothing_close


def test_a_title(home: ConfigHome) -> None:
    """A question with a session's title finds it, even if the turn has other words."""
    talk(home, 20, "the test of this fails on CI", custom_title("Flaky upload", session_id(20)))
    hit = search(home, "flaky upload").hits[0]
    assert (hit.session_id, hit.strength) == (session_id(20), "strong")


def test_the_best_are_first(home: ConfigHome) -> None:
    """No hit is surer than the first one here, and all numbers are probabilities."""
    sure = [hit.confidence for hit in search(home, QUESTION).hits]
    assert sure[0] == max(sure)
    assert all(0 <= one <= 1 for one in sure)


@pytest.mark.parametrize(
    ("sure", "word"),
    [
        (1.0, "strong"),
        (STRONG_CONFIDENCE, "strong"),
        (0.59, "fair"),
        (FAIR_CONFIDENCE, "fair"),
        (0.24, "weak"),
        (0.0, "weak"),
    ],
)
def test_words_for_numbers(sure: float, word: str) -> None:
    """Each from its number on."""
    assert strength_of_confidence(sure) == word


def test_factors_of_confidence() -> None:
    """More of the question in the turn and in the record, closer together, higher ranks, and more search words."""
    least = hit_probability(0.2, 0.2, 0.0, 6, 0.4, 1)
    better = [(0.9, 0.2, 0.0, 6, 0.4, 1), (0.2, 0.9, 0.0, 6, 0.4, 1), (0.2, 0.2, 1.0, 6, 0.4, 1)]
    for one in [*better, (0.2, 0.2, 0.0, 6, 2.0, 1), (0.2, 0.2, 0.0, 12, 0.4, 1)]:
        assert hit_probability(*one) > least
    assert hit_probability(0.2, 0.2, 0.0, 900, 0.4, 1) == hit_probability(0.2, 0.2, 0.0, 12, 0.4, 1)


def test_more_wordings_make_nothing_sure_by_themselves() -> None:
    """A hit of several weak wordings is weaker than a hit of one good wording."""
    assert hit_probability(0.5, 0.5, 0.5, 6, 1.2, 3) < hit_probability(0.5, 0.5, 0.5, 6, 1.2, 1)


def test_a_phrase_is_as_sure_in_several_wordings_as_alone(home: ConfigHome) -> None:
    """That another wording does not find it takes nothing away."""
    alone = search(home, '"generated protobuf stubs"').hits[0]
    among = search(home, '"generated protobuf stubs"', also=["ignored by the linter", "task"]).hits[
        0
    ]
    assert (among.reference, among.strength) == (alone.reference, "strong")
