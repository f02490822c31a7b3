"""The harness itself: what reaches the mock, what stands on the screen, and what is left when a test ends."""

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

from tests.e2e.harness.client import (
    NEWEST,
    OLDEST,
    RECENT,
    ClientHome,
    ClientVersion,
    TmuxTui,
    Tui,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi, Request, conversation, last_user_text
from tests.e2e.harness.processes import pids_with, wait_until
from tests.e2e.harness.terminal import PROMPT_SIGN
from tests.e2e.harness.xvfb import XServer
from tests.needs import REPO, corpus

# Small sessions of two client generations; both resume on every supported client.
SMALL_SESSIONS = (
    "_cli_generated/2.1.42/-home-user-gen-2-1-42-proj/5fb568bb-707c-40ff-b599-80e185a4234f.jsonl",
    "entireio__cli/0790ea37-90df-4d30-8fdf-0bfe301b8f3e.jsonl",
)
TITLE_CALL: Request = {"model": "haiku", "messages": [{"role": "user", "content": "hi"}]}
TURN: Request = TITLE_CALL | {"tools": [{"name": "Bash"}]}
LONG = 30.0  # seconds; a wait that no test sits out
SMALLER = (100, 40)
BLOCKED = "the hook says no to this"


def blocking_plugin(folder: Path) -> Path:
    """A plugin whose only hook blocks each prompt and keeps the hook's input beside itself."""
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / "hooks").mkdir()
    (folder / ".claude-plugin/plugin.json").write_text('{"name": "blocker", "version": "1.0.0"}')
    script = folder / "hooks" / "block.sh"
    answer = json.dumps({"decision": "block", "reason": BLOCKED})
    script.write_text(f"#!/bin/sh\ncat > \"$(dirname \"$0\")/input.json\"\nprintf '%s' '{answer}'\n")
    hook = {"type": "command", "command": 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/block.sh"', "timeout": 10}
    (folder / "hooks/hooks.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}))
    return folder


def last_words(session: Path) -> str:
    """How the transcript's last assistant text begins, as it must reappear in a request."""
    records = [json.loads(line) for line in session.read_bytes().split(b"\n") if line]
    said = [record["message"]["content"] for record in records if record.get("type") == "assistant"]
    texts = [block["text"] for blocks in said for block in blocks if block["type"] == "text"]
    return str(texts[-1][:40])


@pytest.mark.wide
def test_prompt_reaches_the_mock(every_client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """A `-p` prompt is the last user message of one main request; the mock's text comes back."""
    result = run_print(every_client, home, api, "say something >not a trigger")
    assert result.returncode == 0, result.stderr
    assert result.text == "Mock reply 1."
    (request,) = api.main_requests()
    assert last_user_text(request).endswith("say something >not a trigger")
    assert [path.stem for path in home.sessions()] == [result.session_id]


def test_nothing_of_the_real_home_is_used(home: ClientHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the test run's own environment a client gets PATH alone."""
    monkeypatch.setenv("CLAUDE_CODE_CHILD_SESSION", "1")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("HOME", "/real/home")
    given = home.env({"EXTRA": "given"})
    assert {"CLAUDE_CODE_CHILD_SESSION", "DISPLAY"}.isdisjoint(given)
    folders = (given["HOME"], given["CLAUDE_CONFIG_DIR"], given["TMPDIR"])
    assert all(Path(folder).is_relative_to(home.root) for folder in folders)
    assert given["EXTRA"] == "given"


def test_nothing_gets_past_the_mock(home: ClientHome, api: MockApi) -> None:
    """Whatever else than the API a client wants to reach is refused by the mock, which stands as its proxy."""
    command = [sys.executable, "-c", "import urllib.request as r; r.urlopen('https://api.anthropic.com', timeout=5)"]
    done = subprocess.run(command, env=home.env(api.client_env()), capture_output=True, check=False)
    assert done.returncode != 0
    assert api.refused == ["api.anthropic.com:443"]


@pytest.mark.parametrize("name", SMALL_SESSIONS)
def test_resume_sends_the_history(every_client: ClientVersion, home: ClientHome, api: MockApi, name: str) -> None:
    """`--resume` of a real transcript sends what was said in it before the new prompt."""
    source = corpus() / name
    installed = home.install_session(source, source.stem)
    assert installed.read_bytes() == source.read_bytes()
    result = run_print(every_client, home, api, "and now?", resume=source.stem)
    assert result.returncode == 0, result.stderr
    said = conversation(api.main_requests()[0])
    assert last_words(source) in "\n".join(text for role, text in said if role == "assistant")
    assert said[-1][1].endswith("and now?")


@pytest.mark.wide
def test_long_prompt_goes_in_whole(client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """A prompt too long for one argument reaches the model unshortened."""
    prompt = "x" * 300_000
    run_print(client, home, api, prompt)
    assert prompt in last_user_text(api.main_requests()[0])


@pytest.mark.wide
def test_scripted_tool_call_is_carried_out(client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """A scripted tool_use makes the client run the tool and send its result back."""
    api.script = [["Looking.", {"name": "Bash", "input": {"command": "echo from-the-tool", "description": "say"}}]]
    result = run_print(client, home, api, "look", extra_args=["--allowedTools", "Bash(echo:*)"])
    assert result.text == "Mock reply 2."
    assert "from-the-tool" in last_user_text(api.main_requests()[1])


def test_blocked_prompt_reaches_nobody(
    every_client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path
) -> None:
    """A hook that blocks keeps a `-p` prompt from the API; only the newest client prints its reason."""
    plugin = blocking_plugin(tmp_path / "blocker")
    result = run_print(every_client, home, api, "is this blocked?", plugin_dir=plugin)
    assert (BLOCKED in result.text) is (every_client.version in RECENT)
    assert api.main_requests() == []
    assert json.loads((plugin / "hooks/input.json").read_text())["prompt"] == "is this blocked?"


@pytest.mark.wide
def test_typed_prompt_shows_the_reply(every_client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """What is typed in the TUI reaches the mock, and the mock's words stand on the screen."""
    api.script = ["A reply of my own."]
    with Tui(every_client, home, api).start() as screen:
        screen.submit("what do you say?")
        screen.wait_for("A reply of my own")
        assert last_user_text(api.main_requests()[0]).endswith("what do you say?")


@pytest.mark.wide
def test_blocked_prompt_shows_on_screen(
    every_client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path
) -> None:
    """In the TUI a blocked prompt shows the hook's reason, and no main request is made."""
    plugin = blocking_plugin(tmp_path / "blocker")
    with Tui(every_client, home, api).start(plugin_dir=plugin) as screen:
        screen.submit("is this blocked?")
        screen.wait_for(BLOCKED)
        screen.wait_idle()
        assert api.main_requests() == []


@pytest.mark.parametrize("version", [pytest.param(OLDEST, marks=pytest.mark.wide), NEWEST])
def test_resume_command_switches_session(home: ClientHome, api: MockApi, version: str) -> None:
    """`/resume <id>` pasted in the TUI goes on in that session: its history is in the next request."""
    source = corpus() / SMALL_SESSIONS[1]
    home.install_session(source, source.stem)
    with Tui(find_client(version), home, api).start() as screen:
        screen.paste(f"/resume {source.stem}")
        screen.wait_for(source.stem)
        screen.key("Enter")
        screen.wait_gone(rf"{PROMPT_SIGN} /resume {source.stem}")
        screen.wait_idle()
        screen.submit("are you there now?")
        screen.wait_for("Mock reply 1")
    (request,) = api.main_requests()
    assert last_words(source) in "\n".join(text for _, text in conversation(request))
    assert last_user_text(request).endswith("are you there now?")


@pytest.mark.wide
def test_input_box_can_be_read_and_cleared(tui: Tui) -> None:
    """`input_text` gives what stands in the box; one Ctrl+C empties it."""
    tui.start()
    tui.type("half a thought")
    tui.wait_for("half a thought")
    assert tui.input_text() == "half a thought"
    tui.key("C-c")
    tui.wait_gone("half a thought")
    tui.resize(*SMALLER)
    tui.wait_idle()
    assert len(tui.screen()) == SMALLER[1]


@pytest.mark.wide
def test_delayed_reply_leaves_time_to_type(tui: Tui, api: MockApi) -> None:
    """A delay in the script keeps the model busy: the reply is not there yet while more is typed."""
    api.script = [(4.0, "Late answer.")]
    tui.start()
    tui.submit("take your time")
    assert wait_until(lambda: bool(api.main_requests()))
    tui.type("typed meanwhile")
    tui.wait_for("typed meanwhile")
    assert "Late answer" not in tui.text()
    tui.wait_for("Late answer")


@pytest.mark.wide
def test_closed_tui_leaves_no_process(client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """After the `with` block, failed or not, no process of that home runs."""
    with pytest.raises(AssertionError, match="never on the screen"), Tui(client, home, api).start() as screen:
        screen.wait_for("never on the screen", timeout=0.2)
    home.reap()
    assert pids_with(f"HOME={home.root}") == []


def test_tmux_buffer_takes_osc_52(tmux_tui: TmuxTui) -> None:
    """In tmux the client's screen works the same, and OSC 52 written to its terminal fills the buffer."""
    tmux_tui.start()
    tmux_tui.submit("hello from tmux")
    tmux_tui.wait_for(r"Mock reply 1\.")
    assert tmux_tui.buffer() == ""
    tmux_tui.tty().write_bytes(b"\x1b]52;c;Y29waWVk\x07")
    assert wait_until(lambda: tmux_tui.buffer() == "copied")


def test_x_clipboard_is_read(xserver: XServer) -> None:
    """A clipboard that nobody owns is empty; what xclip puts there is read back."""
    assert xserver.clipboard() == ""
    with xserver.owner("from the clipboard"):
        assert wait_until(lambda: xserver.clipboard() == "from the clipboard")


def test_mock_answers_other_requests(api: MockApi) -> None:
    """HEAD, a token count and a whole (unstreamed) message are answered; errands leave the script alone."""
    api.script = ["for the turn"]
    assert send(api, "HEAD", "/") == b""
    assert json.loads(send(api, "POST", "/v1/messages/count_tokens", {"messages": []}))["input_tokens"] > 0
    send(api, "POST", "/v1/messages", TITLE_CALL)
    answer = json.loads(send(api, "POST", "/v1/messages", TURN))
    assert answer["content"] == [{"type": "text", "text": "for the turn"}]
    assert api.requests == [TITLE_CALL, TURN]
    assert api.main_requests() == [TURN]


def test_leaving_the_mock_cuts_a_delay_short() -> None:
    """A reply that is still waiting does not hold up the end of the test."""
    began = time.monotonic()
    with MockApi([LONG]) as api:
        caller = threading.Thread(target=send_unanswered, args=(api,), daemon=True)
        caller.start()
        assert wait_until(lambda: bool(api.requests))
    caller.join(timeout=5)
    assert not caller.is_alive()
    assert time.monotonic() - began < LONG / 2


def send_unanswered(api: MockApi) -> None:
    """Make a call whose answer never comes; that the connection drops is expected."""
    with suppress(http.client.HTTPException, OSError):
        send(api, "POST", "/v1/messages", TURN)


def send(api: MockApi, method: str, path: str, body: Request | None = None) -> bytes:
    """Make one request to the mock; anything but 200 fails."""
    connection = http.client.HTTPConnection(api.base_url.removeprefix("http://"), timeout=LONG)
    with closing(connection):
        connection.request(method, path, body=json.dumps(body or {}))
        response = connection.getresponse()
        assert response.status == HTTPStatus.OK
        return response.read()


@pytest.mark.parametrize("answers", [True, False])
def test_a_registry_that_does_not_answer_is_asked_once(tmp_path: Path, answers: bool) -> None:
    """A line says what is being fetched; without an answer nothing else is tried."""
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/asked\nexit {int(not answers)}\n')
    npm.chmod(0o755)
    done = subprocess.run(
        ["sh", REPO / "tools" / "clients"],
        env={"PATH": f"{npm.parent}:{os.environ['PATH']}", "RESUME_HOOKS_CLIENTS": str(tmp_path / "clients")},
        capture_output=True,
        text=True,
        check=True,
    )
    asked = (tmp_path / "asked").read_text().split()
    assert asked == (["view", *["install"] * 5] if answers else ["view"])
    assert done.stderr.startswith("Fetching the clients")
    assert done.stderr.count("could not be fetched") == (0 if answers else 5)
