"""Define the scope of a search (the files and records to search), and convert it to parts of a query."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection
from typing import NamedTuple

from tantivy import FieldType, Occur, Query

from resume_hooks.paths import Where, find_session, project_key
from resume_hooks.search.index.postings import INDEX_SCHEMA, Postings
from resume_hooks.search.roles import ROLE_ALIASES, ROLES
from resume_hooks.sessions.agents.registry import agent_name_of_path
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session_files import unlistable_folders
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.system import git_worktrees
from resume_hooks.system.git_worktrees import Project
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail


class Scope(NamedTuple):
    """The limits of a search. The default values set no limits.

    If ``session_ids`` is not None, only sessions with these ids are searched, and an empty set
    matches no session. ``subagent_name`` limits the search to one sub-agent of these sessions.

    ``folders`` are the working directories to search. If ``folders`` is not None, the search also
    includes sessions that started in a folder below one of the ``root_folders``, and sessions in
    the client's project folders that ``project_folder_names`` lists.

    ``start_time`` and ``end_time`` are in seconds since the epoch. ``asking_session_id`` is the id
    of the session that asks the question. The last turn of this session is left out, because it
    contains the question. ``agent_names`` are the names of the agents whose sessions are searched.
    """

    session_ids: frozenset[str] | None = None
    subagent_name: str = ""
    folders: tuple[str, ...] | None = None
    root_folders: tuple[str, ...] = ()
    project_folder_names: frozenset[str] = frozenset()
    start_time: int | None = None
    end_time: int | None = None
    branch: str = ""
    tool: str = ""
    file: str = ""
    role: str = ""
    include_helpers: bool = False
    asking_session_id: str = ""
    agent_names: frozenset[str] = frozenset()

    @property
    def selects_records(self) -> bool:
        """Whether the scope limits the kind or time of records, so that a search needs no words."""
        has_period = self.start_time is not None or self.end_time is not None
        return has_period or bool(self.branch or self.tool or self.file or self.role)


def session_scope(locator: str | None, cwd: str, where: Where) -> Scope:
    """Return the scope of a session or sub-agent.

    Raise the errors of ``locate.resolve_locator``.
    """
    # Imported here because the import takes 2 ms, and few searches need it.
    from resume_hooks.sessions.locate import resolve_transcript

    session_id, _, subagent_name = resolve_transcript(
        locator, cwd, where, allow_other_agents=True
    ).session_id.partition("/")
    return Scope(session_ids=frozenset({session_id}), subagent_name=subagent_name)


def lineage_scope(locator: str | None, cwd: str, where: Where) -> Scope:
    """Return the scope of a session and its ancestors.

    Raise the errors of ``locate.resolve_locator``.
    """
    # Imported here because the import takes 2 ms, and few searches need it.
    from resume_hooks.sessions import locate

    # Imported here because the import takes 3 ms, and few searches need it.
    from resume_hooks.sessions.lineage import LineageFinder

    rows = LineageFinder(where).find_lineage(
        locate.resolve_locator(locator, cwd, where, allow_other_agents=True).path
    )
    return Scope(session_ids=frozenset(row.session_id for row in rows))


def current_project_scope(cwd: str, where: Where) -> Scope:
    """Return the scope of the asking session's project.

    If this process does not run in a session, return the scope of the project of ``cwd``. The
    session takes precedence because a model's shell may be in any working directory.
    """
    session = find_session(where.environ.get("CLAUDE_CODE_SESSION_ID", ""), where)
    if session is not None:
        return project_scope_of_session(session, where)
    return project_scope_of_folder(cwd, where)


def project_scope_of_session(path: str, where: Where) -> Scope:
    """Return the scope of the project of the session at ``path``.

    The scope includes the project folder that contains the file.
    """
    scope = project_scope_of_folder(home_folder_of_session(HeadTail(path), where), where)
    # If the session was moved, its file is in a project folder with a different name. Only such a
    # folder is added here. The project folder with the expected name is not added, because it may
    # also contain sessions of other projects.
    other_names = {os.path.basename(os.path.dirname(path))} - {
        project_key(folder) for folder in scope.folders or ()
    }
    return scope._replace(project_folder_names=scope.project_folder_names | other_names)


def project_scope_of_folder(cwd: str, where: Where) -> Scope:
    """Return the scope of a folder's project.

    The project consists of all folders in the repository that contains ``cwd``, and of the
    repository's other worktrees.
    """
    project = git_worktrees.project_of_folder(cwd, where)
    return Scope(
        folders=project.folders,
        root_folders=project.root_folders,
        project_folder_names=frozenset(project.names),
    )


class FilesInScope(NamedTuple):
    """The ids of the files in a scope.

    ``headless_file_ids`` are the ids of the files that belong to headless runs with a single question, and
    ``file_ids`` are the ids of all other files. ``file_count`` is the number of all files in the
    index.
    """

    file_ids: frozenset[int]
    file_count: int
    headless_file_ids: frozenset[int]


class ScopeConditions(NamedTuple):
    """A scope's conditions as clauses of a query: ``record_clauses`` for records, and ``turn_clauses`` for turns."""

    record_clauses: list[tuple[Occur, Query]]
    turn_clauses: list[tuple[Occur, Query]]


