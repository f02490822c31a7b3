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
    """One thing that reads what others wrote.

    ``prepare`` gets a home of its own; ``cases`` is its share of 10,000.
    """

    name: str
    cases: int
    prepare: Callable[[ConfigHome], Try]


def told(error: ResumeHooksError | OSError) -> None:
    """A failure is a sentence that a terminal can show, and leaves with a status that means something."""
    if isinstance(error, ResumeHooksError):
        assert error.exit_code in {1, 2}
    assert 0 < len(str(error)) < LONGEST, error
