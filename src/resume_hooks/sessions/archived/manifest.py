"""The manifests of the vault: what is archived of a session, file by file.

One that can't be trusted is ignored.

A manifest is the one thing that counts: a file of the vault that no manifest names is left of
something interrupted.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

import orjson

from resume_hooks.paths import Where, is_session_id, read_regular
from resume_hooks.sessions.archived.layout import (
    MANIFEST,
    archive_folder,
    is_link,
    is_place,
    vault_folder,
)
from resume_hooks.storage import locks
from resume_hooks.storage.typed_rows import parse_row

VERSION = 1
"""Of the manifests; one of a newer engine is left alone."""

MAX_MANIFEST = 32 * 1024 * 1024
"""Bytes of a manifest: 20,000 files, each with a long name."""

_MOST_BYTES, _MOST_NS = 2**53, 2**63
"""Bounds of the numbers in a manifest: no file is larger, no time of one later."""

_PACK = re.compile(r"pack-[0-9]{1,9}\.xz")
_SHA = re.compile(r"[0-9a-f]{64}")


class ArchivedFile(NamedTuple):
    """An archived file. ``place`` is where it belongs, from the config home on; ``mtime_ns`` and ``mode`` as there.

    ``where`` names the pack, ``offset`` the file's first byte in it, unpacked; of a deleted session
    that was not packed yet it is ``""``: the file itself lies in the folder, as the client laid it
    out. ``seen`` is the size of the client's file when it was archived; ``size`` and ``sha256`` are
    of what is held, of a link of what it says.
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
        """Whether it is a symbolic link, which only a deleted session has."""
        return stat.S_ISLNK(self.mode)


def stored_file(place: str, status: os.stat_result) -> ArchivedFile:
    """A file of a deleted session as it lies in its place, or in the trash before it is packed."""
    mode = stat.S_IMODE(status.st_mode) & 0o777 | (
        stat.S_IFLNK if stat.S_ISLNK(status.st_mode) else 0
    )
    return ArchivedFile(place, status.st_size, "", status.st_mtime_ns, mode, "", 0, status.st_size)


class EarlierState(NamedTuple):
    """Files whose place was later taken by others that do not continue them."""

    archived_at: str
    parts: tuple[ArchivedFile, ...]


class About(NamedTuple):
    """What an archived session is found by without being opened; "" and () where the manifest does not say.

    ``created`` and ``ended`` are instants, ``titles`` are those that it answers to, ``pulls`` pull
    requests by number and address, ``listed`` whether listings show it, ``parent`` what its
    transcript says of the session that it came from: the fields of ``metadata.Parent``, none for an
    original.
    """

    created: str = ""
    ended: str = ""
    titles: tuple[str, ...] = ()
    tag: str = ""
    pulls: tuple[str, ...] = ()
    listed: bool = True
    parent: tuple[str, ...] = ()


class ArchivedSession(NamedTuple):
    """A session in the vault. ``place`` is where its transcript belongs, ``parts`` begin with it.

    Instants as there.

    ``size`` is what the session takes, ``stored`` what its packs take, in bytes. Not ``complete``:
    something could not be archived. ``home`` is the config home that it is from, ``""`` where the
    state folder lies in that and nobody shares it. ``deleted_at`` is when the user deleted it,
    ``""`` for what the vault holds; not ``complete`` is a delete that was interrupted, then, and
    its files may still lie where they were.
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
    about: About = About()
    home: str = ""
    deleted_at: str = ""

    @property
    def instant(self) -> str:
        """What the folder of a deleted session is called: when it was deleted, without colons."""
        return os.path.basename(self.folder)

    @property
    def locator(self) -> str:
        """What names this delete and no other of the session."""
        return f"{self.session_id}@{self.instant}"

    @property
    def transcript(self) -> ArchivedFile:
        """The session's own file."""
        return self.parts[0]

    @property
    def size(self) -> int:
        """Bytes of all that is archived of the session, unpacked."""
        return sum(part.size for part in self.parts)

    @property
    def project(self) -> str:
        """The name of the project folder that it came from."""
        return self.place.split("/")[1]

    @property
    def all_parts(self) -> Iterator[ArchivedFile]:
        """Every archived file, those of earlier states too."""
        yield from self.parts
        for earlier in self.earlier:
            yield from earlier.parts


