"""Keeping one session after the other, by itself: nobody asked, so who is at it already, or is gone, is no failure."""

from __future__ import annotations

from collections.abc import Mapping

from resume_hooks.archive.vault.keep import keep
from resume_hooks.archive.vault.policy import allowed
from resume_hooks.archive.vault.sources import Sources
from resume_hooks.errors import SessionLive, SessionNotFound
from resume_hooks.sessions.files import session_file

PATIENCE = 0.02
"""Seconds that another command at the same session is waited for; that one keeps it."""


class Keeper:
    """Keeps sessions; what lies beside their transcripts is looked up once a folder."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.may = allowed(environ)[0]
        self._environ = environ
        self._finder = Sources(environ)

    def keep(self, path: str) -> bool:
        """Keep the session at a path; whether it is now. ResumeHooksError where it can't be."""
        try:
            keep(session_file(path), self._environ, sources=self._finder, patience=PATIENCE)
        except (SessionLive, SessionNotFound):
            return False
        return True
