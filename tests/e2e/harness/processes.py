"""Owns the end of processes that a test started.

It ends only processes that are provably ours, by process id, with a polite signal first.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

GRACE = 3.0
PATIENCE = 90.0
"""Seconds after which a wait for what should come gives up: long, since a busy machine is no failure."""
_POLL = 0.02


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Poll `condition` until it is true. Return False after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def is_process_running(pid: int) -> bool:
    """Check whether the process exists and is not a zombie."""
    return _process_state(pid) not in "ZX"


def is_process_asleep(pid: int) -> bool:
    """Check whether the process neither works nor waits for a core or a child."""
    try:
        children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # a thread ended
        return False
    return not any(children) and _process_state(pid) == "S"


def _process_state(pid: int) -> str:
    """Return the process's state letter in Linux; X for a missing process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X"
    return stat.rpartition(")")[2].split()[0]


def end_process(pid: int) -> None:
    """Terminate one process, and kill it if it does not end. A missing process is fine."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        if wait_until(lambda: not is_process_running(pid), GRACE):
            return


def end_processes_with_setting(setting: str) -> None:
    """End every other process of this user with `setting` ("NAME=value") in its environment."""
    for pid in pids_with_setting(setting):
        end_process(pid)


def pids_with_setting(setting: str) -> list[int]:
    """Return ids of running processes that were started with `setting` in their environment (Linux)."""
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
