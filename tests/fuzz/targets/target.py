"""The definition of a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from resume_hooks.errors import ResumeHooksError
from tests.builders import ConfigHome
from tests.fuzz.draws import Draws

MAX_ERROR_CHARACTERS = 5_000
"""Maximum number of characters in an error message. Long input in it is cut."""

TryCase = Callable[[Draws], None]
"""A function that draws one test case and runs it.

If the case fails, the function raises AssertionError, or an error that the tested code should not
have raised.
"""


class Target(NamedTuple):
    """A fuzz target. ``prepare`` gets a separate home. ``case_count`` is its share of 10,000 cases."""

    name: str
    case_count: int
    prepare: Callable[[ConfigHome], TryCase]


def assert_expected_error(error: ResumeHooksError | OSError) -> None:
    """Check that an error is a sentence without control characters, and has a valid exit code."""
    if isinstance(error, ResumeHooksError):
        assert error.exit_code in {1, 2}
    assert 0 < len(str(error)) < MAX_ERROR_CHARACTERS, error
