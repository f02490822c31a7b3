"""What the client is about to delete: told, and kept in slices, the most urgent first, as much as there is time for.

A project's sessions are kept from seven days before their end on. A client that starts there sweeps
all projects by that project's settings, so what it would take from others within a day is kept as
well, when nobody waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resume_hooks.archive.vault.permission import copies_must_wait
from resume_hooks.clock import DAY
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, all_project_folders
from resume_hooks.sessions.expiry import SOON, Ending, Endings, is_archived
from resume_hooks.system import claude_settings
from resume_hooks.system.claude_settings import Retention, client_retention

AGAIN = 60 * 60
"""Seconds after which what could not be kept is tried again."""


class Outlook(NamedTuple):
    """``sessions`` that go whole, of how many ``projects``; ``younger`` ones that lose files by themselves.

    ``unkept`` of both are not in the vault as they are. ``first`` is when the first of them may go,
    in seconds since the epoch, None where none does. ``retention`` is what decides.
    """

    retention: Retention
    sessions: int
    projects: int
    younger: int
    unkept: int
    first: float | None


def outlook(cwd: str, where: Where) -> Outlook:
    """What goes within seven days, were a client started in ``cwd``."""
    found, until = client_retention(cwd, where), time.time() + SOON
    endings = None if found.days is None else Endings(found.days, where)
    within = (
        (each for folder in all_project_folders(where) for each in endings.of(folder))
        if endings
        else ()
    )
    ends = [ending for each in within if (ending := each.before(until))]
    whole = [ending for ending in ends if ending.whole]
    return Outlook(
        retention=found,
        sessions=len(whole),
        projects=len({os.path.dirname(ending.session.path) for ending in whole}),
        younger=len(ends) - len(whole),
        unkept=sum(
            not is_archived(ending.session.session_id, ending.written, where) for ending in ends
        ),
        first=min((ending.at for ending in ends), default=None),
    )


class Slice(NamedTuple):
    """What a slice did: ``kept`` sessions that were not, or not as they are; ``failed`` and ``left`` ones.

    ``look`` is when, in seconds since the epoch, there is something to do again.
    """

    kept: int
    failed: int
    left: int
    look: float


def archive_expiring(
    project: str, cwd: str, where: Where, is_over: Callable[[], bool], *, waiting: bool
) -> Slice:
    """Keep what ends soon until time is over; at least one session, so that none waits for ever.

    ``project`` is the name of a project folder, ``cwd`` where its client was started. Where
    somebody is ``waiting``, sessions that take long are left, and other projects.
    """
    now = time.time()
    days = claude_settings.retention_days(cwd, where)
    if days is None:
        return Slice(0, 0, 0, now + DAY)
    endings, next_look = Endings(days, where), now + DAY
    own = os.path.join(where.projects, project)
    if waiting:
        others = []
    else:
        others = [folder for folder in all_project_folders(where) if folder != own]
    due = list[Ending]()
    for folders, before in (([own], SOON), (others, DAY)):
        found = []
        for ends in (ends for folder in folders for ends in endings.of(folder)):
            ending = ends.before(now + before)
            if ending and not is_archived(ends.session.session_id, ending.written, where):
                found.append(ending)
            if (after := ends.after(now + before)) is not None:
                next_look = min(next_look, after - before)
        due += sorted(found, key=lambda ending: ending.at)  # the first to go first
    if not due:
        return Slice(0, 0, 0, next_look)
    kept, failed, left = _archive_due(due, where, is_over, waiting=waiting)
    if left:
        look = now
    elif failed:
        look = min(next_look, now + AGAIN)
    else:
        look = next_look
    return Slice(kept, failed, left, look)


def _archive_due(
    due: Sequence[Ending], where: Where, is_over: Callable[[], bool], *, waiting: bool
) -> tuple[int, int, int]:
    """How many were kept, how many could not be, and how many are left."""
    # Most starts have nothing to keep, and need not load what keeps.
    from resume_hooks.archive.retention.archive_sessions import BackgroundArchiver, is_quick

    if copies_must_wait(where):
        return 0, len(due), 0
    archiver, kept, failed, left = BackgroundArchiver(where), 0, 0, 0
    for number, ending in enumerate(due if archiver.may else ()):
        if is_over() and kept + failed:
            return kept, failed, left + len(due) - number
        if waiting and not is_quick(ending.session, where):
            left += 1
            continue
        try:
            kept += archiver.archive(ending.session.path)
        except ResumeHooksError:
            failed += 1
    return kept, failed, left
