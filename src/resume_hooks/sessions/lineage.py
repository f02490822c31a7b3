"""Find the lineage of a session: its ancestors, oldest first, and its descendants.

A session's file records its parent, but this data is untrusted. A path in it is used only if it is
the path of a session in a project folder of this config home or next to the child. Otherwise the
parent is looked up by its id, first in all projects and then in the vault. If a session is its own
ancestor, the lineage ends there. A missing session is shown as missing.
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
    belongs_to_other_agent,
    find_other_agents_session,
    row_of_agent,
    store_of_agents,
)
from resume_hooks.sessions.archived.layout import path_in_config_home
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived, list_archived
from resume_hooks.sessions.archived.sessions import (
    client_path,
    is_archived_copy,
    open_archived,
)
from resume_hooks.sessions.child_titles import displayed_kind, kind_unless_in_title
from resume_hooks.sessions.link_log import read_links, read_successors
from resume_hooks.system.text import collapse_line, plain_line, plain_text
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS, HeadTail
from resume_hooks.transcripts.lines import SharedFile
from resume_hooks.transcripts.provenance import Parent, convert_to_current_kind_name, read_parent

# The statuses that a row can have besides ``present``.
ARCHIVED_STATUS, PROMPTS_STATUS, MISSING_STATUS = (
    "kept",
    "prompts",
    "missing",
)
# The remarks on rows whose sessions have no complete transcript in the client's folder.
REMARKS_BY_STATUS = {
    ARCHIVED_STATUS: " (archived copy)",
    PROMPTS_STATUS: " (prompts only)",
}
# The maximum number of generations in a lineage. Only a forged lineage has more.
MAX_GENERATIONS = 1_000


class Ancestor(NamedTuple):
    """A session in a lineage.

    ``derivation_type`` is how the session began: "original", "trimmed" or "continued". ``kind`` is
    more specific, such as "handoff", "fork" or "clear". ``status`` is "present", "kept" (only the
    vault has a copy, and ``session_file`` is the path at which the client stored the session),
    "prompts" (only the prompts exist) or "missing" (only links to other sessions describe it).

    For a session from a team's server, ``owner`` and ``machine`` are the user and the computer that
    it comes from. If the session continues a sub-agent of its parent, ``subagent`` is the name of
    the sub-agent.
    """

    session_id: str
    session_file: str
    title: str
    derivation_type: str
    kind: str
    exported_file: str | None
    parent_session_id: str | None
    status: str
    created_at: str
    ended_at: str
    size: int
    owner: str = ""
    machine: str = ""
    subagent: str = ""

    @property
    def origin_note(self) -> str:
        """The session's kind and, if the session continues a sub-agent, the sub-agent's name.

        If the session does not continue a sub-agent and the title already ends in the kind, the
        note is empty.
        """
        if self.subagent:
            return f"{displayed_kind(self.kind)} of {plain_line(self.subagent)}"
        return kind_unless_in_title(self.title, self.kind)

    @property
    def title_and_origin(self) -> str:
        """The title, by which the session can be found, followed by the origin note."""
        return "  ".join(filter(None, (self.title, self.origin_note)))


class Descendant(NamedTuple):
    """A descendant of a session; ``parent_session_id`` is the id of its direct parent."""

    row: Ancestor
    parent_session_id: str


class LineageFinder:
    """Finds the parents and the descendants of sessions in a config home. Links are read only once."""

    def __init__(self, where: Where, known_ends: Mapping[str, HeadTail] | None = None) -> None:
        """``known_ends`` maps the paths of sessions to their beginnings and ends, if these were already read."""
        self._where = where
        self._known_ends = dict(known_ends or {})
        self._links = {link.child_id: link for link in read_links(where)}
        self._archived_by_id: dict[str, ArchivedSession | None] = {}

    def find_parent(self, path: str) -> Parent | None:
        """Return the parent of the session at ``path``, from its file or from our links, or None.

        Raise SessionNotFound if the file can't be read.
        """
        try:
            recorded = self._read_recorded_parent(path)
        except OSError as error:
            raise SessionNotFound(
                f"{path} can't be read: {error.strerror}", "Check the path."
            ) from error
        return self._choose_parent(recorded, _session_id_of_path(path, self._where), path)

    def _read_recorded_parent(self, path: str) -> Parent | None:
        """Return the parent that is recorded in the session's file, or None if it records no parent.

        Raise OSError or SessionNotFound.
        """
        known_ends = self._known_ends.get(path)
        if known_ends is not None and isinstance(known_ends.file, SharedFile):
            return read_parent(known_ends.file)
        return agent_of_path(path, self._where).read_parent(path)

    def _choose_parent(
        self, recorded_parent: Parent | None, session_id: str, path: str
    ) -> Parent | None:
        link = self._links.get(session_id)
        if link:
            linked_parent = Parent(
                link.parent_id, "", "continued", convert_to_current_kind_name(link.kind), link.at
            )
        else:
            linked_parent = None
        if (
            recorded_parent is None
            or linked_parent is None
            or recorded_parent.session_id == linked_parent.session_id
        ):
            return recorded_parent or linked_parent
        # If the file and the link record different parents, prefer the parent that still exists.
        if self._parent_exists(recorded_parent, path) or not self._parent_exists(
            linked_parent, path
        ):
            return recorded_parent
        return linked_parent

    def locate_parent(self, parent: Parent, child_path: str) -> str | None:
        """Return the path of a parent's transcript or archived copy, or None if neither exists."""
        return self._find_present_file(parent, child_path) or self.find_archived_copy(
            parent.session_id
        )

    def has_session(self, session_id: str) -> bool:
        """Check whether this machine has a session with this id, of any agent, or an archived copy of it."""
        session = find_session(session_id, self._where) or self._find_session_of_other_agent(
            session_id
        )
        return bool(session or self._find_archived(session_id))

    def find_archived_copy(self, session_id: str) -> str | None:
        """Unpack a session's archived copy and return its path, or None if there is no readable copy."""
        archived = self._find_archived(session_id)
        try:
            if archived:
                return open_archived(archived, self._where).path
            return None
        except (SessionNotFound, WriteFailed):
            return None

    def find_transcript(self, row: Ancestor) -> str | None:
        """Return the path of a readable transcript for a row, or None if there is none."""
        if row.status == MISSING_STATUS:
            return None
        if row.status == ARCHIVED_STATUS:
            return self.find_archived_copy(row.session_id)
        is_foreign_session = belongs_to_other_agent(row.session_file, self._where)
        if is_foreign_session:
            return self._find_session_of_other_agent(row.session_id)
        return row.session_file

    def _find_archived(self, session_id: str) -> ArchivedSession | None:
        if session_id not in self._archived_by_id:
            self._archived_by_id[session_id] = find_archived(session_id, self._where)
        return self._archived_by_id[session_id]

    def _parent_exists(self, parent: Parent, child_path: str) -> bool:
        return bool(
            self._find_present_file(parent, child_path) or self._find_archived(parent.session_id)
        )

    def _find_present_file(self, parent: Parent, child_path: str) -> str | None:
        child_folder = os.path.dirname(client_path(os.path.abspath(child_path), self._where))
        named_path = os.path.abspath(parent.file_path) if parent.file_path else ""
        if (
            named_path
            and session_id_from_path(named_path) == parent.session_id
            and self._is_allowed_path(named_path, child_folder)
        ):
            return named_path
        if not parent.session_id:
            return None
        path_by_id = find_session(parent.session_id, self._where)
        sibling_path = os.path.join(child_folder, f"{parent.session_id}.jsonl")
        existing_path = next(
            (
                path
                for path in (path_by_id, sibling_path)
                if path and self._is_allowed_path(path, child_folder)
            ),
            None,
        )
        return existing_path or self._find_session_of_other_agent(parent.session_id)

    def _find_session_of_other_agent(self, session_id: str) -> str | None:
        try:
            session = find_other_agents_session(session_id, self._where)
        except (SessionNotFound, NotATranscript, WriteFailed):
            return None
        if session:
            return session.path
        return None

    def _is_allowed_path(self, path: str, child_folder: str) -> bool:
        folder = os.path.dirname(path)
        in_project = os.path.dirname(folder) == self._where.projects and not os.path.islink(folder)
        return (folder == child_folder or in_project) and is_session_file(path)

    def find_lineage(self, path: str) -> list[Ancestor]:
        """Return the session at ``path`` and its ancestors, oldest first.

        Raise SessionNotFound if the file can't be read.
        """
        current = os.path.abspath(path)
        seen_ids: set[str] = set()
        row, parent = self._make_row_and_parent(current, seen_ids)
        rows = [row]
        while parent is not None and len(rows) < MAX_GENERATIONS:
            located_path = self._find_present_file(parent, current)
            row, parent, current = self._find_ancestor(parent, located_path, current, seen_ids)
            rows.append(row)
        return rows[::-1]

    def _find_ancestor(
        self, parent: Parent, located_path: str | None, child: str, seen_ids: set[str]
    ) -> tuple[Ancestor, Parent | None, str]:
        """Return the row of ``parent``, the parent of ``parent``, and the path of ``parent``."""
        # The file was deleted after it was found, or can't be read.
        with contextlib.suppress(SessionNotFound):
            if located_path:
                return *self._make_row_and_parent(located_path, seen_ids), located_path
        if archived := self._find_archived(parent.session_id):
            return *self._make_row_and_parent(archived, seen_ids), path_in_config_home(
                archived.place, self._where
            )
        missing = Ancestor(
            parent.session_id,
            parent.file_path,
            "",
            "unknown",
            "unknown",
            None,
            None,
            MISSING_STATUS,
            "",
            "",
            0,
        )
        return missing, None, child

    def _make_row_and_parent(
        self, session: str | ArchivedSession, seen_ids: set[str]
    ) -> tuple[Ancestor, Parent | None]:
        """Return a session's row and its parent.

        The parent is None if its id is in ``seen_ids``, because the lineage would otherwise never
        end.
        """
        seen_ids.add(
            (session_id_from_path(session) or session)
            if isinstance(session, str)
            else session.session_id
        )
        parent = self._parent_of(session)
        if parent is not None and parent.session_id in seen_ids:
            parent = None
        return self._build_row(session, parent), parent

    def _parent_of(self, session: str | ArchivedSession) -> Parent | None:
        """Return the parent of a session, which is given by its path or by its manifest."""
        if isinstance(session, str):
            return self.find_parent(session)
        parent_fields = session.about.parent
        # Manifests of earlier versions lack the last field of ``Parent``.
        recorded = (
            Parent(*parent_fields) if len(Parent._fields) - len(parent_fields) in {0, 1} else None
        )
        path = path_in_config_home(session.place, self._where)
        return self._choose_parent(recorded, session.session_id, path)

    def _build_row(self, session: str | ArchivedSession, parent: Parent | None) -> Ancestor:
        """Return the row of a session, which is given by its path or by its manifest."""
        known_ends = self._known_ends.get(session) if isinstance(session, str) else None
        return _ancestor_row(session, parent, self._where, known_ends)

    @cached_property
    def _successor_ids(self) -> dict[str, str]:
        return read_successors(self._where)

    def is_superseded(self, path: str) -> bool:
        """Check whether the user never used a child and continued in another session instead.

        Raise SessionNotFound if the child's file can't be read.
        """
        successor_id = self._successor_ids.get(session_id_from_path(path) or "", "")
        successor_path = find_session(successor_id, self._where)
        if successor_path:
            successor_exists = HeadTail(successor_path).has_own_turns
        else:
            successor_exists = self._find_archived(successor_id) is not None
        return successor_exists and not HeadTail(path).was_continued

    def is_row_superseded(self, row: Ancestor) -> bool:
        """Check whether the session of a row is superseded, even if it is only in the vault."""
        if row.session_id in self._successor_ids:
            path = self.find_transcript(row)
        else:
            path = None
        return path is not None and self.is_superseded(path)

    def find_descendants(self, session_id: str) -> list[Descendant]:
        """Return all descendants of a session. Parents precede their children, and older children come first."""
        children = self._children_by_parent()
        descendants: list[Descendant] = []
        seen_ids = {session_id}
        pending_ids = deque([session_id])
        while pending_ids:
            parent_id = pending_ids.popleft()
            for child_id, session, parent in children.get(parent_id, ()):
                if child_id in seen_ids:
                    continue
                seen_ids.add(child_id)
                pending_ids.append(child_id)
                # The session was deleted after it was listed.
                with contextlib.suppress(SessionNotFound):
                    descendants.append(Descendant(self._build_row(session, parent), parent_id))
        return descendants

    def _children_by_parent(self) -> dict[str, list[tuple[str, str | ArchivedSession, Parent]]]:
        """Return the children of each session, oldest first.

        The result maps a session's id to the list of its children. Each child is a tuple of its id,
        its path (or its archived session), and its parent.
        """
        children: dict[str, list[tuple[str, str | ArchivedSession, Parent]]] = {}
        present_sessions = store_of_agents(self._where).sessions()
        archived_sessions = list_archived(
            self._where, {session.session_id for session in present_sessions}
        )
        sessions: list[tuple[float, str, str | ArchivedSession]] = [
            *(
                (session.mtime, session.session_id, session.path)
                for session in reversed(present_sessions)
            ),
            *(
                (each.transcript.mtime_ns / 1e9, each.session_id, each)
                for each in archived_sessions
            ),
        ]
        for _, session_id, session in sorted(sessions, key=lambda row: row[0]):
            # The session was deleted after it was listed, or its file is damaged.
            with contextlib.suppress(SessionNotFound, NotATranscript):
                if (parent := self._parent_of(session)) is not None:
                    children.setdefault(parent.session_id, []).append((session_id, session, parent))
        return children


