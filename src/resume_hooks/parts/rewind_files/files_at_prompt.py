"""Files as they were at a prompt: which backup each of them had then, and where that lies.

As the client does it: a file that was first tracked later is as it was before its first edit, and backups lie under
the session's own id alone. A child got its own at birth; in its parent's folder the same name may be another content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from resume_hooks.errors import CantRestore
from resume_hooks.parts.rewind_files.history import Backup, FileHistory
from resume_hooks.parts.rewind_files.plan import Expected, FilesPlan, StoredContent, WantedFile, decide
from resume_hooks.parts.rewind_files.safe_paths import ProjectRoot
from resume_hooks.parts.rewind_files.target import Aim
from resume_hooks.paths import Where, is_session_id
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
    backups = StoredContent(where.file_history, (session.session_id,))
    return decide(session.session_id, root, _wanted(history, aimed, root, backups))


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


def _wanted(history: FileHistory, aimed: Aim, root: ProjectRoot, folder: StoredContent) -> Iterator[WantedFile]:
    """Each file that was tracked at the prompt, or later, as it was then; the backups lie in a ``folder``.

    A file goes by what it is called below the project's root, however a record calls it.
    """
    called = {path: root.place(path) for path in {*history.edits}.union(*(state.backups for state in history.states))}
    places = {place.path: place for place in called.values()}
    edits = {called[path].path: edit for path, edit in history.edits.items()}
    states = {
        state.message: {called[path].path: backup for path, backup in state.backups.items()} for state in history.states
    }
    last = {path: (state.line, backup) for state in history.states for path, backup in states[state.message].items()}
    own, first = states[aimed.state.message], dict[str, Backup]()
    paths: set[str] = set()
    for state in aimed.states:
        for path, backup in states[state.message].items():
            paths.add(path)
            if backup.version == FIRST:
                first.setdefault(path, backup)

    def source(backup: Backup) -> StoredContent | None:
        """The file that holds a backup; None where there was no file."""
        return None if backup.name is None else StoredContent(folder.root, (*folder.parts, backup.name))

    for path in sorted(paths):
        place, found, edit = places[path], own.get(path) or first.get(path), edits.get(path)
        if found is None or found.name == "":
            yield WantedFile(place, why=UNKNOWN if found is None else "its backup has no name that a client gives")
            continue
        line, newest = last[path]
        expected = None  # what the session last knew of the file: by its last backup, or by an edit since
        if edit is not None and edit.line > line:
            expected = Expected(edit.digest) if edit.digest else None
        elif newest.name != "":
            expected = Expected(source=source(newest))
        yield WantedFile(place, source(found), expected=expected, folder=found.folder)
