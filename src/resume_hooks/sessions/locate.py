"""The door to the sessions on this machine: what a user's words name, and the listings behind it."""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived_locator import kept_copy
from resume_hooks.sessions.files import (
    SessionFile,
    all_sessions,
    belongs,
    is_known,
    latest,
    session_file,
    sessions_in,
    sessions_of,
    unlistable,
)
from resume_hooks.sessions.locator_forms import MIN_PREFIX, RESOLVERS, ResumeResolver, current_session, not_found
from resume_hooks.sessions.lookup_context import Surroundings, candidates
from resume_hooks.sessions.name_prefilter import titled
from resume_hooks.sessions.store_protocol import SessionStore

__all__ = [
    "MIN_PREFIX",
    "SessionFile",
    "all_sessions",
    "belongs",
    "candidates",
    "is_known",
    "latest",
    "resolve",
    "session_file",
    "sessions_in",
    "sessions_of",
    "titled",
    "unlistable",
]


def resolve(
    locator: str | None,
    cwd: str,
    where: Where,
    *,
    resolvers: Sequence[ResumeResolver] = RESOLVERS,
    store: SessionStore | None = None,
) -> SessionFile:
    """The session that a locator names.

    None is the session that the client runs, else the latest of this project. Words go through the resolvers in their
    order: latest and latest~2, a full id, a path, a pull request, a unique prefix of an id, an exact title, a tag, a
    unique part of a title, the number of a pull request. Of titles, tags and pull requests those of this project come
    before all others. What names no session there may name one of which the vault alone has a copy: its path is then
    that of the copy. AmbiguousLocator lists its candidates, SessionNotFound says what was tried.
    """
    around = Surroundings(cwd, where, store)
    if locator is None:
        return current_session(around) or latest(cwd, where)
    words = locator.strip()
    if not words:
        raise UsageError("An empty locator names no session", "Give an id, a title or a path.")
    try:
        return _named(words, around, resolvers)
    except SessionNotFound:
        found = kept_copy(words, around, resolvers) if store is None else None
        if found is None:
            raise
        return found


def _named(words: str, around: Surroundings, resolvers: Sequence[ResumeResolver]) -> SessionFile:
    for resolver in resolvers:
        found = resolver(words, around)
        if found is not None:
            return found
    raise not_found(words, around)
