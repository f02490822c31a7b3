"""Whether a session is live: open in a client that may still write to it. What can't be told counts as live.

Clients list themselves in ``sessions/<pid>.json`` of the config home (2.1.112 and later; measured): the file is gone
after a clean end, stays after a kill, and names another session after ``/resume``, from 2.1.329 also after ``/clear``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, is_session_id, project_key, read_object
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.state_file import process_runs
from resume_hooks.system import processes
from resume_hooks.transcripts.head_tail import HeadTail

FRESH = 60  # seconds after a write during which a session counts as live
LISTED_SINCE = (2, 1, 112)  # the oldest client that is known to list itself
CLIENT = "claude"  # the name that clients give their process
PROC = "/proc"


def why_live(session: SessionFile, where: Where) -> str:
    """Why a session counts as live, as the end of a sentence; ``""`` where it is not."""
    return Clients(where).why_live(session)


class Clients:
    """The clients that run, looked up once, when first asked for, whatever number of sessions is asked about."""

    def __init__(self, where: Where) -> None:
        self._where = where

    def why_live(self, session: SessionFile) -> str:
        """Why a session counts as live, as the end of a sentence; ``""`` where it is not."""
        try:
            return self._why_known(session) or self._why_possible(session)
        except OSError as error:
            return f"it can't be told whether a client has it open ({error.strerror})"

    def is_known_live(self, session: SessionFile) -> bool:
        """Whether a session is live for certain, which a client that says nothing makes none of its folder."""
        with contextlib.suppress(OSError):
            return bool(self._why_known(session))
        return False

    def _why_known(self, session: SessionFile) -> str:
        age = time.time() - os.stat(session.path).st_mtime
        if age < FRESH and not _is_newborn(session):
            ahead = "it was written later than this machine's clock says it is"
            return ahead if age < -FRESH else f"it was written {max(0, round(age))} seconds ago"
        pid = next((pid for pid, entry in self._running if entry.get("sessionId") == session.session_id), 0)
        return f"the running client {pid} has it open" if pid else ""

    def _why_possible(self, session: SessionFile) -> str:
        for pid, entry in self._running:
            if why := _may_be_of(entry, session):
                return f"the running client {pid} {why}"
        if self._unlisted is None:
            parts = HeadTail(session.path).version.split(".")
            version = tuple(int(part) for part in parts if part.isascii() and part.isdecimal())
            return "" if version >= LISTED_SINCE else "its client is too old to tell whether it still runs"
        inside = (pid for pid, cwd in self._unlisted if _is_folder_of(cwd, session))
        started_here = next(inside, "")
        why = f"the running client {started_here} was started in its folder, and does not list what it has open"
        return why if started_here else ""

    def leave_to(self, pid: int | None, child_id: str, maker: int | None) -> bool:
        """Whether a child may be opened by the client ``pid``: no other one that runs made it, or has it open."""
        if any(other != pid and entry.get("sessionId") == child_id for other, entry in self._running):
            return False
        if maker is None or maker == pid:
            return True
        return maker not in {each for each, _ in self._running} | {int(each) for each, _ in self._unlisted or ()}

    @cached_property
    def _listed(self) -> list[tuple[int, dict[str, Any]]]:
        return list(_listed(self._where))

    @cached_property
    def _running(self) -> list[tuple[int, dict[str, Any]]]:
        return [(pid, entry) for pid, entry in self._listed if _runs(pid, entry)]

    @cached_property
    def _unlisted(self) -> list[tuple[str, str]] | None:
        """The running clients that don't list themselves, with their folders; None where none can be seen."""
        if not os.path.isdir(f"{PROC}/self"):
            return None
        known = {pid for pid, _ in self._listed}
        pids = (name for name in os.listdir(PROC) if name.isdecimal() and int(name) not in known)
        return [(pid, cwd) for pid in pids if (cwd := _client_folder(pid))]


def _is_newborn(session: SessionFile) -> bool:
    """Whether the last write was our own: a child that nobody went on in yet."""
    try:
        ends = HeadTail(session.path)
    except SessionNotFound:
        return False
    return bool(ends.derived_at) and not ends.touched


def _listed(where: Where) -> Iterator[tuple[int, dict[str, Any]]]:
    folder = os.path.join(where.config, "sessions")
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension == ".json" and stem.isascii() and stem.isdecimal():
            yield int(stem), read_object(os.path.join(folder, name))


def _may_be_of(entry: dict[str, Any], session: SessionFile) -> str:
    """Why a running client may have a session open that its entry does not name; ``""`` where it has another one."""
    if not is_session_id(entry.get("sessionId")):
        return "does not say which session it has open"
    # An entry that is never brought up to date still names what was open before /clear.
    if "updatedAt" not in entry and _is_folder_of(entry.get("cwd"), session):
        return "runs in its folder, and may have it open since /clear"
    return ""


def _runs(pid: int, entry: dict[str, Any]) -> bool:
    """Whether a listed client runs; one of another machine or container can't be seen from here, and counts."""
    domain, started = entry.get("pidDomain"), entry.get("procStart")
    if isinstance(domain, str) and not _is_here(domain):
        return True
    if not process_runs(pid):
        return False
    now = processes.started(pid) if isinstance(started, str) else ""
    return not now or now == started  # else the number went to another process since


def _client_folder(pid: str) -> str:
    """The folder that a process runs in, if it is a client; ``""`` for any other."""
    try:
        with open(f"{PROC}/{pid}/comm", "rb") as stream:
            if stream.read().rstrip(b"\n") != CLIENT.encode():
                return ""
        return os.readlink(f"{PROC}/{pid}/cwd")
    except OSError:
        return ""  # ended since, or another user's: it could not write here


def _is_folder_of(cwd: object, session: SessionFile) -> bool:
    """Whether a client that runs in ``cwd`` keeps its sessions where this one lies; it may where no ``cwd`` is said."""
    try:
        return not isinstance(cwd, str) or project_key(cwd) == os.path.basename(os.path.dirname(session.path))
    except ValueError:
        return True


def _is_here(domain: str) -> bool:
    """Whether a client's ``linux:<machine id>:pid:[<namespace>]`` is where we run; another system's is taken for it."""
    try:
        namespace = os.readlink(f"{PROC}/self/ns/pid")
        with open("/etc/machine-id", encoding="ascii") as stream:
            machine = stream.read().strip()
    except (OSError, ValueError):
        return not domain.startswith("linux:") or not os.path.isdir(f"{PROC}/self")
    return machine in domain and namespace in domain
