"""Tests that a rewind follows the rules that apply to every child."""

from __future__ import annotations

import pytest

from resume_hooks.parts.marks import plan_back
from resume_hooks.parts.marks import state as marks
from tests.derive.child.test_write_child import (
    Planner,
    parent,
    test_a_child_is_private_checked_and_linked,
    test_a_failed_check_leaves_no_child,
    test_planning_a_child_writes_nothing,
)

__all__ = [
    "parent",
    "test_a_child_is_private_checked_and_linked",
    "test_a_failed_check_leaves_no_child",
    "test_planning_a_child_writes_nothing",
]


@pytest.fixture
def kind_and_planner() -> tuple[str, Planner]:
    """Return the kind of a rewind and the function that plans one to the session's end."""
    return (
        "back",
        lambda parent, home: (
            plan_back.plan_back(
                parent, marks.make_mark_at_end(parent).mark, "slower", home.where
            ).child
        ),
    )


@pytest.fixture
def writable_kind_and_planner(kind_and_planner: tuple[str, Planner]) -> tuple[str, Planner]:
    """Return ``kind_and_planner`` as the fixture that the imported tests of writing a child use."""
    return kind_and_planner
