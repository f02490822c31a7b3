"""Where a locator was typed: the sessions near and far, newest first, and what each may be named by, read once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, project_names
from resume_hooks.sessions.files import SessionFile, belongs
from resume_hooks.sessions.name_prefilter import sift, titles_of
from resume_hooks.sessions.store_protocol import LocalStore, SessionStore
from resume_hooks.transcripts.head_tail import HeadTail


class Facts(NamedTuple):
    """What a session may be named by; ``listed`` is whether a listing shows it. ``pulls`` are numbers and addresses."""

    titles: frozenset[str]
    tag: str
    pulls: frozenset[str]
    listed: bool


class Surroundings:
    """Where words were typed, and what was already read there."""

    def __init__(self, cwd: str, where: Where, store: SessionStore | None = None) -> None:
        self.cwd = cwd
        self.where = where
        self.store = store or LocalStore(where)
        self._facts: dict[str, Facts | None] = {}
        self._names: dict[str, bytes] = {}
        self._sifted: dict[tuple[re.Pattern[bytes], bool], list[SessionFile]] = {}

    @cached_property
    def projects(self) -> list[str]:
        """The names of the project folders of the working directory."""
        return project_names(self.cwd, self.where, self.store.projects)

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
        here = [session for session in near if belongs(session.path, self.cwd)]
        return here or newest_first([*near, *self._fitting(pattern, fits, near=False)])

    def candidates(self, sessions: Iterable[SessionFile]) -> list[dict[str, object]]:
        """Rows that let a person choose between sessions."""
        return candidates(sessions)

    def _fitting(self, pattern: re.Pattern[bytes], fits: Callable[[Facts], bool], *, near: bool) -> list[SessionFile]:
        if (pattern, near) not in self._sifted:
            self._sifted[pattern, near] = sift(pattern, self.near if near else self.far, self._names)
        found = self._sifted[pattern, near]
        return [session for session in found if (facts := self._facts_of(session)) is not None and fits(facts)]

    def _facts_of(self, session: SessionFile) -> Facts | None:
        if session.path not in self._facts:
            self._facts[session.path] = _read(session)
        return self._facts[session.path]


def candidates(sessions: Iterable[SessionFile]) -> list[dict[str, object]]:
    """Rows that let a person choose between sessions, in the order given; each title is a locator itself."""
    rows: list[dict[str, object]] = []
    for session in sessions:
        try:
            title = HeadTail(session.path).title
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


def newest_first(sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """Sessions by the time of their last write."""
    return sorted(sessions, key=lambda session: session.mtime, reverse=True)


def _read(session: SessionFile) -> Facts | None:
    try:
        glance = HeadTail(session.path)
    except SessionNotFound:
        return None  # deleted since it was listed
    return Facts(titles_of(glance), glance.tag, glance.pull_requests, glance.is_listed)
