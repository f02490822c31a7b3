"""Find the session to which a locator from the user refers.

If no session in the projects matches the locator, the vault's manifests are searched. If a session
is both in a project and in the vault, the client's file is used. If several sessions match, the
error lists them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from resume_hooks.errors import AmbiguousLocator, SessionDeleted, SessionNotFound, UsageError
from resume_hooks.paths import (
    Where,
    canonical_path,
    is_session_id,
    project_folder_names,
    project_key,
)
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_of_session, require_answers
from resume_hooks.sessions.archived.layout import (
    path_below_project,
    path_in_config_home,
    session_id_of_copy,
)
from resume_hooks.sessions.archived.manifest import (
    ArchivedSession,
    archived_ids,
    list_archived,
    list_deleted_sessions,
)
from resume_hooks.sessions.archived.sessions import find_only_archived, open_archived
from resume_hooks.sessions.locator_forms import (
    MAX_SUGGESTED_SESSIONS,
    MIN_ID_PREFIX_CHARACTERS,
    MIN_TITLE_PART_BYTES,
    RESOLVERS,
    LocatorScope,
    Resolver,
    absolute_path,
    candidate_rows,
    current_session,
    find_sessions_titled,
    make_not_found_error,
    parse_pull_request,
    resolve_title_part,
    text_after_prefix,
    typed_path,
)
from resume_hooks.sessions.session_files import (
    SessionFile,
    all_sessions,
    belongs_to_folder,
    can_client_resume,
    latest_session,
    session_file,
    sessions_in_project_folder,
    sessions_of_directory,
    unlistable_folders,
)
from resume_hooks.sessions.transcript_files import (
    SUBAGENT_PREFIX,
    Subagent,
    subagent_name,
    subagents_of_session,
)
from resume_hooks.system.text import collapse_line, plain_line


def find_archived_copy(
    locator: str, scope: LocatorScope, *, match_title_parts: bool
) -> SessionFile | None:
    """Find the archived session that matches a locator, unpack it and return it, or return None.

    Without ``match_title_parts``, only exact matches count. With it, ``match_archived`` also matches
    parts of titles.

    Raise AmbiguousLocator if several sessions match, and SessionNotFound or WriteFailed if the
    session can't be unpacked.
    """
    where, ids = scope.where, archived_ids(scope.where)
    if not ids:
        return None
    if copy := _find_by_old_path(locator, scope):
        return copy
    prefix = locator.lower() if len(locator) >= MIN_ID_PREFIX_CHARACTERS else " "
    matches = [
        match
        for name in ids
        if name.startswith(prefix) and (match := find_only_archived(name, where))
    ]
    if not matches:
        present_ids = {match.session_id for match in (*scope.local_sessions, *scope.other_sessions)}
        matches = match_archived(
            locator,
            list_archived(where, present_ids),
            where,
            match_title_parts=match_title_parts,
            ignore_case=match_title_parts,
        )
        matches = [
            archived for archived in matches if _belongs_to_folder(archived, scope)
        ] or matches
    if len(matches) > 1:
        raise AmbiguousLocator(
            locator,
            [candidate_row(match, where) for match in matches[:MAX_SUGGESTED_SESSIONS]],
            len(matches),
        )
    if matches:
        return open_archived(matches[0], where)
    return None


def match_archived(
    locator: str,
    archived: Sequence[ArchivedSession],
    where: Where,
    *,
    match_title_parts: bool,
    ignore_case: bool = True,
) -> list[ArchivedSession]:
    """Return the archived sessions that a locator matches.

    The locator is compared with the following names in this order, until at least one session
    matches: the id or its beginning; a pull request; an exact title, or the former path of the
    transcript in the client's folder; a tag; a title ignoring case, if ``ignore_case``; a part of a
    title, listed sessions first, if ``match_title_parts``; and the number of a pull request without
    ``#``.
    """
    title, tag = text_after_prefix("title", locator), text_after_prefix("tag", locator).casefold()
    pull_request, bare_pull_request, title_part = (
        parse_pull_request(locator),
        parse_pull_request(f"#{locator}"),
        title.casefold(),
    )
    match_title_parts = (
        match_title_parts and len(title_part.encode("utf-8", "replace")) >= MIN_TITLE_PART_BYTES
    )

    def list_titles(session: ArchivedSession) -> set[str]:
        return {session.title, *session.about.titles} - {""}

    def title_contains_locator(session: ArchivedSession) -> bool:
        return match_title_parts and any(
            title_part in title_text.casefold() for title_text in list_titles(session)
        )

    conditions: list[Callable[[ArchivedSession], bool]] = [
        lambda session: (
            len(locator) >= MIN_ID_PREFIX_CHARACTERS
            and session.session_id.startswith(locator.lower())
        ),
        lambda session: "" != pull_request in session.about.pulls,
        lambda session: (
            locator == path_in_config_home(session.place, where) or title in list_titles(session)
        ),
        lambda session: session.about.tag.casefold() == tag != "",
        lambda session: ignore_case and title_part in map(str.casefold, list_titles(session)),
        lambda session: session.about.listed and title_contains_locator(session),
        title_contains_locator,
        lambda session: "" != bare_pull_request in session.about.pulls,
    ]
    return next(
        filter(
            None,
            ([session for session in archived if condition(session)] for condition in conditions),
        ),
        [],
    )


def candidate_row(session: ArchivedSession, where: Where) -> dict[str, object]:
    """Return the JSON fields that help a user to choose among archived sessions."""
    return {
        "session_id": session.session_id,
        **({"locator": session.locator} if session.deleted_at else {}),
        "title": session.title,
        "ended": session.ended,
        "size": session.size,
        "session_file": path_in_config_home(session.place, where),
    }


def _find_by_old_path(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Return the archived session whose file was or is at the path ``locator``, or None.

    The path may be the client's former path or the path of an unpacked copy. The file at the path
    may be a session's transcript or a sub-agent's transcript.
    """
    path = typed_path(locator, scope)
    if path is None:
        return None
    session_id = session_id_of_copy(path, scope.where)
    absolute, home = os.path.abspath(path), os.path.join(scope.where.projects, "")
    if absolute.startswith(home):
        project, _, name = absolute.removeprefix(home).partition(os.sep)
    else:
        project, _, name = ("", "", "")
    session_id = session_id or name.split(os.sep)[0].removesuffix(".jsonl")
    if is_session_id(session_id):
        archived = find_only_archived(session_id, scope.where)
    else:
        archived = None
    if archived is None or (project and project != archived.project):
        return None
    session = open_archived(archived, scope.where)
    copy_path = os.path.join(
        os.path.dirname(session.path), name or path_below_project(absolute, scope.where)
    )
    if os.path.isfile(copy_path):
        return session_file(copy_path)
    return None