def find_files_in_scope(db: sqlite3.Connection, scope: Scope, where: Where) -> FilesInScope:
    """Return the ids of the files in a scope."""
    is_in_project = Project(scope.folders or (), scope.root_folders).contains_session
    if scope.include_helpers or scope.session_ids is not None:
        helpers = set()
    else:
        helpers = _find_helper_sessions(db)
    file_ids, headless = set[int](), set[int]()
    rows = db.execute(
        "SELECT id, session, agent, folder, cwd, path FROM files WHERE hidden=0"
    ).fetchall()
    for file_id, session, agent, folder, cwd, path in rows:
        if scope.agent_names and agent_name_of_path(path, where) not in scope.agent_names:
            continue
        if scope.session_ids is not None and (
            session not in scope.session_ids or scope.subagent_name not in ("", agent)
        ):
            continue
        if (
            scope.folders is not None
            and folder not in scope.project_folder_names
            and not is_in_project([cwd], folder)
        ):
            continue
        if session in helpers:
            headless.add(file_id)
        else:
            file_ids.add(file_id)
    return FilesInScope(frozenset(file_ids), len(rows), frozenset(headless))


def _find_helper_sessions(db: sqlite3.Connection) -> set[str]:
    """Return the ids of the sessions whose copies are all headless runs with a single question."""
    query = (
        "SELECT session FROM files WHERE agent='' GROUP BY session"
        " HAVING max(turns)<=1 AND min(substr(entrypoint, 1, 3)='sdk')"
    )
    return {session for (session,) in db.execute(query)}


def conditions_of_scope(
    db: sqlite3.Connection,
    postings: Postings,
    scope: Scope,
    file_ids: frozenset[int],
    file_count: int,
) -> ScopeConditions:
    """Return a scope's conditions as parts of a query.

    ``file_ids`` are the ids of the files in scope, and ``file_count`` is the number of all files in
    the index.
    """
    clauses = []
    if len(file_ids) < file_count:
        clauses.append((Occur.Must, _query_for_values("file", file_ids)))
    if scope.asking_session_id:
        query = "SELECT id, turns FROM files WHERE session=? AND agent=''"
        for file_id, turns in db.execute(query, (scope.asking_session_id,)):
            last_turn = Query.range_query(
                INDEX_SCHEMA, "turn_number", FieldType.Unsigned, lower_bound=turns
            )
            clauses.append(
                (Occur.MustNot, _query_for_values("file", [file_id]).and_must_match(last_turn))
            )
    record_clauses = list(clauses)
    if scope.start_time is not None or scope.end_time is not None:
        record_clauses.append((Occur.Must, _query_for_period(scope.start_time, scope.end_time)))
    for name, values in (
        ("branch", _matching_branches(postings, scope.branch)),
        ("tool", _matching_tools(postings, scope.tool)),
        ("path", _matching_files(postings, scope.file)),
        ("role", [ROLES.index(role) for role in ROLE_ALIASES[scope.role]] if scope.role else None),
    ):
        if values is not None:
            record_clauses.append((Occur.Must, _query_for_values(name, values)))
    return ScopeConditions(record_clauses, clauses)


