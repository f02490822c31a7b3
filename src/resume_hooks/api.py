"""The documented Python API for lineage, rollover, trim, fork and search.

Arguments accept paths as ``str`` or ``pathlib.Path``; results contain ``pathlib.Path``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resume_hooks.derive import cut_point
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.opening_size import WHOLE_SESSION, parse_size
from resume_hooks.derive.trim.options import Options as Options  # noqa: PLC0414 - one of the API's names
from resume_hooks.derive.trim.options import make_options
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec
from resume_hooks.derive.verbs.fork import fork as make_fork
from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff
from resume_hooks.derive.verbs.rollover import rollover_quick
from resume_hooks.derive.verbs.trim import trim as make_trim
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope, lineage_scope, project_scope_of_folder, session_scope
from resume_hooks.sessions.lineage import Ancestor, LineageFinder, omit_trimmed_sessions
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
    """A turn that answers a search, represented by its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``, the form that ``resume-hooks read`` accepts.
    ``file`` contains the record; ``session_file`` is the session's own file; ``folder`` is the
    folder to resume it in. ``turn`` counts from 1. ``time`` is ISO 8601 in UTC, or ``""`` if
    unknown. ``words`` are the query's words in the turn, ``missing`` the others. ``sessions`` are
    the ids of all sessions that contain the record. ``confidence`` is the probability, 0 to 1, that
    the turn answers the query; ``strength`` is the same as a word: strong, fair or weak.
    ``found_by`` numbers the wordings that matched if the search had several: 1 is the query, 2 the
    first alternative.
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
    """Return the parent's file, the kind of derivation, and the export that the metadata names.

    Return three Nones for the first session.

    The path is the parent's existing file, or its archived copy if only that exists, or the missing
    file that the metadata names. Raise SessionNotFound if ``session_file`` can't be read.
    """
    path = os.path.abspath(session_file)
    lineage_finder = LineageFinder(Where())
    parent = lineage_finder.find_parent(path)
    if parent is None:
        return None, None, None
    file = lineage_finder.locate_parent(parent, path) or parent.file
    return _optional_path(file), parent.derivation_type, _optional_path(parent.exported_file)


def get_continuation_lineage(session_file: str | Path) -> list[SessionNode]:
    """Return the lineage without trimmed sessions, oldest first, each node linked to its predecessor.

    If only the vault has a session, the node has its former path; ``get_parent_info`` returns the
    archived copy.
    """
    return _build_nodes(
        omit_trimmed_sessions(LineageFinder(Where()).find_lineage(os.path.abspath(session_file)))
    )


def get_full_lineage_chain(session_file: str | Path) -> list[tuple[Path, str]]:
    """Return the whole lineage as (file, derivation type), newest first; the first session is last."""
    ancestors = LineageFinder(Where()).find_lineage(os.path.abspath(session_file))
    return [
        (_get_ancestor_file(ancestor), ancestor.derivation_type) for ancestor in reversed(ancestors)
    ]


def rollover(
    session_file: str | Path, *, next_step: str = "", size: str = "", dry_run: bool = False
) -> Receipt:
    """Make a fresh child with the session's lineage.

    With a next step, make a handoff, which also contains a digest.

    ``size`` is the handoff's size, such as ``"4k"``; the default is the setting ``handoff_size``.
    Raise ResumeHooksError on failure, and leave no file behind.
    """
    session = Session.open_path(_require_path(session_file), Where())
    caller = Caller(Where(), dry_run=dry_run)
    if not next_step.strip():
        return rollover_quick(session, caller).receipt
    asked_size = parse_size(size) if size else ""
    if asked_size == WHOLE_SESSION:
        raise UsageError(
            "The size all makes a copy, which can't have a next step", "Call fork for it."
        )
    spec = HandoffSpec(next_step, asked_size, writes_files=False)
    return handoff(session, spec, caller).receipt


def trim(
    session_file: str | Path, options: Options | None = None, *, dry_run: bool = False
) -> Receipt:
    """Make a child of a session with placeholders for bulky contents.

    Without ``options`` use the command line's defaults.

    If trimming saves too little, write nothing: the receipt's ``written`` is false and its ``file``
    empty. Raise ResumeHooksError on failure, and leave no file behind.
    """
    session = Session.open_path(_require_path(session_file), Where())
    trim_options = make_options() if options is None else options
    return make_trim(session, trim_options, Caller(Where(), dry_run=dry_run)).receipt


