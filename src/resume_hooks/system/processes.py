"""The processes above this one: which client runs us, what started it, and which terminal the user sits at.

Standard library, Python 3.9. Other people's processes are seen but never touched.

Whether the client itself started us, not a shell of the model's, was measured on 2.1.329 and
2.1.330: what a hooks module starts is the client's own child and stays in the client's session of
the kernel; each shell of the model's leads a session of its own, and nothing in there can rejoin
the client's. So the parent must be a client that lists itself, of our own session, with no other
client above it: a client that the model started is not a person's.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Dict, NamedTuple, Optional, Set

from resume_hooks.paths import Where, read_object
from resume_hooks.system.subprocesses import output_of_command

MAX_DEPTH = 64  # ancestors followed; real chains have a dozen
PS_LIMIT = 2.0  # seconds that ``ps`` may take, on systems without /proc

_HELPERS = ("sh", "bash", "dash", "zsh", "ksh", "busybox", "ash", "python", "uv", "timeout", "env")

_known: Dict[int, Process] = {}

_RUNS_SCRIPTS = re.compile(r"/(?:node|bun)[^/]*\Z").search  # what runs a client from npm


class Process(NamedTuple):
    """A running process; ``tty`` is the device number of its controlling terminal on Linux, or ``ps``'s name for it."""

    pid: int
    parent: int
    name: str
    tty: str


def ancestors(pid: Optional[int] = None) -> Iterator[Process]:
    """The processes above ``pid`` (default: this one), nearest first."""
    seen: Set[int] = set()
    process = _find_process(os.getpid() if pid is None else pid)
    while (
        process is not None
        and process.parent >= 1
        and process.parent not in seen
        and len(seen) < MAX_DEPTH
    ):
        seen.add(process.parent)
        process = _find_process(process.parent)
        if process is not None:
            yield process


def client_pid() -> Optional[int]:
    """The client that runs this hook: as it says (2.1.220 and later), else the first one above that is not a helper."""
    pid = os.environ.get("CLAUDE_PID", "")
    if pid.isdecimal():
        return int(pid)
    clients = (
        process.pid for process in ancestors() if not process.name.lstrip("-").startswith(_HELPERS)
    )
    return next(clients, None)


def start_of_process(pid: int) -> str:
    """When a process started, in the kernel's ticks as clients note it; ``""`` if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def _find_process(pid: int) -> Optional[Process]:
    if os.path.isdir("/proc/self"):
        return _from_proc(pid)
    return _process_table().get(pid)


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


def _process_table() -> Dict[int, Process]:
    if not _known:
        out = output_of_command(
            ["ps", "-A", "-o", "pid=,ppid=,tty=,comm="], os.environ, time.monotonic() + PS_LIMIT
        )
        for row in (out or b"").decode("utf-8", "replace").split("\n"):
            cells = row.split(None, 3)
            if len(cells) == 4 and cells[0].isdecimal() and cells[1].isdecimal():
                name = os.path.basename(cells[3])
                _known[int(cells[0])] = Process(int(cells[0]), int(cells[1]), name, cells[2])
    return _known


def is_asked_by_client(where: Where) -> bool:
    """Whether the parent of this process is a client that nobody but a person can have started.

    False if unknown.
    """
    parent = os.getppid()
    try:
        if os.getsid(0) != os.getsid(parent):
            return False
    except (OSError, AttributeError):  # Windows knows no such sessions
        return False
    above = [parent, *(process.pid for process in ancestors(parent))]
    return [pid for pid in above if _is_client(pid, where, *_home_of_process(pid))] == [parent]


def is_below_client(where: Where) -> bool:
    """Whether a client started this process, through however many others; False if unknown."""
    return any(
        _is_client(process.pid, where, *_home_of_process(process.pid)) for process in ancestors()
    )


def command_of_client(where: Where) -> list[str]:
    """What started the nearest client above this process, so that another can be.

    Empty if unknown.
    """
    pid = next((process.pid for process in ancestors() if _is_client(process.pid, where)), 0)
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = [os.fsdecode(word) for word in stream.read().split(b"\0")]
    except OSError:
        return []
    if _RUNS_SCRIPTS(program):
        script = [word for word in words[1:] if not word.startswith("-")][:1]
    else:
        script = []
    command = [program, *script]
    if all(map(os.path.isfile, command)):
        return command
    return []


def _is_client(pid: int, *homes: Where) -> bool:
    """Whether a process is a client that lists itself in one of some homes, and its number went to no other since."""
    now = start_of_process(pid)
    entries = (read_object(os.path.join(each.config, "sessions", f"{pid}.json")) for each in homes)
    return any(
        entry.get("pid") == pid and (not now or entry.get("procStart") == now) for entry in entries
    )


def _home_of_process(pid: int) -> list[Where]:
    """The config home that a process was started with; none where that can't be read.

    A shell below a client can name us another home, but can't change what the client was started
    with.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            pairs = []
            for word in stream.read().split(b"\0"):
                pairs.append(os.fsdecode(word).partition("="))
    except OSError:
        return []
    environ = {name: value for name, _, value in pairs}
    if environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME"):
        return [Where(environ)]
    return []