def _query_for_values(field: str, values: Collection[int] | Collection[str]) -> Query:
    """Return a query for documents that have one of these values in a field. Its score is always 0."""
    return Query.const_score_query(Query.term_set_query(INDEX_SCHEMA, field, list(values)), 0.0)


def _query_for_period(start_time: int | None, end_time: int | None) -> Query:
    """Return a query for records from ``start_time`` to just before ``end_time``. Its score is always 0."""
    if end_time is not None and end_time <= 0:
        return Query.empty_query()
    last_second = None if end_time is None else end_time - 1
    return Query.const_score_query(
        Query.range_query(
            INDEX_SCHEMA, "time", FieldType.Unsigned, max(0, start_time or 0), last_second
        ),
        0.0,
    )


def notes_on_unknown_values(postings: Postings, scope: Scope) -> list[str]:
    """Return a sentence about each branch, tool or file in a scope that the index does not contain."""
    rows = (
        (
            _matching_branches(postings, scope.branch),
            f"Nothing was said on a branch '{scope.branch}'",
        ),
        (_matching_tools(postings, scope.tool), f"No tool '{scope.tool}' was ever called"),
        (_matching_files(postings, scope.file), f"No tool read or wrote a file '{scope.file}'"),
    )
    return [note for names, note in rows if names == []]


def needed_folder_names(scope: Scope, where: Where) -> list[str] | None:
    """Return the names of the project folders in which sessions of a scope may be.

    Return None if they may be in any project folder.
    """
    if scope.folders is None:
        return None
    return [
        *Project(scope.folders, scope.root_folders).folder_names(where),
        *scope.project_folder_names,
    ]


def make_file_filter(scope: Scope, where: Where) -> Callable[[TranscriptFile], bool]:
    """Return a function that checks whether a file that is not indexed may be in a scope.

    The working directory of an unindexed session is not known yet, so the function decides by the
    name of the file's project folder.
    """
    names = needed_folder_names(scope, where)
    folders = None if names is None else frozenset(names)

    def is_in_scope(file: TranscriptFile) -> bool:
        if scope.session_ids is not None:
            return file.session_id in {*scope.session_ids, ""}
        if scope.agent_names and agent_name_of_path(file.path, where) not in scope.agent_names:
            return False
        return folders is None or file.folder in folders

    return is_in_scope


def unlistable_folders_in_scope(scope: Scope, where: Where) -> list[str]:
    """Return the project folders that cannot be listed but may contain sessions of a scope.

    The result is empty if the scope names its sessions by their ids.
    """
    if scope.session_ids is not None:
        folders = []
    else:
        folders = unlistable_folders(where)
    needed_names = needed_folder_names(scope, where) if folders else None
    if needed_names is None or folders == [where.projects]:
        return folders
    return [folder for folder in folders if os.path.basename(folder) in needed_names]


def _matching_branches(postings: Postings, name: str) -> list[str] | None:
    if name and postings.count_records_containing("branch", replace_surrogates(name)):
        return [replace_surrogates(name)]
    if name:
        return []
    return None


def _matching_tools(postings: Postings, tool: str) -> list[str] | None:
    """Return the indexed names that equal ``tool``, ignoring case, or None if ``tool`` is empty."""
    if not tool:
        return None
    names = []
    for name, _ in postings.words_with_prefix("tool", ""):
        if tool.casefold() == name.casefold():
            names.append(name)
    return names


def _matching_files(postings: Postings, path: str) -> list[str] | None:
    """Return the indexed files that match a path, or None if ``path`` is empty.

    A file matches if its path equals ``path``, ends in ``path``, or is in a folder that ends in
    ``path``.
    """
    if not path:
        return None
    tail = replace_surrogates(path).replace("\\", "/").removeprefix("./").rstrip("/")
    path_end = f"/{tail.lstrip('/')}"
    folder_part = f"{tail}/" if tail.startswith("/") else f"{path_end}/"
    names = []
    for name, _ in postings.words_with_prefix("path", ""):
        if tail in name:
            names.append(name)
    return [
        name for name in names if name == tail or name.endswith(path_end) or folder_part in name
    ]
