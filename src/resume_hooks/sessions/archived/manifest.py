"""Read and write the vault's manifests, which list the archived files of each session.

Invalid manifests are ignored. Files in the vault that no manifest lists are also ignored, because
they are left over from an interrupted operation.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from resume_hooks.paths import Where, is_session_id, list_subfolders, read_regular_file
from resume_hooks.sessions.archived.layout import (
    MANIFEST_NAME,
    REMOVED_FOLDER_SUFFIX,
    TRASH_FOLDER,
    archive_folder,
    find_archive_link,
    is_valid_archive_path,
    vault_folder,
)
from resume_hooks.storage import locks
from resume_hooks.storage.typed_rows import parse_row

MANIFEST_VERSION = 1
"""The version of the manifests that this engine writes. A manifest with a higher version was
written by a newer engine and is not changed."""

MAX_MANIFEST_BYTES = 32 * 1024 * 1024
"""The maximum size of a manifest in bytes. It is enough for 20,000 files with long names."""

_MAX_FILE_BYTES, _MAX_TIME_NS = 2**53, 2**63
"""Upper limits for the file sizes and for the times in a manifest."""

_PACK_NAME_PATTERN = re.compile(r"pack-[0-9]{1,9}\.xz")
_SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")


class ArchivedFile(NamedTuple):
    """A file in the vault or in the trash.

    ``place`` is its path relative to the config home, and ``mtime_ns`` and ``mode`` are those of
    the client's file. ``seen`` is the size of the client's file when it was archived. ``size`` and
    ``sha256`` describe the archived content (for a symbolic link, its target).

    ``where`` is the name of the pack that contains the content, and ``offset`` is the content's
    position in the unpacked pack. If a deleted session has not been packed yet, ``where`` is
    ``""``. The file is then in the folder of the deletion, at the path that ``path_in_archive``
    returns.
    """

    place: str
    size: int
    sha256: str
    mtime_ns: int
    mode: int
    where: str
    offset: int
    seen: int

    @property
    def is_link(self) -> bool:
        """Whether the file is a symbolic link, which is archived only for deleted sessions."""
        return stat.S_ISLNK(self.mode)


def describe_stored_file(relative_path: str, status: os.stat_result) -> ArchivedFile:
    """Describe a file of a session that is being deleted and has not been packed yet."""
    mode = stat.S_IMODE(status.st_mode) & 0o777 | (
        stat.S_IFLNK if stat.S_ISLNK(status.st_mode) else 0
    )
    return ArchivedFile(
        relative_path, status.st_size, "", status.st_mtime_ns, mode, "", 0, status.st_size
    )


class EarlierState(NamedTuple):
    """An earlier state of a session.

    ``parts`` contains only the files whose content was later replaced. Files to which the client
    only appended are left out.
    """

    archived_at: str
    parts: tuple[ArchivedFile, ...]


class ArchiveDetails(NamedTuple):
    """The details by which an archived session is found without unpacking it.

    A detail is ``""`` or ``()`` if the manifest does not have it. ``created`` and ``ended`` are
    timestamps. ``titles`` are all titles by which the session can be found, and ``pulls`` are the
    numbers and addresses of its pull requests. ``listed`` is true if lists show the session.
    ``parent`` has the values of the fields of ``provenance.Parent``, or is empty if the session has
    no parent.
    """

    created: str = ""
    ended: str = ""
    titles: tuple[str, ...] = ()
    tag: str = ""
    pulls: tuple[str, ...] = ()
    listed: bool = True
    parent: tuple[str, ...] = ()


class ArchivedSession(NamedTuple):
    """A session in the vault or in the trash.

    ``place`` is the path of its transcript relative to the config home, and the first of ``parts``
    is the transcript. Timestamps are in the format of transcripts. ``stored`` is the size of its
    packs in bytes. If ``complete`` is false, some files could not be archived. ``home`` is the
    session's config home, or ``""`` if the state folder is in the config home and no other config
    home uses it.

    ``deleted_at`` is the time at which the user deleted the session, or ``""`` for a session in the
    vault. If a deleted session is not ``complete``, its deletion was interrupted, and some files
    may still be in their original places.
    """

    session_id: str
    folder: str
    place: str
    title: str
    cwd: str
    ended: str
    archived_at: str
    parts: tuple[ArchivedFile, ...]
    stored: int
    complete: bool
    earlier: tuple[EarlierState, ...] = ()
    about: ArchiveDetails = ArchiveDetails()
    home: str = ""
    deleted_at: str = ""

    @property
    def deletion_folder_name(self) -> str:
        """The name of the deletion's folder, which is the time of the deletion without colons."""
        return os.path.basename(self.folder)

    @property
    def locator(self) -> str:
        """The locator of this deletion. It is unique even if the session was deleted several times."""
        return f"{self.session_id}@{self.deletion_folder_name}"

    @property
    def transcript(self) -> ArchivedFile:
        """The archived transcript of the session."""
        return self.parts[0]

    @property
    def size(self) -> int:
        """The total size in bytes of the session's files when unpacked."""
        return sum(part.size for part in self.parts)

    @property
    def project(self) -> str:
        """The name of the project folder that contained the session."""
        return self.place.split("/")[1]

    @property
    def all_parts(self) -> Iterator[ArchivedFile]:
        """All archived files of the session, including files of earlier states."""
        yield from self.parts
        for earlier in self.earlier:
            yield from earlier.parts


def list_archived(where: Where, present_ids: Container[str] = ()) -> list[ArchivedSession]:
    """Return the archived sessions with a readable manifest, the latest first.

    Sessions with an id in ``present_ids`` are left out. Only the manifests are read.
    """
    archived_sessions = (
        find_archived(session_id, where)
        for session_id in archived_ids(where)
        if session_id not in present_ids
    )
    return sorted(
        filter(None, archived_sessions),
        key=lambda each: (each.ended, each.session_id),
        reverse=True,
    )


