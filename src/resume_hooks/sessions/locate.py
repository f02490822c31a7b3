"""Find the session for a user's words, and list the candidates for an ambiguous name.

If no session in the projects matches, the locator is matched against the vault's manifests. A
session in both is the one in the projects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError
from resume_hooks.paths import (
    Where,
    canonical_path,
    is_session_id,
    project_folder_names,
    project_key,
)
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_of, require_complete
from resume_hooks.sessions.archived.layout import (
    path_below_project,
    path_of_place,
    session_id_of_copy,
)
from resume_hooks.sessions.archived.manifest import ArchivedSession, archived_ids, list_archived
from resume_hooks.sessions.archived.sessions import find_only_archived, open_archived
from resume_hooks.sessions.locator_forms import (
    MIN_PART,
    MIN_PREFIX,
    MOST_CANDIDATES,
    RESOLVERS,
    Resolver,
    Surroundings,
    absolute_path,
    by_part_of_title,
    candidate_rows,
    current_session,
    not_found_error,
    pull_of,
    sessions_titled,
    text_after_prefix,
    typed_path,
)
from resume_hooks.sessions.session_files import (
    SessionFile,
    all_sessions,
    belongs_to_folder,
    is_known,
    latest_session,
    session_file,
    sessions_in,
    sessions_of,
    unlistable_folders,
)
from resume_hooks.sessions.transcript_files import PREFIX, Subagent, subagent_name, subagents_of
from resume_hooks.system.text import collapse_line, plain_line


def archived_copy(words: str, around: Surroundings, *, by_part: bool) -> SessionFile | None:
    """Return the archived session for a locator, opened, or None.

    Match exactly, unless ``by_part`` as in ``archived_by_words``.

    Raise AmbiguousLocator for several matches; SessionNotFound or WriteFailed if the session can't
    be opened.
    """
    where, ids = around.where, archived_ids(around.where)
    if not ids:
        return None
    if found := _by_old_path(words, around):
        return found
    beginning = words.lower() if len(words) >= MIN_PREFIX else " "
    named = [
        each
        for name in ids
        if name.startswith(beginning) and (each := find_only_archived(name, where))
    ]
    if not named:
        present = {each.session_id for each in (*around.near, *around.far)}
        named = archived_by_words(
            words, list_archived(where, present), where, by_part=by_part, folded=by_part
        )
        named = [archived for archived in named if _is_of_folder(archived, around)] or named
    if len(named) > 1:
        raise AmbiguousLocator(
            words, [candidate_row(each, where) for each in named[:MOST_CANDIDATES]], len(named)
        )
    if named:
        return open_archived(named[0], where)
    return None


def archived_by_words(
    words: str,
    archived: Sequence[ArchivedSession],
    where: Where,
    *,
    by_part: bool,
    folded: bool = True,
) -> list[ArchivedSession]:
    """Return the archived sessions that match the words in the first form with any match.

    The forms are an id or its beginning, a pull request, an exact title or the old path, a tag; if
    ``folded`` a title in other capitals; if ``by_part`` a part of a title, listed sessions first;
    and a bare number.
    """
    title, tag = text_after_prefix("title", words), text_after_prefix("tag", words).casefold()
    pull, number, part = pull_of(words), pull_of(f"#{words}"), title.casefold()
    by_part = by_part and len(part.encode("utf-8", "replace")) >= MIN_PART

    def titles(each: ArchivedSession) -> set[str]:
        return {each.title, *each.about.titles} - {""}

    def holds_part(each: ArchivedSession) -> bool:
        return by_part and any(part in one.casefold() for one in titles(each))

    forms: list[Callable[[ArchivedSession], bool]] = [
        lambda each: len(words) >= MIN_PREFIX and each.session_id.startswith(words.lower()),
        lambda each: "" != pull in each.about.pulls,
        lambda each: words == path_of_place(each.place, where) or title in titles(each),
        lambda each: each.about.tag.casefold() == tag != "",
        lambda each: folded and part in map(str.casefold, titles(each)),
        lambda each: each.about.listed and holds_part(each),
        holds_part,
        lambda each: "" != number in each.about.pulls,
    ]
    return next(filter(None, ([each for each in archived if fits(each)] for fits in forms)), [])


def candidate_row(archived: ArchivedSession, where: Where) -> dict[str, object]:
    """Return a row that helps a user to choose an archived session."""
    return {
        "session_id": archived.session_id,
        **({"locator": archived.locator} if archived.deleted_at else {}),
        "title": archived.title,
        "ended": archived.ended,
        "size": archived.size,
        "session_file": path_of_place(archived.place, where),
    }


def _by_old_path(words: str, around: Surroundings) -> SessionFile | None:
    """Return the session for a path in the client's folders or of an unpacked copy: a transcript or a sub-agent's."""
    path = typed_path(words, around)
    if path is None:
        return None
    session_id = session_id_of_copy(path, around.where)
    full, home = os.path.abspath(path), os.path.join(around.where.projects, "")
    if full.startswith(home):
        project, _, name = full.removeprefix(home).partition(os.sep)
    else:
        project, _, name = ("", "", "")
    session_id = session_id or name.split(os.sep)[0].removesuffix(".jsonl")
    if is_session_id(session_id):
        archived = find_only_archived(session_id, around.where)
    else:
        archived = None
    if archived is None or (project and project != archived.project):
        return None
    session = open_archived(archived, around.where)
    there = os.path.join(
        os.path.dirname(session.path), name or path_below_project(full, around.where)
    )
    if os.path.isfile(there):
        return session_file(there)
    return None


def _is_of_folder(archived: ArchivedSession, around: Surroundings) -> bool:
    """Check whether a session belongs to the working directory, not to another one with the same key."""
    if archived.project not in project_folder_names(around.cwd, around.where, list):
        return False
    return project_key(archived.cwd) != archived.project or canonical_path(
        archived.cwd
    ) == canonical_path(around.cwd)


__all__ = [
    "MIN_PREFIX",
    "SessionFile",
    "all_sessions",
    "belongs_to_folder",
    "candidate_rows",
    "is_known",
    "latest_session",
    "resolve",
    "session_file",
    "sessions_in",
    "sessions_of",
    "sessions_titled",
    "unlistable_folders",
]


def resolve(
    locator: str | None,
    cwd: str,
    where: Where,
    *,
    resolvers: Sequence[Resolver] = RESOLVERS,
    foreign: bool = False,
) -> SessionFile:
    """Return the session for a locator.

    None means the running client's session, or the latest of this project. Words are tried in the
    order of the resolvers: latest and latest~2, a full id, a path, a pull request, a unique prefix
    of an id, an exact title, a tag, a unique part of a title, the number of a pull request. For
    titles, tags and pull requests, sessions of this project come before all others. Without a match
    in the projects the vault is searched, and the result has the path of the archived copy. Another
    agent's session is returned only with ``foreign``; otherwise raise UsageError. AmbiguousLocator
    lists the candidates; SessionNotFound lists the attempts.
    """
    around = Surroundings(cwd, where)
    if locator is None:
        return _handed_out(
            current_session(around) or _latest_of_folder(around, foreign=foreign),
            where,
            foreign=foreign,
        )
    words = locator.strip()
    if not words:
        raise UsageError("The locator is empty", "Give an id, a title or a path.")
    try:
        found = next(filter(None, (resolver(words, around) for resolver in resolvers)), None)
        if found is None:
            raise not_found_error(words, around)
        return _handed_out(found, where, foreign=foreign)
    except SessionNotFound:
        session = archived_copy(words, around, by_part=by_part_of_title in resolvers)
        if session is None:
            raise
        return session


def _handed_out(session: SessionFile, where: Where, *, foreign: bool) -> SessionFile:
    agent = agent_of(session, where)
    if not foreign:
        require_complete(session)
    if agent.name != CLAUDE_NAME and not foreign:
        raise UsageError(
            f"{session.session_id} is a session of {agent.label}, which this verb does not support",
            "These verbs do: sessions, search, outline, read, info, lineage, stats, export, fsck, "
            "resume, continue, handoff, rollover, trim, untrim, "
            "fork, mark, back, scrub.",
        )
    return agent.to_common_format(session)


def _latest_of_folder(around: Surroundings, *, foreign: bool) -> SessionFile:
    """Return the latest session of a folder; another agent's only if the client has none there."""
    try:
        return latest_session(around.cwd, around.where)
    except SessionNotFound:
        near = []
        for session in around.near:
            if session.agent != CLAUDE_NAME:
                near.append(session)
        if not (foreign and near):
            raise
        return near[0]


