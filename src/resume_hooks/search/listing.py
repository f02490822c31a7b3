"""List the sessions of a project or of all projects, newest first.

Only the beginning and the end of each file are read. The lists omit sub-agents, files without
messages, and children that were replaced before they were used. By default, they also omit helpers,
which are headless runs with a single question.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from resume_hooks import clock, settings
from resume_hooks.clock import DAY
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME, Agent, ResumeCommands
from resume_hooks.sessions.agents.registry import agent_of_session, store_of_agents, stores_for_list
from resume_hooks.sessions.client_window import (
    fill_in_model_window,
    max_context_window,
    measured_context_window,
)
from resume_hooks.sessions.expiry import EXPIRING_SOON_SECONDS, is_archived
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.open_sessions import RunningClients
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.record_references import ShortIds
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import LocalStore, SessionFile, SessionStore, known_ids
from resume_hooks.system.claude_settings import read_retention_days
from resume_hooks.system.git_worktrees import Project, project_of_folder
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.context_size import (
    could_unread_middle_change_context_size,
    measure_last_records,
    was_compacted,
)
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import UNKNOWN, ContextSize

ORIGINAL_KIND = "original"


class ListedSession(NamedTuple):
    """A session in a listing.

    ``agent`` is the program that the session belongs to, such as Claude Code. ``folder`` is the
    folder in which the client finds the session. ``creation_time`` and ``end_time`` are ISO
    timestamps, ``mtime`` is in seconds since the epoch, and ``size`` is in bytes. If the number of
    turns can't be seen from the beginning and the end of the file, ``turn_count`` is None and
    ``min_turn_count`` is a lower bound.

    ``context`` is the size of the context. Its kind is ``UNKNOWN`` if the end of the file does not
    show the size. ``kind`` is the operation that derived the session, or "original".
    ``days_to_expiry`` is the number of whole days until the client may delete the session, 0 if
    that may happen today, and ``expiry_time`` is the time of the deletion. Both are None if the
    client never deletes the session. ``is_archived`` is true if the vault has a copy of the
    session. ``commands`` are the commands that continue the session.
    """

    agent: str
    session_id: str
    path: str
    title: str
    tag: str
    agent_name: str
    branch: str
    folder: str
    creation_time: str
    end_time: str
    mtime: float
    size: int
    turn_count: int | None
    min_turn_count: int
    context: ContextSize
    kind: str
    derivation_type: str
    parent_id: str | None
    days_to_expiry: int | None
    expiry_time: str | None
    is_archived: bool
    is_open: bool
    commands: ResumeCommands

    @property
    def context_tokens(self) -> int | None:
        """The number of tokens in the context, or None if it is unknown."""
        if self.context.kind == UNKNOWN:
            return None
        return self.context.tokens

    @property
    def context_percent(self) -> int | None:
        """The percentage of the client's token limit that is in use, or None if it is unknown."""
        if self.context.kind == UNKNOWN:
            return None
        return self.context.percent


def list_project(
    cwd: str,
    where: Where,
    *,
    covers_all_projects: bool = False,
    include_helpers: bool = False,
    covers_all_agents: bool = False,
) -> Iterator[ListedSession]:
    """Yield the sessions of the project of ``cwd``, or of all projects, newest first.

    A project includes all worktrees of its repository. Sessions that contain only prompts come
    last. Each file is read only when its session is requested. With ``include_helpers``, include
    headless runs with a single question. With ``covers_all_agents``, include the sessions of other agents.
    """
    project = None if covers_all_projects else project_of_folder(cwd, where)
    stores = stores_for_list(where, all_agents=covers_all_agents)
    files = chain.from_iterable(candidate_files(project, where, store) for store in stores)
    return SessionLister(cwd, where).rows_of_files(files, project, include_helpers=include_helpers)


class ListingPage(NamedTuple):
    """A page of a listing.

    ``has_more`` is true if more rows follow the page. ``file_count`` is the number of files that
    may be sessions. ``omitted_helper_count`` is the number of headless runs that were left out up
    to the end of this page.
    """

    rows: list[ListedSession]
    has_more: bool
    file_count: int
    omitted_helper_count: int


