"""UserPromptSubmit before the engine is there: what the standard library can answer, on any Python >= 3.9."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import SESSION, ConfigHome
from tests.hooks.conftest import Run
from tests.needs import REPO

Ask = Callable[..., str]


@pytest.fixture
def ask(run_hook: Run, any_python: str, tmp_path: Path) -> Ask:
    """Return the reason shown for a prompt, ``""`` if it passes; ``state`` is the installer's file."""

    def one(prompt: object, *, state: object = None, session: object = SESSION) -> str:
        data = tmp_path / "data"
        data.mkdir(exist_ok=True)
        if state is not None:
            content = state if isinstance(state, bytes) else json.dumps(state).encode()
            (data / "install.json").write_bytes(content)
        event, environ = (
            {"prompt": prompt, "session_id": session},
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

    return one


@pytest.mark.parametrize("prompt", [">session", ">resume", ">continue", "/resume-hooks:session"])
def test_the_id_is_answered_with(ask: Ask, prompt: str) -> None:
    """It is copied if possible, else shown."""
    assert SESSION in ask(prompt)


def test_text_after_resume_is_kept(ask: Ask) -> None:
    """It is offered as a handoff for when the engine is installed."""
    assert "/resume-hooks:handoff my words" in ask("/resume-hooks:resume my words")


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
def test_a_trigger_that_needs_the_engine_reports_it(ask: Ask, prompt: str) -> None:
    """It shows the state of the installation, and the user's words if there were any."""
    said = ask(prompt)
    assert "needs the engine" in said
    assert "not installed yet" in said
    assert ("my words" in said) is ("my words" in prompt)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"state": "installing", "started": time.time() - 12}, "being installed, for"),
        ({"state": "installing"}, "The engine is being installed."),
        ({"state": "installing", "started": "x"}, "The engine is being installed."),
        (b'{"state":"installing","started":NaN}', "The engine is being installed."),
        (b'{"state":"installing","started":-Infinity}', "The engine is being installed."),
        ({"state": "installing", "started": 9e99}, "The engine is being installed."),
        (
            {"state": "failed", "error": "no network"},
            "The engine's installation failed: no network.",
        ),
        (
            {"state": "failed", "error": "\x1b[2J\n" + "x" * 20_000},
            "The engine's installation failed",
        ),
        ({"state": "failed"}, "install.log"),
        (b"not json", "not installed yet"),
        (b"[]", "not installed yet"),
        (b"\xff", "not installed yet"),
        (b"[" * 200_000, "not installed yet"),
    ],
)
def test_the_state_of_the_installation(ask: Ask, state: object, words: str) -> None:
    """The time that it has been running, or the reason of its failure; a damaged state file counts as none."""
    assert words in ask(">handoff", state=state)
    assert words in ask(">help", state=state)


@pytest.mark.parametrize(
    "prompt", ["hello", " >resume", "> resume", ">help me", "", None, 7, [">resume"]]
)
def test_other_prompts_pass(ask: Ask, prompt: object) -> None:
    """The engine does the same."""
    assert ask(prompt) == ""


@pytest.mark.parametrize("session", ["../x", "", None, 7, f"{SESSION}\0"])
def test_an_id_that_is_none_is_not_shown(ask: Ask, session: object) -> None:
    """Only the user's own words of a hostile input are shown."""
    assert "needs the engine" in ask(">session", session=session)


def test_pasted_over_left_over_text(ask: Ask) -> None:
    """The message is the same as the engine's."""
    assert ask(f">handoff x/resume {SESSION}").endswith("Ctrl+C (once!), paste again.")


def test_the_module_learns_the_missing_packages(
    any_python: str, config_home: ConfigHome, tmp_path: Path
) -> None:
    """On a Python without the engine's packages: a text to show, the user's words in it, and nothing is made.

    What nobody typed is answered with nothing.
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