def omit_trimmed_sessions(rows: list[Ancestor]) -> list[Ancestor]:
    """Return the rows of the sessions that were not trimmed.

    The parent of each row is then the row before it.
    """
    remaining_rows: list[Ancestor] = []
    for row in rows:
        if row.derivation_type != "trimmed":
            remaining_rows.append(
                row._replace(
                    parent_session_id=remaining_rows[-1].session_id if remaining_rows else None
                )
            )
    return remaining_rows


def _session_id_of_path(path: str, where: Where) -> str:
    return session_id_from_path(path) or agent_of_path(path, where).open_session(path).session_id


def _ancestor_row(
    session: str | ArchivedSession, parent: Parent | None, where: Where, known_ends: HeadTail | None
) -> Ancestor:
    if isinstance(session, str):
        agent = agent_of_path(session, where)
        ends = known_ends or agent.read_ends(session)
        session_id, place = _session_id_of_path(session, where), client_path(session, where)
        title, created, ended, size = ends.title, ends.created_at, ends.ended_at, ends.size
        if is_archived_copy(session, where):
            status = ARCHIVED_STATUS
        elif row_of_agent(agent.name).loss_note:
            status = PROMPTS_STATUS
        else:
            status = "present"
    else:
        session_id, about = session.session_id, session.about
        place = path_in_config_home(session.place, where)
        title, created, ended, size = (
            session.title,
            about.created,
            about.ended,
            session.transcript.size,
        )
        status = ARCHIVED_STATUS
    origin_fields: tuple[str, str, str | None, str | None] = ("original", "original", None, None)
    if parent is not None:
        origin_fields = (
            parent.derivation_type,
            parent.kind,
            parent.exported_file or None,
            parent.session_id or None,
        )
        creation_time = clock.normalize_timestamp(
            parent.derived_at
            # Content that was copied from the parent is older than the child. A time before the
            # child's creation is therefore replaced by the time of the creation.
        )
        created, ended = max(created, creation_time), max(ended, creation_time)
    title, subagent_name = (
        collapse_line(plain_text(title), MAX_TITLE_CHARACTERS),
        parent.subagent if parent else "",
    )
    return Ancestor(
        session_id,
        place,
        title,
        *origin_fields,
        status,
        created,
        ended,
        size,
        subagent=subagent_name,
    )
