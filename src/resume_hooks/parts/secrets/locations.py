"""List the places that can contain a session's secrets, and read their contents chunk by chunk.

This module writes no files.

The places are the session's own files, their copies, the files of its parents and children, and
other files.

Files that the client or the user stores elsewhere are also searched, but they are only changed on
request. Children are included because they contain their parent's records. Deleted sessions are
included because the vault or trash may still contain them.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

from resume_hooks import questions, seam
from resume_hooks.archive.vault import trash
from resume_hooks.archive.vault.packs import split_lines
from resume_hooks.archive.vault.rewrite import MAX_WHOLE_TEXT_BYTES, TEXT_CHECK_BYTES
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    all_project_folders,
    is_session_id,
    open_regular,
)
from resume_hooks.search.index.database import TABLE_FILE as INDEX
from resume_hooks.search.index.database import WORDS_FOLDER as WORDS
from resume_hooks.search.index.database import index_file
from resume_hooks.sessions import held_links
from resume_hooks.sessions.agents.registry import COPIES_FOLDER_NAME
from resume_hooks.sessions.archived import manifest, unpack
from resume_hooks.sessions.archived.layout import (
    HISTORY,
    TRASH_FOLDER,
    UNPACKED_FOLDER,
    unpacked_folder,
    vault_folder,
)
from resume_hooks.sessions.archived.layout import VAULT_FOLDER as VAULT
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.session_files import SessionFile, linked_projects
from resume_hooks.sessions.transcript_files import SUBAGENT_PREFIX, owning_session, subagent_name
from resume_hooks.settings import FILE_NAME as SETTINGS
from resume_hooks.storage import backups, locks
from resume_hooks.storage.atomic import BUFFER_BYTES
from resume_hooks.transcripts.lines import read_lines

TRANSCRIPT, SUBAGENT, SIDECAR, COPY = "transcript", "sub-agent", "sidecar", "copy"
BACKUP, TRASHED, VAULT_COPY, UNPACKED_COPY, NOTE, INDEXED = (
    "backup",
    "trash",
    "vault",
    "unpacked",
    "note",
    "index",
)
FILE_BACKUP, DOCUMENT, CLIENT = "file backup", "document", "client"

OWN_SESSION, CHILD, PARENT, OTHER_SESSION = "own", "child", "parent", "other"
"""How a session is related to the session that is scrubbed."""

LINE, TEXT, BINARY = "line", "text", "binary"
"""The formats of a chunk."""

RECORD_KINDS = frozenset({TRANSCRIPT, SUBAGENT, BACKUP})
"""The kinds of files that contain one record per line."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Matches a session's id in the name of its file or folder, or in the name of a copy."""

MAX_FILES_PER_FOLDER = 200_000
"""The maximum number of files to search in a folder and its subfolders."""

_SKIPPED_CLIENT_FOLDERS = frozenset(
    {"projects", HISTORY, "plugins", "sessions", "local", "node_modules", ".git"}
)
"""Folders in the config home that contain no conversation, or that are searched session by session."""

_SKIPPED_STATE_FOLDERS = frozenset(
    {
        VAULT,
        UNPACKED_FOLDER,
        COPIES_FOLDER_NAME,
        WORDS,
        TRASH_FOLDER,
        backups.FOLDER,
        held_links.LINKS_FOLDER,
        "plugin",
    }
)
_SKIPPED_STATE_FILES = frozenset(
    {SETTINGS, INDEX, *(f"{INDEX}{ending}" for ending in ("-wal", "-shm", "-journal", ".lock"))}
)


class Location(NamedTuple):
    """A file, or a session's folder in the vault or trash; ``session_id`` is ``""`` if it is unknown.

    A folder that cannot be listed, or a link, which is never followed, counts as a single place.
    """

    kind: str
    path: str
    session_id: str = ""
    relation: str = ""


def find_session_places(relations: Mapping[str, str], where: Where) -> list[Location]:
    """Return every place of every session; ``relations`` maps session ids to their relation to the scrubbed session.

    The places are in purge order. The scrubbed session's own transcript is last, so that its
    secrets can be found again if the purge is interrupted.
    """
    locations = [
        location._replace(
            relation=relations.get(location.session_id, location.relation or OTHER_SESSION)
        )
        for location in (*_find_session_copies(where), *_find_project_places(where))
    ]
    relation_order = [OTHER_SESSION, PARENT, CHILD, OWN_SESSION]
    return sorted(
        locations,
        key=lambda location: (relation_order.index(location.relation), location.kind == TRANSCRIPT),
    )


def find_state_places(where: Where) -> Iterator[Location]:
    """Yield the other files in our state folder: notes for hooks, logs, and the index."""
    state_folder = where.state
    for path in list_regular_files(
        state_folder,
        lambda folder: (
            os.path.dirname(folder) == state_folder
            and os.path.basename(folder) in _SKIPPED_STATE_FOLDERS
        ),
    ):
        if os.path.basename(path) not in _SKIPPED_STATE_FILES:
            yield Location(NOTE, path)
    if os.path.lexists(index_file(where)):
        yield Location(INDEXED, index_file(where))


