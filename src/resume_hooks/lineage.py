"""Lineage: a session's ancestors, oldest first, and its descendants.

What a file says of its parent is untrusted: a path is followed only to a session in a project folder of this
config home or beside the child; otherwise the parent is looked up by id. Cycles are cut, gaps are shown.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from resume_hooks import store
from resume_hooks.errors import SessionNotFound
from resume_hooks.glance import TITLE_LENGTH, Glance, one_line
from resume_hooks.links import read_links, read_superseded
from resume_hooks.metadata import Parent, read_parent
from resume_hooks.paths import find_session, is_session_file, projects_home, session_id_of
from resume_hooks.plain import plain
from resume_hooks.store import SessionFile

MAX_DEPTH = 1_000
"""Generations followed; more can only be a forgery."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """One row of a lineage.

    ``derivation_type`` is how the session itself came to be: original, trimmed or continued; ``kind`` says it
    finer (handoff, fork, clear...). ``status`` is present or missing; a missing one keeps what links tell of it.
    """

    session_id: str
    session_file: str
    title: str
    derivation_type: str
    kind: str
    exported_file: str | None
    parent_session_id: str | None
    status: str
    created: str
    ended: str
    size: int


class Descendant(NamedTuple):
    """A session that came from another; ``parent_session_id`` may be a descendant itself."""

    row: Ancestor
    parent_session_id: str


class Family:
    """Answers about parents and children within one config home; links are read once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._links = {link.child_id: link for link in read_links(environ)}

    def parent_of(self, path: str) -> Parent | None:
        """The parent of the session at ``path``: as the file says, else as our links say."""
        said = _said(path)
        link = self._links.get(session_id_of(path) or "")
        linked = Parent(link.parent_id, "", "continued", link.kind, link.at) if link else None
        if said is None or linked is None or said.session_id == linked.session_id:
            return said or linked
        # The two disagree: the one whose session still exists is right.
        return linked if self.locate(said, path) is None and self.locate(linked, path) else said

    def locate(self, parent: Parent, child_path: str) -> str | None:
        """The file of a parent, or None where it is gone."""
        here = os.path.dirname(os.path.abspath(child_path))
        named = os.path.abspath(parent.file) if parent.file else ""
        if named and session_id_of(named) == parent.session_id and self._may_open(named, here):
            return named
        if not parent.session_id:
            return None
        found = find_session(parent.session_id, self._environ)
        beside = os.path.join(here, f"{parent.session_id}.jsonl")
        return next((path for path in (found, beside) if path and self._may_open(path, here)), None)

    def _may_open(self, path: str, here: str) -> bool:
        folder = os.path.dirname(path)
        in_project = os.path.dirname(folder) == projects_home(self._environ) and not os.path.islink(folder)
        return (folder == here or in_project) and is_session_file(path)

    def lineage(self, path: str) -> list[Ancestor]:
        """The session at ``path`` and its ancestors, oldest first. SessionNotFound where it can't be read."""
        current = os.path.abspath(path)
        seen: set[str] = set()
        row, parent = self._generation(current, seen)
        rows = [row]
        while parent is not None and len(rows) < MAX_DEPTH:
            located = self.locate(parent, current)
            gone = _missing(parent), None
            try:
                row, parent = self._generation(located, seen) if located else gone
            except SessionNotFound:  # deleted since it was located, or not readable by us
                row, parent = gone
            rows.append(row)
            current = located or current
        return rows[::-1]

    def _generation(self, path: str, seen: set[str]) -> tuple[Ancestor, Parent | None]:
        """One session's row and its parent; a parent in ``seen`` would close a cycle and is cut off."""
        seen.add(session_id_of(path) or path)
        parent = self.parent_of(path)
        if parent is not None and parent.session_id in seen:
            parent = None
        return _row(path, parent), parent

    @cached_property
    def _superseded(self) -> dict[str, str]:
        return read_superseded(self._environ)

    def is_superseded(self, path: str) -> bool:
        """Whether a child gave way to another session that is there, and nobody went on in it all the same.

        SessionNotFound where it can't be read.
        """
        by = self._superseded.get(session_id_of(path) or "", "")
        return find_session(by, self._environ) is not None and not Glance(path).touched

    def descendants(self, session_id: str) -> list[Descendant]:
        """Every session that came from ``session_id``, directly or not, parents before children, oldest first."""
        children = self._children()
        found: list[Descendant] = []
        seen = {session_id}
        waiting = deque([session_id])
        while waiting:
            parent_id = waiting.popleft()
            for session, parent in children.get(parent_id, ()):
                if session.session_id in seen:
                    continue
                seen.add(session.session_id)
                waiting.append(session.session_id)
                with contextlib.suppress(SessionNotFound):  # deleted since it was listed
                    found.append(Descendant(_row(session.path, parent), parent_id))
        return found

    def _children(self) -> dict[str, list[tuple[SessionFile, Parent]]]:
        """The children of every session by its id, oldest first."""
        children: dict[str, list[tuple[SessionFile, Parent]]] = {}
        for session in reversed(store.all_sessions(self._environ)):
            with contextlib.suppress(SessionNotFound):  # deleted since it was listed
                parent = self.parent_of(session.path)
                if parent is not None:
                    children.setdefault(parent.session_id, []).append((session, parent))
        return children


def without_trims(rows: list[Ancestor]) -> list[Ancestor]:
    """The lineage without trimmed sessions; each row's parent is then the nearest one left."""
    kept: list[Ancestor] = []
    for row in rows:
        if row.derivation_type != "trimmed":
            kept.append(replace(row, parent_session_id=kept[-1].session_id if kept else None))
    return kept


def _said(path: str) -> Parent | None:
    try:
        return read_parent(path)
    except OSError as error:
        raise SessionNotFound(f"{path} can't be read: {error.strerror}", "Check the path.") from error


def _row(path: str, parent: Parent | None) -> Ancestor:
    glance = Glance(path)
    return Ancestor(
        session_id=session_id_of(path) or store.session_file(path).session_id,
        session_file=path,
        title=one_line(plain(glance.title), TITLE_LENGTH),
        derivation_type=parent.derivation_type if parent else "original",
        kind=parent.kind if parent else "original",
        exported_file=(parent.exported_file or None) if parent else None,
        parent_session_id=(parent.session_id or None) if parent else None,
        status="present",
        created=glance.created,
        ended=glance.ended,
        size=glance.size,
    )


def _missing(parent: Parent) -> Ancestor:
    return Ancestor(parent.session_id, parent.file, "", "unknown", "unknown", None, None, "missing", "", "", 0)
