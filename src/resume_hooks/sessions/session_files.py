"""Which files on this machine are sessions, which is the latest of a folder, and the protocol of what holds sessions.

A session file is strictly ``<uuid>.jsonl``, regular and not empty; everything else in a project
folder is left alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from resume_hooks import paths
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.paths import (
    MAX_KEY,
    Where,
    is_session_file,
    is_session_id,
    project_folders,
    project_key,
    session_id_from_path,
)
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import OneOpen
from resume_hooks.transcripts.records import MESSAGES, kind, parse, refuse_foreign

MAX_SEARCHED = (
    8 * 1024 * 1024
)  # bytes of a file of any name in which a session's records are looked for
OWN_AGENT = "claude"  # the agent of a session that nothing else is said of: this client


class SessionFile(NamedTuple):
    """A session on disk. ``mtime`` is in seconds since the epoch, ``size`` in bytes, ``agent`` the one whose it is.

    ``source`` is the agent's own file where what lies at ``path`` is a copy in our form of record.
    """

    session_id: str
    path: str
    mtime: float
    size: int
    agent: str = OWN_AGENT
    source: str = ""

    @property
    def file(self) -> str | OneOpen:
        """What its transcript is read from."""
        return self.path

    @property
    def original(self) -> str:
        """Where its agent has it."""
        return self.source or self.path


def sessions_in(folder: str, prefix: str = "") -> list[SessionFile]:
    """The sessions of a project folder, newest first, whose ids start with ``prefix``.

    None if it can't be read.
    """
    try:
        return newest_first(_listed_files(folder, prefix))
    except OSError:
        return []


def sessions_of(cwd: str, where: Where) -> list[SessionFile]:
    """The sessions in a directory's project folders, newest first.

    Keys collide, see ``belongs_to_folder``.
    """
    return newest_first(
        session for folder in project_folders(cwd, where) for session in sessions_in(folder)
    )


def all_sessions(where: Where, prefix: str = "") -> list[SessionFile]:
    """Every session of every project whose id starts with ``prefix``, newest first."""
    return newest_first(
        s for folder in paths.all_project_folders(where) for s in sessions_in(folder, prefix)
    )


def known_ids(where: Where) -> set[str]:
    """The ids in the names of all session files; no file is looked at."""
    ids = set()
    for folder in paths.all_project_folders(where):
        with contextlib.suppress(OSError):
            ids |= {
                session_id
                for name in os.listdir(folder)
                if (session_id := session_id_from_path(name))
            }
    return ids


def unlistable_folders(where: Where) -> list[str]:
    """The project folders, or the folder of them all, that can't be listed or looked into.

    Sorted.
    """
    home = where.projects
    if not _is_accessible(os.listdir, home):
        return [home]
    folders = []
    for folder in paths.all_project_folders(where):
        if not _is_accessible(_check_first_entry, folder):
            folders.append(folder)
    return folders


def linked_projects(where: Where, session_id: str = "") -> list[str]:
    """The project folders that are symbolic links, sorted.

    With an id the files of that name that lie behind links.
    """
    try:
        with os.scandir(where.projects) as entries:
            folders = sorted(
                entry.path for entry in entries if entry.is_symlink() and entry.is_dir()
            )
    except OSError:
        return []
    if not session_id:
        return folders
    name = f"{session_id}{paths.TRANSCRIPT_SUFFIX}"
    behind = [os.path.join(folder, name) for folder in folders]
    links = [
        path
        for folder in paths.all_project_folders(where)
        if os.path.islink(path := os.path.join(folder, name))
    ]
    return [path for path in (*behind, *links) if os.path.isfile(path)]


def where_hidden(folders: Sequence[str], linked: Sequence[str] = ()) -> str:
    """A remedy's last sentences where folders can't be listed, or are links; "" where all are looked into."""
    remedy = ""
    if folders:
        remedy = (
            " It may lie where nothing can be listed: check the permissions of "
            f"{folders[0]}{_more(folders)}."
        )
    if linked:
        return f"{remedy} {where_linked(linked)}"
    return remedy


def where_linked(places: Sequence[str]) -> str:
    """What to say of places behind symbolic links."""
    verb = "lie" if len(places) > 1 else "lies"
    return (
        f"{places[0]}{_more(places)} {verb} behind a symbolic link, which is not followed: name a session there by the "
        "path of its file, or move it to where the link is."
    )


def _more(places: Sequence[str]) -> str:
    if len(places) > 1:
        return f" and {len(places) - 1:,} more"
    return ""


def belongs_to_folder(path: str, cwd: str) -> bool:
    """Whether a session is of ``cwd`` and not of a folder with the same key, by the folders named inside."""
    with contextlib.suppress(SessionNotFound):  # deleted since it was listed
        return ends_belong_to_folder(HeadTail(path), cwd)
    return False


def ends_belong_to_folder(ends: HeadTail, cwd: str) -> bool:
    """The same of a session whose ends were read."""
    key = ends.project[:MAX_KEY]
    fitting = []
    for folder in ends.folders:
        if project_key(folder)[:MAX_KEY] == key:
            fitting.append(folder)
    return not fitting or paths.canonical_path(cwd) in {
        paths.canonical_path(folder) for folder in fitting
    }


def session_file(path: str) -> SessionFile:
    """The session at a path the user named, whatever it is called.

    The id comes from the name, else from the records inside. SessionNotFound where nothing can be
    read there, NotATranscript where what is there is something else.
    """
    try:
        status = os.stat(path)
        if not os.path.isfile(path):
            raise SessionNotFound(f"{path} is not a file", "Give the path of a .jsonl file.")
        session_id = session_id_from_path(path) or _inner_id(path)
    except OSError as error:
        raise SessionNotFound(
            f"{path} can't be read: {error.strerror}", "Check the path."
        ) from error
    except ValueError as error:  # NULs, lone surrogates
        raise SessionNotFound(f"{path!r} is not a path: {error}", "Check the path.") from error
    return SessionFile(session_id, os.path.abspath(path), status.st_mtime, status.st_size)


def latest_session(cwd: str, where: Where, *, back: int = 0, but: str = "") -> SessionFile:
    """The newest session of a working directory that somebody talked in, or the one ``back`` places before it.

    Passed over: sub-agents, headless runs, children of ours that nobody went on in yet, and the
    session ``but``.
    """
    passed = 0
    for session in sessions_of(cwd, where):
        if session.session_id != but and _is_talk(session) and belongs_to_folder(session.path, cwd):
            if passed == back:
                return session
            passed += 1
    hidden = where_hidden(unlistable_folders(where), linked_projects(where))
    if passed == 1:
        count = "is only 1 session"
    else:
        count = f"are only {passed} sessions"
    if passed:
        missing = f"There {count} of {cwd} to count back"
    else:
        missing = f"No session of {cwd} yet"
    raise SessionNotFound(
        missing,
        f"Name one by id, title or path, or change to the folder that it was started in.{hidden}",
    )


def is_known(session: SessionFile, where: Where) -> bool:
    """Whether the client can resume the session by its id: it lies in a project folder under its own name."""
    folder = os.path.dirname(session.path)
    return is_session_file(session.path) and os.path.dirname(folder) == where.projects


def _listed_files(folder: str, prefix: str = "") -> list[SessionFile]:
    sessions = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                session_id = session_id_from_path(entry.name)
            else:
                session_id = None
            if session_id is None or not entry.is_file(follow_symlinks=False):
                continue
            with contextlib.suppress(FileNotFoundError):  # deleted since it was listed
                status = entry.stat(follow_symlinks=False)
                if status.st_size:
                    sessions.append(
                        SessionFile(session_id, entry.path, status.st_mtime, status.st_size)
                    )
    return sessions


def _check_first_entry(folder: str) -> None:
    """Look at one entry of a folder: all of them can be looked at, or none. OSError."""
    with os.scandir(folder) as entries:
        for entry in islice(entries, 1):
            entry.stat(follow_symlinks=False)


def _is_accessible(look: Callable[[str], object], folder: str) -> bool:
    """Whether a folder can be looked into; one that is not there hides nothing."""
    try:
        look(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return True


def newest_first(sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """Sessions by the time of their last write."""
    return sorted(sessions, key=lambda session: session.mtime, reverse=True)


def _is_talk(session: SessionFile) -> bool:
    with contextlib.suppress(SessionNotFound):  # deleted since the folder was listed
        ends = HeadTail(session.path)
        return ends.touched and not ends.is_sidechain and not ends.entrypoint.startswith("sdk")
    return False


def _inner_id(path: str) -> str:
    """The session id that records inside name.

    The file's own name where they name none that could be one.
    """
    with open(path, "rb") as stream:
        head = stream.read(MAX_SEARCHED)
    for body in head.split(b"\n"):
        record = parse(body)
        if record is None:
            continue
        refuse_foreign(record, path)
        if is_session_id(record.get("sessionId")):
            return str(record["sessionId"])
        if kind(record) in MESSAGES:
            return os.path.splitext(os.path.basename(path))[0]
    raise NotATranscript(
        f"{path} holds no record of a session", "Give the path of a Claude Code transcript."
    )


class SessionStore(Protocol):
    """Sessions by project: ``projects`` and session ids are the keys of the official SDK's ``SessionStore``, too."""

    def projects(self) -> list[str]:
        """The names of the projects that are there, sorted."""

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """The sessions of these projects (None: of all) whose ids start with ``prefix``, newest first."""

    def find(self, session_id: str) -> SessionFile | None:
        """The newest copy of a session in any project; None for an unknown id."""

    def hidden(self) -> list[str]:
        """The places that are there and can't be looked into; none unless a store says so."""
        return []

    def linked(self, session_id: str = "") -> list[str]:  # noqa: ARG002 - for those who follow no link
        """The projects behind symbolic links, or the files of an id there: links are not followed."""
        return []


class LocalStore:
    """The project folders of a config home."""

    def __init__(self, where: Where) -> None:
        self._where = where

    def projects(self) -> list[str]:
        """The names of the project folders, without links."""
        projects = []
        for folder in paths.all_project_folders(self._where):
            projects.append(os.path.basename(folder))
        return projects

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """The session files of these project folders, newest first."""
        if projects is None:
            return all_sessions(self._where, prefix)
        home = self._where.projects
        folders = (
            folder for name in projects if not os.path.islink(folder := os.path.join(home, name))
        )
        return newest_first(s for folder in folders for s in sessions_in(folder, prefix))

    def find(self, session_id: str) -> SessionFile | None:
        """The file of an id; only ids are looked up, whatever was typed."""
        path = paths.find_session(session_id, self._where)
        if path is None:
            return None
        return session_file(path)

    def hidden(self) -> list[str]:
        """The folders that can't be listed."""
        return unlistable_folders(self._where)

    def linked(self, session_id: str = "") -> list[str]:
        """The project folders that are links, or the files of an id that lie behind links."""
        return linked_projects(self._where, session_id)
