"""The one way in which the vault changes: under a session's lock, files first, then the manifest, then what it left.

Killed at any point, the manifest names files that are whole, and what it does not name is removed
the next time.
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
    MANIFEST,
    TRASH,
    archive_folder,
    is_link,
    place_beside,
    unpacked_folder,
    vault_folder,
)
from resume_hooks.sessions.archived.manifest import (
    ArchivedSession,
    read_manifest,
    to_bytes,
    unreadable,
    why_unreadable,
)
from resume_hooks.sessions.archived.unpack import ENDING
from resume_hooks.sessions.expiry import AHEAD
from resume_hooks.storage import locks, removal, state_file
from resume_hooks.storage.locks import lock_folder
from resume_hooks.storage.state_file import sync_folder

PATIENCE = 10.0
"""Seconds that another command at the same session is waited for."""

_BUSY = "Another command is at this session in the vault"
_FAILED = "The vault can't be used:"
_OURS = re.compile(r"pack-([0-9]+)(?:\.[a-z0-9]+)*")


@contextlib.contextmanager
def lock_archived(session_id: str, where: Where, patience: float = PATIENCE) -> Iterator[None]:
    """While the block runs no other command changes what is archived of a session.

    Before and after it is swept.

    SessionOpen where another one does for longer than ``patience`` seconds. WriteFailed where the
    vault can't be written, is a symbolic link, or holds a manifest of this session that is not ours
    to replace.
    """
    if link := is_link(session_id, where):
        raise WriteFailed(
            f"{link} is a symbolic link, so it was left alone", "Put a folder in its place."
        )
    if why := why_unreadable(session_id, where):
        raise WriteFailed(why, "Update this resume-hooks, or move that folder away.")
    folder = archive_folder(session_id, where)
    with lock_folder(folder, where, _BUSY, _FAILED, patience):
        sweep_packs(folder, session_id, where)
        try:
            yield
        finally:
            sweep_packs(folder, session_id, where)


@contextlib.contextmanager
def only_one_in_trash(where: Where, *, waiting: bool = True) -> Iterator[None]:
    """While the block runs no other command moves anything into or out of the trash.

    SessionOpen, WriteFailed.

    ``waiting``: one that packs it is done within ``PATIENCE``.
    """
    home = os.path.join(where.state, TRASH)
    if os.path.islink(home):
        raise WriteFailed(
            f"{home} is a symbolic link, so it was left alone", "Put a folder in its place."
        )
    patience = PATIENCE if waiting else 0.0
    with lock_folder(
        home, where, "Another command is at work in the trash", "The trash can't be used:", patience
    ):
        yield


@contextlib.contextmanager
def locked_for_change(
    archived: ArchivedSession, where: Where, done: str
) -> Iterator[ArchivedSession]:
    """While the block runs nobody else changes what is archived of a session, which is yielded as it is by now.

    What the block leaves that no manifest names is removed. Errors as of ``lock_archived``;
    SessionNotFound if it is gone; an OSError of the block becomes a WriteFailed that says that it
    could not be ``done``.
    """
    with (
        only_one_in_trash(where)
        if archived.deleted_at
        else lock_archived(archived.session_id, where)
    ):
        now = read_manifest(archived.folder, archived.session_id)
        if now is None:
            raise SessionNotFound(
                f"{archived.session_id} is no longer in the vault", "Another command was faster."
            )
        try:
            yield now
        except OSError as error:
            raise WriteFailed(
                f"{archived.session_id} could not be {done}: {describe_cause(error)}",
                (
                    "What was there before still is. Check free space; see what is wrong: "
                    "resume-hooks archive --verify"
                ),
            ) from error
        finally:
            sweep_packs(archived.folder, archived.session_id, where)


def describe_cause(error: OSError, told: str = "") -> str:
    """What the system says of a failure, with the path it is about unless that is ``told`` already."""
    if error.filename and error.filename != told:
        about = f"{error.filename}: "
    else:
        about = ""
    return f"{about}{error.strerror or error}"


def reset_future_time(archived: ArchivedSession) -> None:
    """Reset a manifest's time if it lies in the future.

    Other commands compare it with file times.
    """
    path = os.path.join(archived.folder, MANIFEST)
    with contextlib.suppress(OSError):
        if os.lstat(path).st_mtime > time.time() + AHEAD:
            os.utime(path, follow_symlinks=False)


def commit_manifest(archived: ArchivedSession, where: Where) -> ArchivedSession:
    """Make a manifest the one that counts; as it was written.

    What it no longer names is removed after. WriteFailed.
    """
    stored = sum(part.size for part in archived.parts if not part.where)
    for name in {part.where for part in archived.all_parts if part.where}:
        with contextlib.suppress(OSError):
            stored += os.lstat(os.path.join(archived.folder, name)).st_size
    whole = archived._replace(stored=stored)
    state_file.replace_state_file(os.path.join(archived.folder, MANIFEST), to_bytes(whole), where)
    return whole


def forget_archived(archived: ArchivedSession, where: Where) -> None:
    """Remove what is archived of a session, and what was unpacked from it.

    The client's own files stay.

    WriteFailed where something can't be removed, SessionOpen where another command is at it.
    """
    with lock_archived(archived.session_id, where):
        try:
            if os.path.lexists(manifest := os.path.join(archived.folder, MANIFEST)):
                removal.remove_file(manifest, where.state)
                sync_folder(archived.folder)
            for name in os.listdir(archived.folder):
                if name != locks.LOCK_NAME:  # it goes with the folder, when it is let go
                    removal.remove_for_good(os.path.join(archived.folder, name), where.state)
        except OSError as error:
            raise WriteFailed(
                (
                    f"{error.filename or archived.folder} could not be removed: "
                    f"{error.strerror or error}"
                ),
                "Check its permissions, then run it again.",
            ) from error
        removal.remove_if_possible(
            os.path.join(unpacked_folder(where), archived.session_id), where.state
        )


def sweep_packs(folder: str, session_id: str, where: Where) -> None:
    """Remove the packs in a folder that its manifest does not name, and the files of a delete once they are packed.

    Under its lock. Nothing goes where there is a manifest that can't be read.
    """
    archived = read_manifest(folder, session_id)
    if archived is None and os.path.lexists(os.path.join(folder, MANIFEST)):
        return
    if archived:
        packs = {part.where for part in archived.all_parts}
    else:
        packs = set()
    left = set()
    for name in _own_names(folder):
        if name not in packs:
            left.add(name)
    if archived and archived.deleted_at:
        for part in archived.parts:
            if part.where:
                left.add(place_beside(part.place).split("/")[0])
    for name in left:
        with contextlib.suppress(OSError):  # what can't be removed is tried again the next time
            removal.remove_for_good(os.path.join(folder, name), where.state)


def sweep_leftovers(where: Where) -> None:
    """Remove what is left, in folders of the vault without any manifest, of keeping or forgetting that was interrupted.

    Folders that another command is at, or that have a manifest which can't be read, are left alone.
    """
    for path in unreadable(where):
        session_id = os.path.basename(path)
        if path != vault_folder(where) and not os.path.lexists(os.path.join(path, MANIFEST)):
            with contextlib.suppress(ResumeHooksError), lock_archived(session_id, where, 0):
                pass


def next_name(folder: str, archived: ArchivedSession | None) -> str:
    """A name for a pack that nothing in a session's folder has, nor its manifest names."""
    if archived:
        named = [part.where for part in archived.all_parts]
    else:
        named = []
    numbers = []
    for name in (*_own_names(folder), *named):
        if found := _OURS.fullmatch(name):
            numbers.append(int(found[1]))
    return f"pack-{max(numbers, default=0) + 1}{ENDING}"


def _own_names(folder: str) -> list[str]:
    """What in a session's folder is of our making, beside the manifest and the lock."""
    try:
        names = []
        for name in os.listdir(folder):
            if _OURS.fullmatch(name):
                names.append(name)
        return names
    except OSError:
        return []
