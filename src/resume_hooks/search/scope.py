"""Where to look: which files and which of their records, as conditions of a query."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from resume_hooks.paths import Where, project_key
from resume_hooks.search.index.writing import ROLES
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.system import git_worktrees
from resume_hooks.system.git_worktrees import Project
from resume_hooks.system.text import encodable
from resume_hooks.transcripts.head_tail import HeadTail

ALIASES = {
    "user": ("prompt",),
    "assistant": ("reply", "thinking", "call"),
    "tool": ("call", "result"),
    **{role: (role,) for role in ROLES},
}
"""What ``--role`` takes: the roles of the index, and the words that people know them by."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search is limited to; None and empty: to nothing.

    ``sessions`` are ids, ``agent`` the name of one of their sub-agents; ``folders`` are working directories, to which
    ``within`` adds what was started below a folder and ``projects`` names of project folders; ``since`` and ``until``
    are seconds since the epoch. ``asking`` is a session whose last turn is left out: it holds the question.
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

    @property
    def narrow(self) -> bool:
        """Whether it says what kind of record is wanted, so that words are not needed."""
        return bool(self.branch or self.tool or self.file or self.role or self.since or self.until)


def session_scope(locator: str | None, cwd: str, where: Where) -> Scope:
    """One session and its sub-agents, or one of these. Raises as ``locate.resolve``."""
    session_id, _, agent = resolve_transcript(locator, cwd, where).session_id.partition("/")
    return Scope(sessions=frozenset({session_id}), agent=agent)


def lineage_scope(locator: str | None, cwd: str, where: Where) -> Scope:
    """A session and its ancestors. Raises as ``locate.resolve``."""
    rows = Family(where).lineage(locate.resolve(locator, cwd, where).path)
    return Scope(sessions=frozenset(row.session_id for row in rows))


def project_of(path: str, where: Where) -> Scope:
    """The project of the session at ``path``, the folder that its file lies in included."""
    scope = project_at(home_folder(HeadTail(path), where), where)
    # A folder of another name holds it where it was moved; by name alone, other projects of the same key would come in.
    beside = {os.path.basename(os.path.dirname(path))} - {project_key(folder) for folder in scope.folders or ()}
    return replace(scope, projects=scope.projects | beside)


def project_at(cwd: str, where: Where) -> Scope:
    """The project of a folder: its repository with all that was started below it, and the other worktrees."""
    project = git_worktrees.project_at(cwd, where)
    return Scope(folders=project.folders, within=project.within, projects=frozenset(project.names))


class Entered(NamedTuple):
    """``files`` that are in scope, and ``helpers``: runs of one question that were left out."""

    files: int
    helpers: int


def enter(db: sqlite3.Connection, scope: Scope) -> Entered:
    """Put the files in scope into the table ``temp.scope``."""
    db.execute("CREATE TABLE IF NOT EXISTS temp.scope(id INTEGER PRIMARY KEY)")
    db.execute("DELETE FROM temp.scope")
    holds = Project(scope.folders or (), scope.within).holds
    helpers = set() if scope.helpers or scope.sessions is not None else _helpers(db)
    wanted: list[tuple[int]] = []
    left_out: set[str] = set()
    rows = db.execute("SELECT id, session, agent, folder, cwd FROM files WHERE hidden=0")
    for file_id, session, agent, folder, cwd in rows:
        if scope.sessions is not None and (session not in scope.sessions or scope.agent not in ("", agent)):
            continue
        if scope.folders is not None and folder not in scope.projects and not holds([cwd], folder):
            continue
        if session in helpers:
            left_out.add(session)
        else:
            wanted.append((file_id,))
    db.executemany("INSERT INTO temp.scope VALUES(?)", wanted)
    return Entered(len(wanted), len(left_out))


def _helpers(db: sqlite3.Connection) -> set[str]:
    """The sessions that are headless runs of one question in every copy; their sub-agents are left out with them."""
    query = (
        "SELECT session FROM files WHERE agent='' GROUP BY session"
        " HAVING max(turns)<=1 AND min(substr(entrypoint, 1, 3)='sdk')"
    )
    return {session for (session,) in db.execute(query)}


