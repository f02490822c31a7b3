"""Every session of a folder that moved: which folder that was, and a copy of each where it is now.

In a folder without sessions whose repository had some elsewhere there is one line at the start.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from resume_hooks.derive import fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import carry_out
from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import reply
from resume_hooks.parts.moved import find_moved_repo
from resume_hooks.paths import Where, canonical
from resume_hooks.sessions.locate import SessionFile, all_sessions, sessions_of
from resume_hooks.sessions.project_folder import home_folder, only_maker
from resume_hooks.sessions.session_files import belongs
from resume_hooks.system.git_worktrees import as_started, removed_worktrees, started_folders
from resume_hooks.system.invocation import in_shell, quote_word
from resume_hooks.system.text import plain_line, plural
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent

THERE = "has a copy there already"

ASKED = 10
"""Sessions of a folder, the newest, that may tell what became of it."""

LIMIT = 5.0
"""Seconds for what sessions tell, where no start noted anything; nobody waits."""


class NotCopied(NamedTuple):
    """A session that got no copy, and why."""

    session_id: str
    why: str


def former_folder(new: str, where: Where, limit: float = float("inf")) -> str:
    """The folder that ``new`` was before, by git's files or by what its sessions tell.

    UsageError where none or several are likely. Of the sessions those are asked that are reached within the ``limit``,
    in seconds.
    """
    until = time.monotonic() + limit
    beside = removed_worktrees(new, where)  # what was worked on beside it never was it
    found = noted_before(new, where)
    if not found:
        firsts = find_moved_repo.first_of_projects(session.path for session in all_sessions(where))
        homes = (home_folder(ends, where) for ends in takewhile(lambda _: time.monotonic() < until, firsts))
        gone = (home for home in homes if os.path.isabs(home) and not os.path.isdir(home))
        found = [old for old in gone if canonical(old) not in beside and _became(old, new, where)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"No session of a folder that is gone names a commit or files of {new}", "Name the folder as it was called."
        )
    raise UsageError(f"Several folders may have become {new}: {', '.join(found)}", "Name the one that you mean.")


def noted_before(new: str, where: Where) -> list[str]:
    """The folders with sessions that the repository in ``new`` lay in before, as starts there noted it.

    Its own log tells best, and of several such the one that was worked in last; a remote, where no log does.
    """
    now = as_started(new)
    gone = [one for one in started_folders(where) if not one.is_there and canonical(one.path) != canonical(new)]
    moved = _with_sessions((one.path for one in gone if one.git and one.git == now.git), where)
    return moved[:1] or _with_sessions((one.path for one in gone if one.remote and one.remote == now.remote), where)


def own_sessions(folder: str, where: Where) -> list[SessionFile]:
    """The sessions that were started in a folder, newest first."""
    return [session for session in sessions_of(folder, where) if belongs(session.path, folder)]


def spoken_sessions(folder: str, where: Where) -> list[SessionFile]:
    """Those of them that somebody asked or answered in."""
    return [session for session in own_sessions(folder, where) if HeadTail(session.path).says_something]


def is_left(folder: str, where: Where) -> bool:
    """Whether a folder is still there, with the repository that it was noted to be."""
    noted = any(one.path == folder and not one.is_there for one in started_folders(where))
    return os.path.isdir(folder) and not noted


def rehome(
    sessions: Sequence[SessionFile], new: str, where: Where, advance: Callable[[int, int], None], *, dry_run: bool
) -> tuple[list[Receipt], list[NotCopied]]:
    """A copy at home in ``new`` of each session that has none there, oldest first: the order by date stays.

    ``advance`` is called with the bytes done and the total. What can't be copied is left out, with the reason.
    """
    made, left, done = list[Receipt](), list[NotCopied](), 0
    total = sum(session.size for session in sessions)
    with only_maker(new, where):
        there = _copied(new, where)
        for session in sorted(sessions, key=lambda one: one.mtime):
            try:
                if session.session_id in there:
                    left.append(NotCopied(session.session_id, THERE))
                else:
                    made.append(carry_out(fork.plan(session, where, home=new), where, dry_run=dry_run))
                    there.add(session.session_id)
            except ResumeHooksError as error:
                left.append(NotCopied(session.session_id, error.message))
            done += session.size
            advance(done, total)
    return made, left


def others(old: str, new: str, where: Where) -> str:
    """The answer to ``of the others of a folder``; ``""`` where it is still there, or each has a copy in ``new``."""
    there = _copied(new, where)
    left = [] if is_left(old, where) else [one for one in spoken_sessions(old, where) if one.session_id not in there]
    command = in_shell(f"rehome {quote_word(old)} --home {quote_word(new)}")
    return f"{plural(len(left), 'other session')} of {plain_line(old)} can come too: {command}" if left else ""


def _with_sessions(folders: Iterable[str], where: Where) -> list[str]:
    """The folders that have sessions, the one with the newest first."""
    dated = [(found[0].mtime, folder) for folder in folders if (found := spoken_sessions(folder, where))]
    return [folder for _, folder in sorted(dated, reverse=True)]


def _became(old: str, new: str, where: Where) -> bool:
    """Whether one of the newest sessions of ``old`` tells of what ``new`` holds."""
    for session in sessions_of(old, where)[:ASKED]:
        with contextlib.suppress(SessionNotFound):  # deleted since it was listed
            found = find_moved_repo.places(find_moved_repo.traces(session.path, old), [new], where)
            if any(place.folder == canonical(new) for place in found):
                return True
    return False


def _copied(new: str, where: Where) -> set[str]:
    """The sessions that have a copy at home in the folder, as the copies tell: a killed rehome noted no link."""
    named = (read_parent(copy.path) for copy in own_sessions(new, where))
    return {parent.session_id for parent in named if parent and parent.kind == fork.REHOMED}


def start_line(event: dict[str, Any]) -> str:
    """What a start says, by what earlier starts noted alone; ``""`` where nothing fits."""
    new, where = _here(event), Where()
    found = noted_before(new, where)
    return _told(found[0], where) if len(found) == 1 else ""


def folder_line(event: dict[str, Any]) -> str:
    """The same where nobody waits: also by what sessions tell."""
    new, where = _here(event), Where()
    try:
        return _told(former_folder(new, where, LIMIT), where)
    except UsageError:
        return ""


def _here(event: dict[str, Any]) -> str:
    return canonical(os.environ.get("CLAUDE_PROJECT_DIR") or reply.field(event, "cwd") or os.getcwd())


def _told(old: str, where: Where) -> str:
    count = plural(len(spoken_sessions(old, where)), "session")
    gone = f"This repository was in {plain_line(old)}, which has {count} and is gone"
    return f"{gone}; to copy them here, in a shell in this folder: {in_shell('rehome')}"
