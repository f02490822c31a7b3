"""resume-hooks: continue when a Claude Code session is full, and keep every byte of the old one.

The Python API: ``get_parent_info``, ``get_continuation_lineage``, ``get_full_lineage_chain``,
``SessionNode``, ``rollover``, ``trim`` and its ``Options``, ``fork_session``, ``search_sessions``
and its ``SearchHit``. Each name is loaded on first use, because hooks import this package before
every trigger.

A child is a new session made from another, its parent. docs/glossary.md defines the other words.
Each package may import those to its right: parts, cli, hooks, api, maintenance, search, derive,
archive, reading, sessions, transcripts; below these redaction, storage and system, which do not
import each other; and last the ground modules: ``settings``, ``seam``, ``paths``, ``errors``,
``clock``, ``version``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resume_hooks.api import (
        Options,
        SearchHit,
        SessionNode,
        fork_session,
        get_continuation_lineage,
        get_full_lineage_chain,
        get_parent_info,
        rollover,
        search_sessions,
        trim,
    )
    from resume_hooks.version import __version__

__all__ = [
    "Options",
    "SearchHit",
    "SessionNode",
    "__version__",
    "fork_session",
    "get_continuation_lineage",
    "get_full_lineage_chain",
    "get_parent_info",
    "rollover",
    "search_sessions",
    "trim",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from resume_hooks.version import __version__

        return __version__
    if name in __all__:
        # Imported late: what the guard starts must not load the engine.
        from resume_hooks import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