def fork_session(
    session_file: str | Path,
    *,
    at: str | int | None = None,
    turn: int | None = None,
    home: str | Path | None = None,
    dry_run: bool = False,
) -> Receipt:
    """Copy a session's live conversation under a new id: all of it, up to a record, or to the end of a turn.

    ``at`` is a 0-based line, a uuid or a message id. ``home`` is the folder of the new session. A
    cut never separates a tool call from its result; the receipt's warnings say if it moved for that
    reason. Raise ResumeHooksError on failure, and leave no file behind.
    """
    if at is not None and turn is not None:
        raise UsageError("at and turn can't be combined", "Give only one of them.")
    spec = ForkSpec()
    if turn is not None:
        spec = spec._replace(cut=cut_point.CutAtTurn(turn))
    elif at is not None:
        spec = spec._replace(cut=cut_point.parse_record_cut(str(at)))
    if home is not None:
        spec = spec._replace(home=os.fspath(home))
    session = Session.open_path(_require_path(session_file), Where())
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
    """Return the ``limit`` best hits for a query of ``resume-hooks search``, best first; ``[]`` if nothing matches.

    The default scope is the project of the current folder. Alternatives are the folder ``project``,
    ``everywhere``, a ``session``, or a ``lineage`` (a session and its ancestors); the last two
    accept an id, title or path. ``wordings`` are other phrasings of the query; hits that match
    several phrasings well rank first. The search updates the index first. Raise ResumeHooksError;
    UsageError for a query without words or for more than one scope.
    """
    if sum([project is not None, everywhere, lineage is not None, session is not None]) > 1:
        raise UsageError(
            "project, everywhere, lineage and session can't be combined", "Give one of them."
        )
    if limit < 1:
        raise UsageError(f"A limit of {limit} is too small", "Give 1 or more.")
    words = [query] if isinstance(query, str) else list(query)
    if not any(word.strip() for word in words):
        raise UsageError("No words to search for")
    current_folder = os.getcwd()
    if everywhere:
        scope = Scope()
    elif lineage is not None:
        scope = lineage_scope(os.fspath(lineage), current_folder, Where())
    elif session is not None:
        scope = session_scope(os.fspath(session), current_folder, Where())
    else:
        scope = project_scope_of_folder(os.path.join(current_folder, project or "."), Where())
    hits = []
    for hit in search_index(words, scope, Where(), other_wordings=wordings, max_hits=limit).hits:
        hits.append(
            SearchHit(
                reference=hit.reference,
                session_id=hit.session_id,
                session_file=Path(hit.session_file),
                file=Path(hit.file),
                folder=Path(hit.folder),
                title=hit.title,
                turn=hit.turn,
                role=hit.role,
                tool=hit.tool,
                time=hit.time,
                snippet=hit.snippet,
                words=hit.words,
                missing=hit.missing_words,
                sessions=hit.sessions,
                score=hit.score,
                confidence=hit.confidence,
                strength=hit.strength,
                found_by=hit.found_by,
            )
        )
    return hits


def _require_path(session_file: str | Path) -> str:
    path = os.fspath(session_file)
    if not path:
        raise UsageError("The path is empty")
    return path


def _build_nodes(ancestors: list[Ancestor]) -> list[SessionNode]:
    nodes: list[SessionNode] = []
    for ancestor in ancestors:
        if ancestor.derivation_type in {"trimmed", "continued"}:
            derivation_type = ancestor.derivation_type
        else:
            derivation_type = None
        parent = nodes[-1] if nodes else None
        nodes.append(
            SessionNode(
                _get_ancestor_file(ancestor),
                ancestor.session_id,
                derivation_type,
                _optional_path(ancestor.exported_file),
                parent,
            )
        )
    return nodes


def _get_ancestor_file(ancestor: Ancestor) -> Path:
    """Return an ancestor's file, or its file name if its path is unknown."""
    return Path(ancestor.session_file or f"{ancestor.session_id}.jsonl")


def _optional_path(text: str | None) -> Path | None:
    if text:
        return Path(text)
    return None
