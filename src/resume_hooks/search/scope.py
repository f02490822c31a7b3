"""Where to look: which files and which of their records, as conditions of a query."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection
from typing import NamedTuple

from tantivy import FieldType, Occur, Query

from resume_hooks.paths import Where, find_session, project_key
from resume_hooks.search.index.postings import SCHEMA, Postings
from resume_hooks.search.roles import ALIASES, ROLES
from resume_hooks.sessions.agents.registry import name_at
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import unlistable_folders
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.system import git_worktrees
from resume_hooks.system.git_worktrees import Project
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail


class Scope(NamedTuple):
    """What a search is limited to. The defaults mean no limit.

    An empty set of ``sessions`` matches nothing.

    ``sessions`` are ids, ``agent`` the name of one of their sub-agents; ``folders`` are working
    directories, to which ``within`` adds what was started below a folder and ``projects`` names of
    project folders; ``since`` and ``until`` are seconds since the epoch. ``asking`` is a session
    whose last turn is left out: it holds the question. ``programs`` are the agents whose sessions
    are meant.
    """

    sessions: frozenset[str] | None = None
    agent: str = ""
    folders: tuple[str, ...] | None = None
    within: tuple[str, ...] = ()
    projects: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None
    branch: str = ""
    tool: str = ""
    file: str = ""
    role: str = ""
    helpers: bool = False
    asking: str = ""
    programs: frozenset[str] = frozenset()

    @property
    def narrow(self) -> bool:
        """Whether it says what kind of record is wanted, so that words are not needed."""
        timed = self.since is not None or self.until is not None
        return timed or bool(self.branch or self.tool or self.file or self.role)


def session_scope(locator: str | None, cwd: str, where: Where) -> Scope:
    """One session and its sub-agents, or one of these. Raises as ``locate.resolve``."""
    from resume_hooks.sessions.locate import resolve_transcript  # 2 ms, which few searches need

    session_id, _, agent = resolve_transcript(
        locator, cwd, where, foreign=True
    ).session_id.partition("/")
    return Scope(sessions=frozenset({session_id}), agent=agent)


def lineage_scope(locator: str | None, cwd: str, where: Where) -> Scope:
    """A session and its ancestors. Raises as ``locate.resolve``."""
    from resume_hooks.sessions import locate  # as above
    from resume_hooks.sessions.lineage import Family  # 3 ms, which no other search needs

    rows = Family(where).lineage(locate.resolve(locator, cwd, where, foreign=True).path)
    return Scope(sessions=frozenset(row.session_id for row in rows))


def current_scope(cwd: str, where: Where) -> Scope:
    """The project of the session that asks, else of a folder: a model's shell may be in any."""
    session = find_session(where.environ.get("CLAUDE_CODE_SESSION_ID", ""), where)
    if session is not None:
        return project_of(session, where)
    return project_at(cwd, where)


def project_of(path: str, where: Where) -> Scope:
    """The project of the session at ``path``, the folder that its file lies in included."""
    scope = project_at(home_folder(HeadTail(path), where), where)
    # A folder of another name holds it where it was moved; by name alone, other projects of the
    # same key would come in.
    beside = {os.path.basename(os.path.dirname(path))} - {
        project_key(folder) for folder in scope.folders or ()
    }
    return scope._replace(projects=scope.projects | beside)


def project_at(cwd: str, where: Where) -> Scope:
    """The project of a folder: its repository with all that was started below it, and the other worktrees."""
    project = git_worktrees.project_of_folder(cwd, where)
    return Scope(folders=project.folders, within=project.within, projects=frozenset(project.names))


class Entered(NamedTuple):
    """The ``files`` in scope by their ids, of ``known`` ones.

    Apart from these ``headless`` runs of one question.
    """

    files: frozenset[int]
    known: int
    headless: frozenset[int]


class Limits(NamedTuple):
    """What a scope asks of a record, and what of a turn or a part of a file, as parts of a query."""

    records: list[tuple[Occur, Query]]
    turns: list[tuple[Occur, Query]]


def enter_scope(db: sqlite3.Connection, scope: Scope, where: Where) -> Entered:
    """The files in scope."""
    holds = Project(scope.folders or (), scope.within).holds
    if scope.helpers or scope.sessions is not None:
        helpers = set()
    else:
        helpers = _helpers(db)
    wanted, headless = set[int](), set[int]()
    rows = db.execute(
        "SELECT id, session, agent, folder, cwd, path FROM files WHERE hidden=0"
    ).fetchall()
    for file_id, session, agent, folder, cwd, path in rows:
        if scope.programs and name_at(path, where) not in scope.programs:
            continue
        if scope.sessions is not None and (
            session not in scope.sessions or scope.agent not in ("", agent)
        ):
            continue
        if scope.folders is not None and folder not in scope.projects and not holds([cwd], folder):
            continue
        if session in helpers:
            headless.add(file_id)
        else:
            wanted.add(file_id)
    return Entered(frozenset(wanted), len(rows), frozenset(headless))


