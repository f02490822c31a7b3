"""End processes that a test started.

A process is ended by its id, and only if it certainly belongs to the test. It gets SIGTERM before
SIGKILL.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SIGTERM_GRACE_SECONDS = 3.0
MAX_WAIT_SECONDS = 90.0
"""Number of seconds after which a wait fails.

The limit is high so that no test fails only because the machine is slow.
"""
_POLL_SECONDS = 0.02


def wait_until(condition: Callable[[], bool], seconds: float = MAX_WAIT_SECONDS) -> bool:
    """Poll ``condition`` until it is true, and return True. Return False if ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def is_process_running(pid: int) -> bool:
    """Check whether the process exists and is not a zombie."""
    return _process_state(pid) not in "ZX"


def is_process_asleep(pid: int) -> bool:
    """Check whether the process is idle: it uses no processor time and has no child processes."""
    try:
        children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # One of the process's threads ended while its files were read.
        return False
    return not any(children) and _process_state(pid) == "S"


def _process_state(pid: int) -> str:
    """Return the letter with which Linux describes the process's state, or "X" if the process is missing."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X"
    return stat.rpartition(")")[2].split()[0]


def end_process(pid: int) -> None:
    """Send SIGTERM to a process, and then SIGKILL if it is still running. Ignore a missing process."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        if wait_until(lambda: not is_process_running(pid), SIGTERM_GRACE_SECONDS):
            return


def end_processes_with_setting(setting: str) -> None:
    """End this user's processes with ``setting`` ("NAME=value") in their environment.

    The process that calls this function is not ended.
    """
    for pid in pids_with_environment_setting(setting):
        end_process(pid)


def pids_with_environment_setting(setting: str) -> list[int]:
    """Return the ids of running processes that were started with ``setting`` in their environment.

    This works only on Linux.
    """
    wanted = setting.encode()
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [
        pid
        for pid in numbers
        if pid != os.getpid() and wanted in _process_environment(pid) and is_process_running(pid)
    ]


def _process_environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
