"""A team's sessions, and one's own on other machines, in a PostgreSQL of theirs: push, resume, search, share, forget.

May import search, derive and what is below. Nothing here runs before a team was joined; ``psycopg`` is imported in
``connect`` alone, when a connection is opened.

What leaves is redacted first, then cut into pieces of whole lines, numbered as in the file; words are taken of the
redacted line. A piece is taken only by who knows the digest of all that came before it, so that sending twice changes
nothing, and what was rewritten is a new generation, never a merge. Whoever may read a row is decided in the database.
"""

from __future__ import annotations

from typing import Any

__all__ = ["PostgresSessionStore"]


def __getattr__(name: str) -> Any:
    """The store of the Agent SDK, loaded when it is asked for. AttributeError for any other name."""
    if name in __all__:
        from resume_hooks.parts.team.sdk_store import PostgresSessionStore

        return PostgresSessionStore
    raise AttributeError(name)
