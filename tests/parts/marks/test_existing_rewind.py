"""Tests of finding the existing child of a rewind."""

from __future__ import annotations

from resume_hooks.derive.child.existing_child import find_existing_child
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.parts.marks import plan_back
from resume_hooks.parts.marks import state as marks
from resume_hooks.sessions import locate
from tests.builders import ConfigHome
from tests.derive.child.test_existing_child import load_parent, parent, write_handoff

__all__ = ["parent"]


def rewind_to_end(parent: locate.SessionFile, home: ConfigHome) -> str:
    """Rewind to the end of the session and return the child's id."""
    mark = marks.make_mark_at_end(parent).mark
    return write_child(
        plan_back.plan_back(parent, mark, "it was slower", home.where).child, home.where
    ).session_id


def test_only_a_search_for_a_rewind_finds_a_rewind(
    parent: locate.SessionFile, config_home: ConfigHome
) -> None:
    """``find_existing_child`` finds a rewind's child only if it searches for a rewind.

    A handoff's child at the same position is not returned instead.
    """
    write_handoff(parent, config_home, "")
    assert find_existing_child(load_parent(parent, config_home), "back", config_home.where) is None
    child = rewind_to_end(parent, config_home)
    found = find_existing_child(load_parent(parent, config_home), "back", config_home.where)
    assert found is not None
    assert (found.session_id, found.written, found.kind) == (child, False, "back")
    assert (
        find_existing_child(load_parent(parent, config_home), "handoff", config_home.where, "")
        is None
    )
