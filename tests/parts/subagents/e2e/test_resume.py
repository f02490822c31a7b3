"""Tests of children of sub-agents in the real client.

The child sends what the sub-agent itself would have sent.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi, Request
from tests.e2e.harness.replies import Reply
from tests.e2e.plugin import LINEAGE_MARKER, text_of_request
from tests.e2e.test_fork import resume_request, rows_of_request
from tests.needs import corpus, one_in

SUBAGENT_TASK = "count the files of this folder"
SKIP_PERMISSIONS_OPTION = ["--dangerously-skip-permissions"]
INLINE_TRANSCRIPT = "d-kimuson__claude-code-viewer/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl"
"""A session of client 1.0.108 whose file contains two sub-agents."""

FOLDER_NAME_WITH_SUBAGENTS = "_cli_generated/2.0.76/-home-user-gen-2-0-76-proj"


def make_child_by_verb(home: ClientHome, *words: str) -> Path:
    """Run a verb and return the path of its new child."""
    before = set(home.sessions())
    done = subprocess.run(
        [sys.executable, "-m", "resume_hooks", *words],
        env=home.env(), cwd=home.cwd, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (child,) = set(home.sessions()) - before
    return child


def is_from_subagent(request: Request) -> bool:
    """Check whether a request comes from the sub-agent that ``make_model_that_starts_a_subagent`` starts."""
    return SUBAGENT_TASK in text_of_request({"messages": request["messages"][:1]})


def make_model_that_starts_a_subagent(
    subagent_replies: list[Reply], *, background: bool
) -> Callable[[Request], Reply]:
    """Return a model that starts a sub-agent, which answers with these replies."""
    steps = iter(subagent_replies)
    call = {"subagent_type": "general-purpose", "description": "count", "prompt": SUBAGENT_TASK}

    def reply_to_request(request: Request) -> Reply:
        if is_from_subagent(request):
            return next(steps, "THREE")
        tools = {tool["name"] for tool in request["tools"]}
        name = "Agent" if "Agent" in tools else "Task"
        start: Reply = {
            "name": name,
            "input": call | ({"run_in_background": True} if background else {}),
        }
        return "done" if SUBAGENT_TASK in str(request["messages"]) else start

    return reply_to_request


@pytest.mark.parametrize("background", one_in(2, [False, True]), ids=["foreground", "background"])
def test_a_fork_sends_the_sub_agents_conversation(
    every_client: ClientVersion, background: bool, home: ClientHome, api: MockApi
) -> None:
    """A fork of a sub-agent sends the sub-agent's task, calls, results and answer.

    A handoff of the sub-agent sends the task and the answer.
    """
    client = every_client
    bash: Reply = {"name": "Bash", "input": {"command": "echo FOUND-3", "description": "count"}}
    api.script = make_model_that_starts_a_subagent([bash, "THREE"], background=background)
    done = run_print(client, home, api, "begin", extra_args=SKIP_PERMISSIONS_OPTION)
    assert done.returncode == 0, done.stderr
    (parent,) = home.sessions()
    (agent,) = (parent.parent / parent.stem / "subagents").glob("agent-*.jsonl")
    own, raw = (
        [request for request in api.main_requests() if is_from_subagent(request)][-1],
        agent.read_bytes(),
    )
    child = make_child_by_verb(home, "fork", f"{parent.stem[:8]}/{agent.stem}")
    knew = [*rows_of_request(own), ("text", "assistant", "THREE")]
    assert [kind for kind, _, _ in knew] == ["text", "tool_use", "tool_result", "text"]
    assert resume_request(client, home, api, child.stem) == knew
    told = make_child_by_verb(
        home, "handoff", f"{parent.stem[:8]}/{agent.stem}", "-n", "count again"
    )
    api.clear_requests()
    done = run_print(client, home, api, "go on", resume=told.stem)
    assert done.returncode == 0, done.stderr
    words = text_of_request(api.main_requests()[0])
    for each in (LINEAGE_MARKER, agent.stem, parent.stem, SUBAGENT_TASK, "THREE", "count again"):
        assert each in words
    assert agent.read_bytes() == raw


def test_a_fork_of_an_interrupted_sub_agent_answers_its_open_call(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A fork of an interrupted sub-agent sends the earlier results and a result for its open call."""
    bash: Reply = {"name": "Bash", "input": {"command": "echo FOUND-3", "description": "count"}}
    api.script = make_model_that_starts_a_subagent([bash, bash, "THREE"], background=False)
    run_print(client, home, api, "begin", extra_args=SKIP_PERMISSIONS_OPTION)
    (parent,) = home.sessions()
    (agent,) = (parent.parent / parent.stem / "subagents").glob("agent-*.jsonl")
    lines = agent.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if b'"tool_use"' in line)
    agent.write_bytes(b"".join(lines[: last + 1]))
    rows = resume_request(
        client, home, api, make_child_by_verb(home, "fork", f"{parent.stem}/{agent.stem}").stem
    )
    assert [kind for kind, _, _ in rows] == [
        "text",
        "tool_use",
        "tool_result",
        "tool_use",
        "tool_result",
    ]
    assert rows[2][2] == "FOUND-3"
    assert rows[4][2].startswith("Interrupted: no result")


def test_a_fork_sends_a_sub_agent_in_the_sessions_file(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A fork of a sub-agent in the session's file sends only the records of that sub-agent."""
    source = corpus() / INLINE_TRANSCRIPT
    parent = home.install_session(source, source.stem)
    rows = resume_request(
        client,
        home,
        api,
        make_child_by_verb(home, "fork", f"{parent.stem[:8]}/agent-6340ddef").stem,
    )
    assert rows[0][2].startswith("Examine the package.json file(s)")
    assert (
        [row[1] for row in rows if row[0] == "tool_use"]
        == [row[1] for row in rows if row[0] == "tool_result"]
        != []
    )
    assert rows[-1][2].startswith("## Package.json Analysis Summary")
    assert "Analyze the current project structure" not in str(rows)


def test_a_fork_sends_a_sub_agent_beside_its_session(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A sub-agent whose file is beside the session's file, as client 2.0.76 wrote it, can be forked."""
    source = corpus() / FOLDER_NAME_WITH_SUBAGENTS / "a282734a-4845-4796-9000-170faa81ba03.jsonl"
    parent = home.install_session(source, source.stem)
    (parent.parent / "agent-af40f37.jsonl").write_bytes(
        (corpus() / FOLDER_NAME_WITH_SUBAGENTS / "agent-af40f37.jsonl").read_bytes()
    )
    rows = resume_request(
        client, home, api, make_child_by_verb(home, "fork", f"{parent.stem[:8]}/agent-af4").stem
    )
    assert rows[0] == ("text", "user", "look around the repo")
    assert [kind for kind, _, _ in rows] == ["text", "tool_use", "tool_result", "text"]
