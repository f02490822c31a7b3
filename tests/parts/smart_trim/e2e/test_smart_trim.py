"""Tests of ``trim --smart`` with the real client.

The client runs the model that chooses the contents, and it also resumes the child.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from typing import Any

import pytest

from tests.e2e.harness.api_requests import Request, last_user_text
from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, ClientVersion, find_client
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import children_of_session, text_of_request
from tests.e2e.test_trim_corpus import resume_request
from tests.needs import REPO, corpus
from tests.parts.smart_trim.models import NUMBER_PATTERN

SOURCE_SESSION_PATH = "entireio__cli/130d7b7e-5801-4345-9bd6-f32fd9b8429b.jsonl"
"""The path of a real session of 500 KB, with 40 contents to judge and 21 that rules trim."""

WISH = "keep what has an even number"


def run_smart_trim(
    client: ClientVersion | None, home: ClientHome, api: MockApi, *words: str
) -> subprocess.CompletedProcess[bytes]:
    """Run ``smart-trim`` in the home's project with this client on PATH."""
    folder = home.root / "bin"
    folder.mkdir(exist_ok=True)
    if client is not None:
        command = " ".join(f"'{word}'" for word in client.command)
        (folder / "claude").write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        (folder / "claude").chmod(0o755)
    ours = {"PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": str(REPO / "src")}
    return subprocess.run(
        [sys.executable, "-m", "resume_hooks", "smart-trim", *words],
        env=home.env(api.client_env() | ours),
        cwd=home.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )


def choose_odd_numbers(request: Request) -> Any:
    """Return an answer of the API that chooses each shown odd number with the client's answer tool."""
    numbers = [int(number) for number in NUMBER_PATTERN.findall(last_user_text(request))]
    if not numbers:
        return None  # After the choices, old clients send another request, which has the tool's result.
    rows = [
        {"number": n, "description": f"piece [{n}]\n", "rationale": "done with"}
        for n in numbers
        if n % 2
    ]
    return {"name": "StructuredOutput", "input": {"choices": [*rows, {**rows[0], "number": 9_999}]}}


def contents_by_call(request: Request, kind: str, key: str, content: str) -> dict[str, str]:
    """Return the content of each block of the type ``kind`` in a request, by the id of the block's call."""
    rows = [
        block
        for m in request["messages"]
        if isinstance(m["content"], list)
        for block in m["content"]
    ]
    return {block[key]: json.dumps(block.get(content)) for block in rows if block["type"] == kind}


def assert_smart_trim(client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """Check that placeholders with descriptions replace the chosen contents, and nothing else changes.

    The model's run leaves no file.
    """
    parent = home.install_session(corpus() / SOURCE_SESSION_PATH, str(uuid.uuid4()), set_cwd=True)
    before = parent.read_bytes()
    api.script = choose_odd_numbers
    done = run_smart_trim(client, home, api, parent.stem, "-p", WISH, "--yes", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    data = json.loads(done.stdout)["data"]
    asked = api.main_requests()
    assert {tool["name"] for request in asked for tool in request["tools"]} == {"StructuredOutput"}
    assert WISH in text_of_request(asked[0])
    (child,) = children_of_session(home, parent)
    assert child.stem == data["session_id"] != parent.stem
    assert parent.read_bytes() == before
    assert [path for path in home.config.glob("projects/*/*") if path not in {parent, child}] == []
    assert list(home.tmp.glob("resume-hooks-*")) == []
    assert data["smart"]["spent"]["calls"] == 1
    assert "not shown to it" in json.loads(done.stdout)["warnings"][0]

    twin = home.install_session(corpus() / SOURCE_SESSION_PATH, str(uuid.uuid4()), set_cwd=True)
    # Client 2.1.42 omits some parallel results of the parent from its request. It sends those of
    # the child, because the child has all of them in one line. The child's request is therefore
    # compared with the newest client's request for the parent.
    whole, cut = (
        resume_request(find_client(NEWEST_VERSION), home, api, twin.stem),
        resume_request(client, home, api, child.stem),
    )
    outputs = ("tool_result", "tool_use_id", "content")
    assert len(changed_calls(whole, cut, *outputs)) == data["tools_trimmed"] > 5
    assert changed_calls(whole, cut, "tool_use", "id", "input")
    for row in data["smart"]["choices"]:
        assert row["by"] == "thinking" or f'"{row["description"]}"' in text_of_request(cut)


def changed_calls(whole: Request, cut: Request, kind: str, key: str, content: str) -> set[str]:
    """Return the ids of the calls whose blocks differ between two requests.

    Check that a placeholder replaces the content of each such block.
    """
    before, after = (contents_by_call(request, kind, key, content) for request in (whole, cut))
    assert before.keys() == after.keys()
    differing = {call for call in before if before[call] != after[call]}
    assert all("tool suppressed - original content was" in after[call] for call in differing)
    return differing


def test_chosen_contents_are_replaced_by_placeholders(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """With every version of the client, ``trim --smart`` replaces the chosen contents."""
    assert_smart_trim(every_client, home, api)


@pytest.mark.wide
def test_a_failed_model_leaves_no_child(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """If the model refuses, answers in the wrong form or hangs, no child is made.

    The error is one sentence, with the command that trims without a model.
    """
    parent = home.install_session(corpus() / SOURCE_SESSION_PATH, str(uuid.uuid4()), set_cwd=True)
    wrong = {"name": "StructuredOutput", "input": {"choices": "all of them"}}
    for reply, seconds in (("I can't help with [1, 2, 3].", "30"), (wrong, "30"), (60, "4")):
        api.script = lambda _request, reply=reply: reply
        done = run_smart_trim(client, home, api, parent.stem, "--yes", "--timeout", seconds)
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"The model chose nothing: " in done.stderr
        assert re.search(rb"To trim without a model: .* trim [0-9a-f-]{36}\n", done.stderr)
        assert home.sessions() == [parent]


def test_a_missing_client_leaves_no_child(home: ClientHome, api: MockApi) -> None:
    """If no client is on PATH, ``trim --smart`` fails and makes no child."""
    parent = home.install_session(corpus() / SOURCE_SESSION_PATH, str(uuid.uuid4()), set_cwd=True)
    done = run_smart_trim(None, home, api, parent.stem, "--yes")
    assert (done.returncode, home.sessions()) == (1, [parent])
    assert b"claude is not installed" in done.stderr
