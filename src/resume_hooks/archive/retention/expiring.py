"""Report the sessions that the client will soon delete, and archive them, the most urgent first.

A project's sessions are archived once they are due to be deleted within seven days. A client that
starts in one project cleans up all projects, using the settings of that project. Therefore sessions
of other projects are also archived, in the background, if this client would delete them within a
day.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resume_hooks.archive.vault.permission import must_archiving_wait
from resume_hooks.clock import DAY
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, all_project_folders
from resume_hooks.sessions.expiry import (
    EXPIRING_SOON_SECONDS,
    ExpiringSession,
    ExpiryCalculator,
    is_archived,
)
from resume_hooks.system import claude_settings
from resume_hooks.system.claude_settings import Retention, read_client_retention

RETRY_DELAY_SECONDS = 60 * 60
"""After a failure, archiving is tried again after this number of seconds."""


class ExpiryForecast(NamedTuple):
    """A forecast of the sessions that the client will delete.

    ``session_count`` sessions will be deleted completely; they are in ``project_count`` projects.
    ``younger_session_count`` more sessions will lose only some of their files. ``unarchived_count``
    of all these sessions have a current state that is not in the vault. ``earliest_deletion_time``
    is in seconds since the epoch, or None. ``retention`` is the setting that determines when
    sessions are deleted.
    """

    retention: Retention
    session_count: int
    project_count: int
    younger_session_count: int
    unarchived_count: int
    earliest_deletion_time: float | None


def forecast_expiry(cwd: str, where: Where) -> ExpiryForecast:
    """Return what the client would delete in the next seven days if it started in ``cwd``."""
    retention, deadline = read_client_retention(cwd, where), time.time() + EXPIRING_SOON_SECONDS
    expiring_sessions: list[ExpiringSession] = []
    if retention.days is not None:
        expiry_calculator = ExpiryCalculator(retention.days, where)
        for folder in all_project_folders(where):
            for expiry in expiry_calculator.sessions_in_folder(folder):
                if expiring := expiry.expiring_before(deadline):
                    expiring_sessions.append(expiring)
    complete, unarchived = 0, 0
    projects: set[str] = set()
    for expiring in expiring_sessions:
        if expiring.includes_transcript:
            complete += 1
            projects.add(os.path.dirname(expiring.session.path))
        if not is_archived(expiring.session.session_id, expiring.last_write_time, where):
            unarchived += 1
    return ExpiryForecast(
        retention=retention,
        session_count=complete,
        project_count=len(projects),
        younger_session_count=len(expiring_sessions) - complete,
        unarchived_count=unarchived,
        earliest_deletion_time=min(
            (expiring.deletion_time for expiring in expiring_sessions), default=None
        ),
    )


class _SessionCounts(NamedTuple):
    """The numbers of sessions that were archived, could not be archived, and were not tried yet."""

    archived_count: int
    failed_count: int
    remaining_count: int


class ArchiveBatch(NamedTuple):
    """The numbers of sessions that were archived, could not be archived, and were not tried yet.

    ``next_check_time`` is in seconds since the epoch.
    """

    archived_count: int
    failed_count: int
    remaining_count: int
    next_check_time: float


def archive_sessions_before_expiry(
    project: str, cwd: str, where: Where, is_time_up: Callable[[], bool], *, is_user_waiting: bool
) -> ArchiveBatch:
    """Archive expiring sessions until the time is up.

    Even if the time is short, at least one session is archived, so that each check makes progress.
    ``project`` is the name of a project folder, and ``cwd`` is the folder in which its client
    started. If the user is waiting, large sessions and other projects are skipped.
    """
    now = time.time()
    days = claude_settings.read_retention_days(cwd, where)
    if days is None:
        return ArchiveBatch(0, 0, 0, now + DAY)
    expiry_calculator, next_expiry_check = ExpiryCalculator(days, where), now + DAY
    own_folder = os.path.join(where.projects, project)
    if is_user_waiting:
        other_folders = []
    else:
        other_folders = [folder for folder in all_project_folders(where) if folder != own_folder]
    due_sessions = list[ExpiringSession]()
    for folders, warning_period in (([own_folder], EXPIRING_SOON_SECONDS), (other_folders, DAY)):
        due_in_folders = []
        for expiry in (
            expiry for folder in folders for expiry in expiry_calculator.sessions_in_folder(folder)
        ):
            expiring = expiry.expiring_before(now + warning_period)
            if expiring and not is_archived(
                expiry.session.session_id, expiring.last_write_time, where
            ):
                due_in_folders.append(expiring)
            if (expiry_time := expiry.next_expiry(now + warning_period)) is not None:
                next_expiry_check = min(next_expiry_check, expiry_time - warning_period)
        # Sort by the time of deletion, the earliest first.
        due_sessions += sorted(due_in_folders, key=lambda expiring: expiring.deletion_time)
    if not due_sessions:
        return ArchiveBatch(0, 0, 0, next_expiry_check)
    counts = _archive_due_sessions(due_sessions, where, is_time_up, is_user_waiting=is_user_waiting)
    if counts.remaining_count:
        next_check = now
    elif counts.failed_count:
        next_check = min(next_expiry_check, now + RETRY_DELAY_SECONDS)
    else:
        next_check = next_expiry_check
    return ArchiveBatch(*counts, next_check)


def _archive_due_sessions(
    due_sessions: Sequence[ExpiringSession],
    where: Where,
    is_time_up: Callable[[], bool],
    *,
    is_user_waiting: bool,
) -> _SessionCounts:
    """Archive sessions until the time is up. If copies must wait for the user, archive none."""
    # Imported here because most starts have no session to archive.
    from resume_hooks.archive.retention.archive_sessions import (
        BackgroundArchiver,
        is_quick_to_archive,
    )

    if must_archiving_wait(where):
        return _SessionCounts(0, len(due_sessions), 0)
    archiver, archived_count, failed_count, remaining_count = BackgroundArchiver(where), 0, 0, 0
    for number, expiring in enumerate(due_sessions if archiver.is_allowed else ()):
        if is_time_up() and archived_count + failed_count:
            remaining_count += len(due_sessions) - number
            break
        if is_user_waiting and not is_quick_to_archive(expiring.session, where):
            remaining_count += 1
            continue
        try:
            archived_count += archiver.archive_path(expiring.session.path)
        except ResumeHooksError:
            failed_count += 1
    return _SessionCounts(archived_count, failed_count, remaining_count)