def _helpers(db: sqlite3.Connection) -> set[str]:
    """The sessions that are headless runs of one question in every copy.

    Their sub-agents are left out with them.
    """
    query = (
        "SELECT session FROM files WHERE agent='' GROUP BY session"
        " HAVING max(turns)<=1 AND min(substr(entrypoint, 1, 3)='sdk')"
    )
    return {session for (session,) in db.execute(query)}


def limits(
    db: sqlite3.Connection, words: Postings, scope: Scope, files: frozenset[int], known: int
) -> Limits:
    """A scope as parts of a query, for some ``files`` in it, of ``known`` ones."""
    clauses = []
    if len(files) < known:
        clauses.append((Occur.Must, _one_of("file", files)))
    if scope.asking:
        query = "SELECT id, turns FROM files WHERE session=? AND agent=''"
        for file_id, turns in db.execute(query, (scope.asking,)):
            last = Query.range_query(SCHEMA, "turn_number", FieldType.Unsigned, lower_bound=turns)
            clauses.append((Occur.MustNot, _one_of("file", [file_id]).and_must_match(last)))
    own = list(clauses)
    if scope.since is not None or scope.until is not None:
        own.append((Occur.Must, _between(scope.since, scope.until)))
    for name, values in (
        ("branch", _branches(words, scope.branch)),
        ("tool", _tool_names(words, scope.tool)),
        ("path", _touched(words, scope.file)),
        ("role", [ROLES.index(role) for role in ALIASES[scope.role]] if scope.role else None),
    ):
        if values is not None:
            own.append((Occur.Must, _one_of(name, values)))
    return Limits(own, clauses)


def _one_of(field: str, values: Collection[int] | Collection[str]) -> Query:
    """What holds for documents that have one of the values in a field, and adds nothing to their scores."""
    return Query.const_score_query(Query.term_set_query(SCHEMA, field, list(values)), 0.0)


def _between(since: int | None, until: int | None) -> Query:
    """What holds for records said from ``since`` on, and before ``until``."""
    if until is not None and until <= 0:
        return Query.empty_query()
    last = None if until is None else until - 1
    return Query.const_score_query(
        Query.range_query(SCHEMA, "time", FieldType.Unsigned, max(0, since or 0), last), 0.0
    )


def unknown(words: Postings, scope: Scope) -> list[str]:
    """What a scope names that nothing in the index has, a sentence each."""
    rows = (
        (_branches(words, scope.branch), f"Nothing was said on a branch '{scope.branch}'"),
        (_tool_names(words, scope.tool), f"No tool '{scope.tool}' was ever called"),
        (_touched(words, scope.file), f"No tool read or wrote a file '{scope.file}'"),
    )
    return [note for names, note in rows if names == []]


def needed_folders(scope: Scope, where: Where) -> list[str] | None:
    """The names of the project folders that a scope may lead to; None for all."""
    if scope.folders is None:
        return None
    return [*Project(scope.folders, scope.within).folder_names(where), *scope.projects]


def meant(scope: Scope, where: Where) -> Callable[[TranscriptFile], bool]:
    """Tells whether a file may be in a scope that was never read: its working folder is then not known."""
    names = needed_folders(scope, where)
    folders = None if names is None else frozenset(names)

    def is_meant(file: TranscriptFile) -> bool:
        if scope.sessions is not None:
            return file.session_id in {*scope.sessions, ""}
        if scope.programs and name_at(file.path, where) not in scope.programs:
            return False
        return folders is None or file.folder in folders

    return is_meant


def unseen(scope: Scope, where: Where) -> list[str]:
    """The project folders that a scope may lead to and that can't be listed.

    None for sessions that were found.
    """
    if scope.sessions is not None:
        hidden = []
    else:
        hidden = unlistable_folders(where)
    needed = needed_folders(scope, where) if hidden else None
    if needed is None or hidden == [where.projects]:
        return hidden
    return [folder for folder in hidden if os.path.basename(folder) in needed]


def _branches(words: Postings, name: str) -> list[str] | None:
    if name and words.frequency("branch", replace_surrogates(name)):
        return [replace_surrogates(name)]
    if name:
        return []
    return None


def _tool_names(words: Postings, tool: str) -> list[str] | None:
    """The names that a tool goes by; capitals don't matter."""
    if not tool:
        return None
    names = []
    for name, _ in words.beginning("tool", ""):
        if tool.casefold() == name.casefold():
            names.append(name)
    return names


def _touched(words: Postings, path: str) -> list[str] | None:
    """The files that a path names: it alone, or as the end of a longer one, or the folder that they lie in."""
    if not path:
        return None
    tail = replace_surrogates(path).replace("\\", "/").removeprefix("./").rstrip("/")
    ends = f"/{tail.lstrip('/')}"
    inside = f"{tail}/" if tail.startswith("/") else f"{ends}/"
    names = []
    for name, _ in words.beginning("path", ""):
        if tail in name:
            names.append(name)
    return [name for name in names if name == tail or name.endswith(ends) or inside in name]
