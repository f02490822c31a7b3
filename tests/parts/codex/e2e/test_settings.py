"""Tests that a child's requests have the settings of its parent's thread."""

from __future__ import annotations

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.verbs.fork import plan_fork
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import resolve_locator
from tests.parts.codex.e2e.client import CodexHome, thread_id_of_path


def test_a_fork_requests_the_same_reasoning_as_its_parent(
    every_codex: CodexHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork's request has the same reasoning settings as its parent's."""
    client = every_codex
    for key, folder in (
        ("HOME", client.root),
        ("CODEX_HOME", client.codex),
        ("CLAUDE_CONFIG_DIR", client.root / "c"),
    ):
        monkeypatch.setenv(key, str(folder))
    options = (
        "-c",
        "model_supports_reasoning_summaries=true",
        "-c",
        'model_reasoning_summary="detailed"',
    )
    done = client.run("exec", "--skip-git-repo-check", *options, "find the needle")
    assert done.returncode == 0, done.stderr
    parent = thread_id_of_path(client.rollouts()[-1])
    fork = write_child(
        plan_fork(resolve_locator(parent, "/", Where(), allow_other_agents=True), Where()), Where()
    ).session_id

    def reasoning_of_request(thread: str) -> object:
        before = len(client.api.requests)
        client.resume(thread)
        return client.api.requests[before].get("reasoning")

    assert reasoning_of_request(fork) == reasoning_of_request(parent)
