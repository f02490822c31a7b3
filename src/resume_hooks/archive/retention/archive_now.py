"""Archiving on demand: sessions archived, and what the settings let go removed after that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from resume_hooks.archive.vault import policy
from resume_hooks.archive.vault.archive_session import archive_session, is_current
from resume_hooks.archive.vault.client_files import ClientFiles
from resume_hooks.archive.vault.policy import Dropped
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.manifest import ArchivedSession, find
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.session_files import SessionFile


class ArchiveOutcome(NamedTuple):
    """What became of one session: archived (it was not yet), renewed, unchanged, or failed, and then why."""

    session: SessionFile
    archived: ArchivedSession | None
    result: str
    why: str = ""


class ArchiveReport(NamedTuple):
    """What an archive did: each session's outcome, and what the settings let go after that."""

    outcomes: tuple[ArchiveOutcome, ...]
    dropped: tuple[Dropped, ...]


def archive_sessions(
    sessions: Sequence[SessionFile],
    where: Where,
    advance: Callable[[int, int], None] = lambda _done, _total: None,
) -> ArchiveReport:
    """Archive these sessions, then remove what the settings let go.

    One that can't be archived keeps no other from it. ``advance`` gets the bytes done and all there are. VaultOff
    where nothing may be archived.
    """
    policy.require_allowed(where)
    client_files, outcomes, done = ClientFiles(where), [], 0
    total = sum(session.size for session in sessions)
    for session in sessions:
        outcomes.append(_kept(session, where, client_files))
        done += session.size
        advance(done, total)
    wanted = {session.session_id for session in sessions}
    dropped = policy.apply(where, keeping=wanted)
    renewed = (
        each._replace(archived=find(each.session.session_id, where) if each.archived else None) for each in outcomes
    )
    return ArchiveReport(tuple(renewed), tuple(dropped))


def preview(sessions: Iterable[SessionFile], where: Where) -> list[ArchiveOutcome]:
    """What an archive would find of each session: archived already, or not. Nothing is written."""
    policy.require_allowed(where)
    client_files, outcomes = ClientFiles(where), []
    for session in sessions:
        archived = find(session.session_id, where)
        current = archived is not None and (
            is_archived_copy(session.path, where) or is_current(archived, session, client_files)
        )
        result = "kept" if archived is None else "unchanged" if current else "renewed"
        outcomes.append(ArchiveOutcome(session, archived, result))
    return outcomes


def _kept(session: SessionFile, where: Where, client_files: ClientFiles) -> ArchiveOutcome:
    before = find(session.session_id, where)
    if before and is_archived_copy(session.path, where):  # the client has it no more
        return ArchiveOutcome(session, before, "unchanged")
    try:
        archived = archive_session(session, where, client_files=client_files)
    except ResumeHooksError as error:
        return ArchiveOutcome(session, before, "failed", str(error))
    result = "kept" if before is None else "unchanged" if archived == before else "renewed"
    return ArchiveOutcome(session, archived, result)
