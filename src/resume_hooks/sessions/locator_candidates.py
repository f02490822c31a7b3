"""The sessions that a locator may mean, newest first, with the names that each goes by, read once.

Sessions are sifted before any record is parsed: both ends of each file are searched as bytes, at a tenth of the cost.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, project_names, read_at
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import agent_of, ends_of, store_of
from resume_hooks.sessions.session_files import SessionFile, belongs, fits, newest_first, where_hidden
from resume_hooks.transcripts.head_tail import REACH, HeadTail

_KINDS = (b'-title"', b'"pr-link"', b'"tag"')
"""What stands in the lines that a session can be named by, and hardly elsewhere: quotes within text are escaped."""

_CUSTOM = re.compile(rb"""^\{.*"customTitle":\s?"[^"]""", re.MULTILINE)
_ADDED = re.compile(r" · (?:clear|handoff)\Z")  # what a title carried over by /clear has in no line of its file
_CLEARED = re.compile(rb'"customTitle":\s?""')
_TITLE = re.compile(rb"""^\{.*"(?:customTitle|aiTitle)":\s?"[^"]""", re.MULTILINE)


class Facts(NamedTuple):
    """What a session may be named by; ``listed`` is whether a listing shows it. ``pulls`` are numbers and addresses."""

    titles: frozenset[str]
    tag: str
    pulls: frozenset[str]
    listed: bool


class Surroundings:
    """Where words were typed, and what was already read there."""

    def __init__(self, cwd: str, where: Where) -> None:
        self.cwd = cwd
        self.where = where
        self.store = store_of(where)
        self._facts: dict[str, Facts | None] = {}
        self._names: dict[str, bytes] = {}
        self._sifted: dict[tuple[re.Pattern[bytes], bool], list[SessionFile]] = {}

    @cached_property
    def projects(self) -> list[str]:
        """The names of the project folders of the working directory."""
        return project_names(self.cwd, self.where, self.store.projects)

    @property
    def hidden(self) -> str:
        """A remedy's last sentences where something can't be looked into; ``""`` where all can."""
        return where_hidden(self.store.hidden(), self.store.linked())

    @cached_property
    def near(self) -> list[SessionFile]:
        """The sessions in the project folders of the working directory, newest first; keys collide."""
        return self.store.sessions(self.projects)

    def nearest_copy(self, copies: Sequence[SessionFile]) -> SessionFile:
        """Of one session's copies, newest first, the one that lies in this project, else the newest."""
        if len({copy.path for copy in copies}) == 1:
            return copies[0]
        near = (copy for copy in copies if os.path.basename(os.path.dirname(copy.path)) in self.projects)
        return next((copy for copy in near if belongs(copy.path, self.cwd)), copies[0])

    @cached_property
    def far(self) -> list[SessionFile]:
        """All other sessions, newest first."""
        known = {session.path for session in self.near}
        return [session for session in self.store.sessions() if session.path not in known]

    def nearest(self, pattern: re.Pattern[bytes], fits: Callable[[Facts], bool]) -> list[SessionFile]:
        """The sessions whose ends match ``pattern`` and that fit: those of this project, else those of all others."""
        near = self._fitting(pattern, fits, near=True)
        here = [session for session in near if self.is_of_this_folder(session)]
        return here or newest_first([*near, *self._fitting(pattern, fits, near=False)])

    def is_of_this_folder(self, session: SessionFile) -> bool:
        """Whether a session is of the working directory, and not of one with the same key."""
        try:
            return fits(ends_of(session, self.where), self.cwd)
        except SessionNotFound:
            return False  # deleted since it was listed

    def _naming(self, session: SessionFile) -> bytes:
        return naming_lines(session) if session.agent == NAME else agent_of(session, self.where).naming(session.path)

    def _fitting(self, pattern: re.Pattern[bytes], fits: Callable[[Facts], bool], *, near: bool) -> list[SessionFile]:
        if (pattern, near) not in self._sifted:
            sessions = self.near if near else self.far
            self._sifted[pattern, near] = sift(pattern, sessions, self._names, self._naming)
        sifted = self._sifted[pattern, near]
        return [session for session in sifted if (facts := self._facts_of(session)) is not None and fits(facts)]

    def _facts_of(self, session: SessionFile) -> Facts | None:
        if session.path not in self._facts:
            self._facts[session.path] = None
            with contextlib.suppress(SessionNotFound):  # deleted since it was listed
                ends = ends_of(session, self.where)
                self._facts[session.path] = Facts(titles_of(ends), ends.tag, ends.pull_requests, ends.is_listed)
        return self._facts[session.path]