def archived_ids(where: Where) -> list[str]:
    """Return the ids of the sessions that have a folder in the vault, sorted."""
    try:
        return sorted(name for name in os.listdir(vault_folder(where)) if is_session_id(name))
    except OSError:
        return []


def find_archived(session_id: str, where: Where) -> ArchivedSession | None:
    """Return the archived session with this id, or None if it has no readable manifest."""
    if not is_session_id(session_id) or find_archive_link(session_id, where):
        return None
    return read_manifest(archive_folder(session_id, where), session_id)


def list_deleted_sessions(where: Where) -> Iterator[ArchivedSession]:
    """Yield the deleted sessions in the trash.

    Sessions that version 0.2.0 deleted are left out, because their manifests have a different
    format.
    """
    for session_folder in list_subfolders(os.path.join(where.state, TRASH_FOLDER)):
        session_id = os.path.basename(session_folder)
        for folder in list_subfolders(session_folder) if is_session_id(session_id) else []:
            if folder.endswith(REMOVED_FOLDER_SUFFIX):
                continue
            deletion = read_manifest(folder, session_id)
            if deletion is not None and deletion.deleted_at:
                yield deletion


def read_manifest(folder: str, session_id: str) -> ArchivedSession | None:
    """Return the session that the manifest in a folder describes, or None if it can't be read."""
    row = read_manifest_row(folder)
    if row.get("version") == MANIFEST_VERSION:
        return _parse_archived_session(row, session_id, folder)
    return None


def unreadable_folders(where: Where) -> list[str]:
    """Return the sessions' folders in the vault that contain files but no readable manifest.

    If the vault itself is a symbolic link or can't be listed, return the vault's folder.
    """
    home = vault_folder(where)
    if os.path.islink(home):
        return [home]
    try:
        names = os.listdir(home)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return []
        return [home]
    session_ids = (
        name for name in sorted(names) if is_session_id(name) and find_archived(name, where) is None
    )
    return [
        path
        for path in (os.path.join(home, name) for name in session_ids)
        if _may_contain_files(path)
    ]


def _may_contain_files(folder: str) -> bool:
    """Check whether a session's folder may contain files other than a lock.

    The result is also true if the folder can't be listed.
    """
    try:
        return os.path.islink(folder) or bool(set(os.listdir(folder)) - {locks.LOCK_FILE_NAME})
    except FileNotFoundError:
        return False
    except OSError:
        return True


def unreadable_reason(session_id: str, where: Where) -> str:
    """Return a sentence that explains why a session's folder in the vault can't be used.

    Return ``""`` if the folder can be used or has no manifest.
    """
    path = os.path.join(archive_folder(session_id, where), MANIFEST_NAME)
    if link := find_archive_link(session_id, where):
        return f"{link} is a symbolic link, so it was left alone"
    if not os.path.lexists(path) or find_archived(session_id, where) is not None:
        return ""
    version = read_manifest_row(archive_folder(session_id, where)).get("version")
    if isinstance(version, int) and version > MANIFEST_VERSION:
        return f"{path} was written by a newer resume-hooks"
    return f"{path} is not a readable manifest"


def encode_manifest(archived: ArchivedSession) -> bytes:
    """Return the bytes of a session's manifest, which ``find_archived`` can read."""
    row = archived._asdict() | {
        "version": MANIFEST_VERSION,
        "earlier": [each._asdict() for each in archived.earlier],
    }
    del row["folder"]
    import orjson  # Imported here because few commands read or write a manifest.

    return orjson.dumps(row, default=list) + b"\n"


def read_manifest_row(folder: str) -> dict[str, object]:
    """Return the content of a folder's manifest without validating it, or ``{}`` if it can't be read."""
    import orjson  # Imported here because few commands read or write a manifest.

    try:
        row = orjson.loads(
            read_regular_file(os.path.join(folder, MANIFEST_NAME), MAX_MANIFEST_BYTES)
        )
    except (OSError, ValueError):
        return {}
    if isinstance(row, dict):
        return row
    return {}


def _parse_archived_session(
    row: Mapping[str, object], session_id: str, folder: str
) -> ArchivedSession | None:
    home = row.get("home")
    home = home if isinstance(home, str) else ""
    archived = parse_row(ArchivedSession, {**row, "folder": folder, "about": {}, "home": home})
    if (
        archived is None
        or archived.session_id != session_id
        or not 0 <= archived.stored < _MAX_TIME_NS
    ):
        return None
    states = [archived.parts, *(earlier.parts for earlier in archived.earlier)]
    if not all(states) or not all(_is_valid_file(part, archived) for part in archived.all_parts):
        return None
    place = archived.transcript.place
    if place != archived.place or not place.endswith(f"/{session_id}.jsonl"):
        return None
    return archived._replace(about=parse_row(ArchiveDetails, row.get("about")) or ArchiveDetails())


def _is_valid_file(part: ArchivedFile, archived: ArchivedSession) -> bool:
    numbers = (part.size, part.mode, part.offset, part.seen)
    if (
        not all(0 <= number < _MAX_FILE_BYTES for number in numbers)
        or not -_MAX_TIME_NS <= part.mtime_ns < _MAX_TIME_NS
    ):
        return False
    is_packed = _PACK_NAME_PATTERN.fullmatch(part.where) and _SHA256_PATTERN.fullmatch(part.sha256)
    return bool(is_packed or (archived.deleted_at and not part.where)) and is_valid_archive_path(
        part.place, archived.session_id
    )
