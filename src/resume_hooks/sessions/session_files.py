"""Find the session files on this machine and the latest session of a folder.

This module also defines the protocol of session stores. A session file is a regular, non-empty file
named ``<uuid>.jsonl``. All other files in a project folder are ignored.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from resume_hooks import paths
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.paths import (
    MAX_PROJECT_KEY_CHARACTERS,
    Where,
    is_session_file,
    is_session_id,
    project_folders,
    project_key,
    session_id_from_path,
)
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import SharedFile
from resume_hooks.transcripts.records import (
    MESSAGE_KINDS,
    get_kind,
    parse_record,
    reject_codex_rollout,
)

# Maximum number of bytes to search for a session id in a file whose name is not an id.
MAX_SEARCHED_BYTES = 8 * 1024 * 1024
DEFAULT_AGENT = "claude"  # the agent of a session unless another agent is given: Claude Code


class SessionFile(NamedTuple):
    """A session's file.

    ``mtime`` is in seconds since the epoch, and ``size`` is in bytes. ``agent`` is the name of the
    session's agent. If ``path`` is a copy in the common record format, ``source_path`` is the path of
    the agent's own file.
    """

    session_id: str
    path: str
    mtime: float
    size: int
    agent: str = DEFAULT_AGENT
    source_path: str = ""

    @property
    def file(self) -> str | SharedFile:
        """The file from which the transcript is read."""
        return self.path

    @property
    def original_path(self) -> str:
        """The path of the agent's own file."""
        return self.source_path or self.path


def sessions_in_project_folder(folder: str, prefix: str = "") -> list[SessionFile]:
    """Return the sessions in a project folder whose ids begin with ``prefix``, newest first.

    The result is empty if the folder can't be read.
    """
    try:
        return sort_newest_first(_scan_session_files(folder, prefix))
    except OSError:
        return []


def sessions_of_directory(cwd: str, where: Where) -> list[SessionFile]:
    """Return the sessions in the project folders of a working directory, newest first.

    Some of them may belong to another directory whose project folder has the same name (see
    ``belongs_to_folder``).
    """
    return sort_newest_first(
        session
        for folder in project_folders(cwd, where)
        for session in sessions_in_project_folder(folder)
    )


def all_sessions(where: Where, prefix: str = "") -> list[SessionFile]:
    """Return the sessions of all projects whose ids begin with ``prefix``, newest first."""
    return sort_newest_first(
        session
        for folder in paths.all_project_folders(where)
        for session in sessions_in_project_folder(folder, prefix)
    )


def known_ids(where: Where) -> set[str]:
    """Return the ids of all sessions in the project folders, without opening any file."""
    ids = set()
    for folder in paths.all_project_folders(where):
        with contextlib.suppress(OSError):
            ids |= {
                session_id
                for name in os.listdir(folder)
                if (session_id := session_id_from_path(name))
            }
    return ids


def unlistable_folders(where: Where) -> list[str]:
    """Return the project folders that can't be listed or entered, sorted.

    If their parent folder can't be listed, return only the parent folder.
    """
    home = where.projects
    if not _is_accessible(os.listdir, home):
        return [home]
    folders = []
    for folder in paths.all_project_folders(where):
        if not _is_accessible(_stat_first_entry, folder):
            folders.append(folder)
    return folders


def linked_projects(where: Where, session_id: str = "") -> list[str]:
    """Return the project folders that are symbolic links, sorted.

    With ``session_id``, instead return the files of this session that are symbolic links or are in
    project folders that are symbolic links.
    """
    try:
        with os.scandir(where.projects) as entries:
            folders = sorted(
                entry.path for entry in entries if entry.is_symlink() and entry.is_dir()
            )
    except OSError:
        return []
    if not session_id:
        return folders
    name = f"{session_id}{paths.TRANSCRIPT_SUFFIX}"
    linked_files = [os.path.join(folder, name) for folder in folders]
    link_files = [
        path
        for folder in paths.all_project_folders(where)
        if os.path.islink(path := os.path.join(folder, name))
    ]
    return [path for path in (*linked_files, *link_files) if os.path.isfile(path)]


