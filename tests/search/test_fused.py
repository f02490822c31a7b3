"""Several wordings of one question: what fits one of them well comes before what fits several a little."""

from __future__ import annotations

from resume_hooks.search.ranking import TurnHit, fused, together


def test_what_fits_one_wording_well_comes_first() -> None:
    """A turn that stands first in one order beats one far down in each; one that stands high in two beats both."""
    orders = [[(1, 2.0), (3, 1.8), (2, 0.6)], [(3, 1.7), (2, 0.6)], [(2, 0.6)]]
    found = fused([[TurnHit(key, [], score) for key, score in order] for order in orders])
    assert [ways[0].turn.key for ways in found] == [3, 1, 2]
    assert [[way.wording for way in ways] for ways in found] == [[0, 1], [0], [0, 1, 2]]


def test_the_best_wording_stands_first() -> None:
    """A turn is shown by the wording that it fits best."""
    ((first, second),) = fused([[TurnHit(1, [], 0.5)], [TurnHit(1, [], 1.2)]])
    assert (first.wording, second.wording) == (1, 0)
    assert together([first, second]) == 1.3


def test_one_wording_counts_as_it_is() -> None:
    """A single wording leaves the order and the scores of its turns as they are."""
    found = fused([[TurnHit(1, [], 1.5), TurnHit(2, [], 1.1)]])
    assert [(ways[0].turn.key, together(ways)) for ways in found] == [(1, 1.5), (2, 1.1)]
