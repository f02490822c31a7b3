"""Manage the trash: the deleted sessions in our state folder, each with a manifest as in the vault.

The folder ``trash/<session id>/<time>/`` contains the session's own files in the client's layout,
until they are packed as in the vault. The folder gets this name only when it contains all files and
a manifest. The manifest is marked as complete only when the last original file has been unlinked,
so that an interrupted deletion can be undone. The format of version 0.2.0, in which a manifest
lists whole folders, can also be read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.archive.vault import commit, former_trash_format
from resume_hooks.archive.vault.packs import PackWriter
from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.paths import Where, is_session_id, list_subfolders, make_private_folder
from resume_hooks.sessions.archived.layout import (
    MAX_SESSION_FILES,
    REMOVED_FOLDER_SUFFIX,
    TRASH_FOLDER,
    unpacked_folder,
)
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession, read_manifest
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.storage import removal
from resume_hooks.storage.hard_links import hash_file, list_file_sizes
from resume_hooks.storage.state_file import sync_folder
from resume_hooks.system.text import replace_surrogates


class StrayFolder(NamedTuple):
    """A folder in the trash that does not contain a deleted session.

    If ``is_half_removed`` is true, a command was interrupted while it filled or removed the folder.
    If it is false, the folder has no readable manifest.
    """

    folder: str
    file_count: int
    size: int
    is_half_removed: bool


def create_trash_folder(session_id: str, instant: str, where: Where) -> str:
    """Create a private folder in the trash for a session that is deleted at the time ``instant``.

    Readers ignore the folder until ``REMOVED_FOLDER_SUFFIX`` is removed from its name. Raises OSError if
    the folder cannot be created.
    """
    folder = os.path.join(where.state, TRASH_FOLDER, session_id)
    make_private_folder(folder, where)
    new_path = os.path.join(folder, instant.replace(":", "-"))
    # If the same session is deleted twice within a millisecond, both deletions need the same
    # folder, so the second one fails.
    if os.path.lexists(new_path):
        raise FileExistsError(None, "Another command is deleting this session, too", new_path)
    os.mkdir(new_path + REMOVED_FOLDER_SUFFIX, 0o700)
    return new_path + REMOVED_FOLDER_SUFFIX


def remove_from_trash(folder: str, where: Where) -> None:
    """Permanently remove a folder of the trash with its contents.

    If an OSError is raised, the folder remains in the trash as a stray folder.
    """
    parent_folder, removed_path = (
        os.path.dirname(folder),
        folder if folder.endswith(REMOVED_FOLDER_SUFFIX) else folder + REMOVED_FOLDER_SUFFIX,
    )
    if removed_path != folder:  # Readers of the trash ignore a folder with the new name.
        os.rename(folder, removed_path)
        sync_folder(parent_folder)
    removal.remove_permanently(removed_path, where.state)
    removal.remove_if_possible(
        os.path.join(unpacked_folder(where), os.path.basename(parent_folder)), where.state
    )
    # The folder is not empty if the same session was deleted several times.
    with contextlib.suppress(OSError):
        removal.remove_empty_folder(parent_folder, where.state)


def list_trashed_sessions(where: Where) -> list[ArchivedSession]:
    """Return every deleted session with a readable manifest, the last deleted first."""
    deleted_sessions = (item for item in _read_trash(where) if isinstance(item, ArchivedSession))
    return sorted(deleted_sessions, key=lambda entry: entry.deleted_at, reverse=True)


def list_stray_folders(where: Where) -> list[StrayFolder]:
    """Return every folder in the trash that does not contain a deleted session."""
    return [each for each in _read_trash(where) if isinstance(each, StrayFolder)]


def read_trash_entry(folder: str, where: Where) -> ArchivedSession | None:
    """Return the deleted session in a folder of the trash, or None if the folder contains no session."""
    session_id = os.path.basename(os.path.dirname(folder))
    if folder.endswith(REMOVED_FOLDER_SUFFIX) or not is_session_id(session_id):
        return None
    with contextlib.suppress(OSError):
        entry = read_manifest(folder, session_id) or former_trash_format.read_former_entry(
            folder, where
        )
        if entry and entry.deleted_at:
            return entry
        return None
    return None


def _read_trash(where: Where) -> Iterator[ArchivedSession | StrayFolder]:
    for path in list_subfolders(os.path.join(where.state, TRASH_FOLDER)):
        for folder in list_subfolders(path) if is_session_id(os.path.basename(path)) else [path]:
            if folder != path and (entry := read_trash_entry(folder, where)):
                yield entry
                continue
            gone = folder != path and (
                folder.endswith(REMOVED_FOLDER_SUFFIX)
                or former_trash_format.was_interrupted_before_first_move(folder)
            )
            sizes = list(list_file_sizes(folder))
            if gone or sizes:
                yield StrayFolder(folder, len(sizes), sum(sizes), gone)


def stat_and_hash_trashed_files(entry: ArchivedSession) -> ArchivedSession:
    """Return a deleted session with the current size, time and hash of each of its files in the trash.

    Raises OSError if a file cannot be read.
    """
    return entry._replace(
        parts=tuple(
            part if part.where else _stat_and_hash_file(entry, part) for part in entry.parts
        )
    )


def _stat_and_hash_file(entry: ArchivedSession, archived_file: ArchivedFile) -> ArchivedFile:
    trashed_path = stored_path(entry.folder, archived_file)
    status, sha256 = os.lstat(trashed_path), hash_file(trashed_path)
    return archived_file._replace(
        size=status.st_size, seen=status.st_size, mtime_ns=status.st_mtime_ns, sha256=sha256
    )


def pack_deleted_sessions(where: Where, is_time_up: Callable[[], bool]) -> None:
    """Pack deleted sessions until the time is up."""
    for entry in list_trashed_sessions(where):
        if entry.complete and not is_time_up():
            # A session that cannot be packed stays unpacked.
            with contextlib.suppress(OSError, ResumeHooksError):
                _pack_deleted_session(entry, where)


def upgrade_manifest(entry: ArchivedSession, where: Where) -> None:
    """Write a manifest of the current format for a session that was deleted with version 0.2.0.

    Raises OSError if a file in the trash cannot be read, WriteFailed if the manifest cannot be
    written, and SessionInUse if another command keeps the trash locked.
    """
    if entry.deleted_at and read_manifest(entry.folder, entry.session_id) is None:
        with commit.lock_trash(where):
            if former_entry := former_trash_format.read_former_entry(entry.folder, where):
                if len(former_entry.parts) > MAX_SESSION_FILES or any(
                    part.place != replace_surrogates(part.place) for part in former_entry.parts
                ):
                    raise WriteFailed(
                        (
                            f"{entry.folder} has too many files, or a file name that is not UTF-8, "
                            "so its files can't be listed in a manifest"
                        ),
                        f"Restore it first: resume-hooks restore {entry.locator}",
                    )
                commit.commit_manifest(stat_and_hash_trashed_files(former_entry), where)


def _pack_deleted_session(entry: ArchivedSession, where: Where) -> None:
    upgrade_manifest(entry, where)
    try:
        if not entry.transcript.where:
            entry = read_trash_entry(entry.folder, where) or entry
            measured_entry = stat_and_hash_trashed_files(entry)
            with PackWriter(entry.folder, commit.choose_pack_name(entry.folder, None)) as writer:
                placed_files = writer.copy_files(list(measured_entry.parts))
                writer.finish_pack()
            packed_entry = measured_entry._replace(
                parts=tuple(placed_files[part] for part in measured_entry.parts)
            )
            with commit.lock_for_change(entry, where, "packed") as current_entry:
                if (
                    current_entry == entry
                    and stat_and_hash_trashed_files(current_entry) == measured_entry
                ):
                    commit.commit_manifest(packed_entry, where)
    finally:
        with commit.lock_for_change(entry, where, "cleared"):
            pass  # Entering the block removes files that this or an earlier run left unused.
