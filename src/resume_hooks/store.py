"""The door to the sessions on this machine: what a user's words name, and the listings behind it.

A locator is data: it never reaches a path before it has the shape of an id, unless it was typed as a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from resume_hooks import clock
from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError
from resume_hooks.glance import REACH, Glance, one_line
from resume_hooks.paths import find_session, is_session_id, projects_home
from resume_hooks.sessions import (
    SessionFile,
    all_sessions,
    belongs,
    is_known,
    latest,
    session_file,
    sessions_in,
    sessions_of,
    unlistable,
    where_hidden,
)

__all__ = [
    "SessionFile",
    "all_sessions",
    "belongs",
    "candidates",
    "is_known",
    "latest",
    "resolve",
    "session_file",
    "sessions_in",
    "sessions_of",
    "titled",
    "unlistable",
]

MIN_PREFIX = 4
"""Characters of an id that a prefix needs; fewer would fit by chance."""

_HEX = frozenset("0123456789abcdef-")


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
        return _at_path(wanted, cwd, environ)
    if is_session_id(wanted.lower()):
        path = find_session(wanted.lower(), environ)
        if path is None:
            raise SessionNotFound(
                f"No session {wanted} under {projects_home(environ)}",
                f"Was it deleted after 30 days?{where_hidden(unlistable(environ))}",
            )
        return session_file(path)
    found = _by_prefix(wanted.lower(), environ) or _by_title(wanted, cwd, environ)
    if found is None:
        raise SessionNotFound(
            f"No session is called '{one_line(wanted, 80)}', and no id starts so",
            "Use a session id, four or more of its first characters, an exact title, or the path of a .jsonl file."
            + where_hidden(unlistable(environ)),
        )
    return found


def titled(title: str, sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """The sessions whose custom, generated or derived title is exactly ``title``.

    Their ends are first searched as bytes: a tenth of the cost of reading the records there.
    """
    pattern = _as_written(title)
    view = memoryview(bytearray(2 * REACH))
    return [s for s in sessions if pattern.search(view[: _ends(s, view)]) and _has_title(s.path, title)]


def candidates(sessions: Iterable[SessionFile]) -> list[dict[str, object]]:
    """Rows that let a person choose between sessions, in the order given; each title is a locator itself."""
    rows: list[dict[str, object]] = []
    for session in sessions:
        try:
            title = Glance(session.path).title
        except SessionNotFound:
            continue  # deleted since the folder was listed
        rows.append(
            {
                "session_id": session.session_id,
                "title": title,
                "ended": clock.from_epoch(session.mtime),
                "session_file": session.path,
            }
        )
    return rows


def _current(environ: Mapping[str, str]) -> SessionFile | None:
    """The session of the client that runs us, or None outside of one."""
    session_id = environ.get("CLAUDE_CODE_SESSION_ID", "")
    if not is_session_id(session_id):
        return None
    path = find_session(session_id, environ)
    if path is None:
        hidden = where_hidden(unlistable(environ))
        raise SessionNotFound(f"This session ({session_id}) has no file yet", f"Ask something in it first.{hidden}")
    return session_file(path)


def _at_path(wanted: str, cwd: str, environ: Mapping[str, str]) -> SessionFile:
    """The file at a path; titles may hold slashes too, so what is no file may still be one."""
    path = os.path.join(cwd, os.path.expanduser(wanted))
    try:
        if "CLAUDECODE" in environ:
            _refuse_others_files(path, environ)
        return session_file(path)
    except SessionNotFound:
        found = _by_title(wanted, cwd, environ)
        if found is None:
            raise
        return found


def _refuse_others_files(path: str, environ: Mapping[str, str]) -> None:
    """UsageError for a path outside the transcripts: a model's shell runs our verbs unasked, so they open no more."""
    home = os.path.realpath(projects_home(environ))
    inside = os.path.realpath(path).startswith(home + os.sep) and path.endswith(".jsonl")
    if os.path.lexists(path) and (not inside or os.path.islink(path)):
        raise UsageError(f"{path} is no transcript under {home}", "Other files are for the user to open, in a shell.")


def _by_prefix(prefix: str, environ: Mapping[str, str]) -> SessionFile | None:
    if len(prefix) < MIN_PREFIX or not _HEX.issuperset(prefix):
        return None
    found = all_sessions(environ, prefix)
    if len({session.session_id for session in found}) > 1:
        raise AmbiguousLocator(prefix, candidates(found))
    return found[0] if found else None


def _by_title(title: str, cwd: str, environ: Mapping[str, str]) -> SessionFile | None:
    near = sessions_of(cwd, environ)
    named = titled(title, near)
    found = [session for session in named if belongs(session.path, cwd)]
    if not found:
        known = {session.path for session in near}
        found = named + titled(title, (session for session in all_sessions(environ) if session.path not in known))
    if len(found) > 1:
        raise AmbiguousLocator(title, candidates(sorted(found, key=lambda session: session.mtime, reverse=True)))
    return found[0] if found else None


def _as_written(title: str) -> re.Pattern[bytes]:
    """What a file that holds a title matches, however it was escaped: its plain words within one string."""
    words = [word.encode() for word in re.findall("[0-9A-Za-z]+", title)]
    if title.startswith("/"):
        words = words[:1]  # a slash command is stored in pieces
    between = rb"""(?:[^0-9A-Za-z"\\]|\\u[0-9A-Fa-f]{4}|\\.)+"""
    return re.compile(between.join(words))


def _ends(session: SessionFile, view: memoryview) -> int:
    """Read both ends of a file into ``view``; returns how many bytes, 0 where it is gone."""
    try:
        with open(session.path, "rb", buffering=0) as stream:
            head = stream.readinto(view[:REACH])
            stream.seek(max(head, session.size - REACH))
            return head + stream.readinto(view[head : head + REACH])
    except OSError:
        return 0


def _has_title(path: str, title: str) -> bool:
    try:
        glance = Glance(path)
    except SessionNotFound:
        return False
    return title in {glance.custom_title, glance.title}
