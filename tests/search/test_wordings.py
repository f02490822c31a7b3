"""Several wordings of one question: what several find well comes first, and each of them is as exact as alone."""

from __future__ import annotations

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.search.ranking import TurnHit, combine_rankings, combined_score
from tests.builders import ConfigHome, session_id
from tests.search.asking import search, sessions, talk


@pytest.fixture
def home(config_home: ConfigHome) -> ConfigHome:
    """Two wordings find it by each word, and it is the best hit of one of them."""
    talk(
        config_home,
        1,
        "the retry queue of the uploader had no backoff limit at all, as far as I can see",
    )
    talk(config_home, 2, "the retry queue")
    talk(config_home, 3, "backoff limit")
    talk(config_home, 4, "the queue waits to retry redis")
    return config_home


def test_a_turn_that_two_wordings_find_is_first(home: ConfigHome) -> None:
    """Separately each wording prefers another turn; together they prefer the common one."""
    assert sessions(search(home, "retry queue"))[0] == 2
    assert sessions(search(home, "why no backoff limit"))[0] == 3
    found = search(home, "retry queue", also=["why no backoff limit"])
    assert sessions(found)[0] == 1
    assert {hit.session_id: hit.found_by for hit in found.hits} == {
        session_id(1): (1, 2),
        session_id(2): (1,),
        session_id(3): (2,),
        session_id(4): (1,),
    }


def test_a_single_wording_has_no_number(home: ConfigHome) -> None:
    """There is nothing to tell apart."""
    assert {hit.found_by for hit in search(home, "retry queue").hits} == {()}


def test_a_phrase_of_one_wording(home: ConfigHome) -> None:
    """It counts where it stands, not where its words do; the other wording finds what it finds."""
    for first, also in [('"retry queue"', "redis backoff"), ("redis backoff", '"retry queue"')]:
        exact = 1 if first.startswith('"') else 2
        found = {hit.session_id: hit.found_by for hit in search(home, first, also=[also]).hits}
        assert found == {
            session_id(1): (1, 2),
            session_id(2): (exact,),
            session_id(3): (3 - exact,),
            session_id(4): (3 - exact,),
        }


@pytest.mark.parametrize("without", ["-redis", '-"retry redis"'])
def test_excluded_words(home: ConfigHome, without: str) -> None:
    """A wording with an excluded word does not find the turn."""
    found = {
        hit.session_id: hit.found_by
        for hit in search(home, f"queue {without}", also=["waits"]).hits
    }
    assert found == {session_id(1): (1,), session_id(2): (1,), session_id(4): (2,)}
    assert sessions(search(home, f"waits {without}", also=[f"queue {without}"])) == [2, 1]


def test_a_hit_is_shown_by_the_wording_that_it_fits_best(home: ConfigHome) -> None:
    """Its words, its marks and what is said of it are of that one."""
    hits = search(
        home, "redis", also=["why no backoff limit"], sessions=frozenset({session_id(3)})
    ).hits
    assert [(hit.words, hit.missing_words, hit.found_by) for hit in hits] == [
        (("backoff", "limit"), (), (2,))
    ]
    assert {hits[0].snippet[start:end] for start, end in hits[0].marks} == {"backoff", "limit"}


def test_the_same_wording_twice(home: ConfigHome) -> None:
    """Changes nothing of the order."""
    once, twice = search(home, "retry queue"), search(home, "retry queue", also=["retry queue"])
    assert sessions(once) == sessions(twice)
    assert {hit.found_by for hit in twice.hits} == {(1, 2)}


def test_a_wording_without_a_word(home: ConfigHome) -> None:
    """Is refused as it is alone, also where another one has words."""
    for wording in ("", "-redis", "!?"):
        with pytest.raises(UsageError):
            search(home, "queue", also=[wording])


def test_the_best_turn_for_one_wording_is_first() -> None:
    """A turn that is first in one order beats a turn that is far down in each. A turn high in two beats both."""
    orders = [[(1, 2.0), (3, 1.8), (2, 0.6)], [(3, 1.7), (2, 0.6)], [(2, 0.6)]]
    found = combine_rankings(
        [[TurnHit(key, [], score) for key, score in order] for order in orders]
    )
    assert [ways[0].turn.key for ways in found] == [3, 1, 2]
    assert [[way.wording for way in ways] for ways in found] == [[0, 1], [0], [0, 1, 2]]


def test_the_best_wording_is_first() -> None:
    """A turn is shown by the wording that it fits best."""
    ((first, second),) = combine_rankings([[TurnHit(1, [], 0.5)], [TurnHit(1, [], 1.2)]])
    assert (first.wording, second.wording) == (1, 0)
    assert combined_score([first, second]) == 1.3


def test_one_wording_counts_unchanged() -> None:
    """A single wording leaves the order and the scores of its turns as they are."""
    found = combine_rankings([[TurnHit(1, [], 1.5), TurnHit(2, [], 1.1)]])
    assert [(ways[0].turn.key, combined_score(ways)) for ways in found] == [(1, 1.5), (2, 1.1)]
