"""Crashes: a rehome that was killed is finished by running it again, whole and once."""

from __future__ import annotations

from tests.crashes import crashed


def test_a_rehome_killed_at_every_step() -> None:
    """The next copies what has no copy yet, and nothing twice."""
    tries = crashed("tests.parts.moved.crashing")
    assert sum(found["killed"] for found in tries) > 10
    assert {len(found["sessions"]) for found in tries} == {2}
