"""Tests of the harness: the mock's requests, the text on the screen, and processes after a test."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, Request, conversation_of_request
from tests.e2e.harness.processes import pids_with_environment_setting, wait_until
from tests.needs import REPO, corpus

# Two small sessions from two client versions. Every supported client can resume both sessions.
SMALL_SESSION_NAMES = (
    "_cli_generated/2.1.42/-home-user-gen-2-1-42-proj/5fb568bb-707c-40ff-b599-80e185a4234f.jsonl",
    "entireio__cli/0790ea37-90df-4d30-8fdf-0bfe301b8f3e.jsonl",
)
TITLE_REQUEST: Request = {"model": "haiku", "messages": [{"role": "user", "content": "hi"}]}
TURN_REQUEST: Request = TITLE_REQUEST | {"tools": [{"name": "Bash"}]}
LONG_DELAY_SECONDS = 30.0  # Delay of a reply in seconds. It is longer than the test may take.


def last_assistant_words(session: Path) -> str:
    """Return the first 40 characters of the session's last assistant text."""
    records = [json.loads(line) for line in session.read_bytes().split(b"\n") if line]
    said = [record["message"]["content"] for record in records if record.get("type") == "assistant"]
    texts = [block["text"] for blocks in said for block in blocks if block["type"] == "text"]
    return str(texts[-1][:40])


def test_a_client_inherits_only_the_variable_path(
    home: ClientHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client's environment contains PATH and none of the other inherited variables."""
    monkeypatch.setenv("CLAUDE_CODE_CHILD_SESSION", "1")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("HOME", "/real/home")
    given = home.env({"EXTRA": "given"})
    assert {"CLAUDE_CODE_CHILD_SESSION", "DISPLAY"}.isdisjoint(given)
    folders = (given["HOME"], given["CLAUDE_CONFIG_DIR"], given["TMPDIR"])
    assert all(Path(folder).is_relative_to(home.root) for folder in folders)
    assert given["EXTRA"] == "given"


def test_the_mock_refuses_connections_to_other_hosts(home: ClientHome, api: MockApi) -> None:
    """The mock is also the client's proxy: it refuses connections to other hosts and records them."""
    command = [
        sys.executable,
        "-c",
        "import urllib.request as r; r.urlopen('https://api.anthropic.com', timeout=5)",
    ]
    done = subprocess.run(command, env=home.env(api.client_env()), capture_output=True, check=False)
    assert done.returncode != 0
    assert api.refused_targets == ["api.anthropic.com:443"]


@pytest.mark.parametrize("name", SMALL_SESSION_NAMES)
def test_resume_sends_the_history(
    every_client: ClientVersion, home: ClientHome, api: MockApi, name: str
) -> None:
    """If the client resumes a real transcript, it sends the transcript's messages before the new prompt."""
    source = corpus() / name
    installed = home.install_session(source, source.stem)
    assert installed.read_bytes() == source.read_bytes()
    result = run_print(every_client, home, api, "and now?", resume=source.stem)
    assert result.returncode == 0, result.stderr
    said = conversation_of_request(api.main_requests()[0])
    assert last_assistant_words(source) in "\n".join(
        text for role, text in said if role == "assistant"
    )
    assert said[-1][1].endswith("and now?")


@pytest.mark.wide
def test_a_closed_tui_leaves_no_process(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """After a terminal's ``with`` block, no process of its home is running, even if the block failed."""
    with (
        pytest.raises(AssertionError, match="never on the screen"),
        Tui(client, home, api).start() as screen,
    ):
        screen.wait_for("never on the screen", timeout=0.2)
    home.end_processes()
    assert pids_with_environment_setting(f"HOME={home.root}") == []


def test_the_mock_answers_requests_that_are_not_turns(api: MockApi) -> None:
    """The mock answers HEAD requests, token counts and requests without streaming.

    Requests that are not turns do not use up a reply from the script.
    """
    api.script = ["for the turn"]
    assert send_request(api, "HEAD", "/") == b""
    assert (
        json.loads(send_request(api, "POST", "/v1/messages/count_tokens", {"messages": []}))[
            "input_tokens"
        ]
        > 0
    )
    send_request(api, "POST", "/v1/messages", TITLE_REQUEST)
    answer = json.loads(send_request(api, "POST", "/v1/messages", TURN_REQUEST))
    assert answer["content"] == [{"type": "text", "text": "for the turn"}]
    assert api.requests == [TITLE_REQUEST, TURN_REQUEST]
    assert api.main_requests() == [TURN_REQUEST]


def test_closing_the_mock_ends_a_delayed_reply() -> None:
    """When the mock's ``with`` block ends, it does not wait for a delayed reply."""
    began = time.monotonic()
    with MockApi([LONG_DELAY_SECONDS]) as api:
        caller = threading.Thread(target=send_unanswered_request, args=(api,), daemon=True)
        caller.start()
        assert wait_until(lambda: bool(api.requests))
    caller.join(timeout=5)
    assert not caller.is_alive()
    assert time.monotonic() - began < LONG_DELAY_SECONDS / 2


def send_unanswered_request(api: MockApi) -> None:
    """Send a request that gets no answer, and ignore the closed connection."""
    with suppress(http.client.HTTPException, OSError):
        send_request(api, "POST", "/v1/messages", TURN_REQUEST)


def send_request(api: MockApi, method: str, path: str, body: Request | None = None) -> bytes:
    """Send one request to the mock and return the response.

    Raises an exception if the status is not 200.
    """
    connection = http.client.HTTPConnection(
        api.base_url.removeprefix("http://"), timeout=LONG_DELAY_SECONDS
    )
    with closing(connection):
        connection.request(method, path, body=json.dumps(body or {}))
        response = connection.getresponse()
        assert response.status == HTTPStatus.OK
        return response.read()


@pytest.mark.parametrize("is_answered", [True, False])
def test_an_unreachable_registry_is_asked_once(tmp_path: Path, is_answered: bool) -> None:
    """If npm's registry does not answer, ``tools/clients`` asks it only once and installs no client.

    If the registry answers, ``tools/clients`` installs five packages. The first line of its output
    says that it is fetching the clients.
    """
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/asked\nexit {int(not is_answered)}\n')
    npm.chmod(0o755)
    done = subprocess.run(
        ["sh", REPO / "tools" / "clients"],
        env={
            "PATH": f"{npm.parent}:{os.environ['PATH']}",
            "RESUME_HOOKS_CLIENTS": str(tmp_path / "clients"),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    asked = (tmp_path / "asked").read_text().split()
    assert asked == (["view", *["install"] * 5] if is_answered else ["view"])
    assert done.stderr.startswith("Fetching the clients")
    assert done.stderr.count("could not be fetched") == (0 if is_answered else 5)
