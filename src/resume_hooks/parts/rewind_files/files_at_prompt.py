"""Files as they were at a prompt: which backup each of them had then, and where that lies.

As the client does it: a file that was first tracked later is as it was before its first edit, and backups lie under
the session's own id alone. A child got its own at birth; in its parent's folder the same name may be another content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from resume_hooks.errors import CantRestore
from resume_hooks.parts.rewind_files.history import Backup, Edit, FileHistory
from resume_hooks.parts.rewind_files.plan import Expected, FilesPlan, StoredContent, WantedFile, decide
from resume_hooks.parts.rewind_files.safe_paths import ProjectPath, ProjectRoot
from resume_hooks.parts.rewind_files.target import Aim
from resume_hooks.paths import FILE_HISTORY, Where, is_session_id
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder, is_keyed
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.head_tail import HeadTail

FIRST = 1
"""The version of a file's backup when the client began to track it."""

UNKNOWN = "the client kept no copy of it from before its first edit"


def plan(history: FileHistory, aimed: Aim, where: Where) -> FilesPlan:
    """What takes the files back to a prompt. CantRestore where the project's folder is not sure or can't be opened."""
    session = history.session
    if not is_session_id(session.session_id):  # it becomes the name of a folder
        raise CantRestore(f"{session.path} has no session id, so no backup belongs to it", "Name another session.")
    root = ProjectRoot.of(_home(session, where), where)
    store = _Store(root, StoredContent(os.path.join(where.config, FILE_HISTORY), (session.session_id,)))
    return decide(session.session_id, root, store.wanted(history, aimed))


def _home(session: SessionFile, where: Where) -> str:
    """The session's own folder: the one that its transcript is kept for, or the recorded one if the user stands there.

    CantRestore for any other: transcripts are moved, and another project may be by now where theirs was.
    """
    glance = HeadTail(session.path)
    home, kept = home_folder(glance, where), os.path.dirname(session.path)
    if os.path.isabs(home) and (is_keyed(home, os.path.basename(kept)) or (glance.cwd and _is_here(home))):
        return home
    if not os.path.isabs(glance.cwd):
        raise CantRestore(
            f"{session.session_id} does not say which folder it belongs to", "No file of it can be put back."
        )
    raise CantRestore(
        f"{session.session_id} worked in {plain_line(glance.cwd)}, but its transcript lies in {plain_line(kept)}, "
        "which is not kept for that folder",
        "Run the command in the folder that its files are in, not in one below it; if the project moved, make a "
        f"session that is at home there: resume-hooks fork {session.session_id} --home FOLDER.",
    )


def _is_here(folder: str) -> bool:
    try:
        return os.path.samefile(folder, os.curdir)
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class _Store:
    """Where the backups of a session lie."""

    root: ProjectRoot
    folder: StoredContent

    def wanted(self, history: FileHistory, aimed: Aim) -> Iterator[WantedFile]:
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

    def _wanted(self, place: ProjectPath, backup: Backup | None, expected: Expected | None) -> WantedFile:
        if backup is None or backup.name == "":
            return WantedFile(place, why=UNKNOWN if backup is None else "its backup has no name that a client gives")
        return WantedFile(place, self._source(backup), expected=expected, folder=backup.folder)

    def _expected(self, last: tuple[int, Backup] | None, edit: Edit | None) -> Expected | None:
        """What the session last knew of a file: by its last backup, or by an edit since."""
        if edit is not None and (last is None or edit.line > last[0]):
            return Expected(edit.digest) if edit.digest else None
        return Expected(source=self._source(last[1])) if last is not None and last[1].name != "" else None

    def _source(self, backup: Backup) -> StoredContent | None:
        """The file that holds a backup; None where there was no file."""
        if backup.name is None:
            return None
        return StoredContent(self.folder.root, (*self.folder.parts, backup.name))


class _Tracked:
    """The tracked files by what they are called below the project's root, however a record calls them."""

    def __init__(self, root: ProjectRoot, history: FileHistory) -> None:
        self._root = root
        self._names: dict[str, str] = {}
        self.places: dict[str, ProjectPath] = {}
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
