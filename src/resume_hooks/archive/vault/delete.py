"""Deleting: a session and all that belongs to it archived in the trash, then unlinked.

And the trash emptied.

The files get a second name there, which costs nothing on one file system; the transcript is the
first to leave its place, so that no client sees half a session. Whatever fails puts everything
back. Killed at any point, all of it is still in its place or in the trash, and ``restore`` puts
back what is missing.
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
from resume_hooks.archive.vault.trash import GONE, StrayFolder, settle_deleted
from resume_hooks.errors import (
    ResumeHooksError,
    SessionNotFound,
    SessionOpen,
    UsageError,
    WriteFailed,
)
from resume_hooks.paths import Where, all_project_folders, is_session_file, make_private_folder
from resume_hooks.sessions.archived.layout import BY_ID, path_of_place, root_of
from resume_hooks.sessions.archived.manifest import (
    ArchivedFile,
    ArchivedSession,
    read_manifest,
    stored_file,
)
from resume_hooks.sessions.archived.sessions import require_own
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.sessions.held_links import remove_links
from resume_hooks.sessions.lineage import Descendant, Family
from resume_hooks.sessions.open_sessions import why_session_is_open
from resume_hooks.sessions.session_files import SessionFile, is_known
from resume_hooks.storage import removal
from resume_hooks.storage.move import has_same_bytes, link_or_copy
from resume_hooks.storage.state_file import sync_folder


class Deletion(NamedTuple):
    """A delete to be: ``entry`` is what the trash will hold, but for its folder; ``open`` says why it is, or ``""``.

    ``derived`` are the sessions that came from it and stay.
    """

    session: SessionFile
    entry: ArchivedSession
    open: str
    derived: tuple[Descendant, ...]


def plan_delete(session: SessionFile, where: Where) -> Deletion:
    """Decide what a delete takes away; nothing is changed.

    UsageError if it is not a client's session, or can't be archived whole; OnlyArchived where the kept
    copy alone is left; SessionNotFound where it is gone.
    """
    require_own(session, where)
    if not is_known(session, where) or os.path.islink(os.path.dirname(session.path)):
        raise UsageError(
            f"{session.path} is not a session in a project folder",
            "Other files are yours to remove, with rm.",
        )
    parts = _files_to_delete(session, where)
    entry = describe_session(session, where)._replace(parts=parts, deleted_at=clock.now())
    derived = Family(where).descendants(session.session_id)
    return Deletion(session, entry, why_session_is_open(session, where), tuple(derived))


def require_quiet(session: SessionFile, where: Where) -> None:
    """Raise SessionOpen where a session is open."""
    if why := why_session_is_open(session, where):
        raise SessionOpen(
            f"The session may be open: {why}",
            (
                "Quit its client and wait a minute, or add --force: a client that has it "
                "open begins it anew."
            ),
        )


def move_to_trash(decided: Deletion, where: Where, *, force: bool = False) -> ArchivedSession:
    """Move a session to the trash; what the trash then holds.

    SessionOpen where it is open and not ``force``; WriteFailed, SessionNotFound where something
    can't be archived or unlinked: all is in its place then, unless the message says so.
    """
    if not force:
        require_quiet(decided.session, where)
    with commit.only_one_in_trash(where):
        at, parts = clock.now(), _files_to_delete(decided.session, where)
        try:
            folder = trash.new_folder(decided.session.session_id, at, where)
        except OSError as error:
            raise _move_error(decided.session.path, error) from error
        return _Move(
            decided.entry._replace(folder=folder, archived_at=at, deleted_at=at, parts=parts), where
        ).carry_out()


class _Move:
    """One delete: what it archives, and which files it has unlinked."""

    def __init__(self, entry: ArchivedSession, where: Where) -> None:
        self._entry = entry
        self._where = where
        self._gone: list[ArchivedFile] = []

    def carry_out(self) -> ArchivedSession:
        """Carry it out, or undo it: also where the user interrupts."""
        done = False
        try:
            self._name_in_trash()
            self._unlink()
            whole = commit.commit_manifest(
                settle_deleted(self._entry._replace(complete=True)), self._where
            )
            done = True
        except FileNotFoundError as error:
            raise SessionNotFound(
                f"{error.filename or self._entry.session_id} is gone",
                "Was it deleted by somebody else just now?",
            ) from error
        except OSError as error:
            raise _move_error(error.filename or self._entry.folder, error) from error
        finally:
            if not done:
                self._put_back()
        return whole

    def _name_in_trash(self) -> None:
        """Give every file a name in the trash, then the trash its manifest, then the folder its name."""
        folder = self._entry.folder
        for part in self._entry.parts:
            kept = stored_path(self._entry.folder, part)
            make_private_folder(os.path.dirname(kept), self._where)
            link_or_copy(path_of_place(part.place, self._where), kept)
        for root, _, _ in os.walk(folder):
            sync_folder(root)
        self._entry = commit.commit_manifest(self._entry, self._where)
        if read_manifest(folder, self._entry.session_id) != self._entry:
            raise OSError(
                errno.EIO, "The manifest was read back otherwise than it was written", folder
            )
        os.rename(folder, folder.removesuffix(GONE))
        self._entry = self._entry._replace(folder=folder.removesuffix(GONE))
        sync_folder(os.path.dirname(folder))

    def _unlink(self) -> None:
        """Take all from its place but what a copy in another project would miss.

        What the user deletes is not held.
        """
        name, folders = os.path.basename(self._entry.place), set[str]()
        others = (
            each
            for each in all_project_folders(self._where)
            if os.path.basename(each) != self._entry.project
        )
        shared = any(is_session_file(os.path.join(each, name)) for each in others)
        for part in self._entry.parts:
            place = path_of_place(part.place, self._where)
            if shared and part.place.split("/")[0] in BY_ID:
                continue
            remove_links(place, self._where)
            there, kept = os.lstat(place), stored_path(self._entry.folder, part)
            is_copied = (there.st_size, there.st_mtime_ns) == (part.size, part.mtime_ns)
            if not is_copied and not os.path.samestat(there, os.lstat(kept)):
                raise OSError(errno.EBUSY, "Changed while it was copied", place)
            self._gone.append(part)
            removal.remove_file(place, root_of(part.place, self._where), follow_root=True)
            folders.add(os.path.dirname(place))
        for folder in folders:
            sync_folder(folder)
        for place in dict.fromkeys(_own_folder(part, self._entry) for part in self._gone):
            if not place:
                continue
            for empty, _, _ in os.walk(path_of_place(place, self._where), topdown=False):
                with contextlib.suppress(OSError):  # something is left in it
                    removal.remove_empty(empty, root_of(place, self._where), follow_root=True)

    def _put_back(self) -> None:
        """Undo what was unlinked. What can't be put back stays in the trash, which says so."""
        for part in reversed(self._gone):
            kept = stored_path(self._entry.folder, part)
            place = path_of_place(part.place, self._where)
            try:
                if not os.path.lexists(place):
                    make_private_folder(os.path.dirname(place), self._where)
                    link_or_copy(kept, place)
                    sync_folder(os.path.dirname(place))
                elif not has_same_bytes(kept, place):
                    raise FileExistsError(None, "a client began it anew")
            except OSError as error:
                back = f"resume-hooks restore {shlex.quote(self._entry.locator)}"
                raise WriteFailed(
                    f"{place} could not be put back: {error.strerror or error}",
                    f"Nothing is lost. When the cause is mended: {back}",
                ) from error
        with contextlib.suppress(OSError):
            trash.drop_from_trash(self._entry.folder, self._where)


