"""Where to look: which files and which of their records, as conditions of a query."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from resume_hooks import paths
from resume_hooks.index.writing import ROLES
from resume_hooks.paths import MAX_KEY, canonical, project_key

ALIASES = {
    "user": ("prompt",),
    "assistant": ("reply", "thinking", "call"),
    "tool": ("call", "result"),
    **{role: (role,) for role in ROLES},
}
"""What ``--role`` takes: the roles of the index, and the words that people know them by."""

LONGEST_FILE = 4_096
"""Bytes of a ``.git`` file that is read."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search is limited to; None and empty: to nothing.

    ``sessions`` are ids; ``folders`` working directories, to which ``projects`` adds names of project folders;
    ``since`` and ``until`` are seconds since the epoch.
    """

    sessions: frozenset[str] | None = None
    folders: tuple[str, ...] | None = None
    projects: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None
    branch: str = ""
    tool: str = ""
    file: str = ""
    role: str = ""
    helpers: bool = False

    @property
    def narrow(self) -> bool:
        """Whether it says what kind of record is wanted, so that words are not needed."""
        return bool(self.branch or self.tool or self.file or self.role) or self.since is not None


def worktrees(cwd: str) -> tuple[str, ...]:
    """A folder, the root of the repository it lies in, and that repository's other worktrees. Runs no program."""
    root = canonical(cwd)
    while not os.path.lexists(os.path.join(root, ".git")):
        parent = os.path.dirname(root)
        if parent == root:
            return (canonical(cwd),)
        root = parent
    common = _common_folder(os.path.join(root, ".git"))
    linked = os.path.join(common, "worktrees")
    names = sorted(os.listdir(linked)) if os.path.isdir(linked) else []
    others = (os.path.dirname(_first_line(os.path.join(linked, name, "gitdir"))) for name in names)
    found = (canonical(cwd), root, os.path.dirname(common), *others)
    return tuple(dict.fromkeys(folder for folder in found if folder))


def enter(db: sqlite3.Connection, scope: Scope) -> int:
    """Put the files in scope into the table ``temp.scope``; returns how many helper runs were left out."""
    db.execute("CREATE TABLE IF NOT EXISTS temp.scope(id INTEGER PRIMARY KEY)")
    db.execute("DELETE FROM temp.scope")
    keys = {project_key(folder)[:MAX_KEY] for folder in scope.folders or ()}
    wanted, left_out = [], 0
    for file_id, session, folder, cwd, entrypoint, turns in db.execute(
        "SELECT id, session, folder, cwd, entrypoint, turns FROM files WHERE hidden=0"
    ):
        if scope.sessions is not None and session not in scope.sessions:
            continue
        near = folder[:MAX_KEY] in keys and _is_of(cwd, folder, scope.folders or ())
        if scope.folders is not None and folder not in scope.projects and not near:
            continue
        if scope.sessions is None and not scope.helpers and entrypoint.startswith("sdk") and turns <= 1:
            left_out += 1
            continue
        wanted.append((file_id,))
    db.executemany("INSERT INTO temp.scope VALUES(?)", wanted)
    return left_out


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
    if scope.role:
        roles = [ROLES.index(role) for role in ALIASES[scope.role]]
        clauses.append(f"r.role IN ({','.join('?' * len(roles))})")
        values += roles
    if scope.file:
        files = _touched(db, scope.file)
        marks = ",".join("?" * len(files))
        clauses.append(f"r.id IN (SELECT record FROM touched WHERE name IN ({marks}))")  # noqa: S608 - marks alone
        values += files
    return " AND ".join(clauses), values


def needed_folders(scope: Scope, environ: Mapping[str, str]) -> list[str] | None:
    """The names of the project folders that a scope may lead to; None for all."""
    if scope.folders is None:
        return None
    keyed = (os.path.basename(path) for folder in scope.folders for path in paths.project_folders(folder, environ))
    return [*keyed, *scope.projects]


def _is_of(cwd: str, folder: str, wanted: Sequence[str]) -> bool:
    """Whether a session is of one of these folders; a key that fits several is decided by what stands in the file."""
    if not cwd or project_key(cwd)[:MAX_KEY] != folder[:MAX_KEY]:
        return True
    return canonical(cwd) in wanted


def _named(db: sqlite3.Connection, name: str) -> list[int] | None:
    return [row[0] for row in db.execute("SELECT id FROM names WHERE name=?", (name,))] if name else None


def _tools(db: sqlite3.Connection, tool: str) -> list[int] | None:
    """The names that a tool goes by, alone or among those of one record; capitals don't matter."""
    if not tool:
        return None
    rows: Iterable[tuple[int, str]] = db.execute("SELECT id, name FROM names")
    return [number for number, name in rows if tool.casefold() in name.casefold().split(", ")]


def _touched(db: sqlite3.Connection, path: str) -> list[int]:
    """The files that a path names: it alone, or as the end of a longer one."""
    tail = path.replace("\\", "/").removeprefix("./").rstrip("/")
    rows: Iterable[tuple[int, str]] = db.execute("SELECT id, name FROM names WHERE instr(name, ?)", (tail,))
    ends = f"/{tail.lstrip('/')}"
    inside = f"{tail}/" if tail.startswith("/") else f"{ends}/"
    return [number for number, name in rows if name == tail or name.endswith(ends) or inside in name]


def _common_folder(git: str) -> str:
    """The git folder that all worktrees share; in a linked one ``.git`` is a file that leads there."""
    if os.path.isdir(git):
        return git
    line = _first_line(git)
    if not line.startswith("gitdir:"):
        return git
    own = os.path.join(os.path.dirname(git), line.removeprefix("gitdir:").strip())
    return os.path.normpath(os.path.join(own, _first_line(os.path.join(own, "commondir")) or "../.."))


def _first_line(path: str) -> str:
    try:
        return os.fsdecode(paths.read_regular(path, LONGEST_FILE).partition(b"\n")[0]).strip()
    except OSError:
        return ""