def _belongs_to_folder(archived: ArchivedSession, scope: LocatorScope) -> bool:
    """Check whether a session belongs to the current working directory.

    Another directory may have a project folder with the same name, so the session's own directory
    is also compared.
    """
    if archived.project not in project_folder_names(scope.cwd, scope.where, list):
        return False
    return project_key(archived.cwd) != archived.project or canonical_path(
        archived.cwd
    ) == canonical_path(scope.cwd)


__all__ = [
    "MIN_ID_PREFIX_CHARACTERS",
    "SessionFile",
    "all_sessions",
    "belongs_to_folder",
    "can_client_resume",
    "candidate_rows",
    "find_sessions_titled",
    "latest_session",
    "resolve_locator",
    "session_file",
    "sessions_in_project_folder",
    "sessions_of_directory",
    "unlistable_folders",
]


def resolve_locator(
    locator: str | None,
    cwd: str,
    where: Where,
    *,
    resolvers: Sequence[Resolver] = RESOLVERS,
    allow_other_agents: bool = False,
) -> SessionFile:
    """Return the session to which a locator refers.

    If the locator is None, return the session of the running client, or else the latest session of
    this project. Any other locator is interpreted as each of these forms in turn, until a session
    matches: latest or latest~2, a full id, a path, a pull request, the beginning of an id, an exact
    title, a tag, a part of a title, and the number of a pull request. For titles, tags and pull
    requests, sessions of this project take precedence. If no session in the projects matches, the
    vault is searched, and the result has the path of an unpacked copy.

    Raise AmbiguousLocator, which lists the candidates, if several sessions match, and
    SessionNotFound if there is no match. Raise UsageError for another agent's session unless
    ``allow_other_agents`` is true.
    """
    scope = LocatorScope(cwd, where)
    if locator is None:
        return _require_supported_agent(
            current_session(scope)
            or _latest_session_in_folder(scope, allow_other_agents=allow_other_agents),
            where,
            allow_other_agents=allow_other_agents,
        )
    stripped_locator = locator.strip()
    if not stripped_locator:
        raise UsageError("The locator is empty", "Give an id, a title or a path.")
    try:
        match = next(
            filter(None, (resolver(stripped_locator, scope) for resolver in resolvers)), None
        )
        if match is None:
            raise make_not_found_error(stripped_locator, scope)
        return _require_supported_agent(match, where, allow_other_agents=allow_other_agents)
    except SessionNotFound:
        session = find_archived_copy(
            stripped_locator, scope, match_title_parts=resolve_title_part in resolvers
        )
        if session is not None:
            return session
        _refuse_deleted_session(
            stripped_locator, where, match_title_parts=resolve_title_part in resolvers
        )
        raise


