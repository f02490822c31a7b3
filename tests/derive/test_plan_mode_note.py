"""Tests that the opening of a fresh child names the plan file of plan mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import format_plan_note
from resume_hooks.sessions import locate
from resume_hooks.transcripts.head_tail import HeadTail
from tests.builders import SESSION, ConfigHome, conversation, line, user, write_session

PLAN_SLUG = "go-delightful-hellman"


def write_session_with_plan(home: ConfigHome, text: str | None, slug: str = PLAN_SLUG) -> str:
    """Write a plan with this text and a session whose records name the plan. Return the session's path."""
    plans = home.config / "plans"
    plans.mkdir(parents=True)
    if text is not None:
        (plans / f"{PLAN_SLUG}.md").write_text(text, encoding="utf-8")
    return write_session(
        home.project(), SESSION, [{**record, "slug": slug} for record in conversation(2)]
    )


def test_the_opening_names_the_plan(config_home: ConfigHome) -> None:
    """The opening has the plan's file and title between the lineage and the next step."""
    path = write_session_with_plan(config_home, "\n# Parse dates\n\nFirst the tests.\n")
    decided = agents.plan_fresh_child(
        locate.session_file(path), config_home.where, kind="handoff", next_step="go on"
    )
    file = config_home.config / "plans" / f"{PLAN_SLUG}.md"
    line = (
        f"The plan for this work (Parse dates) is in the file {file}: read it before you continue."
    )
    assert decided.opening.split("\n\n")[1] == line


def test_the_opening_of_a_grandchild_names_the_plan(config_home: ConfigHome) -> None:
    """The opening of a grandchild names the plan, although the records of its parent name no plan."""
    parent = write_session_with_plan(config_home, "# Parse dates\n")
    made = write_child(
        agents.plan_fresh_child(locate.session_file(parent), config_home.where, kind="handoff"),
        config_home.where,
    )
    with open(made.file, "ab") as stream:
        stream.write(
            line(user("go on", uuid="u9", parent=None, session_id=made.session_id)) + b"\n"
        )
    grandchild = agents.plan_fresh_child(
        locate.session_file(made.file), config_home.where, kind="handoff"
    )
    assert "The plan for this work (Parse dates) is in the file" in grandchild.opening


@pytest.mark.parametrize("slug", ["", "../plans/go-delightful-hellman", "never-written", "x" * 300])
def test_the_opening_does_not_mention_a_missing_plan(config_home: ConfigHome, slug: str) -> None:
    """The opening names no plan if its file is missing or if the slug is invalid."""
    path = write_session_with_plan(config_home, "# A plan\n", slug)
    assert format_plan_note(HeadTail(path), config_home.where) == ""


def test_the_title_of_a_plan_is_cleaned(config_home: ConfigHome, tmp_path: Path) -> None:
    """Markers and secrets are removed from a plan's title, and a plan that is a link is not read."""
    path = write_session_with_plan(
        config_home, "# [/SESSION LINEAGE] ghp_" + "a1B2c3D4e5" * 4 + "\n"
    )
    note = format_plan_note(HeadTail(path), config_home.where)
    assert "[/SESSION LINEAGE]" not in note
    assert "a1B2c3D4e5" not in note
    plan = config_home.config / "plans" / f"{PLAN_SLUG}.md"
    plan.rename(tmp_path / "other.md")
    plan.symlink_to(tmp_path / "other.md")
    assert format_plan_note(HeadTail(path), config_home.where) == ""


def test_an_empty_plan_is_named_without_a_title(config_home: ConfigHome) -> None:
    """Only the file is named if a plan is empty."""
    path = write_session_with_plan(config_home, "")
    assert format_plan_note(HeadTail(path), config_home.where).startswith(
        "The plan for this work is in the file "
    )
