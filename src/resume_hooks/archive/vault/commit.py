"""Change archived sessions. Every change to an archived session goes through this module.

Under a session's lock, a change writes files, then writes the manifest, and then removes unused
files. If the command is killed at any point, the manifest lists only complete files. The next
change removes the files that no manifest lists.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator

from resume_hooks.errors import ResumeHooksError, SessionNotFound, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import (
    MANIFEST_NAME,
    TRASH_FOLDER,
    archive_folder,
    find_archive_link,
    path_in_archive,
    unpacked_folder,
    vault_folder,
)
from resume_hooks.sessions.archived.manifest import (
    ArchivedSession,
    encode_manifest,
    read_manifest,
    unreadable_folders,
    unreadable_reason,
)
from resume_hooks.sessions.archived.unpack import PACK_SUFFIX
from resume_hooks.sessions.expiry import MAX_CLOCK_AHEAD_SECONDS
from resume_hooks.storage import locks, removal, state_file
from resume_hooks.storage.locks import lock_folder
from resume_hooks.storage.state_file import sync_folder

MAX_LOCK_WAIT_SECONDS = 10.0
"""The number of seconds to wait while another command works on the same session."""

_BUSY_MESSAGE = "Another command is using this session in the vault"
_VAULT_FAILURE_MESSAGE = "The vault can't be used:"
_PACK_NAME_PATTERN = re.compile(r"pack-([0-9]+)(?:\.[a-z0-9]+)*")


@contextlib.contextmanager
def lock_archived(
    session_id: str, where: Where, max_wait_seconds: float = MAX_LOCK_WAIT_SECONDS
) -> Iterator[None]:
    """Lock a session's archived copy during the block.

    Unused packs are removed before and after the block. Raises SessionInUse if another command keeps
    the lock for more than ``max_wait_seconds``. Raises WriteFailed if the vault cannot be written,
    is a symbolic link, or contains a manifest of this session that must not be replaced.
    """
    if link := find_archive_link(session_id, where):
        raise WriteFailed(
            f"{link} is a symbolic link, so it was left alone", "Replace the link with a folder."
        )
    if reason := unreadable_reason(session_id, where):
        raise WriteFailed(reason, "Update resume-hooks, or move that folder somewhere else.")
    folder = archive_folder(session_id, where)
    with lock_folder(folder, where, _BUSY_MESSAGE, _VAULT_FAILURE_MESSAGE, max_wait_seconds):
        remove_unused_packs(folder, session_id, where)
        try:
            yield
        finally:
            remove_unused_packs(folder, session_id, where)


@contextlib.contextmanager
def lock_trash(where: Where, *, wait_for_lock: bool = True) -> Iterator[None]:
    """Lock the trash during the block.

    If ``wait_for_lock``, wait for up to ``MAX_LOCK_WAIT_SECONDS`` seconds. This is enough for
    another command to finish a pack. Raises SessionInUse if another command keeps the lock, and
    WriteFailed if the trash cannot be locked for another reason.
    """
    trash_folder = os.path.join(where.state, TRASH_FOLDER)
    if os.path.islink(trash_folder):
        raise WriteFailed(
            f"{trash_folder} is a symbolic link, so it was left alone",
            "Replace the link with a folder.",
        )
    max_wait_seconds = MAX_LOCK_WAIT_SECONDS if wait_for_lock else 0.0
    with lock_folder(
        trash_folder,
        where,
        "Another command is using the trash",
        "The trash can't be used:",
        max_wait_seconds,
    ):
        yield


@contextlib.contextmanager
def lock_for_change(
    archived: ArchivedSession, where: Where, change_participle: str
) -> Iterator[ArchivedSession]:
    """Lock an archived session during the block, and yield its current manifest.

    Unused files are removed after the block. Raises the errors of ``lock_archived``, and
    SessionNotFound if the session is no longer in the vault. If the block raises an OSError, it is
    converted to WriteFailed with a message such as "... could not be packed". The last word is
    ``change_participle``.
    """
    with lock_trash(where) if archived.deleted_at else lock_archived(archived.session_id, where):
        current = read_manifest(archived.folder, archived.session_id)
        if current is None:
            raise SessionNotFound(
                f"{archived.session_id} is no longer in the vault", "Another command was faster."
            )
        try:
            yield current
        except OSError as error:
            raise WriteFailed(
                f"{archived.session_id} could not be {change_participle}: {describe_cause(error)}",
                (
                    "The earlier copies are unchanged. Check the free space. To see what is wrong: "
                    "resume-hooks archive --verify"
                ),
            ) from error
        finally:
            remove_unused_packs(archived.folder, archived.session_id, where)


def describe_cause(error: OSError, known_path: str = "") -> str:
    """Return the system's message for a failure, preceded by the path unless the path is ``known_path``."""
    if error.filename and error.filename != known_path:
        path_prefix = f"{error.filename}: "
    else:
        path_prefix = ""
    return f"{path_prefix}{error.strerror or error}"