def all_archived(where: Where, present: Container[str] = ()) -> list[ArchivedSession]:
    """Every archived session whose manifest can be read, but for those ``present`` elsewhere, the last written first.

    Only manifests are read.
    """
    found = (
        archived_of_id(session_id, where)
        for session_id in archived_ids(where)
        if session_id not in present
    )
    return sorted(filter(None, found), key=lambda each: (each.ended, each.session_id), reverse=True)


def archived_ids(where: Where) -> list[str]:
    """The ids that have a folder in the vault, sorted."""
    try:
        return sorted(name for name in os.listdir(vault_folder(where)) if is_session_id(name))
    except OSError:
        return []


def archived_of_id(session_id: str, where: Where) -> ArchivedSession | None:
    """The archived session with this id; None without one, or if its manifest can't be read."""
    if not is_session_id(session_id) or is_link(session_id, where):
        return None
    return read_manifest(archive_folder(session_id, where), session_id)


def read_manifest(folder: str, session_id: str) -> ArchivedSession | None:
    """The session whose manifest lies in a folder; None where it can't be read."""
    row = row_of(folder)
    if row.get("version") == VERSION:
        return _session_of_row(row, session_id, folder)
    return None


def unreadable(where: Where) -> list[str]:
    """Paths of the sessions' folders in the vault that hold something, beside a lock, and no manifest that can be read.

    The vault itself where it is a link or can't be listed.
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
    wanting = (
        name
        for name in sorted(names)
        if is_session_id(name) and archived_of_id(name, where) is None
    )
    return [
        path for path in (os.path.join(home, name) for name in wanting) if _holds_anything(path)
    ]


def _holds_anything(folder: str) -> bool:
    """Whether a session's folder holds anything, as far as can be told."""
    try:
        return os.path.islink(folder) or bool(set(os.listdir(folder)) - {locks.LOCK_NAME})
    except FileNotFoundError:
        return False
    except OSError:
        return True


def why_unreadable(session_id: str, where: Where) -> str:
    """Why a folder of the vault can't be used, as a sentence; ``""`` where it can, or there is no manifest in it."""
    path = os.path.join(archive_folder(session_id, where), MANIFEST)
    if link := is_link(session_id, where):
        return f"{link} is a symbolic link, so it was left alone"
    if not os.path.lexists(path) or archived_of_id(session_id, where) is not None:
        return ""
    version = row_of(archive_folder(session_id, where)).get("version")
    if isinstance(version, int) and version > VERSION:
        return f"{path} was written by a newer resume-hooks"
    return f"{path} can't be read as a manifest"


def to_bytes(archived: ArchivedSession) -> bytes:
    """The manifest of an archived session, as ``archived_of_id`` reads it."""
    row = archived._asdict() | {
        "version": VERSION,
        "earlier": [each._asdict() for each in archived.earlier],
    }
    del row["folder"]
    return orjson.dumps(row, default=list) + b"\n"


def row_of(folder: str) -> dict[str, object]:
    """What the manifest in a folder says, whoever wrote it; ``{}`` where it can't be read."""
    try:
        row = orjson.loads(read_regular(os.path.join(folder, MANIFEST), MAX_MANIFEST))
    except (OSError, ValueError):
        return {}
    if isinstance(row, dict):
        return row
    return {}


def _session_of_row(
    row: Mapping[str, object], session_id: str, folder: str
) -> ArchivedSession | None:
    home = row.get("home")
    home = home if isinstance(home, str) else ""
    archived = parse_row(ArchivedSession, {**row, "folder": folder, "about": {}, "home": home})
    if archived is None or archived.session_id != session_id or not 0 <= archived.stored < _MOST_NS:
        return None
    states = [archived.parts, *(earlier.parts for earlier in archived.earlier)]
    if not all(states) or not all(_is_sound(part, archived) for part in archived.all_parts):
        return None
    place = archived.transcript.place
    if place != archived.place or not place.endswith(f"/{session_id}.jsonl"):
        return None
    return archived._replace(about=parse_row(About, row.get("about")) or About())


def _is_sound(part: ArchivedFile, archived: ArchivedSession) -> bool:
    sizes = (part.size, part.mode, part.offset, part.seen)
    if (
        not all(0 <= each < _MOST_BYTES for each in sizes)
        or not -_MOST_NS <= part.mtime_ns < _MOST_NS
    ):
        return False
    packed = _PACK.fullmatch(part.where) and _SHA.fullmatch(part.sha256)
    return bool(packed or (archived.deleted_at and not part.where)) and is_place(
        part.place, archived.session_id
    )
