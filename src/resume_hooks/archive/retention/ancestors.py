"""Archive a session and all of its ancestors when it gets a child.

The child is written even if archiving fails. Failures are reported. Large sessions are archived
when the next session starts.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from resume_hooks.archive.retention import pending
from resume_hooks.archive.vault.permission import (
    MAX_QUICK_ARCHIVE_BYTES,
    check_archiving_allowed,
    is_archiving_notice_due,
    must_archiving_wait,
)
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.expiry import is_archived
from resume_hooks.sessions.lineage import Ancestor, LineageFinder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import (
    SessionFile,
    all_sessions,
    can_client_resume,
    session_file,
)

if TYPE_CHECKING:
    from resume_hooks.archive.retention.archive_sessions import BackgroundArchiver

MAX_ANCESTOR_ARCHIVING_SECONDS = 0.05
"""The maximum number of seconds that a verb spends on archiving ancestors. A session that is being
archived when the time is up is still completed."""

PRESENT_FILE_STATUS = "present"


def archive_ancestors(
    ancestors: Iterable[Ancestor], where: Where, loaded_session: Session | None = None
) -> list[str]:
    """Archive those sessions of a lineage that the client may delete, the nearest ancestor first.

    Return a sentence for each failure. If archiving is not allowed, do nothing. For a session that
    is already archived, only the manifest is read. If ``loaded_session`` is one of the ancestors,
    it is not read again.
    """
    ancestor_files = []
    for row in ancestors:
        if row.status == PRESENT_FILE_STATUS:
            ancestor_files.append(row.session_file)
    due_sessions = []
    for path in ancestor_files[::-1]:
        session = find_unarchived_session(path, where)
        if session is not None:
            is_current = (
                loaded_session is not None
                and loaded_session.path == path
                and loaded_session.is_unchanged
            )
            due_sessions.append(
                loaded_session if loaded_session is not None and is_current else session
            )
    if not due_sessions or not check_archiving_allowed(where).is_allowed:
        return []
    if min(session.size for session in due_sessions) <= MAX_QUICK_ARCHIVE_BYTES:
        archiver = _make_archiver(where)
    else:
        archiver = None
    deadline, failures = time.monotonic() + MAX_ANCESTOR_ARCHIVING_SECONDS, list[str]()
    for session in due_sessions:
        try:
            if (
                archiver is None
                or time.monotonic() > deadline
                or must_archiving_wait(where)
                or not archiver.archive_quickly(session)
            ):
                pending.record_pending_session(session.session_id, where)
        except (ResumeHooksError, OSError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            failures.append(f"The ancestor {session.session_id} is not in the vault yet: {reason}.")
            with contextlib.suppress(OSError):
                pending.record_pending_session(session.session_id, where)
    return failures


def archive_pending_sessions(where: Where, is_time_up: Callable[[], bool]) -> int:
    """Archive pending ancestors until the time is up. Return the number of ancestors that remain."""
    archiver, remaining_count, session_ids = (
        _make_archiver(where),
        0,
        pending.list_pending_sessions(where),
    )
    if session_ids and must_archiving_wait(where):
        return len(session_ids)
    for session_id in session_ids:
        if archiver.is_allowed:
            session = find_unarchived_session(find_session(session_id, where) or "", where)
        else:
            session = None
        if session and is_time_up():
            remaining_count += 1
            continue
        try:
            if session is None or archiver.archive_path(session.path):
                pending.remove_pending_session(session_id, where)
        except ResumeHooksError:
            remaining_count += 1
    return remaining_count


def archive_parents(where: Where, start_time: float, is_time_up: Callable[[], bool]) -> bool:
    """Archive the parent of each session that was written after ``start_time``.

    No hook reports the client's own forks, so their parents are found in this way. ``start_time``
    is in seconds since the epoch. Return whether all sessions since ``start_time`` were checked.
    """
    if is_archiving_notice_due(where):
        return False
    lineage_finder, archiver, checked_paths = (
        LineageFinder(where),
        _make_archiver(where),
        set[str](),
    )
    for child in all_sessions(where) if archiver.is_allowed else ():
        if child.mtime < start_time:
            break
        if is_time_up():
            return False
        with contextlib.suppress(ResumeHooksError):
            parent = lineage_finder.find_parent(child.path)
            if parent:
                path = lineage_finder.locate_parent(parent, child.path)
            else:
                path = None
            if (
                path
                and path not in checked_paths
                and (session := find_unarchived_session(path, where))
            ):
                archiver.archive_path(session.path)
            checked_paths.add(path or "")
    return True


def find_unarchived_session(path: str, where: Where) -> SessionFile | None:
    """Return the session at a path, or None if it does not have to be archived.

    A session does not have to be archived if the client cannot delete it, or if the vault has its
    current state.
    """
    try:
        session = session_file(path)
    except ResumeHooksError:  # The file was deleted in the meantime.
        return None
    if not can_client_resume(session, where) or os.path.islink(os.path.dirname(session.path)):
        return None
    if is_archived(session.session_id, session.mtime, where):
        return None
    return session


def _make_archiver(where: Where) -> BackgroundArchiver:
    # Imported here because the import takes 15 ms and is rarely needed.
    from resume_hooks.archive.retention.archive_sessions import BackgroundArchiver

    return BackgroundArchiver(where)
