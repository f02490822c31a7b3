"""Read the trash format of version 0.2.0.

In this format, a manifest lists files and whole folders, which are stored in the client's layout.
Reading does not change any manifest. When a deleted session is packed, it gets a manifest in the
current format.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.archive.vault import commit
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.sessions.archived.layout import (
    FOLDERS_WITH_ID_SUBFOLDERS,
    is_valid_archive_path,
    path_in_config_home,
    top_folder_in_config_home,
)
from resume_hooks.sessions.archived.manifest import (
    ArchiveDetails,
    ArchivedFile,
    ArchivedSession,
    describe_stored_file,
    read_manifest_row,
)
from resume_hooks.sessions.transcript_files import SUBAGENT_PREFIX
from resume_hooks.storage import removal
from resume_hooks.storage.hard_links import (
    has_same_bytes,
    is_empty_file,
    link_or_copy,
    list_files_below,
)
from resume_hooks.storage.typed_rows import parse_row
from resume_hooks.transcripts.provenance import read_parent


class FormerTrashItem(NamedTuple):
    """A file or folder of a deleted session.

    ``place`` is its original path relative to the config home.
    """

    place: str
    files: int
    size: int

    @property
    def name(self) -> str:
        """The name of the file or folder in the trash."""
        first, _, rest = self.place.partition("/")
        if first in FOLDERS_WITH_ID_SUBFOLDERS:
            return first
        return rest.rpartition("/")[2]


class FormerTrashEntry(NamedTuple):
    """The fields that are still read from a manifest of version 0.2.0."""

    title: str
    cwd: str
    ended: str
    deleted_at: str
    parts: tuple[FormerTrashItem, ...]
    complete: bool


def read_former_entry(folder: str, where: Where) -> ArchivedSession | None:
    """Return the deleted session in a folder of the trash.

    Return None if the folder's manifest has a different format, or if the transcript is missing.
    """
    entry = _read_manifest(folder)
    if entry is None:
        return None
    if not entry.complete:
        _finish_interrupted_deletion(entry, folder, where)
    parts = tuple(file for part in entry.parts for file in _list_files_of_trash_item(part, folder))
    if not parts or parts[0].place != entry.parts[0].place:
        return None
    parent = read_parent(os.path.join(folder, entry.parts[0].name)) or ()
    return ArchivedSession(
        session_id=os.path.basename(os.path.dirname(folder)),
        folder=folder,
        place=parts[0].place,
        title=entry.title,
        cwd=entry.cwd,
        ended=entry.ended,
        archived_at=entry.deleted_at,
        parts=parts,
        stored=0,
        complete=entry.complete,
        about=ArchiveDetails(parent=tuple(parent)),
        deleted_at=entry.deleted_at,
    )


def was_interrupted_before_first_move(folder: str) -> bool:
    """Check whether a deletion was interrupted before it had moved any file."""
    entry = _read_manifest(folder)
    trashed_paths = (os.path.join(folder, part.name) for part in entry.parts) if entry else ()
    return entry is not None and not entry.complete and not any(map(os.path.lexists, trashed_paths))


def _read_manifest(folder: str) -> FormerTrashEntry | None:
    session_id, row = os.path.basename(os.path.dirname(folder)), read_manifest_row(folder)
    if row.get("version") == 1:
        entry = parse_row(FormerTrashEntry, row)
    else:
        entry = None
    if entry is None or not entry.parts or entry.parts[0].name != f"{session_id}.jsonl":
        return None
    is_file = {}
    for part in entry.parts:
        is_file[part] = part.name.endswith(".jsonl") or part.name.startswith(SUBAGENT_PREFIX)
    valid_places = (
        is_valid_archive_path(part.place if is_file[part] else f"{part.place}/file", session_id)
        for part in entry.parts
    )
    if all(valid_places):
        return entry
    return None


def _list_files_of_trash_item(trash_item: FormerTrashItem, folder: str) -> Iterator[ArchivedFile]:
    """Yield the files that belong to a file or folder in the trash.

    An empty file is skipped if the manifest records a larger size: an interrupted deletion left it
    behind as a placeholder.
    """
    trashed_path = os.path.join(folder, trash_item.name)
    for name in list_files_below(trashed_path) if os.path.lexists(trashed_path) else ():
        status = os.lstat(os.path.join(trashed_path, name) if name else trashed_path)
        if name or status.st_size or not trash_item.size:
            yield describe_stored_file(
                "/".join([trash_item.place, *filter(None, name.split(os.sep))]), status
            )


def _finish_interrupted_deletion(entry: FormerTrashEntry, folder: str, where: Where) -> None:
    """Finish a deletion that version 0.2.0 began and that was interrupted.

    The deletion has renamed files to hidden names next to their original paths. Move these files
    into the trash.
    """
    for part in entry.parts:
        parent_folder, name = os.path.split(path_in_config_home(part.place, where))
        hidden_path = os.path.join(parent_folder, f".{name}.{os.path.basename(folder)}.moving")
        if os.path.lexists(hidden_path):
            # If the trash is locked, another command may be finishing this deletion, so the files
            # with hidden names are left alone.
            with (
                contextlib.suppress(OSError, ResumeHooksError),
                commit.lock_trash(where, wait_for_lock=False),
            ):
                identical_paths = []
                for relative_path in list_files_below(hidden_path):
                    path, trashed_path = (
                        os.path.join(root, relative_path).rstrip(os.sep)
                        for root in (hidden_path, f"{folder}/{part.name}")
                    )
                    if os.path.lexists(trashed_path) and is_empty_file(trashed_path):
                        removal.remove_file(trashed_path, where.state)
                    if not os.path.lexists(trashed_path):
                        make_private_folder(os.path.dirname(trashed_path), where)
                        link_or_copy(path, trashed_path)
                    identical_paths.append(has_same_bytes(path, trashed_path))
                # If a file and its copy in the trash differ, a client has written to the file while
                # it was copied.
                if all(identical_paths):
                    removal.remove_permanently(
                        hidden_path, top_folder_in_config_home(part.place, where), follow_root=True
                    )
