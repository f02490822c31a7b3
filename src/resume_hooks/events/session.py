"""SessionStart and SessionEnd: the link that ``/clear`` leaves, exactly.

The client ends the old session (reason clear) and starts the new one (source clear) in the same process: that pair
is parent and child. Standard library, Python 3.9: this runs before the engine is installed, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from datetime import datetime, timezone
from typing import Any, Dict, Optional

from resume_hooks.events import reply
from resume_hooks.links import Link, record_link
from resume_hooks.paths import is_session_id, open_regular, private_folder, state_home
from resume_hooks.processes import client_pid

MAX_INPUT = 1024 * 1024
PAIR_SECONDS = 60
"""How long after the end of a session its successor may start; older marks are of a client that died."""


def main() -> None:
    """Handle the event on stdin; writes nothing to stdout. Never raises: a link is never worth a client's start."""
    event = reply.read_event(sys.stdin.buffer.read(MAX_INPUT))
    if event is None or os.environ.get("RESUME_HOOKS_CHILD"):
        return
    with contextlib.suppress(OSError):  # a full or read-only state folder: this link is lost, the session is not
        handle(event)


def handle(event: Dict[str, Any]) -> None:
    """Mark the end of a cleared session, or link the session that follows it. OSError where state can't be written."""
    session_id = reply.field(event, "session_id")
    pid = client_pid()
    if not is_session_id(session_id) or pid is None:
        return
    name = reply.field(event, "hook_event_name")
    if name == "SessionEnd" and reply.field(event, "reason") == "clear":
        _mark(pid, session_id)
    elif name == "SessionStart" and reply.field(event, "source") == "clear":
        parent_id = _take_mark(pid)
        if parent_id is not None and parent_id != session_id:
            record_link(Link(session_id, parent_id, "clear", _now(), pid))


def _mark_file(pid: int) -> str:
    return os.path.join(state_home(), "pending", f"clear-{pid}.json")


def _mark(pid: int, session_id: str) -> None:
    path = _mark_file(pid)
    private_folder(state_home())
    private_folder(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump({"session_id": session_id, "at": _now()}, stream)


def _take_mark(pid: int) -> Optional[str]:
    """The session that this client just cleared; its mark is used up. None for a stale or damaged one."""
    path = _mark_file(pid)
    try:
        with open_regular(path, follow=False) as stream:
            raw = stream.read(MAX_INPUT)
            age = abs(datetime.now(timezone.utc).timestamp() - os.fstat(stream.fileno()).st_mtime)
        os.unlink(path)
    except FileNotFoundError:
        return None
    mark = reply.read_event(raw)
    session_id = mark.get("session_id") if mark else None
    return session_id if is_session_id(session_id) and age <= PAIR_SECONDS else None


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