def _refuse_deleted_session(locator: str, where: Where, *, match_title_parts: bool) -> None:
    """Raise SessionDeleted if a locator matches a session in the trash.

    If the session was deleted several times, the error names the latest deletion.
    """
    matches = match_archived(
        locator,
        list(list_deleted_sessions(where)),
        where,
        match_title_parts=match_title_parts,
        ignore_case=match_title_parts,
    )
    if matches:
        deleted = max(matches, key=lambda match: match.deleted_at)
        raise SessionDeleted(
            f"'{collapse_line(plain_line(deleted.title), 80)}' ({deleted.session_id}) is in the trash",
            f"Restore it: resume-hooks restore {deleted.locator}",
        )


def _require_supported_agent(
    session: SessionFile, where: Where, *, allow_other_agents: bool
) -> SessionFile:
    agent = agent_of_session(session, where)
    if not allow_other_agents:
        require_answers(session)
    if agent.name != CLAUDE_NAME and not allow_other_agents:
        raise UsageError(
            f"{session.session_id} is a {agent.label} session, which this verb does not support",
            "These verbs do: sessions, search, outline, read, info, lineage, stats, export, fsck, "
            "resume, continue, handoff, rollover, trim, untrim, "
            "fork, mark, back, scrub.",
        )
    return agent.to_common_format(session)


def _latest_session_in_folder(scope: LocatorScope, *, allow_other_agents: bool) -> SessionFile:
    """Return the latest session of the current folder.

    If the client has no session there and ``allow_other_agents`` is true, return the latest session
    of another agent.
    """
    try:
        return latest_session(scope.cwd, scope.where)
    except SessionNotFound:
        sessions_of_others = []
        for session in scope.local_sessions:
            if session.agent != CLAUDE_NAME:
                sessions_of_others.append(session)
        if not (allow_other_agents and sessions_of_others):
            raise
        return sessions_of_others[0]


def resolve_transcript(
    locator: str | None, cwd: str, where: Where, *, allow_other_agents: bool = False
) -> SessionFile:
    """Return the session or the sub-agent's transcript to which a locator refers.

    A session is found as in ``resolve_locator``. The ``session_id`` of a sub-agent's transcript is
    ``<session id>/agent-<id>``, so that references to its records work. A locator with ``/agent-``
    may also be a path or a title. If that path exists, the locator is used as a path. If the
    session has no such sub-agent, the locator is used as a title.
    """
    if locator is None:
        subagent_session = None
    else:
        subagent_session = _resolve_subagent(
            locator.strip(), cwd, where, allow_other_agents=allow_other_agents
        )
    if subagent_session is not None:
        return subagent_session
    session = resolve_locator(locator, cwd, where, allow_other_agents=allow_other_agents)
    name = subagent_name(session.path)
    if name is None or session.session_id == name:
        return session
    return session._replace(session_id=f"{session.session_id}/{name}")


def is_subagent_locator(locator: str) -> bool:
    """Check whether a locator has the form ``<session>/agent-<id>``."""
    session, slash, name = locator.strip().rpartition("/")
    if not slash or not session or not name.startswith(SUBAGENT_PREFIX) or name.endswith(".jsonl"):
        return False
    return os.sep not in session or session.endswith(".jsonl")


def _resolve_subagent(
    locator: str, cwd: str, where: Where, *, allow_other_agents: bool
) -> SessionFile | None:
    """Return the sub-agent to which a locator refers, or None if the locator doesn't name a sub-agent."""
    if not is_subagent_locator(locator) or os.path.exists(absolute_path(locator, cwd)):
        return None
    session_name, _, name = locator.rpartition("/")
    try:
        session = resolve_locator(session_name, cwd, where, allow_other_agents=allow_other_agents)
    except SessionNotFound:
        return None
    subagents = subagents_of_session(session.path)
    matches = [subagent for subagent in subagents if subagent.name == name] or [
        subagent for subagent in subagents if subagent.name.startswith(name)
    ]
    if len(matches) == 1:
        return _open_subagent_as_session(matches[0], session.session_id)
    if matches:
        raise AmbiguousLocator(
            locator,
            candidate_rows(
                (_open_subagent_as_session(subagent, session.session_id) for subagent in matches),
                where,
            ),
        )
    try:
        return resolve_locator(locator, cwd, where, allow_other_agents=allow_other_agents)
    except SessionNotFound as error:
        names = (
            collapse_line(plain_line(", ".join(subagent.name for subagent in subagents)), 400)
            or "no sub-agents"
        )
        raise SessionNotFound(
            f"No sub-agent {collapse_line(plain_line(name), 80)} of session {session.session_id}",
            f"It started {names}.",
        ) from error


def _open_subagent_as_session(subagent: Subagent, session_id: str) -> SessionFile:
    try:
        status = os.stat(subagent.path)
    except OSError as error:
        raise SessionNotFound(
            f"{subagent.path} can't be read: {error.strerror}", "Was it just deleted?"
        ) from error
    return SessionFile(
        f"{session_id}/{subagent.name}", subagent.path, status.st_mtime, status.st_size
    )
