"""Find the former path of a moved folder, and copy its sessions to the current path.

In a folder without sessions whose repository had some elsewhere, a session start shows one line.
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
from resume_hooks.sessions.project_folder import home_folder, only_maker
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import belongs_to_folder
from resume_hooks.system.git_worktrees import folder_notes, list_removed_worktrees, make_folder_note
from resume_hooks.system.invocation import quote_word, shell_command
from resume_hooks.system.text import format_count, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent

THERE = "has a copy there already"

ASKED = 10
"""The number of newest sessions per folder that are searched for traces of its new place."""

LIMIT = 5.0
"""Seconds for reading sessions in the background, if no start has recorded anything."""


class NotCopied(NamedTuple):
    """A session that was not copied, with the reason."""

    session_id: str
    why: str


def former_folder(new: str, where: Where, limit: float = float("inf")) -> str:
    """Return the former path of the folder ``new``, from git's files or traces in sessions.

    Raise UsageError if there is no likely folder, or more than one. Sessions are read for at most
    ``limit`` seconds.
    """
    until = time.monotonic() + limit
    # a former worktree of this repository is a different folder
    beside = list_removed_worktrees(new, where)
    found = folders_noted_before(new, where)
    if not found:
        firsts = find_moved_repo.first_session_of_projects(
            session.path for session in all_sessions(where)
        )
        homes = (
            home_folder(ends, where)
            for ends in takewhile(lambda _: time.monotonic() < until, firsts)
        )
        gone = (home for home in homes if os.path.isabs(home) and not os.path.isdir(home))
        found = []
        for old in gone:
            if canonical_path(old) not in beside and _may_have_become(old, new, where):
                found.append(old)
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"No session of a missing folder names a commit or file of {new}",
            "Name the folder by its former path.",
        )
    raise UsageError(
        f"Several folders may have become {new}: {', '.join(found)}", "Name the one that you mean."
    )


def folders_noted_before(new: str, where: Where) -> list[str]:
    """Return the former folders, with sessions, of the repository in ``new``, as recorded by earlier session starts.

    The best evidence is its own git log, with the most recently used folder. If there is none, its
    remote counts.
    """
    now = make_folder_note(new)
    gone = []
    for one in folder_notes(where):
        if not one.is_there and canonical_path(one.path) != canonical_path(new):
            gone.append(one)
    moved = _folders_with_sessions(
        (one.path for one in gone if one.git and one.git == now.git), where
    )
    return moved[:1] or _folders_with_sessions(
        (one.path for one in gone if one.remote and one.remote == now.remote), where
    )


def own_sessions(folder: str, where: Where) -> list[SessionFile]:
    """Return the sessions that were started in a folder, newest first."""
    sessions = []
    for session in sessions_of(folder, where):
        if belongs_to_folder(session.path, folder):
            sessions.append(session)
    return sessions


def spoken_sessions(folder: str, where: Where) -> list[SessionFile]:
    """Return the sessions of a folder that have a prompt or an answer, newest first."""
    sessions = []
    for session in own_sessions(folder, where):
        if HeadTail(session.path).says_something:
            sessions.append(session)
    return sessions


def is_still_there(folder: str, where: Where) -> bool:
    """Check whether a folder still exists with the recorded repository."""
    noted = any(one.path == folder and not one.is_there for one in folder_notes(where))
    return os.path.isdir(folder) and not noted


def copy_sessions_home(
    sessions: Sequence[SessionFile],
    new: str,
    where: Where,
    advance: Callable[[int, int], None],
    *,
    dry_run: bool,
) -> tuple[list[Receipt], list[NotCopied]]:
    """Copy the sessions that have no copy in ``new`` yet, oldest first, so that their order by date stays.

    ``advance`` is called with the finished and the total bytes. Sessions that cannot be copied are
    returned with the reason.
    """
    made, left, done = list[Receipt](), list[NotCopied](), 0
    total = sum(session.size for session in sessions)
    with only_maker(new, where):
        there = _sessions_with_copy(new, where)
        for session in sorted(sessions, key=lambda one: one.mtime):
            try:
                if session.session_id in there:
                    left.append(NotCopied(session.session_id, THERE))
                else:
                    outcome = fork(
                        Session.of(session, where),
                        ForkSpec(home=new),
                        Caller(where, dry_run=dry_run),
                    )
                    made.append(outcome.receipt)
                    there.add(session.session_id)
            except ResumeHooksError as error:
                left.append(NotCopied(session.session_id, error.message))
            done += session.size
            advance(done, total)
    return made, left


def note_on_other_sessions(old: str, new: str, where: Where) -> str:
    """Answer ``questions.note_on_other_sessions``.

    Return ``""`` if ``old`` still exists, or if all sessions have a copy in ``new``.
    """
    there = _sessions_with_copy(new, where)
    if is_still_there(old, where):
        left = []
    else:
        left = [one for one in spoken_sessions(old, where) if one.session_id not in there]
    command = shell_command(f"rehome {quote_word(old)} --home {quote_word(new)}")
    if left:
        return f"{format_count(len(left), 'other session')} of {plain_line(old)} can be copied too: {command}"
    return ""


def _folders_with_sessions(folders: Iterable[str], where: Where) -> list[str]:
    """Return the folders that have sessions, most recently used first."""
    dated = [
        (found[0].mtime, folder) for folder in folders if (found := spoken_sessions(folder, where))
    ]
    return [folder for _, folder in sorted(dated, reverse=True)]


def _may_have_become(old: str, new: str, where: Where) -> bool:
    """Check whether one of the newest sessions of ``old`` has traces of ``new``."""
    for session in sessions_of(old, where)[:ASKED]:
        with contextlib.suppress(SessionNotFound):  # deleted since it was listed
            found = find_moved_repo.likely_folders(
                find_moved_repo.read_traces(session.path, old), [new], where
            )
            if any(place.folder == canonical_path(new) for place in found):
                return True
    return False


def _sessions_with_copy(new: str, where: Where) -> set[str]:
    """Return the ids of sessions with a copy in the folder.

    The copies themselves are read, because a killed rehome recorded no links.
    """
    named = (read_parent(copy.path) for copy in own_sessions(new, where))
    return {parent.session_id for parent in named if parent and parent.kind == REHOME}


def line_at_start(event: dict[str, Any]) -> str:
    """Return the line for a session start, from the notes of earlier starts only, or ``""``."""
    new, where = _folder_of_event(event), Where()
    found = folders_noted_before(new, where)
    if len(found) == 1:
        return _line_of_moved(found[0], where)
    return ""


def line_of_new_folder(event: dict[str, Any]) -> str:
    """Return the same line from a background search, which also uses traces in sessions."""
    new, where = _folder_of_event(event), Where()
    try:
        return _line_of_moved(former_folder(new, where, LIMIT), where)
    except UsageError:
        return ""


def _folder_of_event(event: dict[str, Any]) -> str:
    return canonical_path(
        os.environ.get("CLAUDE_PROJECT_DIR") or reply.text_field(event, "cwd") or os.getcwd()
    )


def _line_of_moved(old: str, where: Where) -> str:
    count = format_count(len(spoken_sessions(old, where)), "session")
    gone = f"This repository was in {plain_line(old)}, which has {count} and is gone"
    return f"{gone}; to copy them here, in a shell in this folder: {shell_command('rehome')}"
