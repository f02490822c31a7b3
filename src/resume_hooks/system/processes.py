"""Find the processes above this process: the client, the process that started it, and the terminal.

Other users' processes are read but never changed. This module needs only the standard library and
Python 3.9.

The module also checks whether the client itself, and not a shell of the model, started this
process. The check relies on measurements with 2.1.329 and 2.1.330. A process started by a hooks
module is the client's own child and is in the client's kernel session. Each shell of the model
starts a new kernel session, and its processes cannot return to the client's session. So the parent
process must be a client that lists itself and is in our kernel session. There must be no other
client above it, because the model may have started a second client.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Dict, NamedTuple, Optional, Set

from resume_hooks.paths import Where, read_json_object
from resume_hooks.system.subprocesses import run_and_read_output

MAX_ANCESTORS = 64  # maximum number of ancestors to follow; a real process has about a dozen
PS_TIMEOUT_SECONDS = 2.0  # time limit in seconds for ``ps`` on systems without /proc

_HELPER_PROGRAMS = (
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "busybox",
    "ash",
    "python",
    "uv",
    "timeout",
    "env",
)

_process_cache: Dict[int, Process] = {}

# Finds the program that interprets a client installed by npm.
_find_interpreter = re.compile(r"/(?:node|bun)[^/]*\Z").search


class Process(NamedTuple):
    """A running process; ``parent_pid`` is the process id of its parent.

    ``tty`` is the device number of its terminal on Linux, and elsewhere the name that ``ps`` shows.
    """

    pid: int
    parent_pid: int
    name: str
    tty: str


def iterate_ancestors(pid: Optional[int] = None) -> Iterator[Process]:
    """Yield the processes above ``pid`` (default: this process), nearest first."""
    seen: Set[int] = set()
    process = _find_process(os.getpid() if pid is None else pid)
    while (
        process is not None
        and process.parent_pid >= 1
        and process.parent_pid not in seen
        and len(seen) < MAX_ANCESTORS
    ):
        seen.add(process.parent_pid)
        process = _find_process(process.parent_pid)
        if process is not None:
            yield process


def find_client_pid() -> Optional[int]:
    """Return the process id of the client that runs this hook, or None.

    The id is CLAUDE_PID (2.1.220 and later), or that of the first ancestor that is not a shell or
    another helper program.
    """
    pid = os.environ.get("CLAUDE_PID", "")
    if pid.isdecimal():
        return int(pid)
    clients = (
        process.pid
        for process in iterate_ancestors()
        if not process.name.lstrip("-").startswith(_HELPER_PROGRAMS)
    )
    return next(clients, None)


def read_process_start_time(pid: int) -> str:
    """Return a process's start time in kernel ticks, as clients record it, or ``""`` if it is unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def _find_process(pid: int) -> Optional[Process]:
    if os.path.isdir("/proc/self"):
        return _read_process_from_proc(pid)
    return _read_process_table().get(pid)


def _read_process_from_proc(pid: int) -> Optional[Process]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            raw = stream.read().decode("utf-8", "replace")
    except OSError:
        return None
    # The name is in parentheses, and may itself contain spaces and parentheses.
    name = raw[raw.find("(") + 1 : raw.rfind(")")]
    fields = raw[raw.rfind(")") + 1 :].split()
    return Process(pid, int(fields[1]), name, fields[4])


def _read_process_table() -> Dict[int, Process]:
    if not _process_cache:
        out = run_and_read_output(
            ["ps", "-A", "-o", "pid=,ppid=,tty=,comm="],
            os.environ,
            time.monotonic() + PS_TIMEOUT_SECONDS,
        )
        for row in (out or b"").decode("utf-8", "replace").split("\n"):
            cells = row.split(None, 3)
            if len(cells) == 4 and cells[0].isdecimal() and cells[1].isdecimal():
                name = os.path.basename(cells[3])
                _process_cache[int(cells[0])] = Process(
                    int(cells[0]), int(cells[1]), name, cells[2]
                )
    return _process_cache


def is_started_by_client(where: Where) -> bool:
    """Check whether this process's parent is a client that was started by a person and not by a model.

    Return False if that is unknown.
    """
    parent = os.getppid()
    try:
        if os.getsid(0) != os.getsid(parent):
            return False
    except (OSError, AttributeError):  # Windows has no kernel sessions.
        return False
    ancestor_pids = [parent, *(process.pid for process in iterate_ancestors(parent))]
    return [
        pid
        for pid in ancestor_pids
        if _is_client(pid, where, *_read_config_homes_at_process_start(pid))
    ] == [parent]


def is_below_client(where: Where) -> bool:
    """Check whether there is a client among the ancestors of this process.

    Return False if that is unknown.
    """
    return any(
        _is_client(process.pid, where, *_read_config_homes_at_process_start(process.pid))
        for process in iterate_ancestors()
    )


def read_client_command(where: Where) -> list[str]:
    """Return the command that started the nearest client above this process, without its options.

    The command can be used to start another client. The result is empty if the command is unknown.
    """
    pid = next(
        (process.pid for process in iterate_ancestors() if _is_client(process.pid, where)), 0
    )
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = [os.fsdecode(word) for word in stream.read().split(b"\0")]
    except OSError:
        return []
    if _find_interpreter(program):
        script = [word for word in words[1:] if not word.startswith("-")][:1]
    else:
        script = []
    command = [program, *script]
    if all(map(os.path.isfile, command)):
        return command
    return []


def _is_client(pid: int, *homes: Where) -> bool:
    """Check whether a process is a client that is listed in one of these config homes.

    Return False if the client has ended and another process now uses its id.
    """
    current_start = read_process_start_time(pid)
    entries = (
        read_json_object(os.path.join(home.config, "sessions", f"{pid}.json")) for home in homes
    )
    return any(
        entry.get("pid") == pid and (not current_start or entry.get("procStart") == current_start)
        for entry in entries
    )


def _read_config_homes_at_process_start(pid: int) -> list[Where]:
    """Return the config home that a process had when it started, or an empty list if it cannot be read.

    A shell below a client can set a different config home for our process, but it cannot change the
    environment with which the client started.
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
