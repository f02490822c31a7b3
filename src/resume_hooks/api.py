"""The documented Python API over lineage, rollover and trim; paths in and out are ``pathlib.Path``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from resume_hooks import quick_rollover, settings, store
from resume_hooks.errors import UsageError
from resume_hooks.lineage import Ancestor, Family, without_trims
from resume_hooks.receipt import Receipt
from resume_hooks.trimming import plan as trimming
from resume_hooks.trimming.options import Options
from resume_hooks.trimming.words import options_of

__all__ = [
    "Options",
    "SessionNode",
    "get_continuation_lineage",
    "get_full_lineage_chain",
    "get_parent_info",
    "rollover",
    "trim",
]


@dataclass(frozen=True)
class SessionNode:
    """A session of a lineage. ``derivation_type`` is trimmed, continued, or None for an original."""

    session_file: Path
    session_id: str
    derivation_type: str | None
    exported_file: Path | None
    parent: SessionNode | None = None


def get_parent_info(session_file: str | Path) -> tuple[Path | None, str | None, Path | None]:
    """The parent's file, how the session was derived, and the export it names; three Nones for an original.

    The path is the one that exists where the parent was found, else the one that the metadata names.
    SessionNotFound where ``session_file`` can't be read.
    """
    path = os.path.abspath(session_file)
    family = Family(os.environ)
    parent = family.parent_of(path)
    if parent is None:
        return None, None, None
    file = family.locate(parent, path) or parent.file
    return _path(file), parent.derivation_type, _path(parent.exported_file)


def get_continuation_lineage(session_file: str | Path) -> list[SessionNode]:
    """The lineage without trimmed sessions, oldest first, each node linked to the one before it."""
    return _linked(without_trims(Family(os.environ).lineage(os.path.abspath(session_file))))


def get_full_lineage_chain(session_file: str | Path) -> list[tuple[Path, str]]:
    """The whole lineage as (file, how derived), newest first, ending with the original."""
    rows = Family(os.environ).lineage(os.path.abspath(session_file))
    return [(_file(row), row.derivation_type) for row in reversed(rows)]


def rollover(session_file: str | Path, *, next_step: str = "", dry_run: bool = False) -> Receipt:
    """Make a fresh child of a session that holds its lineage and, if given, the next step.

    Raises ResumeHooksError; nothing is left behind then.
    """
    kind = "handoff" if next_step.strip() else "rollover"
    session = store.session_file(_named(session_file))
    decided = quick_rollover.plan(session, os.environ, kind=kind, next_step=next_step)
    return quick_rollover.receipt(decided) if dry_run else quick_rollover.write(decided, os.environ)


def trim(session_file: str | Path, options: Options | None = None, *, dry_run: bool = False) -> Receipt:
    """Make a child of a session in which bulky contents are placeholders; ``options`` as the command line's defaults.

    Where it would not pay, nothing is written: the receipt's ``written`` is false and its ``file`` empty. Raises
    ResumeHooksError; nothing is left behind then.
    """
    session = store.session_file(_named(session_file))
    reading = trimming.read(session, settings.number("context_window"))
    decided = trimming.plan(reading, os.environ, options_of() if options is None else options)
    return trimming.receipt(decided) if dry_run or not decided.pays else trimming.write(decided, os.environ)


def _named(session_file: str | Path) -> str:
    path = os.fspath(session_file)
    if not path:
        raise UsageError("An empty path names no session")
    return path


def _linked(rows: list[Ancestor]) -> list[SessionNode]:
    nodes: list[SessionNode] = []
    for row in rows:
        derived = row.derivation_type if row.derivation_type in {"trimmed", "continued"} else None
        parent = nodes[-1] if nodes else None
        nodes.append(SessionNode(_file(row), row.session_id, derived, _path(row.exported_file), parent))
    return nodes


def _file(row: Ancestor) -> Path:
    """The file of a row; of a missing one that no path is known of, the name that it had."""
    return Path(row.session_file or f"{row.session_id}.jsonl")


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
