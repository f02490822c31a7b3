"""Files as they were at a prompt: which backup each of them had then, and where that lies.

As the client does it: a file that was first tracked later is as it was before its first edit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from resume_hooks.errors import CantRestore, SessionNotFound
from resume_hooks.file_history.history import Backup, Edit, History
from resume_hooks.file_history.places import Place, Root
from resume_hooks.file_history.plan import Expected, FilesPlan, Source, Wanted, decide
from resume_hooks.file_history.target import Aim
from resume_hooks.glance import Glance
from resume_hooks.home import home_folder, is_keyed
from resume_hooks.lineage import Family
from resume_hooks.paths import config_home, is_session_id
from resume_hooks.store import SessionFile

FOLDER = "file-history"
FIRST = 1
"""The version of a file's backup when the client began to track it."""

UNKNOWN = "the client kept no copy of it from before its first edit"


def plan(history: History, aimed: Aim, environ: Mapping[str, str]) -> FilesPlan:
    """What takes the files back to a prompt. CantRestore where the project's folder can't be opened."""
    session = history.session
    root = Root.of(_home(session), environ)
    stores = _Stores(root, tuple(_folders(session, environ)))
    return decide(session.session_id, root, stores.wanted(history, aimed))


def _home(session: SessionFile) -> str:
    """The session's own folder. CantRestore where it names none: the current one would be no more than a guess."""
    glance = Glance(session.path)
    home = home_folder(glance)
    if not os.path.isabs(home) or not (glance.cwd or is_keyed(home, os.path.basename(os.path.dirname(session.path)))):
        raise CantRestore(
            f"{session.session_id} does not say which folder it belongs to", "No file of it can be put back."
        )
    return home


@dataclass(frozen=True)
class _Stores:
    """Where backups lie: under the session's own id, else under its ancestors'."""

    root: Root
    folders: tuple[Source, ...]

    def wanted(self, history: History, aimed: Aim) -> Iterator[Wanted]:
        """Each file that was tracked at the prompt, or later, as it was then."""
        tracked = _Tracked(self.root, history)
        own = tracked.states[aimed.state.message]
        first: dict[str, Backup] = {}
        paths: set[str] = set()
        for state in aimed.states:
            backups = tracked.states[state.message]
            paths.update(backups)
            for path, backup in backups.items():
                if backup.version == FIRST:
                    first.setdefault(path, backup)
        for path in sorted(paths):
            expected = self._expected(tracked.last.get(path), tracked.edits.get(path))
            yield self._wanted(tracked.places[path], own.get(path) or first.get(path), expected)

    def _wanted(self, place: Place, backup: Backup | None, expected: Expected | None) -> Wanted:
        if backup is None or backup.name == "":
            return Wanted(place, why=UNKNOWN if backup is None else "its backup has no name that a client gives")
        return Wanted(place, self._sources(backup), expected=expected, folder=backup.folder)

    def _expected(self, last: tuple[int, Backup] | None, edit: Edit | None) -> Expected | None:
        """What the session last knew of a file: by its last backup, or by an edit since."""
        if edit is not None and (last is None or edit.line > last[0]):
            return Expected(edit.digest) if edit.digest else None
        return Expected(sources=self._sources(last[1])) if last is not None and last[1].name != "" else None

    def _sources(self, backup: Backup) -> tuple[Source, ...]:
        """The files that may hold a backup; none where there was no file."""
        if backup.name is None:
            return ()
        return tuple(Source(folder.root, (*folder.parts, backup.name)) for folder in self.folders)


class _Tracked:
    """The tracked files by what they are called below the project's root, however a record calls them."""

    def __init__(self, root: Root, history: History) -> None:
        self._root = root
        self._names: dict[str, str] = {}
        self.places: dict[str, Place] = {}
        self.edits = {self._name(path): edit for path, edit in history.edits.items()}
        self.states = {
            state.message: {self._name(path): backup for path, backup in state.backups.items()}
            for state in history.states
        }
        self.last = {
            path: (state.line, backup)
            for state in history.states
            for path, backup in self.states[state.message].items()
        }

    def _name(self, path: str) -> str:
        known = self._names.get(path)
        if known is None:
            place = self._root.place(path)
            known = self._names[path] = place.path
            self.places[known] = place
        return known


def _folders(session: SessionFile, environ: Mapping[str, str]) -> Iterator[Source]:
    """The folders of backups of a session and its ancestors, nearest first; ids of hostile links lead nowhere."""
    root = os.path.join(config_home(environ), FOLDER)
    try:
        rows = Family(environ).lineage(session.path)
    except SessionNotFound:
        rows = []
    ids = [session.session_id, *(row.session_id for row in reversed(rows))]
    for session_id in dict.fromkeys(filter(is_session_id, ids)):
        yield Source(root, (session_id,))