def find_client_places(where: Where) -> Iterator[Location]:
    """Yield the client's files outside its project folders: prompt history, pastes, logs, settings."""
    config_folder, state_folder = where.config, os.path.realpath(where.state)

    def is_skipped(folder: str) -> bool:
        return (
            os.path.basename(folder) in _SKIPPED_CLIENT_FOLDERS
            or os.path.realpath(folder) == state_folder
        )

    for path in list_regular_files(config_folder, is_skipped):
        yield Location(CLIENT, path)


def list_regular_files(
    folder: str, is_skipped: Callable[[str], bool] = lambda _: False
) -> Iterator[str]:
    """Yield the regular files in a folder and its subfolders, sorted by name. Links are not followed.

    If a folder cannot be listed or has too many files, the folder itself is yielded. A file of
    unknown type is also yielded. Reading either of them will fail.
    """
    if os.path.islink(folder):
        return
    count = 0
    errors: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=errors.append):
        folders[:] = sorted(name for name in folders if not is_skipped(os.path.join(root, name)))
        for name in sorted(names):
            path = os.path.join(root, name)
            if _may_be_regular_file(path):
                count += 1
                if count > MAX_FILES_PER_FOLDER:
                    yield folder
                    return
                yield path
    for error in errors:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            yield error.filename


def _may_be_regular_file(path: str) -> bool:
    """Check whether a path is a regular file, or may be one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _find_session_copies(where: Where) -> Iterator[Location]:
    """Yield copies of sessions outside the project folders: backups, trash, vault, hard links to deleted files."""
    backup_folder = os.path.join(where.state, backups.FOLDER)
    files = os.path.join(backup_folder, backups.REWIND_COPIES)
    for folder, kind in (
        (where.file_history, FILE_BACKUP),
        (files, FILE_BACKUP),
        (backup_folder, BACKUP),
        (unpacked_folder(where), UNPACKED_COPY),
    ):
        for path in _list_state_files(folder, {files} - {folder}):
            is_other_file = kind == BACKUP and not path.endswith(TRANSCRIPT_SUFFIX)
            yield Location(
                COPY if is_other_file else kind, path, _parse_session_id_below(folder, path)
            )
    for path in held_links.links_without_client_file(where):
        session_id = _ID.search(
            os.path.relpath(path, held_links.links_folder(where)).partition(os.sep)[2]
        )
        yield Location(
            BACKUP if path.endswith(TRANSCRIPT_SUFFIX) else COPY,
            path,
            session_id[0] if session_id else "",
        )
    folder, deleted_ids = (
        os.path.join(where.state, TRASH_FOLDER),
        {entry.folder for entry in trash.list_deleted(where)},
    )
    for path in deleted_ids:
        yield Location(TRASHED, path, _parse_session_id_below(folder, path))
    for path in _list_state_files(
        folder, deleted_ids
    ):  # the file's session is unknown, so it counts as a child's file
        yield Location(TRASHED, path, _parse_session_id_below(folder, path), CHILD)
    for archived in manifest.list_archived(where):
        yield Location(VAULT_COPY, archived.folder, archived.session_id)
    for path in manifest.unreadable_folders(where):
        yield Location(VAULT_COPY, path, _parse_session_id_below(vault_folder(where), path))


def _list_state_files(folder: str, skipped_folders: Container[str]) -> Iterator[str]:
    """Yield the files in a folder of the state folder, without locks. If the folder is a link, yield the link."""
    paths = (
        [folder]
        if os.path.islink(folder)
        else list_regular_files(folder, skipped_folders.__contains__)
    )
    return (path for path in paths if os.path.basename(path) != locks.LOCK_NAME)


def _find_project_places(where: Where) -> Iterator[Location]:
    """Yield the files of all sessions in the client's project folders, sorted by path."""
    for folder in all_project_folders(where):
        for path in list_regular_files(folder):
            first_component, *deeper_components = os.path.relpath(path, folder).split(os.sep)
            last_component = deeper_components[-1] if deeper_components else first_component
            if first_component.startswith(
                SUBAGENT_PREFIX
            ):  # a sub-agent of an old client, or the sub-agent's note
                session_id = owning_session(
                    path.removesuffix(".meta.json").removesuffix(TRANSCRIPT_SUFFIX)
                    + TRANSCRIPT_SUFFIX
                )
            else:
                match = _ID.search(first_component)
                session_id = match[0] if match else ""
            if not deeper_components and first_component == session_id + TRANSCRIPT_SUFFIX:
                kind = TRANSCRIPT
            elif subagent_name(last_component):
                kind = SUBAGENT
            elif deeper_components or last_component.startswith(SUBAGENT_PREFIX):
                kind = SIDECAR
            else:
                kind = COPY
            yield Location(kind, path, session_id)
    for folder in linked_projects(where):
        yield Location(COPY, folder)
    try:
        os.scandir(where.projects).close()
    except FileNotFoundError:
        return
    except OSError:
        yield Location(COPY, where.projects)


