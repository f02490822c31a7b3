"""The sessions on this machine: which files are sessions, and what a user's words name.

A session file is strictly ``<uuid>.jsonl``, regular and not empty; everything else in a project folder is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import AmbiguousLocator, NotATranscript, SessionNotFound, UsageError
from resume_hooks.glance import Glance, one_line
from resume_hooks.lines import read_lines
from resume_hooks.paths import (
    find_session,
    is_session_file,
    is_session_id,
    project_folders,
    projects_home,
    session_id_of,
)
from resume_hooks.records import kind, parse
from resume_hooks.transcript import refuse_foreign

MIN_PREFIX = 4
"""Characters of an id that a prefix needs; fewer would fit by chance."""

_HEX = frozenset("0123456789abcdef-")


class SessionFile(NamedTuple):
    """A session on disk. ``mtime`` is in seconds since the epoch, ``size`` in bytes."""

    session_id: str
    path: str
    mtime: float
    size: int


def sessions_in(folder: str) -> list[SessionFile]:
    """The sessions of one project folder, newest first; none where the folder can't be read."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                session_id = session_id_of(entry.name)
                if session_id is None or not entry.is_file(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                if status.st_size:
                    found.append(SessionFile(session_id, entry.path, status.st_mtime, status.st_size))
    except OSError:
        return []
    return sorted(found, key=lambda session: session.mtime, reverse=True)


def all_folders(environ: Mapping[str, str] | None = None) -> list[str]:
    """Every project folder of the config home."""
    try:
        with os.scandir(projects_home(environ)) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def sessions_of(cwd: str, environ: Mapping[str, str] | None = None) -> list[SessionFile]:
    """The sessions of a working directory, newest first. Colliding keys (``a_b``, ``a-b``) are told apart elsewhere."""
    found = [session for folder in project_folders(cwd, environ) for session in sessions_in(folder)]
    return sorted(found, key=lambda session: session.mtime, reverse=True)


def all_sessions(environ: Mapping[str, str] | None = None) -> list[SessionFile]:
    """Every session of every project, newest first."""
    found = [session for folder in all_folders(environ) for session in sessions_in(folder)]
    return sorted(found, key=lambda session: session.mtime, reverse=True)


def session_file(path: str) -> SessionFile:
    """The session at a path the user named, whatever it is called.

    The id comes from the name, else from the records inside. SessionNotFound where nothing can be read there.
    """
    try:
        status = os.stat(path)
        if not os.path.isfile(path):
            raise SessionNotFound(f"{path} is not a file", "Give the path of a .jsonl file.")
        session_id = session_id_of(path) or _inner_id(path)
    except OSError as error:
        raise SessionNotFound(f"{path} can't be read: {error.strerror}", "Check the path.") from error
    return SessionFile(session_id, os.path.abspath(path), status.st_mtime, status.st_size)


def resolve(locator: str | None, cwd: str, environ: Mapping[str, str]) -> SessionFile:
    """The session that a locator names.

    In order: nothing (the session the client runs, else the latest of this project), a path to a .jsonl, a full
    id, a unique prefix of an id, an exact title (this project before all others). AmbiguousLocator lists its
    candidates, SessionNotFound says what was tried.
    """
    if locator is None:
        return _current(environ) or latest(cwd, environ)
    wanted = locator.strip()
    if not wanted:
        raise UsageError("An empty locator names no session", "Give an id, a title or a path.")
    if wanted.endswith(".jsonl") or os.sep in wanted:
        return session_file(os.path.expanduser(wanted))
    if is_session_id(wanted.lower()):
        path = find_session(wanted.lower(), environ)
        if path is None:
            raise SessionNotFound(
                f"No session {wanted} under {projects_home(environ)}", "Was it deleted after 30 days?"
            )
        return session_file(path)
    return _by_prefix(wanted.lower(), environ) or _by_title(wanted, cwd, environ)


def latest(cwd: str, environ: Mapping[str, str] | None = None) -> SessionFile:
    """The newest session of a working directory that somebody talked in, left alone by helper runs."""
    for session in sessions_of(cwd, environ):
        glance = Glance(session.path)
        if glance.own_turns and not glance.is_sidechain and not glance.entrypoint.startswith("sdk"):
            return session
    raise SessionNotFound(
        f"No session of {cwd} yet",
        "Name one by id, title or path, or change to the folder that it was started in.",
    )


def titled(title: str, sessions: Iterator[SessionFile] | list[SessionFile]) -> list[SessionFile]:
    """The sessions whose custom, generated or derived title is exactly ``title``."""
    return [session for session in sessions if _has_title(session.path, title)]


def candidates(sessions: list[SessionFile]) -> list[dict[str, object]]:
    """Rows that let a person choose between sessions, newest first."""
    return [
        {
            "session_id": session.session_id,
            "title": one_line(Glance(session.path).title, 60),
            "ended": clock.from_epoch(session.mtime),
            "session_file": session.path,
        }
        for session in sessions
    ]


def _current(environ: Mapping[str, str]) -> SessionFile | None:
    path = find_session(environ.get("CLAUDE_CODE_SESSION_ID", ""), environ)
    return session_file(path) if path else None


def _by_prefix(prefix: str, environ: Mapping[str, str]) -> SessionFile | None:
    if len(prefix) < MIN_PREFIX or not _HEX.issuperset(prefix):
        return None
    found = [session for session in all_sessions(environ) if session.session_id.startswith(prefix)]
    if len({session.session_id for session in found}) > 1:
        raise AmbiguousLocator(prefix, candidates(found))
    return found[0] if found else None


def _by_title(title: str, cwd: str, environ: Mapping[str, str]) -> SessionFile:
    here = sessions_of(cwd, environ)
    known = {session.path for session in here}
    found = titled(title, here) or titled(title, [s for s in all_sessions(environ) if s.path not in known])
    if len(found) > 1:
        raise AmbiguousLocator(title, candidates(found))
    if not found:
        raise SessionNotFound(
            f"No session is called '{title}', and no id starts so",
            "Use a session id, four or more of its first characters, an exact title, or the path of a .jsonl file.",
        )
    return found[0]


def _has_title(path: str, title: str) -> bool:
    try:
        glance = Glance(path)
    except SessionNotFound:
        return False  # deleted since the folder was listed
    return title in (glance.custom_title, glance.title)


def _inner_id(path: str) -> str:
    with open(path, "rb") as stream:
        for line in read_lines(stream):
            record = parse(line.body)
            if record is None:
                continue
            refuse_foreign(record, path)
            if isinstance(record.get("sessionId"), str):
                return str(record["sessionId"])
            if kind(record) in {"user", "assistant"}:
                return os.path.splitext(os.path.basename(path))[0]
    raise NotATranscript(f"{path} holds no record of a session", "Give the path of a Claude Code transcript.")


def is_known(session: SessionFile, environ: Mapping[str, str] | None = None) -> bool:
    """Whether the client can resume the session by its id: it lies in a project folder under its own name."""
    folder = os.path.dirname(session.path)
    return is_session_file(session.path) and os.path.dirname(folder) == projects_home(environ)
