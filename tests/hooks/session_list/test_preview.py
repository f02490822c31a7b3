"""Tests of what a preview contains, and of which part of a session file is read for the preview."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.hooks.session_list import preview as previews
from resume_hooks.hooks.session_list.preview import (
    KINDS,
    LINEAGE,
    OUTLINE,
    TABLE,
    describe_session,
    make_preview,
)
from resume_hooks.search import listing
from resume_hooks.search.listing import ListedSession
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    assistant,
    call,
    conversation,
    custom_title,
    session_bytes,
    tool_result,
    user,
    write_session,
)


@pytest.fixture
def session(config_home: ConfigHome) -> ListedSession:
    """Write a session with three turns and return it as the list shows it."""
    write_session(
        config_home.project(), SESSION, [*conversation(3), custom_title("Fix the parser")]
    )
    (found,) = listing.list_project(CWD, config_home.where)
    return found


def test_every_kind_of_preview_lists_its_content(
    config_home: ConfigHome, session: ListedSession
) -> None:
    """The outline lists turns, newest first, and the lineage lists generations, oldest first.

    The table of sizes has one row for each way to continue, for example a handoff.
    """
    lines = {kind: make_preview(kind, session, config_home.where) for kind in KINDS}
    assert lines[OUTLINE][0] == "3 turns, newest first"
    assert [line.split(" · ")[0] for line in lines[OUTLINE][1:]] == ["3", "2", "1"]
    assert lines[LINEAGE][:2] == ["1 session, oldest first", "1. Fix the parser  first session"]
    assert lines[TABLE][0] == "1 % full (of 180,000 tokens). Nothing needed."
    assert any(line.startswith("handoff") for line in lines[TABLE])
    assert describe_session(session)[:2] == ["Fix the parser", f"{SESSION} · first session"]


def test_an_outline_lists_sub_agents_below_their_turn(config_home: ConfigHome) -> None:
    """The outline lists each sub-agent and its task below the turn that started the sub-agent.

    Sub-agents whose turn is unknown come first.
    """
    task = call("c", "Task", description="look around", subagent_type="Explore")
    rows = [
        *conversation(1),
        user("look", uuid="u", parent="r1", ts=5),
        assistant([task], uuid="a", parent="u", ts=6),
        tool_result("c", "found", uuid="b", parent="a", ts=7, toolUseResult={"agentId": "a1"}),
    ]
    path = write_session(config_home.project(), SESSION, rows)
    for name in ("a1", "a2"):
        file = Path(path).with_suffix("") / "subagents" / f"agent-{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(session_bytes([{**user("find it", uuid="s"), "isSidechain": True}]))
    (session,) = listing.list_project(CWD, config_home.where)
    lines = make_preview(OUTLINE, session, config_home.where)[1:]
    assert [line.split(" · ")[0] for line in lines] == ["  agent-a2", "2", "  agent-a1", "1"]
    assert (lines[0], lines[2]) == ("  agent-a2 · find it", "  agent-a1 · look around")


def test_a_preview_reads_only_the_end_of_a_large_file(
    config_home: ConfigHome, session: ListedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preview of a large file shows only the last turns and says so.

    It shows no turn numbers, because they are unknown.
    """
    monkeypatch.setattr(previews, "MAX_FULL_OUTLINE_BYTES", session.size - 1)
    monkeypatch.setattr(previews, "OUTLINE_END_BYTES", session.size // 2)
    lines = make_preview(OUTLINE, session, config_home.where)
    assert "of it, newest turn first" in lines[0]
    assert "prompt 4" in lines[1]
    assert not lines[1][0].isdigit() or lines[1].startswith("01-31")
    assert len(lines) < 4
    monkeypatch.setattr(previews, "OUTLINE_END_BYTES", 10)
    assert make_preview(OUTLINE, session, config_home.where)[1:] == ["no complete turn in it"]


def test_the_preview_of_a_deleted_session_says_that_it_is_unreadable(
    config_home: ConfigHome, session: ListedSession
) -> None:
    """Every kind of preview of a deleted session says that the file can't be read."""
    os.remove(session.path)
    for kind in KINDS:
        assert "can't be read" in make_preview(kind, session, config_home.where)[0]