def reset_future_mtime(archived: ArchivedSession) -> None:
    """Set a manifest's modification time to now if it is in the future.

    Other commands compare this time with the times of the client's files.
    """
    path = os.path.join(archived.folder, MANIFEST_NAME)
    with contextlib.suppress(OSError):
        if os.lstat(path).st_mtime > time.time() + MAX_CLOCK_AHEAD_SECONDS:
            os.utime(path, follow_symlinks=False)


def commit_manifest(archived: ArchivedSession, where: Where) -> ArchivedSession:
    """Write a manifest, and return it with the size of its packs.

    Files that the manifest no longer lists are not removed yet. Raises WriteFailed if the manifest
    cannot be written.
    """
    stored_bytes = sum(part.size for part in archived.parts if not part.where)
    for name in {part.where for part in archived.all_parts if part.where}:
        with contextlib.suppress(OSError):
            stored_bytes += os.lstat(os.path.join(archived.folder, name)).st_size
    manifest = archived._replace(stored=stored_bytes)
    state_file.replace_state_file(
        os.path.join(archived.folder, MANIFEST_NAME), encode_manifest(manifest), where
    )
    return manifest


def remove_archived(archived: ArchivedSession, where: Where) -> None:
    """Remove a session's archived copy, and the files that were unpacked from it.

    The client's own files stay. Raises WriteFailed if a file cannot be removed, and SessionInUse if
    another command keeps the session locked.
    """
    with lock_archived(archived.session_id, where):
        try:
            if os.path.lexists(manifest := os.path.join(archived.folder, MANIFEST_NAME)):
                removal.remove_file(manifest, where.state)
                sync_folder(archived.folder)
            for name in os.listdir(archived.folder):
                # The lock file is removed together with the folder when the lock is released.
                if name != locks.LOCK_FILE_NAME:
                    removal.remove_permanently(os.path.join(archived.folder, name), where.state)
        except OSError as error:
            raise WriteFailed(
                (
                    f"{error.filename or archived.folder} could not be removed: "
                    f"{error.strerror or error}"
                ),
                "Check the permissions, then run the command again.",
            ) from error
        removal.remove_if_possible(
            os.path.join(unpacked_folder(where), archived.session_id), where.state
        )


def remove_unused_packs(folder: str, session_id: str, where: Where) -> None:
    """Remove the packs that a folder's manifest does not list.

    The folder of a deleted session may also contain unpacked files. Remove an unpacked file if it
    is also in a pack that the manifest lists. The caller must have the lock. If the manifest is
    unreadable, no file is removed.
    """
    archived = read_manifest(folder, session_id)
    if archived is None and os.path.lexists(os.path.join(folder, MANIFEST_NAME)):
        return
    if archived:
        packs = {part.where for part in archived.all_parts}
    else:
        packs = set()
    leftovers = set()
    for name in _list_pack_names(folder):
        if name not in packs:
            leftovers.add(name)
    if archived and archived.deleted_at:
        for part in archived.parts:
            if part.where:
                leftovers.add(path_in_archive(part.place).split("/")[0])
    for name in leftovers:
        # If a file cannot be removed, the next change tries again.
        with contextlib.suppress(OSError):
            removal.remove_permanently(os.path.join(folder, name), where.state)


def remove_leftover_files(where: Where) -> None:
    """Remove files that interrupted commands left in those folders of the vault that have no manifest.

    A folder that is locked, or whose manifest is unreadable, is skipped.
    """
    for path in unreadable_folders(where):
        session_id = os.path.basename(path)
        if path != vault_folder(where) and not os.path.lexists(os.path.join(path, MANIFEST_NAME)):
            with contextlib.suppress(ResumeHooksError), lock_archived(session_id, where, 0):
                pass


def choose_pack_name(folder: str, archived: ArchivedSession | None) -> str:
    """Return a name for a new pack. No pack in the session's folder has had this name before."""
    if archived:
        named_packs = [part.where for part in archived.all_parts]
    else:
        named_packs = []
    numbers = []
    for name in (*_list_pack_names(folder), *named_packs):
        if pack_number := _PACK_NAME_PATTERN.fullmatch(name):
            numbers.append(int(pack_number[1]))
    return f"pack-{max(numbers, default=0) + 1}{PACK_SUFFIX}"


def _list_pack_names(folder: str) -> list[str]:
    """Return the names of the packs in a session's folder."""
    try:
        names = []
        for name in os.listdir(folder):
            if _PACK_NAME_PATTERN.fullmatch(name):
                names.append(name)
        return names
    except OSError:
        return []
