"""The documented Python API for lineage, rollover, trim, fork and search.

Arguments that are paths may be ``str`` or ``pathlib.Path``. Results contain ``pathlib.Path``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resume_hooks.derive import cut_point
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.opening_size import WHOLE_SESSION_SIZE, normalize_size
from resume_hooks.derive.trim.options import Options as Options  # noqa: PLC0414 - one of the API's names
from resume_hooks.derive.trim.options import make_options
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec
from resume_hooks.derive.verbs.fork import fork as make_fork
from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff
from resume_hooks.derive.verbs.rollover import make_quick_rollover
from resume_hooks.derive.verbs.trim import trim as make_trim
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope, lineage_scope, project_scope_of_folder, session_scope
from resume_hooks.sessions.lineage import Ancestor, LineageFinder, omit_trimmed_sessions
from resume_hooks.sessions.session import Session


@dataclass(frozen=True)
class SessionNode:
    """A session of a lineage.

    ``derivation_type`` is "trimmed" or "continued", or None for the first session of the lineage.
    """

    session_file: Path
    session_id: str
    derivation_type: str | None
    exported_file: Path | None
    parent: SessionNode | None = None


@dataclass(frozen=True)
class SearchHit:
    """A turn that matches a search, described by its best record.

    ``reference`` is ``<session>[/agent-<id>]:<line>``, which ``resume-hooks read`` accepts.
    ``file`` contains the record, and ``session_file`` is the session's own file. The session can be
    resumed in ``folder``. Turns are counted from 1. ``time`` is ISO 8601 in UTC, or ``""`` if it is
    unknown. ``words`` are the words of the query that the turn contains, and ``missing`` are the
    other words of the query. ``sessions`` are the ids of all sessions that contain the record.
    ``confidence`` is the probability, from 0 to 1, that the turn answers the query. ``strength``
    expresses the same as a word: strong, fair or weak. If the search had several wordings,
    ``found_by`` contains the numbers of the wordings that found the turn: 1 is the query, and 2 is
    the first of ``wordings``.
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
    """Return the parent's file, how the session was derived, and the exported file in its metadata.

    The first value is the parent's file, or the archived copy if only the vault contains the
    parent. If neither exists, it is the path in the metadata. For the first session of a lineage,
    all three values are None. Raise SessionNotFound if ``session_file`` can't be read.
    """
    path = os.path.abspath(session_file)
    lineage_finder = LineageFinder(Where())
    parent = lineage_finder.find_parent(path)
    if parent is None:
        return None, None, None
    file = lineage_finder.locate_parent(parent, path) or parent.file_path
    return _optional_path(file), parent.derivation_type, _optional_path(parent.exported_file)


def get_continuation_lineage(session_file: str | Path) -> list[SessionNode]:
    """Return the lineage without trimmed sessions, oldest first.

    The ``parent`` of each node is the previous node. If only the vault contains a session, its node
    has the session's former path. ``get_parent_info`` returns the path of the archived copy.
    """
    return _build_nodes(
        omit_trimmed_sessions(LineageFinder(Where()).find_lineage(os.path.abspath(session_file)))
    )


def get_full_lineage_chain(session_file: str | Path) -> list[tuple[Path, str]]:
    """Return the whole lineage as pairs of a file and a derivation type, newest first."""
    ancestors = LineageFinder(Where()).find_lineage(os.path.abspath(session_file))
    return [
        (_get_ancestor_file(ancestor), ancestor.derivation_type) for ancestor in reversed(ancestors)
    ]


def rollover(
    session_file: str | Path, *, next_step: str = "", size: str = "", dry_run: bool = False
) -> Receipt:
    """Create a fresh child with the session's lineage, and return its receipt.

    With a next step, the child is a handoff, which also contains a digest. ``size`` is the size of
    a handoff, such as ``"4k"``. The default is the setting ``handoff_size``. If no child can be
    created, raise ResumeHooksError and leave no file behind.
    """
    session = Session.open_path(_require_path(session_file), Where())
    caller = Caller(Where(), dry_run=dry_run)
    if not next_step.strip():
        return make_quick_rollover(session, caller).receipt
    asked_size = normalize_size(size) if size else ""
    if asked_size == WHOLE_SESSION_SIZE:
        raise UsageError(
            "The size 'all' makes a copy, and a copy can't have a next step",
            "Call fork_session to make a copy.",
        )
    spec = HandoffSpec(next_step, asked_size, writes_files=False)
    return handoff(session, spec, caller).receipt


def trim(
    session_file: str | Path, options: Options | None = None, *, dry_run: bool = False
) -> Receipt:
    """Create a child of a session with placeholders for long contents, and return its receipt.

    Without ``options``, the defaults of the command line are used. If a trim would save too little,
    nothing is written: the receipt's ``written`` is False, and its ``file`` is empty. If no child
    can be created, raise ResumeHooksError and leave no file behind.
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
    """Copy a session's live conversation, or only its beginning, into a new session.

    The point is the record ``at`` (a line counted from 0, a uuid or a message id), or the end of
    ``turn``. The new session belongs to the folder ``home``, by default to its parent's folder. A
    copy never ends between a tool call and its result. If necessary, the end is moved, and the
    receipt contains a warning. If no child can be created, raise ResumeHooksError and leave no file
    behind.
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
    """Return the best hits for a query, best first. Return ``[]`` if nothing matches.

    By default, the project of the current folder is searched. The other scopes are the folder
    ``project``, every project (``everywhere``), a ``session``, and a ``lineage`` (a session with
    its ancestors). A session or lineage is given as an id, a title or a path. ``wordings`` are
    other wordings of the query. Turns that match several wordings come first. The index is updated
    before the search. Raise ResumeHooksError, or UsageError for a query without words and for more
    than one scope.
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
                turn=hit.turn_number,
                role=hit.role,
                tool=hit.tool,
                time=hit.time,
                snippet=hit.snippet,
                words=hit.words,
                missing=hit.missing_words,
                sessions=hit.session_ids,
                score=hit.score,
                confidence=hit.confidence,
                strength=hit.strength,
                found_by=hit.wording_numbers,
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
    """Return the file of a session in the lineage, or only its file name if the path is unknown."""
    return Path(ancestor.session_file or f"{ancestor.session_id}.jsonl")


def _optional_path(text: str | None) -> Path | None:
    if text:
        return Path(text)
    return None
