"""Find the former path of a moved folder, and copy its sessions to the current path.

A session start shows one line if the folder has no sessions but its repository had sessions under
another path.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fork import REHOME
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec, fork
from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import reply
from resume_hooks.parts.moved import find_moved_repo
from resume_hooks.paths import Where, canonical_path
from resume_hooks.sessions.locate import SessionFile, all_sessions, sessions_of
from resume_hooks.sessions.project_folder import home_folder, lock_session_creation
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import belongs_to_folder
from resume_hooks.system.git_worktrees import folder_notes, list_removed_worktrees, make_folder_note
from resume_hooks.system.invocation import quote_word, shell_command
from resume_hooks.system.text import format_count, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent

HAS_COPY = "has a copy there already"

SESSIONS_TO_SEARCH = 10
"""The number of sessions per folder, newest first, that are searched for traces of the folder's new path."""

SEARCH_SECONDS = 5.0
"""The maximum number of seconds for reading sessions in the background, if no session start has recorded anything."""


class NotCopied(NamedTuple):
    """A session that was not copied, and the reason."""

    session_id: str
    why: str


def find_former_folder(new: str, where: Where, limit: float = float("inf")) -> str:
    """Return the former path of the folder ``new``, from git's files or traces in sessions.

    Raise UsageError if there is no likely folder, or more than one. Sessions are read for at most
    ``limit`` seconds.
    """
    deadline = time.monotonic() + limit
    # a former worktree of this repository is another folder, not its former path
    other_worktrees = list_removed_worktrees(new, where)
    candidates = recorded_former_folders(new, where)
    if not candidates:
        firsts = find_moved_repo.first_session_of_projects(
            session.path for session in all_sessions(where)
        )
        homes = (
            home_folder(ends, where)
            for ends in takewhile(lambda _: time.monotonic() < deadline, firsts)
        )
        missing_folders = (
            home for home in homes if os.path.isabs(home) and not os.path.isdir(home)
        )
        candidates = []
        for old in missing_folders:
            if canonical_path(old) not in other_worktrees and _may_have_become(old, new, where):
                candidates.append(old)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise UsageError(
            f"No session of a missing folder names a commit or file of {new}",
            "Name the folder by its former path.",
        )
    raise UsageError(
        f"Several folders may have become {new}: {', '.join(candidates)}",
        "Name the one that you mean.",
    )


def recorded_former_folders(new: str, where: Where) -> list[str]:
    """Return the former folders of the repository in ``new`` that have sessions, as recorded by session starts.

    The best evidence is the repository's own git log, with the most recently used folder first. If
    there is none, its remote is compared.
    """
    current = make_folder_note(new)
    missing_starts = []
    for start in folder_notes(where):
        if not start.is_there and canonical_path(start.path) != canonical_path(new):
            missing_starts.append(start)
    moved = _folders_with_sessions(
        (start.path for start in missing_starts if start.git and start.git == current.git), where
    )
    return moved[:1] or _folders_with_sessions(
        (start.path for start in missing_starts if start.remote and start.remote == current.remote),
        where,
    )


def sessions_of_folder(folder: str, where: Where) -> list[SessionFile]:
    """Return the sessions that were started in a folder, newest first."""
    sessions = []
    for session in sessions_of(folder, where):
        if belongs_to_folder(session.path, folder):
            sessions.append(session)
    return sessions


def spoken_sessions(folder: str, where: Where) -> list[SessionFile]:
    """Return the sessions of a folder that have a prompt or an answer, newest first."""
    sessions = []
    for session in sessions_of_folder(folder, where):
        if HeadTail(session.path).has_messages:
            sessions.append(session)
    return sessions


def is_still_there(folder: str, where: Where) -> bool:
    """Check whether a folder still exists and contains the recorded repository."""
    has_moved = any(start.path == folder and not start.is_there for start in folder_notes(where))
    return os.path.isdir(folder) and not has_moved