def listing_page(
    lister: SessionLister,
    project: Project | None,
    *,
    max_rows: int,
    first_row: int = 0,
    include_helpers: bool = False,
    only_expiring: bool = False,
) -> ListingPage:
    """Return at most ``max_rows`` rows (0: all) of a project, or of all projects if ``project`` is None.

    The newest sessions come first. The first ``first_row`` rows are left out. With
    ``only_expiring``, return only the sessions that the client may delete within seven days, the
    earliest first.
    """
    files = candidate_files(project, lister.where, lister.store)
    if only_expiring:
        files = [session for session in reversed(files) if lister.expires_soon(session)]
    rows = lister.rows_of_files(
        files, project, include_helpers=include_helpers, skipped_row_count=first_row
    )
    page_rows = list(islice(rows, max_rows or None))
    return ListingPage(
        page_rows, next(rows, None) is not None, len(files), lister.omitted_helper_count
    )


def candidate_files(
    project: Project | None, where: Where, store: SessionStore | None = None
) -> list[SessionFile]:
    """Return the files that may be sessions of a project, newest first.

    If ``project`` is None, return the files of all projects.
    """
    sessions = store or LocalStore(where)
    return sessions.sessions(
        None if project is None else project.folder_names(where, sessions.projects)
    )


class SessionLister:
    """Makes the rows of a listing from session files.

    The data that is not in these files (links between sessions, running clients, settings, the
    index) is read only once. ``omitted_helper_count`` is the number of headless runs left out so
    far.
    """

    def __init__(self, cwd: str, where: Where, store: SessionStore | None = None) -> None:
        self.where = where
        self.store = store or LocalStore(where)
        self.omitted_helper_count = 0
        self._now = time.time()
        self._lineage_finder = LineageFinder(where)
        self._clients = RunningClients(where)
        self._retention_days = read_retention_days(cwd, where)
        self._window = settings.read_number_setting("context_window", where)
        self._configured_windows: dict[tuple[str, str, int], int] = {}

    @functools.cached_property
    def _indexed_turn_counts(self) -> dict[tuple[str, int, int], int]:
        # Loading SQLite takes 10 ms. It is needed only for a session whose file was not read
        # completely.
        from resume_hooks.search.index.database import count_turns_by_file

        return count_turns_by_file(self.where)

    def _count_turns(self, path: str, ends: HeadTail) -> int | None:
        """Return the number of a session's turns, or None if it is unknown.

        If only the beginning and the end of the session's file were read, take the number from the
        index, unless the file has changed since it was indexed.
        """
        if ends.all_records is not None:
            return ends.prompt_count
        try:
            status = os.stat(path)
        except OSError:
            return None  # The file was deleted after it was listed.
        return self._indexed_turn_counts.get((path, status.st_size, status.st_mtime_ns))

    def rows_of_files(
        self,
        files: Iterable[SessionFile],
        project: Project | None,
        *,
        include_helpers: bool = False,
        skipped_row_count: int = 0,
    ) -> Iterator[ListedSession]:
        """Yield the rows of these files in order. Files that were deleted have no row.

        If several files have the same session id, yield only the first. The first
        ``skipped_row_count`` rows are only counted, which is three times as fast as making them.
        """
        listed_ids = set[str]()
        for session in files:
            if session.session_id in listed_ids:
                continue
            with contextlib.suppress(SessionNotFound):
                if (
                    ends_and_agent := self._read_listed_ends_and_agent(
                        session, project, include_helpers=include_helpers
                    )
                ) is not None:
                    if len(listed_ids) >= skipped_row_count:
                        row = self._make_row(session, *ends_and_agent)
                    else:
                        row = None
                    listed_ids.add(session.session_id)
                    if row is not None:
                        yield row

    def row_of_session(self, session: SessionFile, project: Project | None) -> ListedSession | None:
        """Return the row of a session, or None if lists leave it out.

        Raise SessionNotFound if the session's file cannot be read.
        """
        ends_and_agent = self._read_listed_ends_and_agent(session, project, include_helpers=False)
        if ends_and_agent is None:
            return None
        return self._make_row(session, *ends_and_agent)

    def _read_listed_ends_and_agent(
        self, session: SessionFile, project: Project | None, *, include_helpers: bool
    ) -> tuple[HeadTail, Agent] | None:
        """Return the beginning and the end of a session, and its agent.

        Return None if lists leave the session out.
        """
        agent = agent_of_session(session, self.where)
        ends = agent.read_ends(session.path)
        is_helper = ends.is_headless_run and ends.has_messages
        if not (ends.is_shown_in_lists or is_helper) or not (
            project is None or project.contains_session(ends.folders, ends.project)
        ):
            return None
        if is_helper and not (include_helpers or ends.is_shown_in_lists):
            self.omitted_helper_count += 1
            return None
        if self._lineage_finder.is_superseded(session.path):
            return None
        return (ends, agent)

    def _make_row(self, session: SessionFile, ends: HeadTail, agent: Agent) -> ListedSession:
        parent = self._lineage_finder.find_parent(session.path)
        is_claude_session, folder = (
            agent.name == CLAUDE_NAME,
            home_folder_of_session(ends, self.where),
        )
        context = self._measure_context(session, ends)
        expiry = (
            ends.mtime + self._retention_days * DAY
            if is_claude_session and self._retention_days is not None
            else None
        )
        return ListedSession(
            agent=agent.name,
            session_id=session.session_id,
            path=session.path,
            title=ends.title,
            tag=ends.tag,
            agent_name=ends.agent_name,
            branch=ends.branch,
            folder=folder,
            creation_time=ends.created_at,
            end_time=ends.ended_at,
            mtime=ends.mtime,
            size=ends.size,
            turn_count=self._count_turns(session.path, ends),
            min_turn_count=ends.prompt_count,
            context=context,
            kind=parent.kind if parent else ORIGINAL_KIND,
            derivation_type=parent.derivation_type if parent else ORIGINAL_KIND,
            parent_id=(parent.session_id or None) if parent else None,
            days_to_expiry=None if expiry is None else max(0, int((expiry - self._now) // DAY)),
            expiry_time=None if expiry is None else clock.timestamp_from_epoch(expiry),
            is_archived=is_archived(session.session_id, 0.0, self.where),
            is_open=self._clients.is_shown_as_open(session)
            if is_claude_session
            else bool(agent.describe_open_state(session)),
            commands=agent.resume_commands(session.session_id, folder),
        )

    def _measure_context(self, session: SessionFile, ends: HeadTail) -> ContextSize:
        """Return the size of a session's context.

        The size is computed from the beginning and the end of the session's file if these suffice.
        Otherwise, ``Session.context`` computes it.
        """
        if ends.first_records:
            stated_size = tokens.read_size_stated_in_record(ends.first_records[0])
        else:
            stated_size = None
        known_window = self._window or measured_context_window(session.session_id, self.where)
        window = known_window or tokens.stated_window(stated_size)
        context = measure_last_records(ends.last_records, window)
        if session.agent != CLAUDE_NAME:
            return context or ContextSize.from_count(0, window, UNKNOWN)
        is_changed = stated_size is not None or was_compacted(ends) or not ends.is_whole_file
        if (
            (context is None and is_changed)
            or ends.lacks_beginning
            or could_unread_middle_change_context_size(ends)
        ):
            return Session.from_file(session, self.where).context
        if context is None:
            context = ContextSize.from_count(0, window, UNKNOWN)
        # The settings that determine the window depend only on the folder and the model, so they
        # are read only once for each combination.
        key = ends.cwd, ends.model, known_window
        if key not in self._configured_windows:
            self._configured_windows[key] = max_context_window(ends, known_window, self.where)
        return fill_in_model_window(context, ends, self._configured_windows[key])

    def expires_soon(self, session: SessionFile) -> bool:
        """Check whether the client may delete a session within the next seven days."""
        retention = self._retention_days if session.agent == CLAUDE_NAME else None
        return (
            retention is not None
            and session.mtime + retention * DAY < self._now + EXPIRING_SOON_SECONDS
        )


def short_ids(rows: Sequence[ListedSession], where: Where) -> list[str]:
    """Return the short id of each row, or its full id if the short one is not unique on this machine."""
    other_ids = set()
    for row in rows:
        if row.agent != CLAUDE_NAME:
            other_ids.add(row.session_id)
    if other_ids:
        other_ids = set()
        for session in store_of_agents(where).sessions():
            other_ids.add(session.session_id)
    own_ids = {row.session_id for row in rows}
    ids = ShortIds(known_ids(where) | other_ids | own_ids)
    return [ids.shorten(row.session_id) for row in rows]
