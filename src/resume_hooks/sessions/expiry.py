"""The time at which the client deletes a session, and the earlier times at which it deletes some of its files.

Measured with 2.1.42 and 2.1.329: a cleanup processes all project folders with the settings of the
client's folder. Client 2.1.329 deletes a transcript together with its other files. It also deletes large
tool outputs by their own times, even in sessions in daily use. Both versions do that with a
session's folder of file backups.

The imports are minimal, because a session's start waits for this module.
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

# a session is archived and reported as expiring this many seconds before its deletion
EXPIRING_SOON_SECONDS = 7 * DAY
MAX_CLOCK_AHEAD_SECONDS = 60  # seconds by which a file system's clock may be ahead of ours
_TIME_TOLERANCE_SECONDS = 0.001


class DatedSession(NamedTuple):
    """A session file: its last write in seconds since the epoch, and its size in bytes."""

    session_id: str
    path: str
    mtime: float
    size: int


class ExpiringSession(NamedTuple):
    """A session that is about to lose files, and the earliest deletion time in seconds since the epoch.

    ``last_write`` is the latest write to any file that is deleted before the requested time.
    """

    session: DatedSession
    deletion_time: float
    last_write: float
    includes_transcript: bool


class SessionExpiry(NamedTuple):
    """The last writes of a session's files. Each file expires ``period`` seconds after its last write."""

    session: DatedSession
    period: float
    file_times: tuple[float, ...]

    def expiring_before(self, until: float) -> ExpiringSession | None:
        """Return the files that the client may delete before ``until``, in seconds since the epoch.

        Return None if it may delete none of them.
        """
        last_expired_write = until - self.period
        includes_transcript = self.session.mtime < last_expired_write
        expired_writes = [mtime for mtime in self.file_times if mtime < last_expired_write] + (
            [self.session.mtime] if includes_transcript else []
        )
        if expired_writes:
            return ExpiringSession(
                self.session,
                min(expired_writes) + self.period,
                max(expired_writes),
                includes_transcript,
            )
        return None

    def next_expiry(self, moment: float) -> float | None:
        """Return the next expiry time from ``moment`` on, or None."""
        expiry_times = (mtime + self.period for mtime in (self.session.mtime, *self.file_times))
        return min(
            (expiry_time for expiry_time in expiry_times if expiry_time >= moment), default=None
        )


class ExpiryCalculator:
    """Computes sessions' expiry times; the folder of file backups is listed only once."""

    def __init__(self, days: int, where: Where) -> None:
        self._period = float(days * DAY)
        self._history = where.file_history
        self._with_backups: frozenset[str] = frozenset()
        with contextlib.suppress(OSError):
            self._with_backups = frozenset(os.listdir(self._history))

    def sessions_in_folder(self, folder: str) -> list[SessionExpiry]:
        """Return the expiry times of each session in a project folder.

        Return an empty list if the folder can't be listed or is a link.
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
        return [
            SessionExpiry(each, self._period, tuple(self._files(each, folders)))
            for each in sessions
        ]

    def _files(self, session: DatedSession, folders: set[str]) -> Iterator[float]:
        if session.session_id in folders:
            yield from _file_times(
                os.path.join(os.path.dirname(session.path), session.session_id, TOOL_RESULTS)
            )
        if session.session_id in self._with_backups:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(self._history, session.session_id)).st_mtime


def is_archived(session_id: str, last_write: float, where: Where) -> bool:
    """Check whether the vault has a session as of its ``last_write``, by its manifest's time.

    Do not read the manifest.

    Exception: read a manifest dated in the future, because the clock was ahead or its time was
    changed.
    """
    try:
        manifest_time = os.lstat(os.path.join(archive_folder(session_id, where), MANIFEST)).st_mtime
    except OSError:
        return False
    if manifest_time <= time.time() + MAX_CLOCK_AHEAD_SECONDS:
        return manifest_time >= last_write
    from resume_hooks.sessions.archived.manifest import (
        find_archived,  # most starts read no manifest
    )

    archived = find_archived(session_id, where)
    return (
        archived is not None
        and max(part.mtime_ns for part in archived.parts) / 1e9
        >= last_write - _TIME_TOLERANCE_SECONDS
    )


def _file_times(folder: str) -> Iterator[float]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError), os.scandir(entry.path) as files:
                    yield from [
                        file.stat(follow_symlinks=False).st_mtime
                        for file in files
                        if _is_file(file)
                    ]
            elif _is_file(entry):
                yield entry.stat(follow_symlinks=False).st_mtime


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)
