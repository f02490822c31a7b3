"""Archive sessions without being asked, one after the other: a locked or vanished session is skipped.

Packing and reading back takes 1 MB some 30 ms (benchmarks/vault.py), so a start or a verb leaves what is larger to the
hook that nobody waits for.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.client_files import ClientFiles
from resume_hooks.archive.vault.policy import allowed
from resume_hooks.errors import SessionLive, SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import HISTORY
from resume_hooks.sessions.archived.manifest import find
from resume_hooks.sessions.expiry import DatedSession
from resume_hooks.sessions.session_files import session_file

MOST_BYTES = 1024 * 1024
"""Bytes that are packed while somebody waits."""

MOST_FILES = 100
"""Files that are read while somebody waits."""

PATIENCE = 0.02
"""Seconds that another command at the same session is waited for; that one keeps it."""


class BackgroundArchiver:
    """Archives sessions; what lies beside their transcripts is looked up once a folder."""

    def __init__(self, where: Where) -> None:
        self.may = allowed(where)[0]
        self._where = where
        self._client_files = ClientFiles(where)

    def archive(self, path: str) -> bool:
        """Archive the session at a path; whether it is now. ResumeHooksError where it can't be."""
        try:
            archive_session(session_file(path), self._where, client_files=self._client_files, patience=PATIENCE)
        except (SessionLive, SessionNotFound):
            return False
        return True


def is_quick(session: DatedSession, where: Where) -> bool:
    """Whether a session can be archived while somebody waits: its files, and what is archived of it already."""
    archived = find(session.session_id, where)
    total = session.size + (sum(part.size for part in archived.all_parts) if archived else 0)
    own = session.path.removesuffix(".jsonl")
    backups = os.path.join(where.config, HISTORY, session.session_id)
    for count, size in enumerate((*_sizes(own), *_sizes(backups)), 1):
        total += size
        if total > MOST_BYTES or count > MOST_FILES:
            return False
    return total <= MOST_BYTES


def _sizes(folder: str) -> Iterator[int]:
    """The sizes of the files in a folder and those in it."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(entry.path)
            else:
                yield entry.stat(follow_symlinks=False).st_size
