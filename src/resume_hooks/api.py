"""The documented Python API over lineage, rollover, trim, fork, search.

Paths in and out are ``pathlib.Path``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from resume_hooks.derive import cut_point
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.opening_size import ALL, checked_size
from resume_hooks.derive.trim.options import Options as Options  # noqa: PLC0414 - one of the API's names
from resume_hooks.derive.trim.options import options_of
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec
from resume_hooks.derive.verbs.fork import fork as make_fork
from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff
from resume_hooks.derive.verbs.rollover import rollover_quick
from resume_hooks.derive.verbs.trim import trim as make_trim
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.search.engine import search_index
from resume_hooks.search.scope import Scope, lineage_scope, project_at, session_scope
from resume_hooks.sessions.lineage import Ancestor, Family, without_trims
from resume_hooks.sessions.session import Session


@dataclass(frozen=True)
class SessionNode:
    """A session of a lineage. ``derivation_type`` is trimmed, continued, or None for the first session."""

    session_file: Path
    session_id: str
    derivation_type: str | None
    exported_file: Path | None
    parent: SessionNode | None = None


@dataclass(frozen=True)
class SearchHit:
    """A turn that answers a search, by its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``, as ``resume-hooks read`` takes it; ``file``
    holds the record, ``session_file`` is its session's, ``folder`` where that is resumed. ``turn``
    counts from 1; ``time`` is ISO 8601 in UTC, ``""`` if unknown. ``words`` of the query are in the
    turn, ``missing`` are not; all ``sessions`` hold the record. ``confidence`` is how likely it
    answers, 0 to 1, ``strength`` that in a word: strong, fair or weak. ``found_by`` are the
    wordings that found it where several were given: 1 is the query, 2 the first of the others.
    """

    reference: str
    session_id: str
    session_file: Path
    file: Path
    folder: Path
    title: str
    turn: int
    role: str
    tool: str
    time: str
    snippet: str
    words: tuple[str, ...]
    missing: tuple[str, ...]
    sessions: tuple[str, ...]
    score: float
    confidence: float
    strength: str
    found_by: tuple[int, ...]


def get_parent_info(session_file: str | Path) -> tuple[Path | None, str | None, Path | None]:
    """The parent's file, how the session was derived, and the export it names.

    Three Nones for the first session.

    The path is the one that exists where the parent was found, of a kept copy where only that is
    left, else the one that the metadata names. SessionNotFound where ``session_file`` can't be
    read.
    """
    path = os.path.abspath(session_file)
    family = Family(Where())
    parent = family.parent_of(path)
    if parent is None:
        return None, None, None
    file = family.locate(parent, path) or parent.file
    return _optional_path(file), parent.derivation_type, _optional_path(parent.exported_file)


def get_continuation_lineage(session_file: str | Path) -> list[SessionNode]:
    """The lineage without trimmed sessions, oldest first, each node linked to the one before it.

    The file of a session of which only the vault has a copy is where it was: ``get_parent_info``
    leads to the copy.
    """
    return _nodes_of_lineage(without_trims(Family(Where()).lineage(os.path.abspath(session_file))))


def get_full_lineage_chain(session_file: str | Path) -> list[tuple[Path, str]]:
    """The whole lineage as (file, how derived), newest first, ending with the first session."""
    rows = Family(Where()).lineage(os.path.abspath(session_file))
    return [(_file_of_ancestor(row), row.derivation_type) for row in reversed(rows)]


def rollover(
    session_file: str | Path, *, next_step: str = "", size: str = "", dry_run: bool = False
) -> Receipt:
    """Make a fresh child of a session that holds its lineage.

    With a next step a handoff, which holds a digest, too.

    ``size`` is that of the handoff, such as ``"4k"``; by default the setting ``handoff_size``.
    Raises ResumeHooksError; nothing is left behind then.
    """
    session = Session.at(_require_path(session_file), Where())
    caller = Caller(Where(), dry_run=dry_run)
    if not next_step.strip():
        return rollover_quick(session, caller).receipt
    asked_size = checked_size(size) if size else ""
    if asked_size == ALL:
        raise UsageError("The size all makes a copy, which has no next step", "Call fork for it.")
    spec = HandoffSpec(next_step, asked_size, has_files=False)
    return handoff(session, spec, caller).receipt


def trim(
    session_file: str | Path, options: Options | None = None, *, dry_run: bool = False
) -> Receipt:
    """Make a child of a session in which bulky contents are placeholders; ``options`` as the command line's defaults.

    Where it would not pay, nothing is written: the receipt's ``written`` is false and its ``file``
    empty. Raises ResumeHooksError; nothing is left behind then.
    """
    session = Session.at(_require_path(session_file), Where())
    chosen = options_of() if options is None else options
    return make_trim(session, chosen, Caller(Where(), dry_run=dry_run)).receipt


def fork_session(
    session_file: str | Path,
    *,
    at: str | int | None = None,
    turn: int | None = None,
    home: str | Path | None = None,
    dry_run: bool = False,
) -> Receipt:
    """Make a copy of a session's live conversation under a new id: whole, or ``at`` a record, or to the end of a turn.

    ``at`` is a 0-based line, a uuid or a message id; ``home`` a folder whose session it becomes. A
    cut never parts a tool call from its answer; the receipt's warnings say where it moved. Raises
    ResumeHooksError; nothing is left then.
    """
    if at is not None and turn is not None:
        raise UsageError("at and turn exclude each other", "A session is cut once.")
    spec = ForkSpec()
    if turn is not None:
        spec = spec._replace(cut=cut_point.AtTurn(turn))
    elif at is not None:
        spec = spec._replace(cut=cut_point.parse_record(str(at)))
    if home is not None:
        spec = spec._replace(home=os.fspath(home))
    session = Session.at(_require_path(session_file), Where())
    return make_fork(session, spec, Caller(Where(), dry_run=dry_run)).receipt


def search_sessions(
    query: str | Sequence[str],
    *,
    project: str | Path | None = None,
    everywhere: bool = False,
    lineage: str | Path | None = None,
    session: str | Path | None = None,
    limit: int = 10,
    wordings: Sequence[str] = (),
) -> list[SearchHit]:
    """The ``limit`` best hits for a query as ``resume-hooks search`` takes it, best first; ``[]`` if nothing matches.

    Searched is the project of the current folder; or that of the folder ``project``,
    ``everywhere``, a ``session``, or a ``lineage`` (a session and its ancestors), both by id, title
    or path. ``wordings`` ask the same in other words: what several of them find well comes first.
    The index is brought up to date first. Raises ResumeHooksError; UsageError for a query without a
    word, and where more than one place is given.
    """
    if sum([project is not None, everywhere, lineage is not None, session is not None]) > 1:
        raise UsageError(
            "project, everywhere, lineage and session exclude each other", "Give one of them."
        )
    if limit < 1:
        raise UsageError(f"A limit of {limit} asks for nothing", "Give 1 or more.")
    words = [query] if isinstance(query, str) else list(query)
    if not any(word.strip() for word in words):
        raise UsageError("No words to search for")
    here = os.getcwd()
    if everywhere:
        scope = Scope()
    elif lineage is not None:
        scope = lineage_scope(os.fspath(lineage), here, Where())
    elif session is not None:
        scope = session_scope(os.fspath(session), here, Where())
    else:
        scope = project_at(os.path.join(here, project or "."), Where())
    rows = []
    for hit in search_index(words, scope, Where(), also=wordings, most=limit).hits:
        values = {field.name: getattr(hit, field.name) for field in fields(SearchHit)}
        rows.append(
            SearchHit(
                **values | {name: Path(values[name]) for name in ("session_file", "file", "folder")}
            )
        )
    return rows


def _require_path(session_file: str | Path) -> str:
    path = os.fspath(session_file)
    if not path:
        raise UsageError("An empty path names no session")
    return path


def _nodes_of_lineage(rows: list[Ancestor]) -> list[SessionNode]:
    nodes: list[SessionNode] = []
    for row in rows:
        if row.derivation_type in {"trimmed", "continued"}:
            derived = row.derivation_type
        else:
            derived = None
        parent = nodes[-1] if nodes else None
        nodes.append(
            SessionNode(
                _file_of_ancestor(row),
                row.session_id,
                derived,
                _optional_path(row.exported_file),
                parent,
            )
        )
    return nodes


def _file_of_ancestor(row: Ancestor) -> Path:
    """The file of an ancestor; if it is missing and its path is unknown, its former file name."""
    return Path(row.session_file or f"{row.session_id}.jsonl")


def _optional_path(text: str | None) -> Path | None:
    if text:
        return Path(text)
    return None
