"""The protocol of what holds sessions, asked by project and id, and the local one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from resume_hooks import paths
from resume_hooks.paths import Where
from resume_hooks.sessions import session_files
from resume_hooks.sessions.session_files import SessionFile, newest_first


class SessionStore(Protocol):
    """Sessions by project: ``projects`` and session ids are the keys of the official SDK's ``SessionStore``, too."""

    def projects(self) -> list[str]:
        """The names of the projects that are there, sorted."""

    def sessions(self, projects: Iterable[str] | None = None, prefix: str = "") -> list[SessionFile]:
        """The sessions of these projects (None: of all) whose ids start with ``prefix``, newest first."""

    def find(self, session_id: str) -> SessionFile | None:
        """The session of an id in any project, the newest copy; None where there is none."""

    def hidden(self) -> list[str]:
        """The places that are there and can't be looked into; none unless a store says so."""
        return []

    def linked(self, session_id: str = "") -> list[str]:  # noqa: ARG002 - for those who follow no link
        """The projects behind symbolic links, or the files of an id there: links are not followed."""
        return []


class LocalStore:
    """The project folders of a config home."""

    def __init__(self, where: Where) -> None:
        self._where = where

    def projects(self) -> list[str]:
        """The names of the project folders; links are none."""
        return [os.path.basename(folder) for folder in paths.all_folders(self._where)]

    def sessions(self, projects: Iterable[str] | None = None, prefix: str = "") -> list[SessionFile]:
        """The session files of these project folders, newest first."""
        if projects is None:
            return session_files.all_sessions(self._where, prefix)
        home = self._where.projects
        folders = (folder for name in projects if not os.path.islink(folder := os.path.join(home, name)))
        return newest_first(s for folder in folders for s in session_files.sessions_in(folder, prefix))

    def find(self, session_id: str) -> SessionFile | None:
        """The file of an id; only ids are looked up, whatever was typed."""
        path = paths.find_session(session_id, self._where)
        return None if path is None else session_files.session_file(path)

    def hidden(self) -> list[str]:
        """The folders that can't be listed."""
        return session_files.unlistable(self._where)

    def linked(self, session_id: str = "") -> list[str]:
        """The project folders that are links, or the files of an id that lie behind links."""
        return session_files.linked(self._where, session_id)
