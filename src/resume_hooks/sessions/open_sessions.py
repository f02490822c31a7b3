"""Check whether a client has a session open.

A session counts as open if a client lists it, if it was written to within the last minute, or if
its state can't be read. A session is not open just because a client is running in its folder.

Clients list themselves in ``sessions/<pid>.json`` of the config home (measured with 2.1.112 and
later). A client removes its file when it exits, but not when it is killed. After ``/resume``, and
since 2.1.329 also after ``/clear``, the file contains the id of the new session.
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

RECENT_WRITE_SECONDS = 60  # A session counts as open for this number of seconds after a write.
CLIENT_PROCESS_NAME = "claude"  # the name of the client's program in the list of processes
PROC_FOLDER = "/proc"


def describe_open_session(session: SessionFile, where: Where) -> str:
    """Return why a session counts as open, worded as the end of a sentence.

    Return ``""`` if the session is closed.
    """
    return RunningClients(where).describe_open_state(session)


class RunningClients:
    """The running clients. They are looked up once, at the first use."""

    def __init__(self, where: Where) -> None:
        self._where = where

    def describe_open_state(self, session: SessionFile) -> str:
        """Return why a session counts as open, worded as the end of a sentence.

        Return ``""`` if the session is closed.
        """
        try:
            age = time.time() - os.stat(session.path).st_mtime
            if age < RECENT_WRITE_SECONDS and not _is_untouched_child(session):
                message = "its last write is later than this machine's clock"
                if age < -RECENT_WRITE_SECONDS:
                    return message
                return f"it was written {max(0, round(age))} seconds ago"
            if pid := self.find_client_of_session(session.session_id):
                return f"the running client {pid} has the session open"
            return ""
        except OSError as error:
            return f"it is unknown whether a client has the session open ({error.strerror})"

    def find_client_of_session(self, session_id: str) -> int:
        """Return the process id of a running client that has the session open, or 0."""
        for pid, entry in self._running_clients:
            if entry.get("sessionId") == session_id:
                return pid
        return 0

    def is_shown_as_open(self, session: SessionFile) -> bool:
        """Check whether a list should show a session as open.

        If the running clients list any sessions, only the listed ones count as open. A recent write
        then does not make a session open, because its client may have just closed it. If the
        running clients list no session, ``describe_open_state`` decides.
        """
        listed_ids = {entry.get("sessionId") for _, entry in self._running_clients} - {None}
        if listed_ids:
            return session.session_id in listed_ids
        return bool(self.describe_open_state(session))

    def may_open_child(self, pid: int | None, child_id: str, creator_pid: int | None) -> bool:
        """Check whether the client with the process id ``pid`` may open a child.

        Return False if another running client has opened the child. Also return False if
        ``creator_pid``, the client that made the child, is a different client and is still running.
        """
        if any(
            other_pid != pid and entry.get("sessionId") == child_id
            for other_pid, entry in self._running_clients
        ):
            return False
        if creator_pid is None or creator_pid == pid:
            return True
        is_listed = creator_pid in {listed_pid for listed_pid, _ in self._listed_clients}
        return creator_pid not in {listed_pid for listed_pid, _ in self._running_clients} and (
            is_listed or not _is_client_process(creator_pid)
        )

    @cached_property
    def _listed_clients(self) -> list[tuple[int, dict[str, Any]]]:
        return list(_read_listed_clients(self._where))

    @cached_property
    def _running_clients(self) -> list[tuple[int, dict[str, Any]]]:
        return [
            (pid, entry) for pid, entry in self._listed_clients if _is_client_running(pid, entry)
        ]


def _is_untouched_child(session: SessionFile) -> bool:
    """Check whether a session is a child that contains only our records, because it was never continued."""
    with contextlib.suppress(SessionNotFound):
        ends = HeadTail(session.path)
        return bool(ends.derived_at) and not ends.was_continued
    return False


def _read_listed_clients(where: Where) -> Iterator[tuple[int, dict[str, Any]]]:
    folder = os.path.join(where.config, "sessions")
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension == ".json" and stem.isascii() and stem.isdecimal():
            yield int(stem), read_json_object(os.path.join(folder, name))


def _is_client_running(pid: int, entry: dict[str, Any]) -> bool:
    """Check whether a listed client is running.

    Processes of another machine or container are not visible, so a client that runs there counts as
    running.
    """
    pid_domain, recorded_start = entry.get("pidDomain"), entry.get("procStart")
    if isinstance(pid_domain, str) and not _is_on_this_machine(pid_domain):
        return True
    if not is_process_running(pid):
        return False
    if isinstance(recorded_start, str):
        current_start = processes.read_process_start_time(pid)
    else:
        current_start = ""
    # If the start times differ, the client has ended, and its id now belongs to another process.
    return not current_start or current_start == recorded_start


def _is_client_process(pid: int) -> bool:
    """Check whether a process is a client, even if it does not list itself.

    Return False if the system does not show processes.
    """
    try:
        with open(f"{PROC_FOLDER}/{pid}/comm", "rb") as stream:
            return stream.read().rstrip(b"\n") == CLIENT_PROCESS_NAME.encode()
    except OSError:
        return False  # The process has ended, or it belongs to another user and can't write to this config home.


def _is_on_this_machine(domain: str) -> bool:
    """Check whether a client runs on this machine and in this container.

    ``domain`` has the form ``linux:<machine id>:pid:[<namespace>]``. On systems other than Linux,
    return True.
    """
    try:
        namespace = os.readlink(f"{PROC_FOLDER}/self/ns/pid")
        with open("/etc/machine-id", encoding="ascii") as stream:
            machine = stream.read().strip()
    except (OSError, ValueError):
        return not domain.startswith("linux:") or not os.path.isdir(f"{PROC_FOLDER}/self")
    return machine in domain and namespace in domain
