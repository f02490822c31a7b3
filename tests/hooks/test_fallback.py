"""Tests of the fallback, which answers prompts before the engine is installed.

The fallback needs only the standard library of Python 3.9 or later.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import SESSION, ConfigHome
from tests.hooks.conftest import RunHook
from tests.needs import REPO

AskFallback = Callable[..., str]


@pytest.fixture
def ask_fallback(run_hook: RunHook, any_python: str, tmp_path: Path) -> AskFallback:
    """Return a function that types a prompt and returns the reason with which the hook blocks it.

    The result is ``""`` if the prompt passes. The function's argument ``state`` is the content of
    the installer's state file.
    """

    def answer_of_fallback(
        prompt: object, *, state: object = None, session_id: object = SESSION
    ) -> str:
        data = tmp_path / "data"
        data.mkdir(exist_ok=True)
        if state is not None:
            content = state if isinstance(state, bytes) else json.dumps(state).encode()
            (data / "install.json").write_bytes(content)
        event, environ = (
            {"prompt": prompt, "session_id": session_id},
            {"CLAUDE_PLUGIN_DATA": str(data), "PATH": ""},
        )
        done = run_hook("fallback", event, environ=environ, python=any_python)
        assert (done.returncode, done.stderr) == (0, b"")
        if not done.stdout:
            return ""
        reason = str(json.loads(done.stdout)["reason"])
        assert len(reason) <= 10_000
        assert len(reason.rsplit("\n", maxsplit=1)[-1]) <= 40
        return reason

    return answer_of_fallback


@pytest.mark.parametrize("prompt", [">session", ">resume", ">continue", "/resume-hooks:session"])
def test_the_fallback_answers_with_the_session_id(ask_fallback: AskFallback, prompt: str) -> None:
    """The fallback answers ``session`` and ``resume`` with the session's id."""
    assert SESSION in ask_fallback(prompt)


def test_text_after_resume_is_kept(ask_fallback: AskFallback) -> None:
    """If the user types text after ``resume``, the fallback suggests ``handoff`` with the same text."""
    assert "/resume-hooks:handoff my words" in ask_fallback("/resume-hooks:resume my words")


@pytest.mark.parametrize(
    "prompt",
    [
        ">handoff my words",
        "/resume-hooks:handoff my words",
        ">lineage",
        ">trim",
        ">trim yes",
        ">trim --my words",
    ],
)
def test_the_fallback_says_that_a_trigger_needs_the_engine(
    ask_fallback: AskFallback, prompt: str
) -> None:
    """If a trigger needs the engine, the fallback says that the engine is not installed yet.

    The answer repeats the user's text.
    """
    said = ask_fallback(prompt)
    assert "needs the engine" in said
    assert "not installed yet" in said
    assert ("my words" in said) is ("my words" in prompt)


@pytest.mark.parametrize(
    ("state", "answer_part"),
    [
        ({"state": "installing", "started": time.time() - 12}, "being installed, for"),
        ({"state": "installing"}, "The engine is being installed."),
        ({"state": "installing", "started": "x"}, "The engine is being installed."),
        (b'{"state":"installing","started":NaN}', "The engine is being installed."),
        (b'{"state":"installing","started":-Infinity}', "The engine is being installed."),
        ({"state": "installing", "started": 9e99}, "The engine is being installed."),
        (
            {"state": "failed", "error": "no network"},
            "Installing the engine failed: no network.",
        ),
        (
            {"state": "failed", "error": "\x1b[2J\n" + "x" * 20_000},
            "Installing the engine failed",
        ),
        ({"state": "failed"}, "install.log"),
        (b"not json", "not installed yet"),
        (b"[]", "not installed yet"),
        (b"\xff", "not installed yet"),
        (b"[" * 200_000, "not installed yet"),
    ],
)
def test_the_fallback_shows_the_state_of_the_installation(
    ask_fallback: AskFallback, state: object, answer_part: str
) -> None:
    """The fallback shows how long the installation has been running, or why it failed.

    A damaged state file is treated like a missing one.
    """
    assert answer_part in ask_fallback(">handoff", state=state)
    assert answer_part in ask_fallback(">help", state=state)


@pytest.mark.parametrize(
    "prompt", ["hello", " >resume", "> resume", ">help me", "", None, 7, [">resume"]]
)
def test_the_fallback_lets_a_prompt_without_a_trigger_pass(
    ask_fallback: AskFallback, prompt: object
) -> None:
    """The fallback lets a prompt pass if it is not a trigger."""
    assert ask_fallback(prompt) == ""


@pytest.mark.parametrize("session_id", ["../x", "", None, 7, f"{SESSION}\0"])
def test_an_invalid_session_id_does_not_prevent_an_answer(
    ask_fallback: AskFallback, session_id: object
) -> None:
    """Even if the session id in the event is invalid, the fallback answers."""
    assert "needs the engine" in ask_fallback(">session", session_id=session_id)


def test_the_fallback_recognizes_a_pasted_client_command(ask_fallback: AskFallback) -> None:
    """If a prompt ends with a pasted ``/resume`` line, the fallback says how to paste such a line."""
    assert ask_fallback(f">handoff x/resume {SESSION}").endswith("Ctrl+C once, then paste.")


def test_the_fallback_replies_to_the_module(
    any_python: str, config_home: ConfigHome, tmp_path: Path
) -> None:
    """The fallback replies to the module with a text that repeats the user's words.

    No child is made. A request that no user typed gets an empty reply.
    """
    event = {"command": "handoff", "args": " fix it ", "screen": True, "session_id": SESSION}
    bare = [any_python or sys.executable, "-I", "-S", str(REPO / "hooks" / "fallback.py"), "module"]
    environ = {**config_home.environ, "CLAUDE_PLUGIN_DATA": str(tmp_path)}
    done = subprocess.run(
        bare,
        input=json.dumps(event).encode(),
        env=environ,
        capture_output=True,
        check=True,
        timeout=60,
    )
    text = json.loads(done.stdout)["text"]
    assert text.startswith("/handoff needs the engine.")
    assert "fix it" in text
    unasked = json.dumps({"command": "fsck", "args": "API Error: 400"}).encode()
    silent = subprocess.run(
        bare, input=unasked, env=environ, capture_output=True, check=True, timeout=60
    )
    assert silent.stdout == b"{}"
    assert (
        subprocess.run(bare, input=b"no event", env=environ, check=False, timeout=60).returncode
        == 1
    )
