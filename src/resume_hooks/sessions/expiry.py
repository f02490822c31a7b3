"""What the client deletes, and from when on: a session by its last write, some of its files by their own.

Measured on 2.1.42 and 2.1.329: a sweep goes over all project folders, with the settings of the
folder that the client was started in. 2.1.329 takes a transcript with all that belongs to it, and
large tool outputs by their own time, out of sessions that are written to every day, too; both do so
with the folder of a session's file backups.

Loads next to nothing: a session's start waits for it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.clock import DAY
from resume_hooks.paths import TOOL_RESULTS, Where, is_session_id, session_id_from_path
from resume_hooks.sessions.archived.layout import MANIFEST, archive_folder

SOON = (
    7 * DAY
)  # seconds before its end at which a session is archived, and told as one that goes soon
AHEAD = 60  # seconds by which the clock of a file system may be ahead of ours
_EXACT = 0.001


class DatedSession(NamedTuple):
    """A session file: its last write in seconds since the epoch, its size in bytes."""

    session_id: str
    path: str
    mtime: float
    size: int


class Ending(NamedTuple):
    """A session that loses something: ``at`` is when, in seconds since the epoch, the client may begin to delete it.

    ``written`` is the last write of all that goes until the moment that was asked for; ``whole`` if
    the transcript does, else files that belong to it.
    """

    session: DatedSession
    at: float
    written: float
    whole: bool


class Ends(NamedTuple):
    """When a session's parts end, by the last writes of its transcript and ``files``, a ``period`` of seconds later."""

    session: DatedSession
    period: float
    files: tuple[float, ...]

    def before(self, until: float) -> Ending | None:
        """What the client may delete before ``until``, in seconds since the epoch.

        None for nothing.
        """
        last = until - self.period
        whole = self.session.mtime < last
        going = [mtime for mtime in self.files if mtime < last] + (
            [self.session.mtime] if whole else []
        )
        if going:
            return Ending(self.session, min(going) + self.period, max(going), whole)
        return None

    def after(self, moment: float) -> float | None:
        """When, not before ``moment``, the next of them ends; None where none does."""
        ends = (mtime + self.period for mtime in (self.session.mtime, *self.files))
        return min((end for end in ends if end >= moment), default=None)


class Endings:
    """Tells of sessions when they end; backups of files are listed once."""

    def __init__(self, days: int, where: Where) -> None:
        self._period = float(days * DAY)
        self._history = where.file_history
        self._with_backups: frozenset[str] = frozenset()
        with contextlib.suppress(OSError):
            self._with_backups = frozenset(os.listdir(self._history))

    def of(self, folder: str) -> list[Ends]:
        """When the parts of each session in a project folder end.

        None where it can't be listed, or is a link.
        """
        if os.path.islink(folder):
            return []
        sessions, folders = [], set()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if is_session_id(entry.name):
                    folders.add(entry.name)
                elif (session_id := session_id_from_path(entry.name)) and entry.is_file(
                    follow_symlinks=False
                ):
                    status = entry.stat(follow_symlinks=False)
                    sessions += [
                        DatedSession(session_id, entry.path, status.st_mtime, status.st_size)
                    ] * bool(status.st_size)
        return [Ends(each, self._period, tuple(self._files(each, folders))) for each in sessions]

    def _files(self, session: DatedSession, folders: set[str]) -> Iterator[float]:
        if session.session_id in folders:
            yield from _times(
                os.path.join(os.path.dirname(session.path), session.session_id, TOOL_RESULTS)
            )
        if session.session_id in self._with_backups:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(self._history, session.session_id)).st_mtime


def is_archived(session_id: str, written: float, where: Where) -> bool:
    """Whether the vault has a session as it was last ``written``; told by its manifest's time.

    That is not read.

    A manifest that is dated in the future is: the clock was ahead then, or somebody gave it that
    time.
    """
    try:
        noted = os.lstat(os.path.join(archive_folder(session_id, where), MANIFEST)).st_mtime
    except OSError:
        return False
    if noted <= time.time() + AHEAD:
        return noted >= written
    from resume_hooks.sessions.archived.manifest import (
        archived_of_id,  # most starts read no manifest
    )

    kept = archived_of_id(session_id, where)
    return kept is not None and max(part.mtime_ns for part in kept.parts) / 1e9 >= written - _EXACT


def _times(folder: str) -> Iterator[float]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError), os.scandir(entry.path) as inner:
                    yield from [
                        each.stat(follow_symlinks=False).st_mtime
                        for each in inner
                        if _is_file(each)
                    ]
            elif _is_file(entry):
                yield entry.stat(follow_symlinks=False).st_mtime


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)