def hidden_folders_remedy(folders: Sequence[str], linked_paths: Sequence[str] = ()) -> str:
    """Return sentences about folders that were not searched, to append to a remedy.

    ``folders`` are those that can't be listed, and ``linked_paths`` are those that can only be
    reached through symbolic links.
    """
    remedy = ""
    if folders:
        remedy = (
            " It may be in an unreadable folder: check the permissions of "
            f"{folders[0]}{_describe_more_paths(folders)}."
        )
    if linked_paths:
        return f"{remedy} {linked_paths_remedy(linked_paths)}"
    return remedy


def linked_paths_remedy(linked_paths: Sequence[str]) -> str:
    """Return a sentence that tells the user what to do about paths behind symbolic links."""
    verb = "are" if len(linked_paths) > 1 else "is"
    return (
        f"{linked_paths[0]}{_describe_more_paths(linked_paths)} {verb} behind a symbolic link, and links are not "
        "followed. Give the path of the session's file, or put the folder itself in place of the link."
    )


def _describe_more_paths(paths: Sequence[str]) -> str:
    if len(paths) > 1:
        return f" and {len(paths) - 1:,} more"
    return ""


def belongs_to_folder(path: str, cwd: str) -> bool:
    """Check whether a session belongs to ``cwd``, according to the folders in its records.

    Another directory may have a project folder with the same name.
    """
    with contextlib.suppress(
        SessionNotFound
    ):  # The file may have been deleted since it was listed.
        return ends_belong_to_folder(HeadTail(path), cwd)
    return False


def ends_belong_to_folder(ends: HeadTail, cwd: str) -> bool:
    """Check whether a session belongs to ``cwd``, given the beginning and the end of its file."""
    key = ends.project[:MAX_PROJECT_KEY_CHARACTERS]
    matching_folders = []
    for folder in ends.folders:
        if project_key(folder)[:MAX_PROJECT_KEY_CHARACTERS] == key:
            matching_folders.append(folder)
    return not matching_folders or paths.canonical_path(cwd) in {
        paths.canonical_path(folder) for folder in matching_folders
    }


def session_file(path: str) -> SessionFile:
    """Return the session that a file contains, whatever the file's name is.

    The session's id is taken from the file's name or from its records. Raise SessionNotFound if the
    path can't be read, and NotATranscript if the file is not a transcript.
    """
    try:
        status = os.stat(path)
        if not os.path.isfile(path):
            raise SessionNotFound(f"{path} is not a file", "Give the path of a .jsonl file.")
        session_id = session_id_from_path(path) or _session_id_in_records(path)
    except OSError as error:
        raise SessionNotFound(
            f"{path} can't be read: {error.strerror}", "Check the path."
        ) from error
    except ValueError as error:  # The path contains a NUL character or an unpaired surrogate.
        raise SessionNotFound(f"{path!r} is not a path: {error}", "Check the path.") from error
    return SessionFile(session_id, os.path.abspath(path), status.st_mtime, status.st_size)


def latest_session(
    cwd: str, where: Where, *, skip_count: int = 0, excluded_id: str = ""
) -> SessionFile:
    """Return the latest session of a working directory that has a conversation.

    Sub-agents, headless runs, children that were never continued, and the session ``excluded_id``
    are ignored. ``skip_count`` is the number of sessions to skip, beginning with the latest one.
    Raise SessionNotFound if there is no such session.
    """
    skipped_count = 0
    for session in sessions_of_directory(cwd, where):
        if (
            session.session_id != excluded_id
            and _has_conversation(session)
            and belongs_to_folder(session.path, cwd)
        ):
            if skipped_count == skip_count:
                return session
            skipped_count += 1
    remedy = hidden_folders_remedy(unlistable_folders(where), linked_projects(where))
    if skipped_count == 1:
        count = "is only 1 session"
    else:
        count = f"are only {skipped_count} sessions"
    if skipped_count:
        message = f"There {count} in {cwd} to count back from"
    else:
        message = f"No session of {cwd} yet"
    raise SessionNotFound(
        message,
        f"Name a session by id, title or path, or change to the folder in which it was started.{remedy}",
    )


def can_client_resume(session: SessionFile, where: Where) -> bool:
    """Check whether the client can resume a session by its id.

    The session's file must be in a project folder, and its name must be the session's id.
    """
    folder = os.path.dirname(session.path)
    return is_session_file(session.path) and os.path.dirname(folder) == where.projects


