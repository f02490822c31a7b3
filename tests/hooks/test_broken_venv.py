"""Tests of a virtual environment (venv) whose packages can't be loaded.

The hook reports the problem and marks the venv for reinstallation, without a traceback.
"""

from __future__ import annotations

import fcntl
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archive.retention.sessions_of_age import session_of_age
from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.needs import REPO

REINSTALL_MESSAGE = "The engine's packages no longer load; they are being reinstalled now"
LOCK_FILE_NAME = "requirements.lock"


@pytest.fixture
def plugin_data(config_home: ConfigHome, tmp_path: Path) -> Iterator[Path]:
    """Yield a plugin data folder that looks ready, although its venv lacks a package."""
    write_session(config_home.project(), SESSION, conversation(1))
    folder = tmp_path / "data"
    subprocess.run(
        [sys.executable, "-I", "-m", "venv", "--without-pip", str(folder / "venv")], check=True
    )
    (folder / "install.json").write_text('{"state": "ready", "started": 1, "lock": "x"}')
    (folder / "venv" / LOCK_FILE_NAME).touch()
    with (folder / "install.lock").open("a") as lock:
        # This makes another process appear to be installing, so that the tests start no installation.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def run_engine(
    home: ConfigHome, data_folder: Path, *arguments: str, stdin: object = None
) -> subprocess.CompletedProcess[str]:
    """Run ``hooks/engine``, the plugin's launcher, as the client does."""
    env = {
        **home.environ,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "CLAUDE_PLUGIN_DATA": str(data_folder),
    }
    command = ["sh", str(REPO / "hooks" / "engine"), *arguments]
    sent = json.dumps(stdin)
    return subprocess.run(
        command, input=sent, env=env, capture_output=True, check=False, text=True, timeout=60
    )


def trigger_text(home: ConfigHome, data_folder: Path, prompt: str) -> str:
    """Return the text that the hook shows for a prompt with a trigger."""
    done = run_engine(
        home, data_folder, "--hook", "prompt", stdin={"prompt": prompt, "session_id": SESSION}
    )
    assert (done.returncode, done.stderr) == (0, "")
    return str(json.loads(done.stdout)["reason"])


def test_a_trigger_reports_a_broken_venv(config_home: ConfigHome, plugin_data: Path) -> None:
    """A trigger that needs the venv reports that the venv is broken, and repeats the user's text.

    The trigger also deletes the venv's lock file, so that the next start reinstalls the venv.
    """
    assert SESSION in trigger_text(config_home, plugin_data, ">session")
    assert (plugin_data / "venv" / LOCK_FILE_NAME).exists()
    answer = trigger_text(config_home, plugin_data, ">handoff my words")
    assert REINSTALL_MESSAGE in answer
    assert "my words" in answer
    assert not (plugin_data / "venv" / LOCK_FILE_NAME).exists()


def test_a_trigger_works_if_the_venv_python_does_not_start(
    config_home: ConfigHome, plugin_data: Path
) -> None:
    """If the venv's Python does not start, another Python runs the trigger and reports the problem."""
    python = plugin_data / "venv" / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 127\n")
    python.chmod(0o755)
    assert REINSTALL_MESSAGE in trigger_text(config_home, plugin_data, ">handoff x")
    assert not (plugin_data / "venv" / LOCK_FILE_NAME).exists()


def test_a_verb_reports_a_broken_venv(config_home: ConfigHome, plugin_data: Path) -> None:
    """A verb fails with an error message that contains the command to reinstall the packages."""
    done = run_engine(config_home, plugin_data, "doctor")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "resume-hooks: the engine's packages can't be loaded (No module named "
    )
    assert done.stderr.endswith(f"run: sh {shlex.quote(f'{REPO}/hooks/engine')} --install\n")
    assert not (plugin_data / "venv" / LOCK_FILE_NAME).exists()


def test_a_start_marks_a_broken_venv(config_home: ConfigHome, plugin_data: Path) -> None:
    """If a venv is broken and sessions must be archived, a start deletes the venv's lock file silently."""
    session_of_age(config_home, 1, 25)
    start = {"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"}
    event = start | {"transcript_path": str(config_home.project() / f"{SESSION}.jsonl")}
    done = run_engine(config_home, plugin_data, "--hook", "session", "near-end", stdin=event)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (plugin_data / "venv" / LOCK_FILE_NAME).exists()


def test_a_python_outside_the_venv_does_not_mark_the_venv(
    config_home: ConfigHome, plugin_data: Path
) -> None:
    """If the Python that lacks a package is outside the venv, the venv's lock file stays in place.

    The plugin's venv itself may be fine.
    """
    other = plugin_data.parent / "other"
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(other)], check=True)
    env = {**config_home.environ, "PATH": "", "CLAUDE_PLUGIN_DATA": str(plugin_data)}
    event = json.dumps({"prompt": ">handoff x", "session_id": SESSION}).encode()
    command = [str(other / "bin" / "python"), "-I", str(REPO / "hooks" / "prompt.py")]
    done = subprocess.run(
        command, input=event, env=env, capture_output=True, check=False, timeout=60
    )
    assert b"needs the engine" in done.stdout
    assert (plugin_data / "venv" / LOCK_FILE_NAME).exists()
