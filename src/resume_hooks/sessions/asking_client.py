"""Whether the client itself asks, and not a shell that it gave to the model.

Measured on 2.1.329 and 2.1.330: what a hooks module starts is the client's own child and stays in the client's session
of the kernel; each shell of the model's leads a session of its own, and nothing in there can come back. So the parent
must be a client that lists itself, of our own session, with no other client above it: a client that the model started
is no person's.
"""

from __future__ import annotations

import os

from resume_hooks.paths import Where, read_object
from resume_hooks.system.processes import ancestors, started


def is_asked_by_client(where: Where) -> bool:
    """Whether the parent of this process is a client that nobody but a person can have started; False if unknown."""
    parent = os.getppid()
    try:
        if os.getsid(0) != os.getsid(parent):
            return False
    except (OSError, AttributeError):  # Windows knows no such sessions
        return False
    above = [parent, *(process.pid for process in ancestors(parent))]
    return [pid for pid in above if _is_client(pid, where)] == [parent]


def _is_client(pid: int, where: Where) -> bool:
    """Whether a process is a client that lists itself, and its number did not go to another one since."""
    entry = read_object(os.path.join(where.config, "sessions", f"{pid}.json"))
    now = started(pid)
    return entry.get("pid") == pid and (not now or entry.get("procStart") == now)
