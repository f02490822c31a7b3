"""Lineage: a session's ancestors, oldest first, and its descendants.

A file's information about its parent is untrusted: a path is followed only to a session in a
project folder of this config home or beside the child. Otherwise the parent is looked up by id, in
all projects, then in the vault. Cycles are cut, and gaps are shown.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import NotATranscript, SessionNotFound, WriteFailed
from resume_hooks.paths import Where, find_session, is_session_file, session_id_from_path
from resume_hooks.sessions.agents.registry import (
    agent_of_path,
    find_other_agents_session,
    is_foreign,
    row_of_agent,
    store_of,
)
from resume_hooks.sessions.archived.layout import path_of_place
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived, list_archived
from resume_hooks.sessions.archived.sessions import (
    client_path,
    is_archived_copy,
    open_archived,
)
from resume_hooks.sessions.child_titles import displayed_kind, kind_unless_in_title
from resume_hooks.sessions.link_log import read_links, read_superseded
from resume_hooks.system.text import collapse_line, plain_line, plain_text
from resume_hooks.transcripts.head_tail import TITLE_LENGTH, HeadTail
from resume_hooks.transcripts.lines import SharedFile
from resume_hooks.transcripts.provenance import Parent, current_kind, read_parent

KEPT, TYPED, MISSING = "kept", "prompts", "missing"  # a row's status other than ``present``
LEFT = {
    KEPT: " (archived copy)",
    TYPED: " (prompts only)",
}  # the remark on a row without a transcript
MAX_DEPTH = 1_000  # generations to follow; more can only be a forgery


class Ancestor(NamedTuple):
    """A session in a lineage.

    ``derivation_type`` is the origin of the session: original, trimmed or continued; ``kind`` is
    more specific (handoff, fork, clear...). ``status`` is present, kept (only the vault has a copy;
    ``session_file`` is the client's former path), prompts (only the prompts exist) or missing (with
    the details from links). For a session from a team's server, ``owner`` and ``machine`` are its
    user and computer. ``subagent`` is the parent's sub-agent that this session continues, ``""``
    for the parent itself.
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
    owner: str = ""
    machine: str = ""
    subagent: str = ""

    @property
    def how(self) -> str:
        """The kind, unless the title ends in it, and the sub-agent that the session continues."""
        if self.subagent:
            return f"{displayed_kind(self.kind)} of {plain_line(self.subagent)}"
        return kind_unless_in_title(self.title, self.kind)

    @property
    def title_and_origin(self) -> str:
        """The title, which is a locator, and separately the session's origin."""
        return "  ".join(filter(None, (self.title, self.how)))


class Descendant(NamedTuple):
    """A descendant of a session; ``parent_session_id`` may itself be a descendant."""

    row: Ancestor
    parent_session_id: str


