"""Delete a session: archive all of its files in the trash, and then unlink them. Also empty the trash.

Each file first gets a second name in the trash, which takes no space on the same file system. The
transcript is unlinked first, so that no client sees an incomplete session. If a file cannot be
unlinked, all files are put back. If the command is killed, every file is still at its original path
or in the trash, and ``restore`` puts back the missing files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.archive.vault import commit, restore, trash
from resume_hooks.archive.vault.archive_session import ClientFiles, describe_session
from resume_hooks.archive.vault.trash import StrayFolder, stat_and_hash_trashed_files
from resume_hooks.errors import (
    ResumeHooksError,
    SessionInUse,
    SessionNotFound,
    UsageError,
    WriteFailed,
)
from resume_hooks.paths import Where, all_project_folders, is_session_file, make_private_folder
from resume_hooks.sessions.archived.layout import (
    FOLDERS_WITH_ID_SUBFOLDERS,
    REMOVED_FOLDER_SUFFIX,
    path_in_config_home,
    top_folder_in_config_home,
)
from resume_hooks.sessions.archived.manifest import (
    ArchivedFile,
    ArchivedSession,
    describe_stored_file,
    read_manifest,
)
from resume_hooks.sessions.archived.sessions import require_client_file
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.sessions.held_links import remove_links
from resume_hooks.sessions.lineage import Descendant, LineageFinder
from resume_hooks.sessions.open_sessions import describe_open_session
from resume_hooks.sessions.session_files import SessionFile, can_client_resume
from resume_hooks.storage import removal
from resume_hooks.storage.hard_links import has_same_bytes, link_or_copy
from resume_hooks.storage.state_file import sync_folder


class Deletion(NamedTuple):
    """A planned deletion of a session.

    ``entry`` is the manifest for the trash, before a folder in the trash is chosen. ``open_reason``
    is the reason why the session counts as open, or ``""``. ``descendants`` are the session's
    descendants, which are not deleted.
    """

    session: SessionFile
    entry: ArchivedSession
    open_reason: str
    descendants: tuple[Descendant, ...]


def plan_delete(session: SessionFile, where: Where) -> Deletion:
    """Plan the deletion of a session without changing any file.

    Raises UsageError if the session is not in a project folder or cannot be archived completely,
    OnlyArchived if only the archived copy exists, and SessionNotFound if the session's file was
    deleted.
    """
    require_client_file(session, where)
    if not can_client_resume(session, where) or os.path.islink(os.path.dirname(session.path)):
        raise UsageError(
            f"{session.path} is not a session in a project folder",
            "Remove other files yourself, with rm.",
        )
    parts = _find_files_to_delete(session, where)
    entry = describe_session(session, where)._replace(parts=parts, deleted_at=clock.now())
    descendants = LineageFinder(where).find_descendants(session.session_id)
    return Deletion(session, entry, describe_open_session(session, where), tuple(descendants))


def require_closed(session: SessionFile, where: Where) -> None:
    """Raise SessionInUse if a session may be open."""
    if reason := describe_open_session(session, where):
        raise SessionInUse(
            f"The session may be open: {reason}",
            (
                "Quit the session's client and wait a minute, because an open client would create "
                "the file again. To delete the session anyway, add --force."
            ),
        )


def move_to_trash(deletion: Deletion, where: Where, *, force: bool = False) -> ArchivedSession:
    """Move a session to the trash. Return its manifest in the trash.

    Raises SessionInUse if the session may be open and ``force`` is false. Raises WriteFailed or
    SessionNotFound if a file cannot be archived or unlinked. In this case all files are put back,
    except for any files that the error message lists.
    """
    if not force:
        require_closed(deletion.session, where)
    with commit.lock_trash(where):
        instant, parts = clock.now(), _find_files_to_delete(deletion.session, where)
        try:
            folder = trash.create_trash_folder(deletion.session.session_id, instant, where)
        except OSError as error:
            raise _make_move_error(deletion.session.path, error) from error
        return _TrashMove(
            deletion.entry._replace(
                folder=folder, archived_at=instant, deleted_at=instant, parts=parts
            ),
            where,
        ).move_session_files()


class _TrashMove:
    """Carries out one deletion, and remembers which files it has unlinked."""

    def __init__(self, entry: ArchivedSession, where: Where) -> None:
        self._entry = entry
        self._where = where
        self._unlinked_files: list[ArchivedFile] = []

    def move_session_files(self) -> ArchivedSession:
        """Carry out the deletion. Undo it if it fails or if the user interrupts it."""
        is_done = False
        try:
            self._link_into_trash()
            self._unlink_files()
            complete_entry = commit.commit_manifest(
                stat_and_hash_trashed_files(self._entry._replace(complete=True)), self._where
            )
            is_done = True
        except FileNotFoundError as error:
            raise SessionNotFound(
                f"{error.filename or self._entry.session_id} is gone",
                "Was it deleted by somebody else just now?",
            ) from error
        except OSError as error:
            raise _make_move_error(error.filename or self._entry.folder, error) from error
        finally:
            if not is_done:
                self._restore_unlinked_files()
        return complete_entry

    def _link_into_trash(self) -> None:
        """Give every file a second name in the trash, write the manifest, and rename the folder.

        Readers of the trash ignore the folder until it has its final name.
        """
        folder = self._entry.folder
        for part in self._entry.parts:
            trashed_path = stored_path(self._entry.folder, part)
            make_private_folder(os.path.dirname(trashed_path), self._where)
            link_or_copy(path_in_config_home(part.place, self._where), trashed_path)
        for root, _, _ in os.walk(folder):
            sync_folder(root)
        self._entry = commit.commit_manifest(self._entry, self._where)
        if read_manifest(folder, self._entry.session_id) != self._entry:
            raise OSError(errno.EIO, "The manifest differs from what was written", folder)
        os.rename(folder, folder.removesuffix(REMOVED_FOLDER_SUFFIX))
        self._entry = self._entry._replace(folder=folder.removesuffix(REMOVED_FOLDER_SUFFIX))
        sync_folder(os.path.dirname(folder))

    def _unlink_files(self) -> None:
        """Unlink the session's files, and remove our hard links to them.

        If another project has a copy of the session, the two copies share the files that are stored
        under the session's id, so these files are not unlinked.
        """
        name, folders = os.path.basename(self._entry.place), set[str]()
        other_projects = (
            each
            for each in all_project_folders(self._where)
            if os.path.basename(each) != self._entry.project
        )
        has_copy = any(is_session_file(os.path.join(each, name)) for each in other_projects)
        for part in self._entry.parts:
            client_path = path_in_config_home(part.place, self._where)
            if has_copy and part.place.split("/")[0] in FOLDERS_WITH_ID_SUBFOLDERS:
                continue
            remove_links(client_path, self._where)
            current_status, trashed_path = (
                os.lstat(client_path),
                stored_path(self._entry.folder, part),
            )
            is_copied = (current_status.st_size, current_status.st_mtime_ns) == (
                part.size,
                part.mtime_ns,
            )
            if not is_copied and not os.path.samestat(current_status, os.lstat(trashed_path)):
                raise OSError(errno.EBUSY, "Changed while it was copied", client_path)
            self._unlinked_files.append(part)
            removal.remove_file(
                client_path, top_folder_in_config_home(part.place, self._where), follow_root=True
            )
            folders.add(os.path.dirname(client_path))
        for folder in folders:
            sync_folder(folder)
        for client_path in dict.fromkeys(
            _find_session_folder_of_file(part, self._entry) for part in self._unlinked_files
        ):
            if not client_path:
                continue
            for empty_folder, _, _ in os.walk(
                path_in_config_home(client_path, self._where), topdown=False
            ):
                with contextlib.suppress(OSError):  # The folder is not empty, so it stays.
                    removal.remove_empty_folder(
                        empty_folder,
                        top_folder_in_config_home(client_path, self._where),
                        follow_root=True,
                    )

    def _restore_unlinked_files(self) -> None:
        """Put the unlinked files back and remove the folder from the trash.

        If a file cannot be put back, the folder stays in the trash, and WriteFailed names the file.
        """
        for part in reversed(self._unlinked_files):
            trashed_path = stored_path(self._entry.folder, part)
            client_path = path_in_config_home(part.place, self._where)
            try:
                if not os.path.lexists(client_path):
                    make_private_folder(os.path.dirname(client_path), self._where)
                    link_or_copy(trashed_path, client_path)
                    sync_folder(os.path.dirname(client_path))
                elif not has_same_bytes(trashed_path, client_path):
                    raise FileExistsError(None, "a client created this file again")
            except OSError as error:
                restore_command = f"resume-hooks restore {shlex.quote(self._entry.locator)}"
                raise WriteFailed(
                    f"{client_path} could not be put back: {error.strerror or error}",
                    f"Nothing is lost. After fixing the cause: {restore_command}",
                ) from error
        with contextlib.suppress(OSError):
            trash.remove_from_trash(self._entry.folder, self._where)


def empty_trash(
    entries: Iterable[ArchivedSession], where: Where, strays: Iterable[StrayFolder] = ()
) -> list[ArchivedSession]:
    """Permanently remove these entries and stray folders from the trash.

    Return the removed sessions. The entry of an interrupted deletion is kept, because it may
    contain the only copies of files. An entry that another command has already removed is skipped.
    If an entry cannot be removed, the remaining ones are still removed before WriteFailed is
    raised.
    """
    removed_entries: list[ArchivedSession] = []
    failures: list[tuple[str, OSError | ResumeHooksError]] = []
    with commit.lock_trash(where):
        stray_paths = {stray.folder for stray in trash.list_stray_folders(where)}
        items: list[ArchivedSession | StrayFolder] = []
        for stray in strays:
            if stray.folder in stray_paths:
                items.append(stray)
        for entry in entries:
            if entry.complete and os.path.isdir(entry.folder):
                items.append(entry)
        for item in items:
            try:
                if isinstance(item, ArchivedSession):
                    restore.restore_files_stored_by_id(item, where)
                trash.remove_from_trash(item.folder, where)
            except (OSError, ResumeHooksError) as error:
                failures.append((item.folder, error))
            else:
                removed_entries += [item] if isinstance(item, ArchivedSession) else []
    if failures:
        folder, cause = failures[0]
        failed_path, reason = (
            (cause.filename or folder, cause.strerror)
            if isinstance(cause, OSError)
            else (folder, cause)
        )
        raise WriteFailed(
            f"{failed_path} could not be removed: {reason}"
            + (f"; nor could {len(failures) - 1:,} more" if failures[1:] else ""),
            f"{len(removed_entries):,} of the sessions were removed. Check permissions, then run the command again.",
        ) from cause
    return removed_entries


def _find_files_to_delete(session: SessionFile, where: Where) -> tuple[ArchivedFile, ...]:
    """Return the files of a session that a deletion archives, the transcript first.

    Raises UsageError if a file cannot be archived, and SessionNotFound if the transcript was
    deleted.
    """
    try:
        sources, missed_files = ClientFiles(where).find_files_and_problems(
            session, for_deletion=True
        )
    except OSError as error:
        raise SessionNotFound(
            f"{session.path} is gone", "Was it deleted by somebody else just now?"
        ) from error
    if missed_files:
        raise UsageError(
            f"The session can't be archived whole: {missed_files[0]}",
            "First rename that file, or move it away.",
        )
    return tuple(describe_stored_file(place, status) for place, _, status in sources)


def _find_session_folder_of_file(archived_file: ArchivedFile, entry: ArchivedSession) -> str:
    """Return the folder that contains the file and belongs only to this session, or ``""`` if none does.

    The returned path is relative to the config home.
    """
    steps = archived_file.place.split("/")
    step_count = 2 if steps[0] in FOLDERS_WITH_ID_SUBFOLDERS else 3
    if entry.session_id in steps[:step_count]:
        return "/".join(steps[:step_count])
    return ""


def _make_move_error(path: str, error: OSError) -> WriteFailed:
    return WriteFailed(
        f"{path} could not be moved to the trash: {error.strerror or error}",
        "Nothing was changed. Check free space and permissions.",
    )
