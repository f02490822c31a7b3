"""Tests of a session's task list and plan, in the real client and in the session's children."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, Request, last_user_text
from tests.e2e.harness.replies import Reply
from tests.e2e.plugin import children_of_session, remove_module, text_of_request
from tests.e2e.test_session_start import QUIET_ENV, clear_session, hand_off
from tests.needs import one_in

PARENT_ID = "77777777-aaaa-4bbb-8ccc-000000000001"
TASK_TOOLS_ENV = {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}
"""Without this variable, client 2.1.330 does not offer the task tools to its newest models."""

TASK_LIST_CALL: Reply = {"name": "TaskList", "input": {}}
PLAN_PATH_PATTERN = re.compile(r'/[^" ]*?/plans/[a-z0-9-]+\.md')


def task_creation_call(subject: str) -> Reply:
    """Return a call that adds a task."""
    return {"name": "TaskCreate", "input": {"subject": subject, "description": subject}}


def task_update_call(task_id: str, status: str) -> Reply:
    """Return a call that changes the status of a task."""
    return {"name": "TaskUpdate", "input": {"taskId": task_id, "status": status}}


def make_child(home: ClientHome, verb: str) -> Path:
    """Make a child of the parent with a verb, and return its file."""
    command = [sys.executable, "-m", "resume_hooks", verb, PARENT_ID]
    done = subprocess.run(
        command,
        env=home.env(),
        cwd=home.cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (child,) = children_of_session(home, home.project_folder / f"{PARENT_ID}.jsonl")
    return child


@pytest.mark.parametrize("verb", one_in(2, ["handoff", "fork"]))
def test_a_child_continues_the_task_list(
    client: ClientVersion, home: ClientHome, api: MockApi, verb: str
) -> None:
    """In a child, the client lists the parent's tasks and gives new tasks the next numbers.

    The parent's own list does not change.
    """
    api.script = [
        *(task_creation_call(subject) for subject in ("parse it", "test it", "drop it")),
        task_update_call("1", "completed"),
        task_update_call("3", "deleted"),
        "begun",
    ]
    done = run_print(
        client, home, api, "begin", extra_args=["--session-id", PARENT_ID], extra_env=TASK_TOOLS_ENV
    )
    assert done.returncode == 0, done.stderr
    own = home.config / "tasks" / PARENT_ID
    before = {path.name: path.read_bytes() for path in own.iterdir()}
    assert {"1.json", "2.json", ".highwatermark"} <= before.keys()
    child = make_child(home, verb)
    api.clear_requests()
    api.script = [
        TASK_LIST_CALL,
        task_update_call("2", "completed"),
        task_creation_call("ship it"),
        TASK_LIST_CALL,
        "done",
    ]
    done = run_print(client, home, api, "go on", resume=child.stem, extra_env=TASK_TOOLS_ENV)
    assert done.returncode == 0, done.stderr
    answers = [last_user_text(request) for request in api.main_requests()]
    assert "#1 [completed] parse it\n#2 [pending] test it" in answers[1]
    assert "#2 [completed] test it\n#4 [pending] ship it" in answers[4]
    assert {path.name: path.read_bytes() for path in own.iterdir()} == before


def model_that_writes_plan(request: Request) -> Reply | None:
    """Return a call that writes the plan to the file that the request names, and then an answer."""
    named = PLAN_PATH_PATTERN.search(json.dumps(request))
    answered = any(message["role"] == "assistant" for message in request["messages"])
    if answered or named is None:
        return "planned"
    return {
        "name": "Write",
        "input": {"file_path": named[0], "content": "# Parse dates\n\nTests first.\n"},
    }


def test_a_handoff_names_the_parent_s_plan(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A handoff names the file of the parent's plan exactly once, and a fork uses the same file."""
    api.script = model_that_writes_plan
    plan_mode = ["--permission-mode", "plan"]
    done = run_print(
        client, home, api, "plan it", extra_args=["--session-id", PARENT_ID, *plan_mode]
    )
    assert done.returncode == 0, done.stderr
    (plan,) = (home.config / "plans").iterdir()
    child = make_child(home, "handoff")
    api.clear_requests()
    api.script = ()
    run_print(client, home, api, "go on", resume=child.stem)
    said = text_of_request(api.main_requests()[-1])
    assert said.count(f"The plan for this work (Parse dates) is in the file {plan}") == 1
    child.unlink()
    child = make_child(home, "fork")
    run_print(client, home, api, "go on", resume=child.stem, extra_args=plan_mode)
    assert str(plan) in json.dumps(api.main_requests()[-1])
    assert list((home.config / "plans").iterdir()) == [plan]


def test_the_session_after_clear_gets_the_task_list(tui: Tui, plugin: Path) -> None:
    """The session after ``/clear`` gets the task list of the handoff's parent.

    The parent and the child keep separate but equal lists.
    """
    home, api = tui.home, tui.api
    api.script = [task_creation_call("parse it"), "begun"]
    done = run_print(
        tui.version,
        home,
        api,
        "begin",
        extra_args=["--session-id", PARENT_ID],
        extra_env=TASK_TOOLS_ENV,
    )
    assert done.returncode == 0, done.stderr
    tui.start(
        resume=PARENT_ID, plugin_dir=remove_module(plugin), extra_env=QUIET_ENV | TASK_TOOLS_ENV
    )
    child = hand_off(tui, home.project_folder / f"{PARENT_ID}.jsonl")
    clear_session(tui)
    api.script = [TASK_LIST_CALL, "done"]
    tui.submit("go on")
    tui.wait_for("done")
    assert "#1 [pending] parse it" in last_user_text(api.main_requests()[-1])
    lists = {
        path.name: (path / "1.json").read_bytes() for path in (home.config / "tasks").iterdir()
    }
    assert len(lists) == 3
    assert lists[PARENT_ID] == lists[child.stem]