def condition(db: sqlite3.Connection, scope: Scope) -> tuple[str, list[int]]:
    """The SQL that holds for a row ``r`` of ``records`` in scope, with its parameters."""
    clauses = ["(r.file IN temp.scope OR EXISTS(SELECT 1 FROM copies c WHERE c.record=r.id AND c.file IN temp.scope))"]
    values: list[int] = []
    for column, operator, value in (("time", ">=", scope.since), ("time", "<", scope.until)):
        if value is not None:
            clauses.append(f"r.{column}{operator}?")
            values.append(value)
    for column, names in (("branch", _named(db, scope.branch)), ("tool", _tools(db, scope.tool))):
        if names is not None:
            clauses.append(f"r.{column} IN ({','.join('?' * len(names))})")
            values += names
    if scope.asking:
        query = "SELECT id, turns FROM files WHERE session=? AND agent=''"
        for file_id, turns in db.execute(query, (scope.asking,)):
            clauses.append("NOT (r.file=? AND r.turn>=?)")
            values += (file_id, turns)
    if scope.role:
        roles = [ROLES.index(role) for role in ALIASES[scope.role]]
        clauses.append(f"r.role IN ({','.join('?' * len(roles))})")
        values += roles
    if scope.file:
        db.execute("CREATE TABLE IF NOT EXISTS temp.asked(id INTEGER PRIMARY KEY)")
        db.execute("DELETE FROM temp.asked")
        db.executemany("INSERT INTO temp.asked VALUES(?)", ((name,) for name in _touched(db, scope.file)))
        clauses.append("r.id IN (SELECT record FROM touched WHERE name IN temp.asked)")
    return " AND ".join(clauses), values


def unknown(db: sqlite3.Connection, scope: Scope) -> list[str]:
    """What a scope names that nothing in the index has, a sentence each."""
    notes = []
    if scope.branch and not _named(db, scope.branch):
        notes.append(f"Nothing was said on a branch '{scope.branch}'")
    if scope.tool and not _tools(db, scope.tool):
        notes.append(f"No tool '{scope.tool}' was ever called")
    if scope.file and not _touched(db, scope.file):
        notes.append(f"No tool read or wrote a file '{scope.file}'")
    return notes


def needed_folders(scope: Scope, where: Where) -> list[str] | None:
    """The names of the project folders that a scope may lead to; None for all."""
    if scope.folders is None:
        return None
    return [*Project(scope.folders, scope.within).folder_names(where), *scope.projects]


def unseen(scope: Scope, where: Where) -> list[str]:
    """The project folders that a scope may lead to and that can't be listed; none for sessions that were found."""
    hidden = [] if scope.sessions is not None else locate.unlistable(where)
    needed = needed_folders(scope, where) if hidden else None
    if needed is None or hidden == [where.projects]:
        return hidden
    return [folder for folder in hidden if os.path.basename(folder) in needed]


def _named(db: sqlite3.Connection, name: str) -> list[int] | None:
    if not name:
        return None
    return [row[0] for row in db.execute("SELECT id FROM names WHERE name=?", (encodable(name),))]


def _tools(db: sqlite3.Connection, tool: str) -> list[int] | None:
    """The names that a tool goes by, alone or among those of one record; capitals don't matter."""
    if not tool:
        return None
    rows: Iterable[tuple[int, str]] = db.execute("SELECT id, name FROM names")
    return [number for number, name in rows if tool.casefold() in name.casefold().split(", ")]


def _touched(db: sqlite3.Connection, path: str) -> list[int]:
    """The files that a path names: it alone, or as the end of a longer one."""
    tail = encodable(path).replace("\\", "/").removeprefix("./").rstrip("/")
    rows: Iterable[tuple[int, str]] = db.execute("SELECT id, name FROM names WHERE instr(name, ?)", (tail,))
    ends = f"/{tail.lstrip('/')}"
    inside = f"{tail}/" if tail.startswith("/") else f"{ends}/"
    return [number for number, name in rows if name == tail or name.endswith(ends) or inside in name]
