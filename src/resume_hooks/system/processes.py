"""The processes above this one: which client runs us, and which terminal the user sits at.

Standard library, Python 3.9. Other people's processes are seen but never touched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Dict, NamedTuple, Optional, Set

from resume_hooks.system.subprocesses import output

MAX_DEPTH = 64  # ancestors followed; real chains have a dozen
PS_LIMIT = 2.0  # seconds that ``ps`` may take, on systems without /proc

_HELPERS = ("sh", "bash", "dash", "zsh", "ksh", "busybox", "ash", "python", "uv", "timeout", "env")


class Process(NamedTuple):
    """A running process; ``tty`` is the device number of its controlling terminal on Linux, or ``ps``'s name for it."""

    pid: int
    parent: int
    name: str
    tty: str


def ancestors(pid: Optional[int] = None) -> Iterator[Process]:
    """The processes above ``pid`` (default: this one), nearest first."""
    seen: Set[int] = set()
    process = _lookup(os.getpid() if pid is None else pid)
    while process is not None and process.parent >= 1 and process.parent not in seen and len(seen) < MAX_DEPTH:
        seen.add(process.parent)
        process = _lookup(process.parent)
        if process is not None:
            yield process


def client_pid() -> Optional[int]:
    """The client that runs this hook: as it says (2.1.220 and later), else the first one above that is no helper."""
    pid = os.environ.get("CLAUDE_PID", "")
    if pid.isdecimal():
        return int(pid)
    clients = (process.pid for process in ancestors() if not process.name.lstrip("-").startswith(_HELPERS))
    return next(clients, None)


def started(pid: int) -> str:
    """When a process started, in the kernel's ticks as clients note it; ``""`` if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def _lookup(pid: int) -> Optional[Process]:
    if os.path.isdir("/proc/self"):
        return _from_proc(pid)
    return _table().get(pid)


def _from_proc(pid: int) -> Optional[Process]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            raw = stream.read().decode("utf-8", "replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold spaces and parentheses itself.
    name = raw[raw.find("(") + 1 : raw.rfind(")")]
    fields = raw[raw.rfind(")") + 1 :].split()
    return Process(pid, int(fields[1]), name, fields[4])


_known: Dict[int, Process] = {}


def _table() -> Dict[int, Process]:
    """Every process by one run of ``ps``, cached for the life of this short-lived one."""
    if not _known:
        out = output(["ps", "-A", "-o", "pid=,ppid=,tty=,comm="], os.environ, time.monotonic() + PS_LIMIT)
        for row in (out or b"").decode("utf-8", "replace").split("\n"):
            cells = row.split(None, 3)
            if len(cells) == 4 and cells[0].isdecimal() and cells[1].isdecimal():
                name = os.path.basename(cells[3])
                _known[int(cells[0])] = Process(int(cells[0]), int(cells[1]), name, cells[2])
    return _known
