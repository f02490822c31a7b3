"""Whether a session is open: a client says that it has it open, or it was just written to.

A client that names another session, or none, makes none of its folder open; what can't be looked at
counts as open.

Clients list themselves in ``sessions/<pid>.json`` of the config home (2.1.112 and later; measured):
the file is gone after a clean end, stays after a kill, and names another session after ``/resume``,
from 2.1.329 also after ``/clear``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, read_json_object
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.state_file import is_process_running
from resume_hooks.system import processes
from resume_hooks.transcripts.head_tail import HeadTail

FRESH = 60  # seconds after a write during which a session counts as open
CLIENT = "claude"  # the name that clients give their process
PROC = "/proc"


def why_session_is_open(session: SessionFile, where: Where) -> str:
    """Why a session counts as open, as the end of a sentence; ``""`` where it is not."""
    return Clients(where).why_open(session)


class Clients:
    """The clients that run, looked up once, when first asked for, whatever number of sessions is asked about."""

    def __init__(self, where: Where) -> None:
        self._where = where

    def why_open(self, session: SessionFile) -> str:
        """Why a session counts as open, as the end of a sentence; ``""`` where it is not."""
        try:
            age = time.time() - os.stat(session.path).st_mtime
            if age < FRESH and not _is_newborn(session):
                ahead = "it was written later than this machine's clock says it is"
                if age < -FRESH:
                    return ahead
                return f"it was written {max(0, round(age))} seconds ago"
            pid = next(
                (
                    pid
                    for pid, entry in self._running
                    if entry.get("sessionId") == session.session_id
                ),
                0,
            )
            if pid:
                return f"the running client {pid} has it open"
            return ""
        except OSError as error:
            return f"it can't be told whether a client has it open ({error.strerror})"

    def has_open(self, session: SessionFile) -> bool:
        """Whether a list may call a session open: a running client says so.

        Where none does of any, by its last write.

        A session that its client has just left was written a moment ago, too.
        """
        said = {entry.get("sessionId") for _, entry in self._running} - {None}
        if said:
            return session.session_id in said
        return bool(self.why_open(session))

    def leave_to(self, pid: int | None, child_id: str, maker: int | None) -> bool:
        """Whether a child may be opened by the client ``pid``: no other one that runs made it, or has it open."""
        if any(
            other != pid and entry.get("sessionId") == child_id for other, entry in self._running
        ):
            return False
        if maker is None or maker == pid:
            return True
        listed = maker in {each for each, _ in self._clients}
        return maker not in {each for each, _ in self._running} and (
            listed or not _is_client(maker)
        )

    @cached_property
    def _clients(self) -> list[tuple[int, dict[str, Any]]]:
        return list(_clients_listed(self._where))

    @cached_property
    def _running(self) -> list[tuple[int, dict[str, Any]]]:
        return [(pid, entry) for pid, entry in self._clients if _runs(pid, entry)]


def _is_newborn(session: SessionFile) -> bool:
    """Whether only we have written to it so far: a child that nobody went on in yet."""
    with contextlib.suppress(SessionNotFound):
        ends = HeadTail(session.path)
        return bool(ends.derived_at) and not ends.touched
    return False


def _clients_listed(where: Where) -> Iterator[tuple[int, dict[str, Any]]]:
    folder = os.path.join(where.config, "sessions")
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension == ".json" and stem.isascii() and stem.isdecimal():
            yield int(stem), read_json_object(os.path.join(folder, name))


def _runs(pid: int, entry: dict[str, Any]) -> bool:
    """Whether a listed client runs.

    One of another machine or container can't be seen from here, and counts.
    """
    domain, started = entry.get("pidDomain"), entry.get("procStart")
    if isinstance(domain, str) and not _is_this_machine(domain):
        return True
    if not is_process_running(pid):
        return False
    if isinstance(started, str):
        now = processes.process_start_time(pid)
    else:
        now = ""
    return not now or now == started  # else the number went to another process since


def _is_client(pid: int) -> bool:
    """Whether a process is a client, one that lists itself nowhere too.

    None is where processes can't be seen.
    """
    try:
        with open(f"{PROC}/{pid}/comm", "rb") as stream:
            return stream.read().rstrip(b"\n") == CLIENT.encode()
    except OSError:
        return False  # ended since, or another user's: it could not write here


def _is_this_machine(domain: str) -> bool:
    """Whether a client's ``linux:<machine id>:pid:[<namespace>]`` is where we run.

    Another system's is taken for it.
    """
    try:
        namespace = os.readlink(f"{PROC}/self/ns/pid")
        with open("/etc/machine-id", encoding="ascii") as stream:
            machine = stream.read().strip()
    except (OSError, ValueError):
        return not domain.startswith("linux:") or not os.path.isdir(f"{PROC}/self")
    return machine in domain and namespace in domain