def resolve_transcript(
    locator: str | None, cwd: str, where: Where, *, foreign: bool = False
) -> SessionFile:
    """Return the transcript for a locator: a session, as in ``resolve``, or a sub-agent's.

    The ``session_id`` of a sub-agent's transcript is ``<session id>/agent-<id>``, so that
    references work for its records. A path or a title may also contain ``/agent-``: a path is tried
    first, a title last.
    """
    if locator is None:
        named = None
    else:
        named = _resolve_subagent(locator.strip(), cwd, where, foreign=foreign)
    if named is not None:
        return named
    session = resolve(locator, cwd, where, foreign=foreign)
    name = subagent_name(session.path)
    if name is None or session.session_id == name:
        return session
    return session._replace(session_id=f"{session.session_id}/{name}")


def names_subagent(locator: str) -> bool:
    """Check whether a locator has the form of a sub-agent's name."""
    session, slash, name = locator.strip().rpartition("/")
    if not slash or not session or not name.startswith(PREFIX) or name.endswith(".jsonl"):
        return False
    return os.sep not in session or session.endswith(".jsonl")


def _resolve_subagent(locator: str, cwd: str, where: Where, *, foreign: bool) -> SessionFile | None:
    """Return the sub-agent of an existing session; None if the words must mean something else."""
    if not names_subagent(locator) or os.path.exists(absolute_path(locator, cwd)):
        return None
    session_name, _, name = locator.rpartition("/")
    try:
        session = resolve(session_name, cwd, where, foreign=foreign)
    except SessionNotFound:
        return None
    started = subagents_of(session.path)
    fitting = [one for one in started if one.name == name] or [
        one for one in started if one.name.startswith(name)
    ]
    if len(fitting) == 1:
        return _as_session(fitting[0], session.session_id)
    if fitting:
        raise AmbiguousLocator(
            locator,
            candidate_rows((_as_session(one, session.session_id) for one in fitting), where),
        )
    try:
        return resolve(locator, cwd, where, foreign=foreign)
    except SessionNotFound as error:
        names = (
            collapse_line(plain_line(", ".join(one.name for one in started)), 400)
            or "no sub-agents"
        )
        raise SessionNotFound(
            f"No sub-agent {collapse_line(plain_line(name), 80)} of session {session.session_id}",
            f"It started {names}.",
        ) from error


def _as_session(subagent: Subagent, session_id: str) -> SessionFile:
    try:
        status = os.stat(subagent.path)
    except OSError as error:
        raise SessionNotFound(
            f"{subagent.path} can't be read: {error.strerror}", "Was it just deleted?"
        ) from error
    return SessionFile(
        f"{session_id}/{subagent.name}", subagent.path, status.st_mtime, status.st_size
    )
