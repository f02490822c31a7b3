"""The core's rules for every child, applied to a rewind."""

from __future__ import annotations

import pytest

from resume_hooks.parts.marks import plan_back
from resume_hooks.parts.marks import state as marks
from tests.derive.child.test_write_child import (
    Plan,
    parent,
    test_a_child_is_written_once_and_linked,
    test_a_failed_check_leaves_nothing,
    test_a_plan_touches_nothing,
)

__all__ = [
    "parent",
    "test_a_child_is_written_once_and_linked",
    "test_a_failed_check_leaves_nothing",
    "test_a_plan_touches_nothing",
]


@pytest.fixture
def rewind_plan() -> tuple[str, Plan]:
    """Return the plan of a rewind to the session's end."""
    return (
        "back",
        lambda parent, home: (
            plan_back.plan_back(parent, marks.place_mark(parent).mark, "slower", home.where).child
        ),
    )


@pytest.fixture
def written_plan(rewind_plan: tuple[str, Plan]) -> tuple[str, Plan]:
    """The same."""
    return rewind_plan
