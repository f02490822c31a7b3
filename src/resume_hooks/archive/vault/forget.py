"""Forgetting: what the vault holds of a session removed for good; the note goes first."""

from __future__ import annotations

import os
import shutil

from resume_hooks.archive.vault import commit
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import LOCK, NOTE, unpacked
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.storage.move import remove
from resume_hooks.storage.state_file import sync_folder


def forget(kept: ArchivedSession, where: Where) -> None:
    """Remove what is kept of a session, and what was unpacked from it. The client's own files stay.

    WriteFailed where something can't be removed, SessionLive where another command is at it.
    """
    with commit.only_one(kept.session_id, where):
        try:
            if os.path.lexists(note := os.path.join(kept.folder, NOTE)):
                os.unlink(note)
                sync_folder(kept.folder)
            for name in os.listdir(kept.folder):
                if name != LOCK:  # it goes with the folder, when it is let go
                    remove(os.path.join(kept.folder, name))
        except OSError as error:
            raise WriteFailed(
                f"{error.filename or kept.folder} could not be removed: {error.strerror or error}",
                "Check its permissions, then run it again.",
            ) from error
        shutil.rmtree(os.path.join(unpacked(where), kept.session_id), ignore_errors=True)
