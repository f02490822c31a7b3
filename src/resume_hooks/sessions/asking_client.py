"""The client above us: whether the client itself started us, not a shell of the model's, and what started the client.

Measured on 2.1.329 and 2.1.330: what a hooks module starts is the client's own child and stays in the client's session
of the kernel; each shell of the model's leads a session of its own, and nothing in there can come back. So the parent
must be a client that lists itself, of our own session, with no other client above it: a client that the model started
is no person's.
"""

from __future__ import annotations

import os
import re

from resume_hooks.paths import Where, read_object
from resume_hooks.system.processes import ancestors, started

_RUNS_SCRIPTS = re.compile(r"/(?:node|bun)[^/]*\Z").search
"""Of a client that is a script, which npm installs, the executable is another program."""


def is_asked_by_client(where: Where) -> bool:
    """Whether the parent of this process is a client that nobody but a person can have started; False if unknown."""
    parent = os.getppid()
    try:
        if os.getsid(0) != os.getsid(parent):
            return False
    except (OSError, AttributeError):  # Windows knows no such sessions
        return False
    above = [parent, *(process.pid for process in ancestors(parent))]
    return [pid for pid in above if _is_client(pid, where, *_own(pid))] == [parent]


def command_of_client(where: Where) -> list[str]:
    """What started the nearest client above this process, so that another can be; empty if unknown."""
    pid = next((process.pid for process in ancestors() if _is_client(process.pid, where)), 0)
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = [os.fsdecode(word) for word in stream.read().split(b"\0")]
    except OSError:
        return []
    script = [word for word in words[1:] if not word.startswith("-")][:1] if _RUNS_SCRIPTS(program) else []
    command = [program, *script]
    return command if all(map(os.path.isfile, command)) else []


def _is_client(pid: int, *homes: Where) -> bool:
    """Whether a process is a client that lists itself in one of some homes, and its number went to no other since."""
    now = started(pid)
    entries = (read_object(os.path.join(each.config, "sessions", f"{pid}.json")) for each in homes)
    return any(entry.get("pid") == pid and (not now or entry.get("procStart") == now) for entry in entries)


def _own(pid: int) -> list[Where]:
    """The config home that a process was started with; none where that can't be read.

    A shell below a client can name us another home, but can't change what the client was started with.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            pairs = [os.fsdecode(word).partition("=") for word in stream.read().split(b"\0")]
    except OSError:
        return []
    environ = {name: value for name, _, value in pairs}
    return [Where(environ)] if environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME") else []
