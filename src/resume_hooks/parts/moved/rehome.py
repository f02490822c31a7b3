"""Find the former path of a moved folder, and copy its sessions to the current path.

When a session starts in a folder without other sessions, the user sees a line about the former path
if sessions of the same repository were recorded under another path.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fork import MOVED_FORK_KIND
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec, fork
from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import hook_replies
from resume_hooks.parts.moved import find_moved_repo
from resume_hooks.paths import Where, canonical_path
from resume_hooks.sessions.locate import SessionFile, all_sessions, sessions_of_directory
from resume_hooks.sessions.project_folder import home_folder_of_session, lock_session_creation
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import belongs_to_folder
from resume_hooks.system.git_worktrees import (
    list_removed_worktrees,
    make_folder_note,
    read_folder_notes,
)
from resume_hooks.system.invocation import quote_word, shell_command
from resume_hooks.system.text import format_count, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent

ALREADY_COPIED_REASON = "has a copy there already"

MAX_SEARCHED_SESSIONS = 10
"""Maximum number of sessions in each folder that are searched for the commits and files of the new
folder. The newest sessions are searched first."""

MAX_SEARCH_SECONDS = 5.0
"""Maximum number of seconds for reading sessions in the background. Sessions are read only if no
former folder was recorded when a session started."""


class UncopiedSession(NamedTuple):
    """A session that was not copied, and the reason."""

    session_id: str
    reason: str


def find_former_folder(new_folder: str, where: Where, max_seconds: float = float("inf")) -> str:
    """Return the former path of ``new_folder``.

    A path that was recorded when a session started is preferred. Otherwise, the result is a missing
    folder whose sessions mention commits or files of ``new_folder``. Raise UsageError if no folder
    is likely, or if several folders are. Sessions are read for at most ``max_seconds`` seconds.
    """
    deadline = time.monotonic() + max_seconds
    # A removed worktree was a different folder of the repository, so its path is not the former
    # path of this folder.
    other_worktrees = list_removed_worktrees(new_folder, where)
    candidates = list_former_folders_from_notes(new_folder, where)
    if not candidates:
        first_sessions = find_moved_repo.read_one_session_per_folder(
            session.path for session in all_sessions(where)
        )
        homes = (
            home_folder_of_session(ends, where)
            for ends in takewhile(lambda _: time.monotonic() < deadline, first_sessions)
        )
        missing_folders = (
            home for home in homes if os.path.isabs(home) and not os.path.isdir(home)
        )
        candidates = []
        for old_folder in missing_folders:
            if canonical_path(old_folder) not in other_worktrees and _may_have_moved_to(
                old_folder, new_folder, where
            ):
                candidates.append(old_folder)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise UsageError(
            f"Among the sessions whose folder is missing, none mentions a commit or file of {new_folder}",
            "Give the folder's former path.",
        )
    raise UsageError(
        f"Several folders may have been moved to {new_folder}: {', '.join(candidates)}",
        "Give the path of the folder that you mean.",
    )


def list_former_folders_from_notes(new_folder: str, where: Where) -> list[str]:
    """Return the former folders of the repository that is now in ``new_folder``.

    The candidates are the folders that were recorded when sessions started. Candidates without
    sessions are left out. A candidate surely contained this repository if the recorded first line
    of its git log is also the first line of the repository's git log. In this case, return only the
    most recently used of such folders. Otherwise return the folders with the same git remote as the
    repository.
    """
    current_note = make_folder_note(new_folder)
    missing_starts = []
    for start in read_folder_notes(where):
        if not start.has_repository and canonical_path(start.path) != canonical_path(new_folder):
            missing_starts.append(start)
    moved_folders = _select_folders_with_sessions(
        (
            start.path
            for start in missing_starts
            if start.git_identity and start.git_identity == current_note.git_identity
        ),
        where,
    )
    return moved_folders[:1] or _select_folders_with_sessions(
        (
            start.path
            for start in missing_starts
            if start.remote_url and start.remote_url == current_note.remote_url
        ),
        where,
    )


def find_folder_sessions(folder: str, where: Where) -> list[SessionFile]:
    """Return the sessions that were started in a folder, newest first."""
    sessions = []
    for session in sessions_of_directory(folder, where):
        if belongs_to_folder(session.path, folder):
            sessions.append(session)
    return sessions


def find_sessions_with_messages(folder: str, where: Where) -> list[SessionFile]:
    """Return the sessions of a folder that contain a prompt or an answer, newest first."""
    sessions = []
    for session in find_folder_sessions(folder, where):
        if HeadTail(session.path).has_messages:
            sessions.append(session)
    return sessions


def is_folder_unmoved(folder: str, where: Where) -> bool:
    """Check whether a folder exists and still contains the repository that was recorded for it.

    The repository is recorded when a session starts in the folder.
    """
    has_moved = any(
        start.path == folder and not start.has_repository for start in read_folder_notes(where)
    )
    return os.path.isdir(folder) and not has_moved


def copy_sessions_to_folder(
    sessions: Sequence[SessionFile],
    new_folder: str,
    where: Where,
    report_progress: Callable[[int, int], None],
    *,
    dry_run: bool,
) -> tuple[list[Receipt], list[UncopiedSession]]:
    """Copy the sessions that have no copy in ``new_folder`` yet.

    The oldest session is copied first, so that the copies, sorted by date, have the order of the
    originals. ``report_progress`` is called with the number of bytes that were copied and the total
    number of bytes. Return the receipts of the copies, and the sessions that were not copied, each
    with the reason.
    """
    receipts, not_copied, done_bytes = list[Receipt](), list[UncopiedSession](), 0
    total_bytes = sum(session.size for session in sessions)
    with lock_session_creation(new_folder, where):
        copied_ids = _find_copied_ids(new_folder, where)
        for session in sorted(sessions, key=lambda listed: listed.mtime):
            try:
                if session.session_id in copied_ids:
                    not_copied.append(UncopiedSession(session.session_id, ALREADY_COPIED_REASON))
                else:
                    outcome = fork(
                        Session.from_file(session, where),
                        ForkSpec(home=new_folder),
                        Caller(where, dry_run=dry_run),
                    )
                    receipts.append(outcome.receipt)
                    copied_ids.add(session.session_id)
            except ResumeHooksError as error:
                not_copied.append(UncopiedSession(session.session_id, error.message))
            done_bytes += session.size
            report_progress(done_bytes, total_bytes)
    return receipts, not_copied


def format_other_sessions_note(old_folder: str, new_folder: str, where: Where) -> str:
    """Return a note for the user with the command that copies the remaining sessions of ``old_folder``.

    Return ``""`` if ``old_folder`` still exists, or if all its sessions have a copy in
    ``new_folder``. The core calls this function through ``questions.note_on_other_sessions``.
    """
    copied_ids = _find_copied_ids(new_folder, where)
    if is_folder_unmoved(old_folder, where):
        remaining_sessions = []
    else:
        remaining_sessions = [
            session
            for session in find_sessions_with_messages(old_folder, where)
            if session.session_id not in copied_ids
        ]
    command = shell_command(f"rehome {quote_word(old_folder)} --home {quote_word(new_folder)}")
    if remaining_sessions:
        count = format_count(len(remaining_sessions), "other session")
        return f"{count} in {plain_line(old_folder)} can be copied too: {command}"
    return ""


def _select_folders_with_sessions(folders: Iterable[str], where: Where) -> list[str]:
    """Return the folders that have sessions, the most recently used folder first."""
    dated_folders = [
        (sessions[0].mtime, folder)
        for folder in folders
        if (sessions := find_sessions_with_messages(folder, where))
    ]
    return [folder for _, folder in sorted(dated_folders, reverse=True)]


def _may_have_moved_to(old_folder: str, new_folder: str, where: Where) -> bool:
    """Check whether the newest sessions of ``old_folder`` mention commits or files of ``new_folder``."""
    for session in sessions_of_directory(old_folder, where)[:MAX_SEARCHED_SESSIONS]:
        with contextlib.suppress(SessionNotFound):  # The session was deleted after it was listed.
            folders = find_moved_repo.find_candidates_for_moved_folder(
                find_moved_repo.read_folder_mentions(session.path, old_folder), [new_folder], where
            )
            if any(likely_folder.folder == canonical_path(new_folder) for likely_folder in folders):
                return True
    return False


def _find_copied_ids(new_folder: str, where: Where) -> set[str]:
    """Return the ids of the sessions that have a copy in ``new_folder``.

    The ids are read from the copies themselves, because an interrupted ``rehome`` leaves copies
    without a recorded link to their originals.
    """
    parents = (read_parent(copy.path) for copy in find_folder_sessions(new_folder, where))
    return {parent.session_id for parent in parents if parent and parent.kind == MOVED_FORK_KIND}


def format_moved_folder_notice(event: dict[str, Any]) -> str:
    """Return a line about the former folder for the start of a session, or ``""`` if there is none.

    The former folder is looked up only in the records of earlier session starts.
    """
    new, where = _read_working_folder(event), Where()
    folders = list_former_folders_from_notes(new, where)
    if len(folders) == 1:
        return _format_moved_repository_notice(folders[0], where)
    return ""


def format_moved_folder_notice_after_search(event: dict[str, Any]) -> str:
    """Search for the former folder, and return a line about it for the start of a session.

    This also reads sessions, which takes time, so call it in the background. Return ``""`` unless
    exactly one former folder is found.
    """
    new, where = _read_working_folder(event), Where()
    try:
        return _format_moved_repository_notice(
            find_former_folder(new, where, MAX_SEARCH_SECONDS), where
        )
    except UsageError:
        return ""


def _read_working_folder(event: dict[str, Any]) -> str:
    return canonical_path(
        os.environ.get("CLAUDE_PROJECT_DIR") or hook_replies.text_field(event, "cwd") or os.getcwd()
    )


def _format_moved_repository_notice(old_folder: str, where: Where) -> str:
    session_count = format_count(len(find_sessions_with_messages(old_folder, where)), "session")
    moved_text = f"This repository was in {plain_line(old_folder)}, which no longer exists but has {session_count}"
    return (
        f"{moved_text}; to copy them here, run in a shell in this folder: {shell_command('rehome')}"
    )
