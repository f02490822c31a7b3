"""Keeping one session after the other, by itself: nobody asked, so who is at it already, or is gone, is no failure."""

from __future__ import annotations

from resume_hooks.archive.vault.keep import keep
from resume_hooks.archive.vault.policy import allowed
from resume_hooks.archive.vault.sources import Sources
from resume_hooks.errors import SessionLive, SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions.files import session_file

PATIENCE = 0.02
"""Seconds that another command at the same session is waited for; that one keeps it."""


class Keeper:
    """Keeps sessions; what lies beside their transcripts is looked up once a folder."""

    def __init__(self, where: Where) -> None:
        self.may = allowed(where)[0]
        self._where = where
        self._finder = Sources(where)

    def keep(self, path: str) -> bool:
        """Keep the session at a path; whether it is now. ResumeHooksError where it can't be."""
        try:
            keep(session_file(path), self._where, sources=self._finder, patience=PATIENCE)
        except (SessionLive, SessionNotFound):
            return False
        return True