class Family:
    """Parents and children within one config home; links are read once."""

    def __init__(self, where: Where, known: Mapping[str, HeadTail] | None = None) -> None:
        """``known`` maps paths of sessions that were already read to their ends."""
        self._where = where
        self._known = dict(known or {})
        self._links = {link.child_id: link for link in read_links(where)}
        self._found: dict[str, ArchivedSession | None] = {}

    def parent_of(self, path: str) -> Parent | None:
        """Return the parent of the session at ``path``, from the file or from our links.

        Raise SessionNotFound.
        """
        try:
            recorded = self._recorded_parent(path)
        except OSError as error:
            raise SessionNotFound(
                f"{path} can't be read: {error.strerror}", "Check the path."
            ) from error
        return self._or_linked(recorded, _id_at(path, self._where), path)

    def _recorded_parent(self, path: str) -> Parent | None:
        """Return the parent that a session names. Raise OSError or SessionNotFound."""
        known = self._known.get(path)
        if known is not None and isinstance(known.file, SharedFile):
            return read_parent(known.file)
        return agent_of_path(path, self._where).read_parent(path)

    def _or_linked(self, recorded: Parent | None, session_id: str, path: str) -> Parent | None:
        link = self._links.get(session_id)
        if link:
            linked = Parent(link.parent_id, "", "continued", current_kind(link.kind), link.at)
        else:
            linked = None
        if recorded is None or linked is None or recorded.session_id == linked.session_id:
            return recorded or linked
        # If the two disagree, prefer the one whose session still exists.
        if self._is_there(recorded, path) or not self._is_there(linked, path):
            return recorded
        return linked

    def locate(self, parent: Parent, child_path: str) -> str | None:
        """Return a readable file of a parent, the client's or an archived copy.

        Return None if it is gone.
        """
        return self._present(parent, child_path) or self.readable(parent.session_id)

    def has(self, session_id: str) -> bool:
        """Check whether a session of any client, or an archived copy of it, exists here."""
        here = find_session(session_id, self._where) or self._of_another(session_id)
        return bool(here or self._archived_session(session_id))

    def readable(self, session_id: str) -> str | None:
        """Return the path of a session's archived copy, or None if the archive has no readable one."""
        archived = self._archived_session(session_id)
        try:
            if archived:
                return open_archived(archived, self._where).path
            return None
        except (SessionNotFound, WriteFailed):
            return None

    def path_of(self, row: Ancestor) -> str | None:
        """Return the readable transcript of a row, or None if it is gone."""
        if row.status == MISSING:
            return None
        if row.status == KEPT:
            return self.readable(row.session_id)
        foreign = is_foreign(row.session_file, self._where)
        if foreign:
            return self._of_another(row.session_id)
        return row.session_file

    def _archived_session(self, session_id: str) -> ArchivedSession | None:
        if session_id not in self._found:
            self._found[session_id] = find_archived(session_id, self._where)
        return self._found[session_id]

    def _is_there(self, parent: Parent, child_path: str) -> bool:
        return bool(self._present(parent, child_path) or self._archived_session(parent.session_id))

    def _present(self, parent: Parent, child_path: str) -> str | None:
        here = os.path.dirname(client_path(os.path.abspath(child_path), self._where))
        named = os.path.abspath(parent.file) if parent.file else ""
        if (
            named
            and session_id_from_path(named) == parent.session_id
            and self._may_open(named, here)
        ):
            return named
        if not parent.session_id:
            return None
        path_by_id = find_session(parent.session_id, self._where)
        beside = os.path.join(here, f"{parent.session_id}.jsonl")
        known = next(
            (path for path in (path_by_id, beside) if path and self._may_open(path, here)), None
        )
        return known or self._of_another(parent.session_id)

    def _of_another(self, session_id: str) -> str | None:
        try:
            session = find_other_agents_session(session_id, self._where)
        except (SessionNotFound, NotATranscript, WriteFailed):
            return None
        if session:
            return session.path
        return None

    def _may_open(self, path: str, here: str) -> bool:
        folder = os.path.dirname(path)
        in_project = os.path.dirname(folder) == self._where.projects and not os.path.islink(folder)
        return (folder == here or in_project) and is_session_file(path)

    def lineage(self, path: str) -> list[Ancestor]:
        """Return the session at ``path`` and its ancestors, oldest first.

        Raise SessionNotFound if it can't be read.
        """
        current = os.path.abspath(path)
        seen: set[str] = set()
        row, parent = self._generation(current, seen)
        rows = [row]
        while parent is not None and len(rows) < MAX_DEPTH:
            located = self._present(parent, current)
            row, parent, current = self._ancestor(parent, located, current, seen)
            rows.append(row)
        return rows[::-1]

    def _ancestor(
        self, parent: Parent, located: str | None, child: str, seen: set[str]
    ) -> tuple[Ancestor, Parent | None, str]:
        """Return a parent's row, its own parent, and its path."""
        with contextlib.suppress(SessionNotFound):  # deleted since the lookup, or unreadable
            if located:
                return *self._generation(located, seen), located
        if archived := self._archived_session(parent.session_id):
            return *self._generation(archived, seen), path_of_place(archived.place, self._where)
        missing = Ancestor(
            parent.session_id, parent.file, "", "unknown", "unknown", None, None, MISSING, "", "", 0
        )
        return missing, None, child

    def _generation(
        self, session: str | ArchivedSession, seen: set[str]
    ) -> tuple[Ancestor, Parent | None]:
        """Return one session's row and its parent.

        A parent in ``seen`` would close a cycle and is cut off.
        """
        seen.add(
            (session_id_from_path(session) or session)
            if isinstance(session, str)
            else session.session_id
        )
        parent = self._parent_of(session)
        if parent is not None and parent.session_id in seen:
            parent = None
        return self._row(session, parent), parent

    def _parent_of(self, session: str | ArchivedSession) -> Parent | None:
        """Return the parent of the session at a path, or of an archived one without opening it."""
        if isinstance(session, str):
            return self.parent_of(session)
        noted = session.about.parent
        recorded = (
            Parent(*noted) if len(Parent._fields) - len(noted) in {0, 1} else None
        )  # the last field was added later
        path = path_of_place(session.place, self._where)
        return self._or_linked(recorded, session.session_id, path)

    def _row(self, session: str | ArchivedSession, parent: Parent | None) -> Ancestor:
        """Return the row of the session at a path, or of an archived one from its manifest."""
        known = self._known.get(session) if isinstance(session, str) else None
        return _ancestor_row(session, parent, self._where, known)

    @cached_property
    def _superseded(self) -> dict[str, str]:
        return read_superseded(self._where)

    def is_superseded(self, path: str) -> bool:
        """Check whether an unused child was superseded by another session, in which the user continued.

        Raise SessionNotFound.
        """
        by = self._superseded.get(session_id_from_path(path) or "", "")
        successor = find_session(by, self._where)
        if successor:
            is_there = HeadTail(successor).has_own_turns
        else:
            is_there = self._archived_session(by) is not None
        return is_there and not HeadTail(path).touched

    def is_given_up(self, row: Ancestor) -> bool:
        """Check whether a row's session is superseded, whatever its location."""
        if row.session_id in self._superseded:
            path = self.path_of(row)
        else:
            path = None
        return path is not None and self.is_superseded(path)

    def descendants(self, session_id: str) -> list[Descendant]:
        """Return every descendant of ``session_id``, parents before children, oldest first."""
        children = self._children()
        descendants: list[Descendant] = []
        seen = {session_id}
        waiting = deque([session_id])
        while waiting:
            parent_id = waiting.popleft()
            for child_id, session, parent in children.get(parent_id, ()):
                if child_id in seen:
                    continue
                seen.add(child_id)
                waiting.append(child_id)
                with contextlib.suppress(SessionNotFound):  # deleted since the listing
                    descendants.append(Descendant(self._row(session, parent), parent_id))
        return descendants

    def _children(self) -> dict[str, list[tuple[str, str | ArchivedSession, Parent]]]:
        """Return the children of every session by its id, oldest first: id, path or archived copy, parent."""
        children: dict[str, list[tuple[str, str | ArchivedSession, Parent]]] = {}
        present = store_of(self._where).sessions()
        archived = list_archived(self._where, {session.session_id for session in present})
        sessions: list[tuple[float, str, str | ArchivedSession]] = [
            *((session.mtime, session.session_id, session.path) for session in reversed(present)),
            *((each.transcript.mtime_ns / 1e9, each.session_id, each) for each in archived),
        ]
        for _, session_id, session in sorted(sessions, key=lambda row: row[0]):
            with contextlib.suppress(
                SessionNotFound, NotATranscript
            ):  # deleted since the listing, or broken
                if (parent := self._parent_of(session)) is not None:
                    children.setdefault(parent.session_id, []).append((session_id, session, parent))
        return children


