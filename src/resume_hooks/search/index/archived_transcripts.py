"""Find the sessions that only the vault contains, so that they are indexed like other sessions.

They are listed with their paths in the client's folder, and their texts are read from the archived
copies. If a file was indexed before it was moved to the vault, its path, size and time have not
changed, so it is not read again. Archived files have no inode. In place of the inode, a negative
number identifies the version of the session's manifest.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Collection, Iterable, Iterator

from resume_hooks.errors import NotATranscript, SessionNotFound, WriteFailed
from resume_hooks.paths import TRANSCRIPT_SUFFIX, Where
from resume_hooks.sessions.agents.registry import belongs_to_other_agent, readable_session
from resume_hooks.sessions.archived.layout import (
    MANIFEST_NAME,
    archive_folder,
    path_in_archive,
    path_in_config_home,
    unpacked_folder,
)
from resume_hooks.sessions.archived.manifest import (
    ArchivedFile,
    ArchivedSession,
    archived_ids,
    find_archived,
)
from resume_hooks.sessions.archived.sessions import open_archived
from resume_hooks.sessions.transcript_files import SUBAGENTS_FOLDER, TranscriptFile, subagent_name
from resume_hooks.storage import removal
from resume_hooks.system.text import replace_surrogates


class ArchivedSessions:
    """The sessions that only the vault contains.

    ``states`` maps the id of each session to a number that identifies the version of its manifest.
    The number is computed without reading the manifest.
    """

    def __init__(self, where: Where, files: Iterable[TranscriptFile]) -> None:
        self._where = where
        present_ids = set()
        for file in files:
            if not file.agent_name:
                present_ids.add(file.session_id)
        deleted_ids = (
            session_id for session_id in archived_ids(where) if session_id not in present_ids
        )
        self.states = {
            session_id: state
            for session_id in deleted_ids
            if (state := _manifest_version_number(session_id, where))
        }

    def keep_only_folders(self, folders: Collection[str]) -> None:
        """Remove the sessions that are not in these project folders."""
        for session_id in tuple(self.states):
            archived = find_archived(session_id, self._where)
            if archived is None or archived.project not in folders:
                del self.states[session_id]

    def files_of_session(self, session_id: str) -> list[TranscriptFile]:
        """Return the transcripts of an archived session and of its sub-agents."""
        archived = find_archived(session_id, self._where)
        state = self.states[session_id]
        if archived:
            rows = []
            for part in archived.parts:
                rows.append(_make_transcript_file(archived, part, state, self._where))
        else:
            rows = []
        return [row for row in rows if row and row.size]


class TranscriptPaths:
    """Finds the paths at which indexed files can be read."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._folders: dict[str, str | None] = {}

    def readable_path(self, path: str, session_id: str) -> str:
        """Return the file's own path if it exists, or else the path of an archived or converted copy."""
        if belongs_to_other_agent(path, self._where):
            return self._path_of_copy(path)
        if os.path.lexists(path):
            return path
        if session_id not in self._folders:
            archived = find_archived(session_id, self._where)
            self._folders[session_id] = _archive_folder(archived, self._where) if archived else None
        folder = self._folders[session_id]
        if folder:
            return path_of_copy_in_folder(folder, path, session_id)
        return path

    def _path_of_copy(self, path: str) -> str:
        if path not in self._folders:
            with contextlib.suppress(SessionNotFound, NotATranscript, WriteFailed):
                self._folders[path] = readable_session(path, self._where).path
        return self._folders.get(path) or path


@contextlib.contextmanager
def temporarily_unpacked_folder(archived: ArchivedSession, where: Where) -> Iterator[str | None]:
    """Yield the folder with an archived session's transcript, or None if there is no readable copy.

    If the session had not been unpacked before the block, its unpacked files are deleted after the
    block. A caller can thus read many sessions one after the other without filling the disk.
    """
    session_folder = os.path.join(unpacked_folder(where), archived.session_id)
    was_unpacked = os.path.lexists(session_folder)
    folder = _archive_folder(archived, where)
    last_use_time = _last_use_time(folder)
    try:
        yield folder
    finally:
        # If the time has changed, another process has opened the folder and still needs it.
        if not was_unpacked and _last_use_time(folder) == last_use_time:
            removal.remove_if_possible(session_folder, where.state)


def _last_use_time(folder: str | None) -> int:
    """Return the time at which a folder of unpacked files was last used, or 0 if it does not exist."""
    try:
        if folder:
            return os.lstat(folder).st_mtime_ns
        return 0
    except OSError:
        return 0


def _manifest_version_number(session_id: str, where: Where) -> int:
    """Return a negative number that identifies a version of a manifest, or 0 if there is no manifest."""
    try:
        status = os.lstat(os.path.join(archive_folder(session_id, where), MANIFEST_NAME))
    except OSError:
        return 0
    stamp = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}".encode()
    return -1 - (zlib.crc32(stamp) << 28 ^ status.st_mtime_ns & 0xFFF_FFFF)


def _make_transcript_file(
    archived: ArchivedSession, part: ArchivedFile, manifest_version: int, where: Where
) -> TranscriptFile | None:
    """Return the index's entry for an archived file, or None if the file is not a transcript."""
    agent = subagent_name(part.place) or ""
    path = path_in_config_home(part.place, where)
    relative_path = path_in_archive(part.place)
    is_agent = bool(agent) and (
        os.sep not in relative_path
        or relative_path.startswith(f"{archived.session_id}/{SUBAGENTS_FOLDER}/")
    )
    if not (part == archived.transcript or is_agent) or not (
        path.isascii() or replace_surrogates(path) == path
    ):
        return None
    return TranscriptFile(
        path,
        archived.project,
        archived.session_id,
        agent,
        manifest_version,
        part.size,
        part.mtime_ns,
    )


def _archive_folder(archived: ArchivedSession, where: Where) -> str | None:
    try:
        return os.path.dirname(open_archived(archived, where).path)
    except (SessionNotFound, WriteFailed):
        return None


def path_of_copy_in_folder(folder: str, original_path: str, session_id: str) -> str:
    """Return the path that the copy of a session's file has in ``folder``.

    ``folder`` is the folder that contains the unpacked or converted transcript of the session.
    """
    name = os.path.basename(original_path)
    if name == f"{session_id}{TRANSCRIPT_SUFFIX}":
        return os.path.join(folder, name)
    _, is_in_session_folder, relative_path = original_path.rpartition(
        f"{os.sep}{session_id}{os.sep}"
    )
    if is_in_session_folder:
        return os.path.join(folder, session_id, relative_path)
    return os.path.join(folder, name)
