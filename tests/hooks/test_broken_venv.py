"""A venv that is there and does not load its packages: said, marked, and never a trace."""

from __future__ import annotations

import fcntl
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archive.retention.aged import session_of_age
from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.needs import REPO

ANEW = "The engine's packages no longer load; they are being reinstalled now"
LOCK = "requirements.lock"


@pytest.fixture
def data(config_home: ConfigHome, tmp_path: Path) -> Iterator[Path]:
    """The plugin's data folder: ready by all that is written there, its venv without a package."""
    write_session(config_home.project(), SESSION, conversation(1))
    folder = tmp_path / "data"
    subprocess.run(
        [sys.executable, "-I", "-m", "venv", "--without-pip", str(folder / "venv")], check=True
    )
    (folder / "install.json").write_text('{"state": "ready", "started": 1, "lock": "x"}')
    (folder / "venv" / LOCK).touch()
    with (folder / "install.lock").open("a") as lock:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # as if another installed it just now: no trigger of the tests begins to
        yield folder


def engine(
    home: ConfigHome, data: Path, *words: str, stdin: object = None
) -> subprocess.CompletedProcess[str]:
    """Run the launcher as the client does."""
    env = {**home.environ, "PATH": "/usr/local/bin:/usr/bin:/bin", "CLAUDE_PLUGIN_DATA": str(data)}
    command = ["sh", str(REPO / "hooks" / "engine"), *words]
    sent = json.dumps(stdin)
    return subprocess.run(
        command, input=sent, env=env, capture_output=True, check=False, text=True, timeout=60
    )


def trigger_text(home: ConfigHome, data: Path, prompt: str) -> str:
    """Return the text that a trigger shows."""
    done = engine(home, data, "--hook", "prompt", stdin={"prompt": prompt, "session_id": SESSION})
    assert (done.returncode, done.stderr) == (0, "")
    return str(json.loads(done.stdout)["reason"])


def test_a_trigger_finds_it_and_the_next_start_mends_it(
    config_home: ConfigHome, data: Path
) -> None:
    """The installer rebuilds a venv without its lock; the text reports it with all of the user's words."""
    assert SESSION in trigger_text(config_home, data, ">session")
    assert (data / "venv" / LOCK).exists()
    answer = trigger_text(config_home, data, ">handoff my words")
    assert ANEW in answer
    assert "my words" in answer
    assert not (data / "venv" / LOCK).exists()


def test_a_python_that_does_not_start(config_home: ConfigHome, data: Path) -> None:
    """Another one answers."""
    python = data / "venv" / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 127\n")
    python.chmod(0o755)
    assert ANEW in trigger_text(config_home, data, ">handoff x")
    assert not (data / "venv" / LOCK).exists()


def test_a_verb_names_the_remedy(config_home: ConfigHome, data: Path) -> None:
    """It prints a sentence with the remedy."""
    done = engine(config_home, data, "doctor")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "resume-hooks: the engine's packages do not load (No module named "
    )
    assert done.stderr.endswith(f"run: sh {shlex.quote(f'{REPO}/hooks/engine')} --install\n")
    assert not (data / "venv" / LOCK).exists()


def test_a_start_finds_it(config_home: ConfigHome, data: Path) -> None:
    """It is a start with sessions to archive; it prints nothing."""
    session_of_age(config_home, 1, 25)
    start = {"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"}
    event = start | {"transcript_path": str(config_home.project() / f"{SESSION}.jsonl")}
    done = engine(config_home, data, "--hook", "session", "near-end", stdin=event)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (data / "venv" / LOCK).exists()


def test_somebody_elses_python_is_left_alone(config_home: ConfigHome, data: Path) -> None:
    """A named Python lacks a package, which proves nothing about the plugin's own."""
    other = data.parent / "other"
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(other)], check=True)
    env = {**config_home.environ, "PATH": "", "CLAUDE_PLUGIN_DATA": str(data)}
    event = json.dumps({"prompt": ">handoff x", "session_id": SESSION}).encode()
    command = [str(other / "bin" / "python"), "-I", str(REPO / "hooks" / "prompt.py")]
    done = subprocess.run(
        command, input=event, env=env, capture_output=True, check=False, timeout=60
    )
    assert b"needs the engine" in done.stdout
    assert (data / "venv" / LOCK).exists()