def without_trims(rows: list[Ancestor]) -> list[Ancestor]:
    """Return the lineage without trimmed sessions; each row's parent is the nearest remaining one."""
    rows_left: list[Ancestor] = []
    for row in rows:
        if row.derivation_type != "trimmed":
            rows_left.append(
                row._replace(parent_session_id=rows_left[-1].session_id if rows_left else None)
            )
    return rows_left


def _id_at(path: str, where: Where) -> str:
    return session_id_from_path(path) or agent_of_path(path, where).open_session(path).session_id


def _ancestor_row(
    session: str | ArchivedSession, parent: Parent | None, where: Where, known: HeadTail | None
) -> Ancestor:
    if isinstance(session, str):
        agent = agent_of_path(session, where)
        ends = known or agent.read_ends(session)
        session_id, place = _id_at(session, where), client_path(session, where)
        title, created, ended, size = ends.title, ends.created, ends.ended, ends.size
        if is_archived_copy(session, where):
            status = KEPT
        elif row_of_agent(agent.name).loss_note:
            status = TYPED
        else:
            status = "present"
    else:
        session_id, about = session.session_id, session.about
        place = path_of_place(session.place, where)
        title, created, ended, size = (
            session.title,
            about.created,
            about.ended,
            session.transcript.size,
        )
        status = KEPT
    derived: tuple[str, str, str | None, str | None] = ("original", "original", None, None)
    if parent is not None:
        derived = (
            parent.derivation_type,
            parent.kind,
            parent.exported_file or None,
            parent.session_id or None,
        )
        made = clock.normalize_timestamp(
            parent.at
        )  # content from the parent is older than the child
        created, ended = max(created, made), max(ended, made)
    title, of = collapse_line(plain_text(title), TITLE_LENGTH), parent.subagent if parent else ""
    return Ancestor(session_id, place, title, *derived, status, created, ended, size, subagent=of)