def empty_trash(
    entries: Iterable[ArchivedSession], where: Where, strays: Iterable[StrayFolder] = ()
) -> list[ArchivedSession]:
    """Remove what the trash holds of these sessions, for good, and these strays.

    The sessions that were removed.

    Where a delete was interrupted the entry stays: its files may be the only ones. What another
    command took meanwhile is passed over. WriteFailed where something can't be removed; all else
    is.
    """
    removed: list[ArchivedSession] = []
    failed: list[tuple[str, OSError | ResumeHooksError]] = []
    with commit.only_one_in_trash(where):
        left = {stray.folder for stray in trash.stray_folders(where)}
        going: list[ArchivedSession | StrayFolder] = []
        for stray in strays:
            if stray.folder in left:
                going.append(stray)
        for entry in entries:
            if entry.complete and os.path.isdir(entry.folder):
                going.append(entry)
        for each in going:
            try:
                if isinstance(each, ArchivedSession):
                    restore.leave_companions(each, where)
                trash.drop_from_trash(each.folder, where)
            except (OSError, ResumeHooksError) as error:
                failed.append((each.folder, error))
            else:
                removed += [each] if isinstance(each, ArchivedSession) else []
    if failed:
        folder, cause = failed[0]
        place, why = (
            (cause.filename or folder, cause.strerror)
            if isinstance(cause, OSError)
            else (folder, cause)
        )
        raise WriteFailed(
            f"{place} could not be removed: {why}"
            + (f"; nor could {len(failed) - 1:,} more" if failed[1:] else ""),
            f"{len(removed):,} of the sessions were. Check its permissions, then run it again.",
        ) from cause
    return removed


def _files_to_delete(session: SessionFile, where: Where) -> tuple[ArchivedFile, ...]:
    """The transcript, then what belongs to it.

    UsageError where some of it can't be archived, SessionNotFound.
    """
    try:
        sources, missed = ClientFiles(where).of(session, deleting=True)
    except OSError as error:
        raise SessionNotFound(
            f"{session.path} is gone", "Was it deleted by somebody else just now?"
        ) from error
    if missed:
        raise UsageError(
            f"The session can't be archived whole: {missed[0]}",
            "Rename that, or move it away, first.",
        )
    return tuple(stored_file(place, status) for place, _, status in sources)


def _own_folder(part: ArchivedFile, entry: ArchivedSession) -> str:
    """The folder of the session's own that a file lies in, from the config home on; ``""`` for none."""
    steps = part.place.split("/")
    number = 2 if steps[0] in BY_ID else 3
    if entry.session_id in steps[:number]:
        return "/".join(steps[:number])
    return ""


def _move_error(path: str, error: OSError) -> WriteFailed:
    return WriteFailed(
        f"{path} could not be moved to the trash: {error.strerror or error}",
        "Nothing was changed. Check free space and permissions.",
    )
