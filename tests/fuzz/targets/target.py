"""The definition of a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from resume_hooks.errors import ResumeHooksError
from tests.builders import ConfigHome
from tests.fuzz.draws import Draws

LONGEST = 5_000
"""Characters of what an error says; what was typed is cut."""

Try = Callable[[Draws], None]
"""Makes one case out of draws and tries it.

AssertionError, or whatever it should not have raised.
"""


class Target(NamedTuple):
    """A function that reads foreign data. ``prepare`` gets its own home; ``cases`` is its share of 10,000."""

    name: str
    cases: int
    prepare: Callable[[ConfigHome], Try]


def assert_expected_error(error: ResumeHooksError | OSError) -> None:
    """Check that an error is a sentence without controls, with a valid exit code."""
    if isinstance(error, ResumeHooksError):
        assert error.exit_code in {1, 2}
    assert 0 < len(str(error)) < LONGEST, error
