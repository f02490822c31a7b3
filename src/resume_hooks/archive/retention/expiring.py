"""Report the sessions that the client will soon delete, and archive them step by step, the most urgent first.

A project's sessions are archived from seven days before the client deletes them. A client that
starts in a project cleans up all projects by that project's settings. So sessions of other projects
are archived too, in the background, if it would delete them within a day.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resume_hooks.archive.vault.permission import must_copies_wait
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

RETRY_SECONDS = 60 * 60
"""The number of seconds after which a failed session is tried again."""


class ExpiryForecast(NamedTuple):
    """A forecast of the sessions that the client will delete.

    ``session_count`` is the number of sessions that are deleted whole, ``project_count`` the number of their
    projects, and ``younger_session_count`` the number of sessions that lose single files.
    ``unarchived_count`` of all these sessions are not in the vault in their current state.
    ``earliest_deletion`` is the earliest deletion, in seconds since the epoch, or None. ``retention`` is the
    setting that decides.
    """

    retention: Retention
    session_count: int
    project_count: int
    younger_session_count: int
    unarchived_count: int
    earliest_deletion: float | None


def forecast_expiry(cwd: str, where: Where) -> ExpiryForecast:
    """Return the deletions in the next seven days if a client starts in ``cwd``."""
    retention, deadline = read_client_retention(cwd, where), time.time() + EXPIRING_SOON_SECONDS
    endings_in_time: list[ExpiringSession] = []
    if retention.days is not None:
        expiry_calculator = ExpiryCalculator(retention.days, where)
        for folder in all_project_folders(where):
            for session_end in expiry_calculator.sessions_in_folder(folder):
                if ending := session_end.expiring_before(deadline):
                    endings_in_time.append(ending)
    complete, unarchived = 0, 0
    projects: set[str] = set()
    for ending in endings_in_time:
        if ending.includes_transcript:
            complete += 1
            projects.add(os.path.dirname(ending.session.path))
        if not is_archived(ending.session.session_id, ending.last_write, where):
            unarchived += 1
    return ExpiryForecast(
        retention=retention,
        session_count=complete,
        project_count=len(projects),
        younger_session_count=len(endings_in_time) - complete,
        unarchived_count=unarchived,
        earliest_deletion=min((ending.deletion_time for ending in endings_in_time), default=None),
    )


class ArchiveBatch(NamedTuple):
    """The result of a run: the numbers of newly archived, failed and remaining sessions.

    ``next_check`` is the time of the next check, in seconds since the epoch.
    """

    archived_count: int
    failed_count: int
    remaining_count: int
    next_check: float


def archive_expiring(
    project: str, cwd: str, where: Where, is_over: Callable[[], bool], *, is_user_waiting: bool
) -> ArchiveBatch:
    """Archive expiring sessions until the time is over, but at least one, so that no session is postponed for ever.

    ``project`` is the name of a project folder, ``cwd`` the folder where its client started. If the
    user is waiting, large sessions and other projects are skipped.
    """
    now = time.time()
    days = claude_settings.read_retention_days(cwd, where)
    if days is None:
        return ArchiveBatch(0, 0, 0, now + DAY)
    endings, next_look = ExpiryCalculator(days, where), now + DAY
    own_folder = os.path.join(where.projects, project)
    if is_user_waiting:
        other_folders = []
    else:
        other_folders = [folder for folder in all_project_folders(where) if folder != own_folder]
    due_sessions = list[ExpiringSession]()
    for folders, warning_period in (([own_folder], EXPIRING_SOON_SECONDS), (other_folders, DAY)):
        due_in_folders = []
        for ends in (ends for folder in folders for ends in endings.sessions_in_folder(folder)):
            ending = ends.expiring_before(now + warning_period)
            if ending and not is_archived(ends.session.session_id, ending.last_write, where):
                due_in_folders.append(ending)
            if (after := ends.next_expiry(now + warning_period)) is not None:
                next_look = min(next_look, after - warning_period)
        due_sessions += sorted(
            due_in_folders, key=lambda ending: ending.deletion_time
        )  # the earliest deletion first
    if not due_sessions:
        return ArchiveBatch(0, 0, 0, next_look)
    kept_count, failed_count, remaining_count = _archive_due_sessions(
        due_sessions, where, is_over, is_user_waiting=is_user_waiting
    )
    if remaining_count:
        next_check = now
    elif failed_count:
        next_check = min(next_look, now + RETRY_SECONDS)
    else:
        next_check = next_look
    return ArchiveBatch(kept_count, failed_count, remaining_count, next_check)


def _archive_due_sessions(
    due_sessions: Sequence[ExpiringSession],
    where: Where,
    is_over: Callable[[], bool],
    *,
    is_user_waiting: bool,
) -> tuple[int, int, int]:
    """Return the numbers of archived, failed and remaining sessions."""
    # Most starts have nothing to archive and do not need these modules.
    from resume_hooks.archive.retention.archive_sessions import (
        BackgroundArchiver,
        is_quick_to_archive,
    )

    if must_copies_wait(where):
        return 0, len(due_sessions), 0
    archiver, archived_count, failed_count, remaining_count = BackgroundArchiver(where), 0, 0, 0
    for number, ending in enumerate(due_sessions if archiver.may else ()):
        if is_over() and archived_count + failed_count:
            return archived_count, failed_count, remaining_count + len(due_sessions) - number
        if is_user_waiting and not is_quick_to_archive(ending.session, where):
            remaining_count += 1
            continue
        try:
            archived_count += archiver.archive(ending.session.path)
        except ResumeHooksError:
            failed_count += 1
    return archived_count, failed_count, remaining_count
