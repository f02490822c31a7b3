"""Report the sessions that the client will soon delete, and archive them in slices, the most urgent first.

A project's sessions are archived from seven days before their end. A client that starts in a
project cleans up all projects by that project's settings, so sessions of other projects that it
would delete within a day are archived too, in the background.
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
"""Seconds after which a failed session is tried again."""


class Outlook(NamedTuple):
    """The sessions that the client will delete, as counts.

    ``sessions`` are deleted whole, in that many ``projects``, and ``younger`` ones lose single files.
    ``unkept`` is the number of those whose current state is not in the vault. ``first`` is the
    earliest deletion, in seconds since the epoch, or None. ``retention`` is the setting that
    decides.
    """

    retention: Retention
    sessions: int
    projects: int
    younger: int
    unkept: int
    first: float | None


def outlook(cwd: str, where: Where) -> Outlook:
    """Return the deletions within seven days if a client started in ``cwd``."""
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
    """The result of a slice: the numbers of newly ``kept``, ``failed`` and ``left`` sessions.

    ``look`` is the time of the next check, in seconds since the epoch.
    """

    kept: int
    failed: int
    left: int
    look: float


def archive_expiring(
    project: str, cwd: str, where: Where, is_over: Callable[[], bool], *, waiting: bool
) -> Slice:
    """Archive expiring sessions until time is over, but at least one, so that none is postponed for ever.

    ``project`` is the name of a project folder, ``cwd`` the folder where its client started. If the
    user is ``waiting``, large sessions and other projects are skipped.
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
        due += sorted(found, key=lambda ending: ending.at)  # the earliest deletion first
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
    """Return the numbers of archived, failed and remaining sessions."""
    # Most starts have nothing to archive and do not need these modules.
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
