"""Tests of several wordings of one question.

Turns that several wordings find come first.
"""

from __future__ import annotations

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.search.ranking import TurnHit, combine_rankings, combined_score
from tests.builders import ConfigHome, session_id
from tests.search.asking import search_home, session_numbers, write_talk


@pytest.fixture
def home_with_wordings(config_home: ConfigHome) -> ConfigHome:
    """Write a turn that matches two wordings, and for each wording a turn that matches it better."""
    write_talk(
        config_home,
        1,
        "the retry queue of the uploader had no backoff limit at all, as far as I can see",
    )
    write_talk(config_home, 2, "the retry queue")
    write_talk(config_home, 3, "backoff limit")
    write_talk(config_home, 4, "the queue waits to retry redis")
    return config_home


def test_a_turn_that_two_wordings_find_is_first(home_with_wordings: ConfigHome) -> None:
    """The turn that both wordings find is the first hit. Each hit names the wordings that found it."""
    assert session_numbers(search_home(home_with_wordings, "retry queue"))[0] == 2
    assert session_numbers(search_home(home_with_wordings, "why no backoff limit"))[0] == 3
    found = search_home(home_with_wordings, "retry queue", other_wordings=["why no backoff limit"])
    assert session_numbers(found)[0] == 1
    assert {hit.session_id: hit.wording_numbers for hit in found.hits} == {
        session_id(1): (1, 2),
        session_id(2): (1,),
        session_id(3): (2,),
        session_id(4): (1,),
    }


def test_hits_of_a_single_wording_have_no_wording_number(home_with_wordings: ConfigHome) -> None:
    """If a question has only one wording, its hits name no wording."""
    assert {hit.wording_numbers for hit in search_home(home_with_wordings, "retry queue").hits} == {
        ()
    }


def test_a_phrase_in_one_wording_must_match_exactly(home_with_wordings: ConfigHome) -> None:
    """If one wording is a phrase, it finds only turns that contain the whole phrase.

    The other wording finds its own hits.
    """
    for first, second in [('"retry queue"', "redis backoff"), ("redis backoff", '"retry queue"')]:
        exact = 1 if first.startswith('"') else 2
        found = {
            hit.session_id: hit.wording_numbers
            for hit in search_home(home_with_wordings, first, other_wordings=[second]).hits
        }
        assert found == {
            session_id(1): (1, 2),
            session_id(2): (exact,),
            session_id(3): (3 - exact,),
            session_id(4): (3 - exact,),
        }


@pytest.mark.parametrize("exclusion", ["-redis", '-"retry redis"'])
def test_a_wording_finds_no_turn_with_its_excluded_word(
    home_with_wordings: ConfigHome, exclusion: str
) -> None:
    """A wording with an excluded word does not find a turn that contains the word.

    Another wording of the same question can still find the turn.
    """
    found = {
        hit.session_id: hit.wording_numbers
        for hit in search_home(
            home_with_wordings, f"queue {exclusion}", other_wordings=["waits"]
        ).hits
    }
    assert found == {session_id(1): (1,), session_id(2): (1,), session_id(4): (2,)}
    assert session_numbers(
        search_home(home_with_wordings, f"waits {exclusion}", other_wordings=[f"queue {exclusion}"])
    ) == [2, 1]


def test_a_hit_is_shown_by_its_best_wording(home_with_wordings: ConfigHome) -> None:
    """The snippet and the marks of a hit come from the wording that matches best."""
    hits = search_home(
        home_with_wordings,
        "redis",
        other_wordings=["why no backoff limit"],
        session_ids=frozenset({session_id(3)}),
    ).hits
    assert [(hit.words, hit.missing_words, hit.wording_numbers) for hit in hits] == [
        (("backoff", "limit"), (), (2,))
    ]
    assert {hits[0].snippet[start:end] for start, end in hits[0].marks} == {"backoff", "limit"}


def test_a_repeated_wording_keeps_the_order(home_with_wordings: ConfigHome) -> None:
    """If a wording is given twice, the order stays the same, and each hit names both wordings."""
    once, twice = (
        search_home(home_with_wordings, "retry queue"),
        search_home(home_with_wordings, "retry queue", other_wordings=["retry queue"]),
    )
    assert session_numbers(once) == session_numbers(twice)
    assert {hit.wording_numbers for hit in twice.hits} == {(1, 2)}


def test_a_wording_without_a_word_is_refused(home_with_wordings: ConfigHome) -> None:
    """A search is refused if one of its wordings has no words."""
    for wording in ("", "-redis", "!?"):
        with pytest.raises(UsageError):
            search_home(home_with_wordings, "queue", other_wordings=[wording])


def test_the_best_turn_for_one_wording_is_first() -> None:
    """A turn that is first for one wording precedes a turn with a low rank for all wordings.

    A turn with a high rank for two wordings precedes both.
    """
    orders = [[(1, 2.0), (3, 1.8), (2, 0.6)], [(3, 1.7), (2, 0.6)], [(2, 0.6)]]
    found = combine_rankings(
        [[TurnHit(key, [], score) for key, score in order] for order in orders]
    )
    assert [ways[0].turn.turn_key for ways in found] == [3, 1, 2]
    assert [[way.wording_index for way in ways] for ways in found] == [[0, 1], [0], [0, 1, 2]]


def test_the_best_wording_is_first() -> None:
    """The wordings of a turn are sorted by their score, the best first."""
    ((first, second),) = combine_rankings([[TurnHit(1, [], 0.5)], [TurnHit(1, [], 1.2)]])
    assert (first.wording_index, second.wording_index) == (1, 0)
    assert combined_score([first, second]) == 1.3


def test_combining_a_single_wording_keeps_order_and_scores() -> None:
    """``combine_rankings`` changes neither the order nor the scores of a single wording's hits."""
    found = combine_rankings([[TurnHit(1, [], 1.5), TurnHit(2, [], 1.1)]])
    assert [(ways[0].turn.turn_key, combined_score(ways)) for ways in found] == [(1, 1.5), (2, 1.1)]
