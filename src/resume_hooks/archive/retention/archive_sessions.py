"""Archive sessions, either on request with an outcome for each session, or in the background.

In the background, locked and deleted sessions are skipped. Packing and verifying 1 MB takes about
30 ms (benchmarks/vault.py). Session starts and verbs therefore leave larger sessions to the
``async`` hook.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from resume_hooks.archive.vault import permission, policy
from resume_hooks.archive.vault.archive_session import (
    ClientFiles,
    archive_session,
    is_archive_current,
)
from resume_hooks.archive.vault.policy import RemovedSession
from resume_hooks.errors import ResumeHooksError, SessionInUse, SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.expiry import DatedSession
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.storage.hard_links import list_file_sizes

MAX_QUICK_SESSION_FILES = 100
"""A session with more files than this is not archived while the user waits."""

MAX_LOCK_WAIT_SECONDS = 0.02
"""The number of seconds to wait while another command archives the same session."""


class ArchiveOutcome(NamedTuple):
    """The outcome of archiving one session.

    ``result`` is "kept", "renewed", "unchanged" or "failed". ``reason`` is the reason for a
    failure, and ``remedy`` tells the user what to do about it.
    """

    session: SessionFile
    archived_session: ArchivedSession | None
    result: str
    reason: str = ""
    remedy: str = ""


class ArchiveReport(NamedTuple):
    """The outcome for each session, and the sessions that the policy then removed from the vault."""

    outcomes: tuple[ArchiveOutcome, ...]
    removed_sessions: tuple[RemovedSession, ...]


def archive_sessions(
    sessions: Sequence[SessionFile],
    where: Where,
    report_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ArchiveReport:
    """Archive these sessions. Then remove the sessions that must not stay in the vault any longer.

    If archiving one session fails, the others are still archived. ``report_progress`` is called
    with the number of bytes done and the total number of bytes. Raises VaultOff if archiving is not
    allowed.
    """
    permission.require_archiving_allowed(where)
    client_files, outcomes, done_bytes = ClientFiles(where), [], 0
    total_bytes = sum(session.size for session in sessions)
    for session in sessions:
        outcomes.append(_archive_client_session(session, where, client_files))
        done_bytes += session.size
        report_progress(done_bytes, total_bytes)
    session_ids = {session.session_id for session in sessions}
    removed_sessions = policy.apply_policy(where, kept_session_ids=session_ids)
    outcomes_with_copies = (
        outcome._replace(
            archived_session=find_archived(outcome.session.session_id, where)
            if outcome.archived_session
            else None
        )
        for outcome in outcomes
    )
    return ArchiveReport(tuple(outcomes_with_copies), tuple(removed_sessions))


def preview_archive(sessions: Iterable[SessionFile], where: Where) -> list[ArchiveOutcome]:
    """Return the outcome that archiving would have for each session, without writing any file."""
    permission.require_archiving_allowed(where)
    client_files = ClientFiles(where)
    return [
        _archive_client_session(session, where, client_files, dry_run=True) for session in sessions
    ]


def _archive_client_session(
    session: SessionFile, where: Where, client_files: ClientFiles, *, dry_run: bool = False
) -> ArchiveOutcome:
    old_copy = find_archived(session.session_id, where)
    is_archive_only = is_archived_copy(session.path, where)  # The client no longer has the session.
    if old_copy and (
        is_archive_only or (dry_run and is_archive_current(old_copy, session, client_files))
    ):
        return ArchiveOutcome(session, old_copy, "unchanged")
    if dry_run:
        return ArchiveOutcome(session, old_copy, "renewed" if old_copy else "kept")
    try:
        archived = archive_session(session, where, client_files=client_files)
    except ResumeHooksError as error:
        return ArchiveOutcome(session, old_copy, "failed", str(error), error.remedy)
    if old_copy is None:
        result = "kept"
    elif archived == old_copy:
        result = "unchanged"
    else:
        result = "renewed"
    return ArchiveOutcome(session, archived, result)


class BackgroundArchiver:
    """Archives sessions in the background, waiting only briefly for locks.

    The sub-agents next to the transcripts in a folder are listed only once.
    """

    def __init__(self, where: Where) -> None:
        self.is_allowed = permission.check_archiving_allowed(where).is_allowed
        self._where = where
        self._client_files = ClientFiles(where)

    def archive_path(self, path: str) -> bool:
        """Archive the session at a path. Return False if it is locked or was deleted.

        Raises ResumeHooksError for any other failure.
        """
        try:
            return self._archive_session(session_file(path))
        except SessionNotFound:
            return False

    def _archive_session(self, session: SessionFile) -> bool:
        try:
            archive_session(
                session,
                self._where,
                client_files=self._client_files,
                max_wait_seconds=MAX_LOCK_WAIT_SECONDS,
            )
        except (SessionInUse, SessionNotFound):
            return False
        return True

    def archive_quickly(self, session: SessionFile) -> bool:
        """Archive a session if it is small. Return False if archiving it would take too long."""
        is_quick = is_quick_to_archive(session, self._where)
        if is_quick:
            self._archive_session(session)
        return is_quick


def is_quick_to_archive(session: DatedSession | SessionFile, where: Where) -> bool:
    """Check whether a session is small enough to be archived while the user waits.

    The size includes the session's other files and its archived copy.
    """
    archived = find_archived(session.session_id, where)
    total_bytes = session.size + (sum(part.size for part in archived.all_parts) if archived else 0)
    own_folder = session.path.removesuffix(".jsonl")
    backups = os.path.join(where.file_history, session.session_id)
    for count, size in enumerate(chain(list_file_sizes(own_folder), list_file_sizes(backups)), 1):
        total_bytes += size
        if total_bytes > permission.MAX_QUICK_ARCHIVE_BYTES or count > MAX_QUICK_SESSION_FILES:
            return False
    return total_bytes <= permission.MAX_QUICK_ARCHIVE_BYTES
