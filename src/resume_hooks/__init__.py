"""resume-hooks: continue when a Claude Code session is full, and keep every byte of the old session.

The Python API consists of ``get_parent_info``, ``get_continuation_lineage``,
``get_full_lineage_chain``, ``SessionNode``, ``rollover``, ``trim`` with its ``Options``,
``fork_session``, and ``search_sessions`` with its ``SearchHit``. An API name is loaded when it is
first used, because hooks import this package before every trigger.

A child is a new session that is made from another session, its parent. docs/glossary.md defines
further terms. A package may import every package to its right in this list: parts, cli, hooks, api,
maintenance, search, derive, archive, reading, sessions, transcripts. All of these may import
redaction, storage and system, which do not import each other. Every module may import ``settings``,
``seam``, ``paths``, ``errors``, ``clock`` and ``version``.
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
        # Imported late, because the hook ``guard`` must not load the engine.
        from resume_hooks import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
