"""What names an archived session: the forms of a locator, asked of the manifests alone.

Only where no session in the projects fits. A session that lies in both is the one in the projects.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, canonical, is_session_id, project_key, project_names
from resume_hooks.sessions.archived.layout import below, real, session_in
from resume_hooks.sessions.archived.manifest import ArchivedSession, all_archived, archived_ids
from resume_hooks.sessions.archived.sessions import opened, vaulted
from resume_hooks.sessions.locator_candidates import Facts, Surroundings
from resume_hooks.sessions.locator_forms import (
    Resolver,
    by_bare_number,
    by_id,
    by_part_of_title,
    by_path,
    by_prefix,
    by_pull_request,
    by_tag,
    by_title,
    typed_path,
)
from resume_hooks.sessions.session_files import SessionFile, SessionStore, session_file

FORMS = (by_id, by_pull_request, by_prefix, by_title, by_tag, by_part_of_title, by_bare_number)
"""The forms that an archived session is named by, beside its path; never as the latest one."""


def archived_copy(words: str, around: Surroundings, resolvers: Sequence[Resolver]) -> SessionFile | None:
    """The archived session that words name, opened; None for none. AmbiguousLocator, SessionNotFound, WriteFailed."""
    if not archived_ids(around.where):
        return None
    kept_around = _ArchivedSurroundings(around)
    for resolver in resolvers:
        if resolver is by_path and (found := _by_old_path(words, around)):
            return found
        if resolver in FORMS and (named := _named(resolver, words, kept_around)):
            return opened(named, around.where)
    return None


def _named(resolver: Resolver, words: str, around: _ArchivedSurroundings) -> ArchivedSession | None:
    try:
        found = resolver(words, around)
    except SessionNotFound:
        return None  # what was said of the projects is told
    return vaulted(found.session_id, around.where) if found else None


def _by_old_path(words: str, around: Surroundings) -> SessionFile | None:
    """What a path named as long as the client had it, or as long as it was unpacked: a transcript or a sub-agent's."""
    path = typed_path(words, around)
    if path is None:
        return None
    session_id = session_in(path, around.where)
    full, home = os.path.abspath(path), os.path.join(around.where.projects, "")
    project, _, name = full.removeprefix(home).partition(os.sep) if full.startswith(home) else ("", "", "")
    session_id = session_id or name.split(os.sep)[0].removesuffix(".jsonl")
    archived = vaulted(session_id, around.where) if is_session_id(session_id) else None
    if archived is None or (project and project != archived.project):
        return None
    session = opened(archived, around.where)
    there = os.path.join(os.path.dirname(session.path), name or below(full, around.where))
    return session_file(there) if os.path.isfile(there) else None


class _VaultStore(SessionStore):
    """The archived sessions, as the client had them: their files are no longer at these paths."""

    def __init__(self, where: Where, present: Callable[[], set[str]]) -> None:
        self._where = where
        self._present = present

    @cached_property
    def archived(self) -> list[ArchivedSession]:
        return all_archived(self._where, self._present())

    def projects(self) -> list[str]:
        return sorted({archived.project for archived in self.archived})

    def sessions(self, projects: Iterable[str] | None = None, prefix: str = "") -> list[SessionFile]:
        wanted = None if projects is None else set(projects)
        ids = (session_id for session_id in archived_ids(self._where) if prefix and session_id.startswith(prefix))
        starting = filter(None, (vaulted(session_id, self._where) for session_id in ids)) if prefix else self.archived
        return [self._file(archived) for archived in starting if wanted is None or archived.project in wanted]

    def find(self, session_id: str) -> SessionFile | None:
        archived = vaulted(session_id, self._where)
        return self._file(archived) if archived else None

    def _file(self, archived: ArchivedSession) -> SessionFile:
        part = archived.transcript
        return SessionFile(archived.session_id, real(archived.place, self._where), part.mtime_ns / 1e9, part.size)


class _ArchivedSurroundings(Surroundings):
    """Where words were typed, with the vault for what is there: nothing is known of it but what the manifests say."""

    def __init__(self, around: Surroundings) -> None:
        self._vault = _VaultStore(around.where, lambda: {each.session_id for each in (*around.near, *around.far)})
        super().__init__(around.cwd, around.where, self._vault)

    @cached_property
    def projects(self) -> list[str]:
        return project_names(self.cwd, self.where, list)

    def nearest_copy(self, copies: Sequence[SessionFile]) -> SessionFile:
        return copies[0]

    def nearest(self, pattern: re.Pattern[bytes], fits: Callable[[Facts], bool]) -> list[SessionFile]:  # noqa: ARG002
        """The sessions that fit by what is noted of them: those of this project, else those of all others."""
        found = [archived for archived in self._vault.archived if fits(_facts(archived))]
        here = {archived.session_id for archived in found if self._is_here(archived)}
        wanted = here or {archived.session_id for archived in found}
        return [session for session in self._vault.sessions() if session.session_id in wanted]

    def candidates(self, sessions: Iterable[SessionFile]) -> list[dict[str, object]]:
        rows = ((session, vaulted(session.session_id, self.where)) for session in sessions)
        return [
            {
                "session_id": archived.session_id,
                "title": archived.title,
                "ended": archived.ended,
                "session_file": session.path,
            }
            for session, archived in rows
            if archived
        ]

    def _is_here(self, archived: ArchivedSession) -> bool:
        if archived.project not in self.projects:
            return False
        return project_key(archived.cwd) != archived.project or canonical(archived.cwd) == canonical(self.cwd)


def _facts(archived: ArchivedSession) -> Facts:
    about = archived.about
    return Facts(frozenset(about.titles), about.tag, frozenset(about.pulls), about.listed)
