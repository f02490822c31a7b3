"""List the files that can contain a session's secrets, and read their contents in chunks.

These are the files and copies of the session, its children and its ancestors. Children are included
because they contain records of their parent. Deleted sessions are included because copies of them
may be in the vault or in the trash. Files of the client or the user in other folders are also
searched, but are changed only if the user asks for it. This module writes no files.
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
from resume_hooks.archive.vault.rewrite import BINARY_CHECK_BYTES, MAX_WHOLE_TEXT_BYTES
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    all_project_folders,
    is_session_id,
    open_regular,
)
from resume_hooks.search.index.database import TABLE_FILE_NAME as INDEX
from resume_hooks.search.index.database import WORDS_FOLDER_NAME as WORDS
from resume_hooks.search.index.database import index_file_path
from resume_hooks.sessions import held_links
from resume_hooks.sessions.agents.registry import COPIES_FOLDER_NAME
from resume_hooks.sessions.archived import manifest, unpack
from resume_hooks.sessions.archived.layout import (
    HISTORY_FOLDER,
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
from resume_hooks.sessions.transcript_files import (
    SUBAGENT_PREFIX,
    read_owning_session_id,
    subagent_name,
)
from resume_hooks.settings import SETTINGS_FILE_NAME
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
"""The possible relations of a session to the scrubbed session."""

LINE_FORMAT, TEXT_FORMAT, BINARY_FORMAT = "line", "text", "binary"
"""The possible formats of a chunk."""

TRANSCRIPT_FILE_KINDS = frozenset({TRANSCRIPT, SUBAGENT, BACKUP})
"""The kinds of files that contain one record per line."""

_SESSION_ID_PATTERN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Matches a session id in the name of a file or folder."""

MAX_FILES_PER_FOLDER = 200_000
"""Maximum number of files to search in a folder and its subfolders."""

_SKIPPED_CLIENT_FOLDERS = frozenset(
    {"projects", HISTORY_FOLDER, "plugins", "sessions", "local", "node_modules", ".git"}
)
"""The client's folders without conversations, and those whose files are found by searching each
session."""

_SKIPPED_STATE_FOLDERS = frozenset(
    {
        VAULT,
        UNPACKED_FOLDER,
        COPIES_FOLDER_NAME,
        WORDS,
        TRASH_FOLDER,
        backups.BACKUPS_FOLDER,
        held_links.LINKS_FOLDER,
        "plugin",
    }
)
_SKIPPED_STATE_FILE_NAMES = frozenset(
    {
        SETTINGS_FILE_NAME,
        INDEX,
        *(f"{INDEX}{ending}" for ending in ("-wal", "-shm", "-journal", ".lock")),
    }
)


class Location(NamedTuple):
    """A file, or the folder of a session in the vault or trash.

    ``session_id`` is ``""`` if the session is unknown, and ``relation`` is the session's relation
    to the scrubbed session. If a folder cannot be listed or is a link, the whole folder is one
    location. Links are never followed.
    """

    kind: str
    path: str
    session_id: str = ""
    relation: str = ""


def find_session_locations(
    relations_by_session_id: Mapping[str, str], where: Where
) -> list[Location]:
    """Return the locations of the files of all sessions, including the sessions' copies.

    ``relations_by_session_id`` maps session ids to their relation to the scrubbed session. The
    locations are in the order in which a scrub rewrites them. The scrubbed session's own transcript
    comes last. If the scrub is interrupted, a new scrub can therefore find the secrets in the
    transcript again.
    """
    locations = [
        location._replace(
            relation=relations_by_session_id.get(
                location.session_id, location.relation or OTHER_SESSION
            )
        )
        for location in (*_find_session_copies(where), *_find_project_locations(where))
    ]
    relation_order = [OTHER_SESSION, PARENT, CHILD, OWN_SESSION]
    return sorted(
        locations,
        key=lambda location: (relation_order.index(location.relation), location.kind == TRANSCRIPT),
    )


def find_locations_in_state_folder(where: Where) -> Iterator[Location]:
    """Yield the notes, the logs and the index: the files in the state folder that are not session copies."""
    state_folder = where.state
    for path in list_regular_files(
        state_folder,
        lambda folder: (
            os.path.dirname(folder) == state_folder
            and os.path.basename(folder) in _SKIPPED_STATE_FOLDERS
        ),
    ):
        if os.path.basename(path) not in _SKIPPED_STATE_FILE_NAMES:
            yield Location(NOTE, path)
    if os.path.lexists(index_file_path(where)):
        yield Location(INDEXED, index_file_path(where))