def candidates(sessions: Iterable[SessionFile], where: Where) -> list[dict[str, object]]:
    """Rows that let a person choose between sessions, in the order given; each title is a locator itself."""
    rows: list[dict[str, object]] = []
    for session in sessions:
        with contextlib.suppress(SessionNotFound):  # deleted since the folder was listed
            row = {"session_id": session.session_id, "title": ends_of(session, where).title}
            rows.append({**row, "ended": clock.from_epoch(session.mtime), "session_file": session.path})
    return rows


def sift(
    pattern: re.Pattern[bytes],
    sessions: Iterable[SessionFile],
    read: dict[str, bytes],
    naming: Callable[[SessionFile], bytes] | None = None,
) -> list[SessionFile]:
    """The sessions in whose ends a line that names them matches ``pattern``, which sees small letters alone.

    Tags and pull requests are looked for in the last 64 KB, where clients keep them, titles at both ends. What ``read``
    holds by path is not read again, and what was read is added to it.
    """
    sifted = []
    for session in sessions:
        if session.path not in read:
            read[session.path] = (naming or naming_lines)(session)
        if pattern.search(read[session.path]):
            sifted.append(session)
    return sifted


def titled(title: str, sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """The sessions whose custom, generated or derived title is exactly ``title``."""
    return [session for session in sift(as_written(title), sessions, {}) if title in _titles_at(session.path)]


def titles_of(ends: HeadTail) -> frozenset[str]:
    """The titles that a session answers to: its own custom one as it is, and the line that listings show."""
    return frozenset({"" if ends.is_carried_over else ends.custom_title, ends.title}) - {""}


def _titles_at(path: str) -> frozenset[str]:
    try:
        return titles_of(HeadTail(path))
    except SessionNotFound:
        return frozenset()  # deleted since the folder was listed


def as_written(words: str) -> re.Pattern[bytes]:
    """What a file matches that holds these words in one string, however it was escaped: the plain ones in order."""
    plain = [word.lower().encode() for word in re.findall("[0-9A-Za-z]+", _ADDED.sub("", words))]
    if words.startswith("/"):
        plain = plain[:1]  # a slash command is stored in pieces
    between = rb"""(?:[^0-9a-z"\\]|\\u[0-9a-f]{4}|\\.)+"""
    return re.compile(between.join(plain))


def naming_lines(session: SessionFile) -> bytes:
    """The lines that may name a session, in small letters; by the fewest calls, for there may be thousands."""
    try:
        descriptor = os.open(session.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""  # gone since it was listed
    try:
        tail = read_at(descriptor, REACH, max(0, session.size - REACH))
        lines = _lines_with(_KINDS, tail)
        cleared = _CLEARED.search(lines)
        if cleared or not _CUSTOM.search(lines):
            head = read_at(descriptor, REACH, 0) if session.size > REACH else tail
            lines += _lines_with(_KINDS[:1], head)
            if cleared or not _TITLE.search(lines):  # then a summary or a prompt stands for one
                lines += orjson.dumps(HeadTail(session.path).title)
    except (OSError, SessionNotFound):
        return b""
    finally:
        os.close(descriptor)
    return lines.lower()


def _lines_with(kinds: Iterable[bytes], region: bytes) -> bytes:
    lines = []
    for kind in kinds:
        place = region.find(kind)
        while place >= 0:
            end = region.find(b"\n", place)
            end = len(region) if end < 0 else end
            lines.append(region[region.rfind(b"\n", 0, place) + 1 : end] + b"\n")
            place = region.find(kind, end)
    return b"".join(lines)
