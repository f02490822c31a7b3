"""Transcripts of sub-agents: which files they are, and which session each belongs to.

They lie under the session's own folder; clients before 2.1 left them beside the session. Symbolic links are none.
In words one is ``<session>/agent-<id>``, where both ids may be shortened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import AmbiguousLocator, SessionNotFound
from resume_hooks.paths import Where, is_session_id, read_object
from resume_hooks.sessions import locate as store
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import TITLE_LENGTH, HeadTail
from resume_hooks.transcripts.lines import Line

PREFIX = "agent-"
"""How the names of their files begin."""

FOLDER = "subagents"
MAX_DEPTH = 4
"""Folders below a session's own in which sub-agents are looked for: workflows nest them."""

MAX_FIRST_LINE = 1024 * 1024


class Subagent(NamedTuple):
    """The transcript of a sub-agent: ``name`` is ``agent-<id>``, ``session_id`` the session that started it."""

    session_id: str
    name: str
    path: str


def name_of(path: str) -> str | None:
    """``agent-<id>`` of a sub-agent's file, None for any other name."""
    stem, extension = os.path.splitext(os.path.basename(path))
    return stem if extension == ".jsonl" and stem.startswith(PREFIX) else None


def subagents_of(session_file: str) -> list[Subagent]:
    """The sub-agents that a session started, by name; none where their folders can't be read."""
    folder, name = os.path.split(session_file)
    session_id = os.path.splitext(name)[0]
    inside = nested(os.path.join(folder, session_id), session_id)
    beside = (path for path in _beside(folder) if owner(path) == session_id)
    found = [*inside, *(Subagent(session_id, name_of(path) or "", path) for path in beside)]
    return sorted(found, key=lambda subagent: subagent.name)


def nested(own_folder: str, session_id: str) -> Iterator[Subagent]:
    """The sub-agents in a session's own folder, in no order."""
    top = os.path.join(own_folder, FOLDER)
    waiting = [] if os.path.islink(own_folder) or os.path.islink(top) else [(top, MAX_DEPTH)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [(entry.path, depth - 1)] if depth else []
                    elif (name := name_of(entry.name)) and entry.is_file(follow_symlinks=False):
                        yield Subagent(session_id, name, entry.path)
        except OSError:
            continue  # none, or gone since it was listed


def owner(path: str) -> str:
    """The session that a sub-agent's first record names; ``""`` for none."""
    try:
        with open(path, "rb") as stream:
            first = records.parse(Line(0, 0, stream.readline(MAX_FIRST_LINE)).body)
    except OSError:
        return ""
    named = records.string(first or {}, "sessionId")
    return named if is_session_id(named) else ""


def locate(locator: str | None, cwd: str, where: Where) -> SessionFile:
    """The transcript that a locator names: a session as ``store.resolve`` has it, or a sub-agent's.

    The ``session_id`` of a sub-agent's transcript is ``<session id>/agent-<id>``, so that references name its records.
    What lies at a path, and what has a title, may hold ``/agent-`` as well: the path comes first, the title last.
    """
    named = None if locator is None else _named(locator.strip(), cwd, where)
    if named is not None:
        return named
    session = store.resolve(locator, cwd, where)
    name = name_of(session.path)
    if name is None or session.session_id == name:
        return session
    return session._replace(session_id=f"{session.session_id}/{name}")


def names_subagent(locator: str) -> bool:
    """Whether the words of a locator have the form of a sub-agent's name."""
    session, slash, name = locator.strip().rpartition("/")
    if not slash or not session or not name.startswith(PREFIX) or name.endswith(".jsonl"):
        return False
    return os.sep not in session or session.endswith(".jsonl")


def _named(locator: str, cwd: str, where: Where) -> SessionFile | None:
    """The sub-agent of a session that is found; None where the words must mean something else."""
    if not names_subagent(locator) or os.path.exists(os.path.join(cwd, os.path.expanduser(locator))):
        return None
    session_name, _, name = locator.rpartition("/")
    try:
        session = store.resolve(session_name, cwd, where)
    except SessionNotFound:
        return None
    started = subagents_of(session.path)
    found = [one for one in started if one.name == name] or [one for one in started if one.name.startswith(name)]
    if len(found) == 1:
        return _as_session(found[0], session.session_id)
    if found:
        raise AmbiguousLocator(locator, store.candidates(_as_session(one, session.session_id) for one in found))
    try:
        return store.resolve(locator, cwd, where)
    except SessionNotFound as error:
        names = one_line(plain_line(", ".join(one.name for one in started)), 400) or "no sub-agents"
        raise SessionNotFound(
            f"No sub-agent {one_line(plain_line(name), 80)} of session {session.session_id}", f"It started {names}."
        ) from error


def _as_session(found: Subagent, session_id: str) -> SessionFile:
    try:
        status = os.stat(found.path)
    except OSError as error:
        raise SessionNotFound(f"{found.path} can't be read: {error.strerror}", "Was it just deleted?") from error
    return SessionFile(f"{session_id}/{found.name}", found.path, status.st_mtime, status.st_size)


def kind_of(path: str) -> str:
    """Which agent a file is of, by the note that the client keeps beside it; ``""`` where there is none."""
    note = read_object(os.path.splitext(path)[0] + ".meta.json")
    return records.string(note, "agentType")


def title_of(path: str) -> str:
    """The title of a transcript; of a sub-agent's the words that it was started with."""
    glance = HeadTail(path)
    if name_of(path) is None:
        return glance.title
    asked = ({**record, "isSidechain": False} for record in glance.first_records)
    words = next((records.prompt_text(record) for record in asked if records.is_prompt(record)), "")
    return one_line(words, TITLE_LENGTH) or glance.title


def _beside(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.path for entry in entries if name_of(entry.name) and entry.is_file(follow_symlinks=False))
    except OSError:
        return
