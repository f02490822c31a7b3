"""Tests of the engine without POSIX.

They cover verbs that write, and the replacements for locks, alarms and signals.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resume_hooks.hooks.time_limit import TimeLimitExceeded, time_limit
from resume_hooks.storage import state_file
from resume_hooks.system import capture_output, subprocesses
from tests.builders import SESSION, ConfigHome, conversation, tool_result, tool_use, write_session
from tests.needs import REPO

TEST_PROGRAM = "tests.without_posix"


@pytest.fixture
def session_to_trim(config_home: ConfigHome) -> Path:
    """Write a session that can be trimmed, and return its path."""
    rows = conversation(3)
    parent = rows[-1]["uuid"]
    long = "a line of output that nobody needs any more\n" * 2000
    rows += [
        tool_use("c1", uuid="call", parent=parent, ts=900),
        tool_result("c1", long, uuid="answer", parent="call", ts=901),
        *(
            {**row, "parentUuid": row["parentUuid"] or "answer"}
            for row in conversation(9, prefix="s", start=1000)
        ),
    ]
    return Path(write_session(config_home.project(), SESSION, rows))


def run_without_posix(home: ConfigHome, *words: str, text: str = "") -> str:
    """Run resume-hooks without POSIX and return its stdout.

    Raises AssertionError if it fails.
    """
    environ = {**home.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}", "PATH": os.defpath}
    command = [sys.executable, "-m", TEST_PROGRAM, *words]
    done = subprocess.run(
        command,
        env=environ,
        cwd=home.root,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def work_for_a_minute() -> None:
    """Sleep for a minute in small steps, between which Python can interrupt it."""
    for _ in range(6_000):
        time.sleep(0.01)


def test_verbs_write_sessions_without_posix(config_home: ConfigHome, session_to_trim: Path) -> None:
    """Without POSIX, verbs write children, leave the parent unchanged, and restore deleted sessions."""
    before = session_to_trim.read_bytes()
    ways = ["handoff", "-n", "go on"], ["fork"], ["trim"], ["rollover", "--quick"]
    made = [
        json.loads(run_without_posix(config_home, *words, SESSION, "--json"))["data"]
        for words in ways
    ]
    for child in made:
        assert (session_to_trim.parent / f"{child['session_id']}.jsonl").is_file()
    run_without_posix(config_home, "untrim", made[2]["session_id"], "--all")
    run_without_posix(config_home, "archive", SESSION)
    assert session_to_trim.read_bytes() == before
    run_without_posix(config_home, "delete", made[1]["session_id"], "--yes")
    run_without_posix(config_home, "restore", made[1]["session_id"])
    assert (session_to_trim.parent / f"{made[1]['session_id']}.jsonl").is_file()
    assert made[0]["session_id"] in run_without_posix(config_home, "lineage", made[0]["session_id"])
    assert SESSION[:8] in run_without_posix(
        config_home, "search", "--all", "output", "nobody", "needs"
    )


def test_a_trigger_is_answered_without_posix(
    config_home: ConfigHome, session_to_trim: Path
) -> None:
    """Without POSIX, no alarm can be set, but ``>handoff`` is still answered and writes a child."""
    event = {
        "session_id": SESSION,
        "transcript_path": str(session_to_trim),
        "prompt": ">handoff go on",
    }
    answer = json.loads(
        run_without_posix(
            config_home, "prompt", text=json.dumps({"hook_event_name": "UserPromptSubmit", **event})
        )
    )
    assert answer["decision"] == "block"
    assert len(list(session_to_trim.parent.glob("*.jsonl"))) == 2


def test_simultaneous_forks_get_different_titles_without_posix(
    config_home: ConfigHome, session_to_trim: Path
) -> None:
    """Without POSIX, simultaneous forks get different titles.

    File locks of Windows are used instead of POSIX locks.
    """
    environ = {**config_home.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}", "PATH": os.defpath}
    command = [sys.executable, "-m", TEST_PROGRAM, "fork", SESSION, "--json"]
    runs = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) for _ in range(4)]
    titles = [json.loads(process.communicate(timeout=120)[0])["data"]["title"] for process in runs]
    assert len(set(titles)) == len(runs)
    assert session_to_trim.is_file()


def test_a_thread_enforces_the_time_limit_without_posix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without POSIX, a thread enforces the time limit, and Ctrl+C still works."""
    monkeypatch.delattr(signal, "setitimer")
    with (
        pytest.raises(TimeLimitExceeded, match=r"This took longer than 0\.05 s"),
        time_limit(seconds=0.05),
    ):
        work_for_a_minute()
    with time_limit(seconds=60):
        pass
    with pytest.raises(KeyboardInterrupt), time_limit(seconds=60):
        signal.raise_signal(signal.SIGINT)


def test_a_single_process_can_be_ended_without_process_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without process groups, a single process can be ended.

    A program that may have child processes is not even started, because they could not be ended.
    """
    monkeypatch.delattr(os, "killpg")
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    subprocesses.kill_process_group(process.pid)
    assert process.wait(20) != 0
    with pytest.raises(OSError, match="can't end a program's child processes"):
        capture_output.run_and_capture_output(
            [sys.executable], b"", environ={}, folder="/", timeout_seconds=1
        )


@pytest.mark.parametrize(
    ("handle", "error_code", "wait_result", "is_running"),
    [(7, 0, 0x102, True), (7, 0, 0, False), (0, 5, 0, True), (0, 87, 0, False)],
)
def test_windows_processes_are_checked_through_handles(
    handle: int,
    error_code: int,
    wait_result: int,
    is_running: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On Windows, a process is checked through a handle, which is closed afterwards.

    No signal is sent to the process.
    """
    closed: list[Any] = []
    kernel = SimpleNamespace(
        OpenProcess=lambda _rights, _inherited, _process: handle,
        GetLastError=lambda: error_code,
        WaitForSingleObject=lambda _handle, _milliseconds: wait_result,
        CloseHandle=closed.append,
    )
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("it was signalled"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        found = state_file.is_process_running(1234)
    assert (found, closed) == (is_running, [handle] if handle else [])