def _parse_session_id_below(folder: str, path: str) -> str:
    """Return the session id that is a path's first component below a folder, or ``""``."""
    first_component = os.path.relpath(path, folder).split(os.sep)[0]
    if is_session_id(first_component):
        return first_component
    return ""


def find_related_sessions(session: SessionFile, where: Where) -> dict[str, str]:
    """Return the session ids of the family with their relation to the scrubbed session."""
    lineage_finder = LineageFinder(where)
    ancestor_ids: list[str] = []
    with contextlib.suppress(SessionNotFound):  # deleted after it was named
        ancestor_ids = []
        for ancestor in lineage_finder.find_lineage(session.path)[:-1]:
            if ancestor.session_id:
                ancestor_ids.append(ancestor.session_id)
    session_id = session.session_id
    relations = dict.fromkeys(
        (descendant.row.session_id for descendant in lineage_finder.find_descendants(session_id)),
        CHILD,
    ) | {session_id: OWN_SESSION}
    # Include sessions that are only recorded in our links, the vault or the trash.
    parent_pairs = []
    for link in read_links(where):
        parent_pairs.append((link.parent_id, link.child_id))
    archived_sessions = (*manifest.list_archived(where), *trash.list_deleted(where))
    for archived in archived_sessions:
        if archived.about.parent:
            parent_pairs.append((archived.about.parent[0], archived.session_id))
    pending_ids = list(relations)
    while pending_ids:
        parent = pending_ids.pop()
        new_children = []
        for pair_parent, child in parent_pairs:
            if pair_parent == parent and child not in relations:
                new_children.append(child)
        relations |= dict.fromkeys(new_children, CHILD)
        pending_ids += new_children
    return dict.fromkeys(ancestor_ids, PARENT) | relations


def find_document_places(session: SessionFile, where: Where) -> Iterator[Location]:
    """Yield the documents that parts wrote about a session, inside or outside its project."""
    for folder_of_documents in seam.find_answers(questions.folder_of_documents):
        for location, ending in folder_of_documents(session, where):
            for path in list_regular_files(location):
                if path.endswith(ending) or os.path.isdir(path):
                    yield Location(DOCUMENT, path)


class FileChunk(NamedTuple):
    """A chunk of a file. For an archived file, ``part_path`` is its path relative to the config home.

    If the chunk is a line, ``line_number`` is its 0-based line number, and ``offset`` is its byte
    offset.
    """

    raw: bytes
    format: str
    part_path: str = ""
    line_number: int = 0
    offset: int = 0


def find_archived_session(location: Location, where: Where) -> ArchivedSession | None:
    """Return the archived session in a folder of the vault or trash.

    Return None for a single file or if the session cannot be read.
    """
    if location.kind == TRASHED:
        return trash.read_entry(location.path, where)
    if location.kind == VAULT_COPY:
        return manifest.find_archived(location.session_id, where)
    return None


def contains_record_lines(path: str) -> bool:
    """Check by its name whether a file contains one record per line."""
    return TRANSCRIPT_SUFFIX in os.path.basename(path)


def read_file_chunks(path: str, *, by_line: bool) -> Iterator[FileChunk]:
    """Yield the chunks of a file, read line by line or as one text. Raise OSError."""
    with open_regular(path, follow=False) as stream:
        is_binary = b"\0" in stream.read(TEXT_CHECK_BYTES)
        stream.seek(0)
        if is_binary:
            yield from (
                FileChunk(raw, BINARY) for raw in iter(lambda: stream.read(BUFFER_BYTES), b"")
            )
        elif by_line or os.fstat(stream.fileno()).st_size > MAX_WHOLE_TEXT_BYTES:
            for line in read_lines(stream):
                yield FileChunk(line.raw, LINE)
        else:
            yield FileChunk(stream.read(), TEXT)


def read_archived_chunks(archived: ArchivedSession) -> Iterator[FileChunk]:
    """Yield the chunks of all files of an archived session. Raise OSError if a file cannot be read."""
    for part, packed_chunks in unpack.read_pack_contents(archived.folder, list(archived.all_parts)):
        if not contains_record_lines(part.place) and part.size <= MAX_WHOLE_TEXT_BYTES:
            yield FileChunk(b"".join(packed_chunks), TEXT, part.place)
            continue
        offset = 0
        for number, line in enumerate(split_lines(packed_chunks)):
            yield FileChunk(line, LINE, part.place, number, offset)
            offset += len(line)