def _scan_session_files(folder: str, prefix: str = "") -> list[SessionFile]:
    sessions = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                session_id = session_id_from_path(entry.name)
            else:
                session_id = None
            if session_id is None or not entry.is_file(follow_symlinks=False):
                continue
            # The file may have been deleted since it was listed.
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if status.st_size:
                    sessions.append(
                        SessionFile(session_id, entry.path, status.st_mtime, status.st_size)
                    )
    return sessions


def _stat_first_entry(folder: str) -> None:
    """Read the status of one entry of a folder. Raise OSError if the folder can't be entered."""
    with os.scandir(folder) as entries:
        for entry in islice(entries, 1):
            entry.stat(follow_symlinks=False)


def _is_accessible(read_folder: Callable[[str], object], folder: str) -> bool:
    """Check whether ``read_folder`` can read a folder.

    A missing folder counts as readable.
    """
    try:
        read_folder(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return True


def sort_newest_first(sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """Sort sessions by their last write, newest first."""
    return sorted(sessions, key=lambda session: session.mtime, reverse=True)


def _has_conversation(session: SessionFile) -> bool:
    with contextlib.suppress(
        SessionNotFound
    ):  # The file may have been deleted since it was listed.
        ends = HeadTail(session.path)
        return (
            ends.was_continued and not ends.is_sidechain and not ends.entrypoint.startswith("sdk")
        )
    return False


def _session_id_in_records(path: str) -> str:
    """Return the session id in a file's records.

    Return the file's name without its suffix if the records have no valid id. Raise NotATranscript
    if there are no records.
    """
    with open(path, "rb") as stream:
        head = stream.read(MAX_SEARCHED_BYTES)
    for body in head.split(b"\n"):
        record = parse_record(body)
        if record is None:
            continue
        reject_codex_rollout(record, path)
        if is_session_id(record.get("sessionId")):
            return str(record["sessionId"])
        if get_kind(record) in MESSAGE_KINDS:
            return os.path.splitext(os.path.basename(path))[0]
    raise NotATranscript(
        f"{path} has no record of a session", "Give the path of a Claude Code transcript."
    )


class SessionStore(Protocol):
    """An agent's sessions, grouped by project.

    Project names and session ids are the same as the keys of the ``SessionStore`` in the official
    SDK.
    """

    def projects(self) -> list[str]:
        """Return the names of the existing projects, sorted."""

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """Return the sessions of these projects, newest first. None means all projects.

        Sessions whose ids do not begin with ``prefix`` are left out.
        """

    def find(self, session_id: str) -> SessionFile | None:
        """Return the newest copy of a session in any project, or None if the id is unknown."""

    def unreadable_folders(self) -> list[str]:
        """Return the existing folders that can't be read."""
        return []

    def linked_paths(self, session_id: str = "") -> list[str]:  # noqa: ARG002 - for those who follow no link
        """Return the project folders that are symbolic links.

        With ``session_id``, return instead the files of this session whose paths contain symbolic
        links. A store does not follow symbolic links.
        """
        return []


class LocalStore:
    """The sessions in the project folders of a config home."""

    def __init__(self, where: Where) -> None:
        self._where = where

    def projects(self) -> list[str]:
        """Return the names of the project folders that are not symbolic links."""
        projects = []
        for folder in paths.all_project_folders(self._where):
            projects.append(os.path.basename(folder))
        return projects

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """Return the session files of these project folders, newest first. None means all folders.

        Sessions whose ids do not begin with ``prefix`` are left out.
        """
        if projects is None:
            return all_sessions(self._where, prefix)
        projects_folder = self._where.projects
        folders = (
            folder
            for name in projects
            if not os.path.islink(folder := os.path.join(projects_folder, name))
        )
        return sort_newest_first(
            session for folder in folders for session in sessions_in_project_folder(folder, prefix)
        )

    def find(self, session_id: str) -> SessionFile | None:
        """Return the newest file of the session with this id, or None."""
        path = paths.find_session(session_id, self._where)
        if path is None:
            return None
        return session_file(path)

    def unreadable_folders(self) -> list[str]:
        """Return the project folders that can't be listed or entered."""
        return unlistable_folders(self._where)

    def linked_paths(self, session_id: str = "") -> list[str]:
        """Return the project folders that are symbolic links.

        With ``session_id``, return instead the files of this session that are behind such links.
        """
        return linked_projects(self._where, session_id)
