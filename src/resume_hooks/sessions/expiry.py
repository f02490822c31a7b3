"""Compute when the client deletes a session and its files. Some files are deleted before the session.

The client's behaviour was measured with versions 2.1.42 and 2.1.329. A cleanup processes all
project folders, with the settings of the folder in which the client runs. Version 2.1.329 deletes a
transcript together with the session's other files. It also deletes each large tool output once the
output itself is old enough, even if the session is used every day. Both versions delete the folder
with a session's file backups once the folder itself is old enough.

This module imports few others, because the start of a session waits for it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.clock import DAY
from resume_hooks.paths import TOOL_RESULTS_FOLDER_NAME, Where, is_session_id, session_id_from_path
from resume_hooks.sessions.archived.layout import MANIFEST_NAME, archive_folder

# A session is archived and reported as expiring this number of seconds before its deletion.
EXPIRING_SOON_SECONDS = 7 * DAY
# maximum number of seconds by which a file system's clock may be ahead of ours
MAX_CLOCK_AHEAD_SECONDS = 60
_TIME_TOLERANCE_SECONDS = 0.001


class DatedSession(NamedTuple):
    """A session's file. ``mtime`` is in seconds since the epoch, and ``size`` is in bytes."""

    session_id: str
    path: str
    mtime: float
    size: int


class ExpiringSession(NamedTuple):
    """A session from which the client will soon delete files.

    ``deletion_time`` is the earliest time at which it may delete one of these files, in seconds
    since the epoch. ``last_write_time`` is the time of the latest write to any of these files.
    ``includes_transcript`` is true if the transcript is one of them.
    """

    session: DatedSession
    deletion_time: float
    last_write_time: float
    includes_transcript: bool


class SessionExpiry(NamedTuple):
    """The times of the last writes to a session's files.

    The client may delete a file ``retention_seconds`` after the last write to it. ``file_times`` are
    the times of the files other than the transcript.
    """

    session: DatedSession
    retention_seconds: float
    file_times: tuple[float, ...]

    def expiring_before(self, time_limit: float) -> ExpiringSession | None:
        """Return the session if the client may delete some of its files before ``time_limit``.

        Otherwise return None. ``time_limit`` is in seconds since the epoch.
        """
        last_expired_write = time_limit - self.retention_seconds
        includes_transcript = self.session.mtime < last_expired_write
        expired_writes = [mtime for mtime in self.file_times if mtime < last_expired_write] + (
            [self.session.mtime] if includes_transcript else []
        )
        if expired_writes:
            return ExpiringSession(
                self.session,
                min(expired_writes) + self.retention_seconds,
                max(expired_writes),
                includes_transcript,
            )
        return None

    def next_expiry(self, moment: float) -> float | None:
        """Return the first time, not earlier than ``moment``, at which a file expires, or None."""
        expiry_times = (
            mtime + self.retention_seconds for mtime in (self.session.mtime, *self.file_times)
        )
        return min(
            (expiry_time for expiry_time in expiry_times if expiry_time >= moment), default=None
        )


class ExpiryCalculator:
    """Computes when the files of sessions expire.

    The folder of file backups is listed only once.
    """

    def __init__(self, days: int, where: Where) -> None:
        self._period = float(days * DAY)
        self._history = where.file_history
        self._sessions_with_backups: frozenset[str] = frozenset()
        with contextlib.suppress(OSError):
            self._sessions_with_backups = frozenset(os.listdir(self._history))

    def sessions_in_folder(self, folder: str) -> list[SessionExpiry]:
        """Return the expiry of each session in a project folder.

        The result is empty if the folder can't be listed or is a symbolic link.
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
            SessionExpiry(each, self._period, tuple(self._times_of_other_files(each, folders)))
            for each in sessions
        ]

    def _times_of_other_files(self, session: DatedSession, folders: set[str]) -> Iterator[float]:
        if session.session_id in folders:
            yield from _file_times(
                os.path.join(
                    os.path.dirname(session.path), session.session_id, TOOL_RESULTS_FOLDER_NAME
                )
            )
        if session.session_id in self._sessions_with_backups:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(self._history, session.session_id)).st_mtime


def is_archived(session_id: str, last_write_time: float, where: Where) -> bool:
    """Check whether the vault's copy of a session was made after ``last_write_time``.

    Usually, only the modification time of the manifest file is compared with ``last_write_time``.
    If the manifest's time is in the future because a clock was wrong, the modification times of the
    session's files, which are listed in the manifest, are compared instead.
    """
    try:
        manifest_time = os.lstat(
            os.path.join(archive_folder(session_id, where), MANIFEST_NAME)
        ).st_mtime
    except OSError:
        return False
    if manifest_time <= time.time() + MAX_CLOCK_AHEAD_SECONDS:
        return manifest_time >= last_write_time
    from resume_hooks.sessions.archived.manifest import (
        find_archived,  # Imported here because most session starts read no manifest.
    )

    archived = find_archived(session_id, where)
    return (
        archived is not None
        and max(part.mtime_ns for part in archived.parts) / 1e9
        >= last_write_time - _TIME_TOLERANCE_SECONDS
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