def copy_sessions_to_folder(
    sessions: Sequence[SessionFile],
    new: str,
    where: Where,
    advance: Callable[[int, int], None],
    *,
    dry_run: bool,
) -> tuple[list[Receipt], list[NotCopied]]:
    """Copy the sessions that have no copy in ``new`` yet, oldest first, so that they stay sorted by date.

    ``advance`` is called with the number of bytes copied so far and the total. Sessions that cannot
    be copied are returned with the reason.
    """
    receipts, not_copied, done_bytes = list[Receipt](), list[NotCopied](), 0
    total = sum(session.size for session in sessions)
    with lock_session_creation(new, where):
        copied_ids = _sessions_with_copy(new, where)
        for session in sorted(sessions, key=lambda listed: listed.mtime):
            try:
                if session.session_id in copied_ids:
                    not_copied.append(NotCopied(session.session_id, HAS_COPY))
                else:
                    outcome = fork(
                        Session.of(session, where),
                        ForkSpec(home=new),
                        Caller(where, dry_run=dry_run),
                    )
                    receipts.append(outcome.receipt)
                    copied_ids.add(session.session_id)
            except ResumeHooksError as error:
                not_copied.append(NotCopied(session.session_id, error.message))
            done_bytes += session.size
            advance(done_bytes, total)
    return receipts, not_copied


def note_on_other_sessions(old: str, new: str, where: Where) -> str:
    """Answer ``questions.note_on_other_sessions``.

    Return ``""`` if ``old`` still exists, or if all sessions have a copy in ``new``.
    """
    copied_ids = _sessions_with_copy(new, where)
    if is_still_there(old, where):
        remaining = []
    else:
        remaining = [
            session
            for session in spoken_sessions(old, where)
            if session.session_id not in copied_ids
        ]
    command = shell_command(f"rehome {quote_word(old)} --home {quote_word(new)}")
    if remaining:
        return f"{format_count(len(remaining), 'other session')} of {plain_line(old)} can be copied too: {command}"
    return ""


def _folders_with_sessions(folders: Iterable[str], where: Where) -> list[str]:
    """Return the folders that have sessions, most recently used first."""
    dated = [
        (sessions[0].mtime, folder)
        for folder in folders
        if (sessions := spoken_sessions(folder, where))
    ]
    return [folder for _, folder in sorted(dated, reverse=True)]


def _may_have_become(old: str, new: str, where: Where) -> bool:
    """Check whether one of the newest sessions of ``old`` has traces of ``new``."""
    for session in sessions_of(old, where)[:SESSIONS_TO_SEARCH]:
        with contextlib.suppress(SessionNotFound):  # deleted after it was listed
            folders = find_moved_repo.find_likely_folders(
                find_moved_repo.read_traces(session.path, old), [new], where
            )
            if any(likely_folder.folder == canonical_path(new) for likely_folder in folders):
                return True
    return False


def _sessions_with_copy(new: str, where: Where) -> set[str]:
    """Return the ids of sessions with a copy in the folder.

    The copies themselves are read, because an interrupted rehome did not record their links.
    """
    parents = (read_parent(copy.path) for copy in sessions_of_folder(new, where))
    return {parent.session_id for parent in parents if parent and parent.kind == REHOME}


def line_at_start(event: dict[str, Any]) -> str:
    """Return the line for a session start, using only the records of earlier starts, or ``""``."""
    new, where = _event_folder(event), Where()
    folders = recorded_former_folders(new, where)
    if len(folders) == 1:
        return _moved_line(folders[0], where)
    return ""


def line_of_new_folder(event: dict[str, Any]) -> str:
    """Return the line for a session start from a background search, which also uses traces in sessions."""
    new, where = _event_folder(event), Where()
    try:
        return _moved_line(find_former_folder(new, where, SEARCH_SECONDS), where)
    except UsageError:
        return ""


def _event_folder(event: dict[str, Any]) -> str:
    return canonical_path(
        os.environ.get("CLAUDE_PROJECT_DIR") or reply.text_field(event, "cwd") or os.getcwd()
    )


def _moved_line(old: str, where: Where) -> str:
    count = format_count(len(spoken_sessions(old, where)), "session")
    moved_text = f"This repository was in {plain_line(old)}, which has {count} and is gone"
    return f"{moved_text}; to copy them here, in a shell in this folder: {shell_command('rehome')}"
