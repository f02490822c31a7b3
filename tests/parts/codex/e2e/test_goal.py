"""Tests of the goal of a Codex thread in its children."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.derive.verbs.fork import plan_fork
from resume_hooks.parts.codex.defects import find_thread_defects
from resume_hooks.parts.codex.rollout import GOAL_WARNING
from resume_hooks.parts.codex.sessions.files import Rollouts
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.sessions.locate import resolve_locator
from tests.parts.codex.e2e.client import CodexHome, thread_id_of_path
from tests.parts.codex.e2e.responses import Item, join_input_texts
from tests.parts.codex.e2e.tui import CodexTui

GOAL_OBJECTIVE = 'make "every" parser test pass'


def report_goal_as_blocked(request: dict[str, Any]) -> list[Item] | None:
    """Report a goal as blocked, because Codex would otherwise continue to pursue it."""
    if "Continue working toward the active thread goal" not in json.dumps(request["input"][-1:]):
        return None
    given = json.dumps({"status": "blocked"})
    return [
        {
            "type": "function_call",
            "id": "f",
            "call_id": "c",
            "name": "update_goal",
            "arguments": given,
        }
    ]


def test_a_handoff_states_the_goal_and_a_fork_does_not_pursue_it(
    codex: CodexHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handoff states the parent's goal and its status.

    A fork sends its parent's items and warns that Codex does not pursue the goal in the fork.
    """
    client, api = codex, codex.api
    api.script = report_goal_as_blocked
    with CodexTui(client) as tui:
        tui.run()
        tui.enter("find the needle")
        tui.wait_for("Mock reply 1")
        tui.enter(f"/goal {GOAL_OBJECTIVE}")
        tui.wait_for("Goal stalled")
    client.end_processes()
    api.script = None
    for name, folder in (("HOME", client.root), ("CODEX_HOME", client.codex)):
        monkeypatch.setenv(name, str(folder))
    where = Where()
    own = thread_id_of_path(client.rollouts()[0])
    parent = resolve_locator(own, "/", where, allow_other_agents=True)
    assert (
        list(find_thread_defects(parent.original_path, Rollouts(str(client.codex)).find_path)) == []
    )
    handoff = agents.plan_fresh_child(
        parent, where, kind="handoff", contents=ChildContents(build_digest(parent, where))
    )
    told = join_input_texts(client.resume(write_child(handoff, where).session_id))
    assert f'the session\'s goal, blocked: "{GOAL_OBJECTIVE}"' in told
    assert f"/goal {GOAL_OBJECTIVE}" in told
    assert "codex_internal_context" not in told
    fork = write_child(plan_fork(parent, where), where)
    assert GOAL_WARNING in fork.warnings
    assert client.resume(fork.session_id) == client.resume(own)
    with sqlite3.connect(f"file:{client.codex / 'goals_1.sqlite'}?mode=ro", uri=True) as database:
        assert database.execute("SELECT thread_id, objective FROM thread_goals").fetchall() == [
            (own, GOAL_OBJECTIVE)
        ]
