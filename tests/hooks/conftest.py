"""Fixtures that run a hook's script as the client does: in a separate process and environment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from resume_hooks.hooks import prompt
from resume_hooks.hooks.request import Request
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from tests.builders import SESSION, ConfigHome
from tests.cli.fork_server import ForkServer
from tests.fuzz.targets.hooks import run_hook_main
from tests.needs import REPO, python39_path

RunHook = Callable[..., "subprocess.CompletedProcess[bytes]"]


def trigger_request(trigger: Trigger, path: str | Path | None) -> Request:
    """Return the request for a trigger that the user typed in the session whose file is ``path``."""
    return Request(trigger, SESSION, os.fspath(path) if path else None, Where())


@pytest.fixture
def run_hook(config_home: ConfigHome, fork_server: ForkServer) -> RunHook:
    """Return a function that runs ``hooks/<name>.py`` with an event on standard input.

    The clipboard is off unless ``environ`` turns it on. The script runs in a fork of a Python
    process that has already loaded the script, unless ``python`` names another interpreter.
    """

    def run_hook_script(
        name: str, event: object, *, environ: dict[str, str] | None = None, python: str = ""
    ) -> subprocess.CompletedProcess[bytes]:
        stdin = event if isinstance(event, bytes) else json.dumps(event).encode()
        env = {
            "PATH": os.environ.get("PATH", ""),
            **config_home.environ,
            "RESUME_HOOKS_CLIPBOARD": "none",
            **(environ or {}),
        }
        script = str(REPO / "hooks" / f"{name}.py")
        if not python:
            return fork_server.run((), env, stdin, os.getcwd(), 60, script)
        command = [python, "-I", script]
        return subprocess.run(
            command, input=stdin, env=env, capture_output=True, check=False, timeout=60
        )

    return run_hook_script


TypePrompt = Callable[..., str]


@pytest.fixture
def type_prompt(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> TypePrompt:
    """Return a function that types a prompt and returns the reason with which the hook blocks the prompt.

    The result is ``""`` if the hook lets the prompt pass. The hook runs in the tests' own process.
    """

    def blocked_reason(
        typed_text: str,
        session_id: str = SESSION,
        *,
        fields: Mapping[str, object] | None = None,
        **environ: str,
    ) -> str:
        event = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": session_id,
            "prompt": typed_text,
            "cwd": "/",
        }
        with monkeypatch.context() as patch:
            for name, value in {"RESUME_HOOKS_CLIPBOARD": "none", **environ}.items():
                patch.setenv(name, value)
            return block_reason(
                run_hook_main(prompt.main, json.dumps({**event, **(fields or {})}).encode())
            )

    return blocked_reason


def read_block_reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Check that the hook succeeded, and return the reason with which it blocked the prompt."""
    assert (done.returncode, done.stderr) == (0, b"")
    return block_reason(done.stdout)


def block_reason(printed: bytes) -> str:
    """Return the reason in a hook's output, or ``""`` if the hook let the prompt pass.

    Check that the output is a valid reply that blocks a prompt, fits the client's limit, and has a
    short last line.
    """
    if not printed:
        return ""
    document = json.loads(printed)
    assert document["decision"] == "block"
    assert document["hookSpecificOutput"] == {
        "hookEventName": "UserPromptSubmit",
        "suppressOriginalPrompt": True,
    }
    text = document["reason"]
    assert isinstance(text, str)
    assert 0 < len(text.encode("utf-16-le")) // 2 <= 10_000
    assert len(text.split("\n")[-1]) <= 40
    return text


def list_children(parent: Path) -> list[Path]:
    """Return the paths of all sessions in the parent's project except the parent."""
    return [path for path in parent.parent.iterdir() if path != parent]


@pytest.fixture(params=["this Python", "Python 3.9"])
def any_python(request: pytest.FixtureRequest) -> str:
    """Return "" for the tests' own Python, or the path of a Python 3.9, the oldest version for hooks."""
    return "" if request.param == "this Python" else python39_path()