def find_client_locations(where: Where) -> Iterator[Location]:
    """Yield the client's files that are not in a project folder, such as the prompt history and logs.

    Pasted texts and settings are also included.
    """
    config_folder, state_folder = where.config, os.path.realpath(where.state)

    def is_skipped_folder(folder: str) -> bool:
        return (
            os.path.basename(folder) in _SKIPPED_CLIENT_FOLDERS
            or os.path.realpath(folder) == state_folder
        )

    for path in list_regular_files(config_folder, is_skipped_folder):
        yield Location(CLIENT, path)


def list_regular_files(
    folder: str, is_skipped_folder: Callable[[str], bool] = lambda _: False
) -> Iterator[str]:
    """Yield the regular files in a folder and its subfolders, sorted by name. Links are not followed.

    A folder that cannot be listed or has too many files is itself yielded, and so is a path of
    unknown type. The caller then cannot read this path, and can report it.
    """
    if os.path.islink(folder):
        return
    count = 0
    errors: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=errors.append):
        folders[:] = sorted(
            name for name in folders if not is_skipped_folder(os.path.join(root, name))
        )
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
    """Check whether a path is a regular file. Return True if the type of the path cannot be read."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _find_session_copies(where: Where) -> Iterator[Location]:
    """Yield the copies of sessions outside the client's project folders.

    These copies are in the folders for backups, in the trash and in the vault. Some are hard links
    to files that the client has deleted.
    """
    backup_folder = os.path.join(where.state, backups.BACKUPS_FOLDER)
    files = os.path.join(backup_folder, backups.REWIND_COPIES_FOLDER)
    for folder, kind in (
        (where.file_history, FILE_BACKUP),
        (files, FILE_BACKUP),
        (backup_folder, BACKUP),
        (unpacked_folder(where), UNPACKED_COPY),
    ):
        for path in _list_files_in_state_subfolder(folder, {files} - {folder}):
            is_other_file = kind == BACKUP and not path.endswith(TRANSCRIPT_SUFFIX)
            yield Location(
                COPY if is_other_file else kind, path, _parse_session_id_below_folder(folder, path)
            )
    for path in held_links.links_without_client_file(where):
        session_id = _SESSION_ID_PATTERN.search(
            os.path.relpath(path, held_links.links_folder(where)).partition(os.sep)[2]
        )
        yield Location(
            BACKUP if path.endswith(TRANSCRIPT_SUFFIX) else COPY,
            path,
            session_id[0] if session_id else "",
        )
    folder, deleted_ids = (
        os.path.join(where.state, TRASH_FOLDER),
        {entry.folder for entry in trash.list_trashed_sessions(where)},
    )
    for path in deleted_ids:
        yield Location(TRASHED, path, _parse_session_id_below_folder(folder, path))
    # It is unknown to which session the file belongs, so it is treated like a file of a child.
    for path in _list_files_in_state_subfolder(folder, deleted_ids):
        yield Location(TRASHED, path, _parse_session_id_below_folder(folder, path), CHILD)
    for archived in manifest.list_archived(where):
        yield Location(VAULT_COPY, archived.folder, archived.session_id)
    for path in manifest.unreadable_folders(where):
        yield Location(VAULT_COPY, path, _parse_session_id_below_folder(vault_folder(where), path))


def _list_files_in_state_subfolder(folder: str, skipped_folders: Container[str]) -> Iterator[str]:
    """Yield the files in a subfolder of the state folder, except for lock files.

    If the subfolder is a link, yield only the path of the link.
    """
    paths = (
        [folder]
        if os.path.islink(folder)
        else list_regular_files(folder, skipped_folders.__contains__)
    )
    return (path for path in paths if os.path.basename(path) != locks.LOCK_FILE_NAME)


def _find_project_locations(where: Where) -> Iterator[Location]:
    """Yield the files of all sessions in the client's project folders, sorted by path."""
    for folder in all_project_folders(where):
        for path in list_regular_files(folder):
            first_component, *deeper_components = os.path.relpath(path, folder).split(os.sep)
            last_component = deeper_components[-1] if deeper_components else first_component
            # An old client wrote this file for a sub-agent.
            if first_component.startswith(SUBAGENT_PREFIX):
                session_id = read_owning_session_id(
                    path.removesuffix(".meta.json").removesuffix(TRANSCRIPT_SUFFIX)
                    + TRANSCRIPT_SUFFIX
                )
            else:
                match = _SESSION_ID_PATTERN.search(first_component)
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


def _parse_session_id_below_folder(folder: str, path: str) -> str:
    """Return the first component of ``path`` below ``folder``, or ``""`` if it is not a session id."""
    first_component = os.path.relpath(path, folder).split(os.sep)[0]
    if is_session_id(first_component):
        return first_component
    return ""


