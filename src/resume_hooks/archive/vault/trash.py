"""The trash: deleted sessions in our state folder, each with a manifest in the vault's format.

``trash/<session id>/<instant>/`` contains the session's own files in the client's layout, until
they are packed as in the vault. The folder gets its name once all files are there with a manifest.
The manifest is marked complete after the last file left its place, so an interrupted deletion can
be undone. The format of 0.2.0, whose manifests name folders, is readable.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.archive.vault import commit, former
from resume_hooks.archive.vault.packs import PackWriter
from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.paths import Where, is_session_id, make_private_folder, subfolders
from resume_hooks.sessions.archived.layout import MAX_FILES, TRASH, unpacked_folder
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession, read_manifest
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.storage import removal
from resume_hooks.storage.move import file_sizes, hash_file
from resume_hooks.storage.state_file import sync_folder
from resume_hooks.system.text import replace_surrogates

GONE = ".gone"
"""The suffix of a folder that is being removed permanently, or is still empty."""


class StrayFolder(NamedTuple):
    """A folder in the trash without a session: ``gone`` if it was being removed, or was still empty.

    Otherwise it has no readable manifest.
    """

    folder: str
    files: int
    size: int
    gone: bool


def new_folder(session_id: str, at: str, where: Where) -> str:
    """Create a private folder for a session deleted ``at`` an instant.

    Raises OSError.

    Readers ignore it until ``GONE`` is removed from its name.
    """
    folder = os.path.join(where.state, TRASH, session_id)
    make_private_folder(folder, where)
    made = os.path.join(folder, at.replace(":", "-"))
    if os.path.lexists(made):  # one of two deletions within a millisecond fails
        raise FileExistsError(None, "Another delete was as fast", made)
    os.mkdir(made + GONE, 0o700)
    return made + GONE


def drop_from_trash(folder: str, where: Where) -> None:
    """Permanently remove a folder of the trash with its contents. Raises OSError.

    After an error it is a stray folder.
    """
    home, gone = os.path.dirname(folder), folder if folder.endswith(GONE) else folder + GONE
    if gone != folder:  # readers ignore it from here on
        os.rename(folder, gone)
        sync_folder(home)
    removal.remove_for_good(gone, where.state)
    removal.remove_if_possible(
        os.path.join(unpacked_folder(where), os.path.basename(home)), where.state
    )
    with contextlib.suppress(OSError):  # it may contain another deletion of the same session
        removal.remove_empty(home, where.state)


def all_deleted(where: Where) -> list[ArchivedSession]:
    """Return every deleted session with a readable manifest, the last deleted first."""
    found = (each for each in _contents(where) if isinstance(each, ArchivedSession))
    return sorted(found, key=lambda entry: entry.deleted_at, reverse=True)


def stray_folders(where: Where) -> list[StrayFolder]:
    """Return every folder in the trash without a session, with its countable size."""
    return [each for each in _contents(where) if isinstance(each, StrayFolder)]


def entry_in(folder: str, where: Where) -> ArchivedSession | None:
    """Return the deleted session in a folder of the trash, or None if it is unusable."""
    session_id = os.path.basename(os.path.dirname(folder))
    if folder.endswith(GONE) or not is_session_id(session_id):
        return None
    with contextlib.suppress(OSError):
        entry = read_manifest(folder, session_id) or former.entry_in(folder, where)
        if entry and entry.deleted_at:
            return entry
        return None
    return None


def _contents(where: Where) -> Iterator[ArchivedSession | StrayFolder]:
    for path in subfolders(os.path.join(where.state, TRASH)):
        for folder in subfolders(path) if is_session_id(os.path.basename(path)) else [path]:
            if folder != path and (entry := entry_in(folder, where)):
                yield entry
                continue
            gone = folder != path and (folder.endswith(GONE) or former.moved_nothing(folder))
            sizes = list(file_sizes(folder))
            if gone or sizes:
                yield StrayFolder(folder, len(sizes), sum(sizes), gone)


def settle_deleted(entry: ArchivedSession) -> ArchivedSession:
    """Return a deleted session with the current status and hash of its files in the trash.

    Raises OSError.
    """
    return entry._replace(
        parts=tuple(part if part.where else _settle_file(entry, part) for part in entry.parts)
    )


def _settle_file(entry: ArchivedSession, part: ArchivedFile) -> ArchivedFile:
    kept = stored_path(entry.folder, part)
    status, sha256 = os.lstat(kept), hash_file(kept)
    return part._replace(
        size=status.st_size, seen=status.st_size, mtime_ns=status.st_mtime_ns, sha256=sha256
    )


def pack_deleted(where: Where, is_over: Callable[[], bool]) -> None:
    """Pack deleted sessions until time is over. A deletion does not wait for this."""
    for entry in all_deleted(where):
        if entry.complete and not is_over():
            # an unpacked session stays as it is
            with contextlib.suppress(OSError, ResumeHooksError):
                _pack_one(entry, where)


def take_over(entry: ArchivedSession, where: Where) -> None:
    """Write a current manifest for a deleted session of 0.2.0.

    Raises OSError, WriteFailed and SessionOpen.
    """
    if entry.deleted_at and read_manifest(entry.folder, entry.session_id) is None:
        with commit.only_one_in_trash(where):
            if found := former.entry_in(entry.folder, where):
                if len(found.parts) > MAX_FILES or any(
                    part.place != replace_surrogates(part.place) for part in found.parts
                ):
                    raise WriteFailed(
                        (
                            f"{entry.folder} holds too many files, or a name that is not "
                            "UTF-8: no manifest can name them"
                        ),
                        f"Restore it first: resume-hooks restore {entry.locator}",
                    )
                commit.commit_manifest(settle_deleted(found), where)


def _pack_one(entry: ArchivedSession, where: Where) -> None:
    take_over(entry, where)
    try:
        if not entry.transcript.where:
            entry = entry_in(entry.folder, where) or entry
            whole = settle_deleted(entry)
            with PackWriter(entry.folder, commit.next_name(entry.folder, None)) as writer:
                placed = writer.copy(list(whole.parts))
                writer.finish()
            packed = whole._replace(parts=tuple(placed[part] for part in whole.parts))
            with commit.locked_for_change(entry, where, "packed") as now:
                if now == entry and settle_deleted(now) == whole:
                    commit.commit_manifest(packed, where)
    finally:
        with commit.locked_for_change(entry, where, "cleared"):
            pass  # remove the leftovers of this run or of a killed one