def find_related_sessions(session: SessionFile, where: Where) -> dict[str, str]:
    """Return the ids of a session, its ancestors and its descendants, each with its relation."""
    lineage_finder = LineageFinder(where)
    ancestor_ids: list[str] = []
    # The session was deleted after the user had chosen it.
    with contextlib.suppress(SessionNotFound):
        ancestor_ids = []
        for ancestor in lineage_finder.find_lineage(session.path)[:-1]:
            if ancestor.session_id:
                ancestor_ids.append(ancestor.session_id)
    session_id = session.session_id
    relations_by_session_id = dict.fromkeys(
        (descendant.row.session_id for descendant in lineage_finder.find_descendants(session_id)),
        CHILD,
    ) | {session_id: OWN_SESSION}
    # Include sessions that are mentioned only in recorded links, the vault or the trash.
    parent_pairs = []
    for link in read_links(where):
        parent_pairs.append((link.parent_id, link.child_id))
    archived_sessions = (*manifest.list_archived(where), *trash.list_trashed_sessions(where))
    for archived in archived_sessions:
        if archived.about.parent:
            parent_pairs.append((archived.about.parent[0], archived.session_id))
    pending_ids = list(relations_by_session_id)
    while pending_ids:
        parent = pending_ids.pop()
        new_children = []
        for pair_parent, child in parent_pairs:
            if pair_parent == parent and child not in relations_by_session_id:
                new_children.append(child)
        relations_by_session_id |= dict.fromkeys(new_children, CHILD)
        pending_ids += new_children
    return dict.fromkeys(ancestor_ids, PARENT) | relations_by_session_id


def find_document_locations(session: SessionFile, where: Where) -> Iterator[Location]:
    """Yield the locations of documents that other parts of this program wrote about a session."""
    for document_folders_and_extensions in seam.find_answers(
        questions.document_folders_and_extensions
    ):
        for location, ending in document_folders_and_extensions(session, where):
            for path in list_regular_files(location):
                if path.endswith(ending) or os.path.isdir(path):
                    yield Location(DOCUMENT, path)


class FileChunk(NamedTuple):
    """A chunk of a file: a line, a piece of text or a piece of binary data.

    If the file is in an archived session, ``archived_file_path`` is the path that the file had in
    the client's folder. If the chunk is a line, ``line_number`` counts from 0, and ``offset`` is
    the line's offset in the file.
    """

    raw_bytes: bytes
    format: str
    archived_file_path: str = ""
    line_number: int = 0
    offset: int = 0


def find_archived_session(location: Location, where: Where) -> ArchivedSession | None:
    """Return the archived session whose folder in the vault or trash is ``location``.

    Return None if the location is not such a folder, or if the archived session cannot be read.
    """
    if location.kind == TRASHED:
        return trash.read_trash_entry(location.path, where)
    if location.kind == VAULT_COPY:
        return manifest.find_archived(location.session_id, where)
    return None


def is_record_file(path: str) -> bool:
    """Judge by a file's name whether it has one record per line."""
    return TRANSCRIPT_SUFFIX in os.path.basename(path)


def read_file_chunks(path: str, *, is_read_by_line: bool) -> Iterator[FileChunk]:
    """Yield the chunks of a file. Raise OSError if it cannot be read.

    If ``is_read_by_line`` is true, each chunk is a line. Otherwise, the whole text is one chunk,
    but a large file is also divided into lines.
    """
    with open_regular(path, follow=False) as stream:
        is_binary = b"\0" in stream.read(BINARY_CHECK_BYTES)
        stream.seek(0)
        if is_binary:
            yield from (
                FileChunk(raw, BINARY_FORMAT)
                for raw in iter(lambda: stream.read(BUFFER_BYTES), b"")
            )
        elif is_read_by_line or os.fstat(stream.fileno()).st_size > MAX_WHOLE_TEXT_BYTES:
            for line in read_lines(stream):
                yield FileChunk(line.raw, LINE_FORMAT)
        else:
            yield FileChunk(stream.read(), TEXT_FORMAT)


def read_archived_chunks(archived: ArchivedSession) -> Iterator[FileChunk]:
    """Yield the chunks of all files of an archived session. Raise OSError if a file cannot be read."""
    for part, packed_chunks in unpack.read_pack_contents(archived.folder, list(archived.all_parts)):
        if not is_record_file(part.place) and part.size <= MAX_WHOLE_TEXT_BYTES:
            yield FileChunk(b"".join(packed_chunks), TEXT_FORMAT, part.place)
            continue
        offset = 0
        for number, line in enumerate(split_lines(packed_chunks)):
            yield FileChunk(line, LINE_FORMAT, part.place, number, offset)
            offset += len(line)
