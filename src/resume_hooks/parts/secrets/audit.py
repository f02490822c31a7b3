"""List the kind, place and age of every secret, never the secret itself or a digest of it.

Findings are cached in a small file in the state folder. If that is lost or damaged, or the rules
have changed, every file is scanned again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.parts.secrets.file_scan import (
    FOLDER,
    FileScan,
    FoundSecret,
    scan_file,
    scan_pieces,
)
from resume_hooks.parts.secrets.locations import (
    BACKUP,
    INDEXED,
    KEPT,
    READABLE,
    SUBAGENT,
    TRANSCRIPT,
    TRASHED,
    Location,
    archived_at,
    is_lines,
    pieces_of_kept,
    places_of_notes,
    places_of_sessions,
    regular_files_below,
)
from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    is_private_folder,
    read_regular,
    session_id_from_path,
)
from resume_hooks.redaction.load_rules import token_rules
from resume_hooks.sessions.agents.registry import other_agents
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.layout import MANIFEST
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.storage import state_file

Progress = Callable[[int, int], None]
"""Called with the bytes processed so far and the total bytes."""

FILE_NAME = "audit.json"
VERSION = 2
LARGEST = 64 * 1024 * 1024
"""The maximum bytes of the cache; we never write a larger one."""

MOST_KEPT = 10_000
"""The maximum number of cached findings per file; a file with more is scanned each time."""

_KEEPERS = frozenset({BACKUP, KEPT, READABLE, TRASHED})
"""Our own places that can contain any session; an unreadable file there is reported for each session."""


class Leak(NamedTuple):
    """A secret in a place. ``reference`` is an argument for ``read``, or "" if ``read`` cannot print the record.

    ``place`` is the kind of file (transcript, sub-agent, sidecar, backup, trash, vault ...), or
    ``FOLDER`` for the folder name in records, reported once per file. ``line`` is 0-based. ``time``
    is that of the record or else of the file. ``length`` is in bytes as written in the file.
    """

    kind: str
    place: str
    session_id: str
    reference: str
    file: str
    line: int
    offset: int
    length: int
    uuid: str
    time: str


class Audit(NamedTuple):
    """The result of an audit: the leaks, oldest first, the number of files and bytes covered, and warnings.

    ``unread`` explains why places could not be read; they may contain more secrets.
    """

    leaks: list[Leak]
    files: int
    size: int
    read: int
    unread: list[str]
    warnings: list[str]


def audit_sessions(
    where: Where,
    *,
    sessions: Collection[str] | None,
    kinds: Collection[str] = (),
    since: str = "",
    progress: Progress = lambda _done, _all: None,
) -> Audit:
    """Return every secret in these sessions; with None, in all sessions and in our own notes.

    ``kinds`` and ``since`` (an instant) filter the result. An unchanged file is not read again.
    """
    work = _AuditRun(where, _sizes_of_places(_places_to_audit(sessions, where)), progress)
    leaks = [leak for place in work.sizes for leak in work.leaks_of_place(place)]
    failed = work.memory.save_scans(everything=sessions is None)
    wanted = [leak for leak in leaks if (not kinds or leak.kind in kinds) and leak.time >= since]
    wanted.sort(key=lambda leak: (leak.time, leak.file, leak.offset))
    return Audit(
        wanted, len(work.sizes), work.size, work.read, work.unread, [failed] if failed else []
    )


class AuditCache:
    """The last scan of every file, by path."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._path = os.path.join(where.state, FILE_NAME)
        self._files = self._read_scans()
        self._seen: set[str] = set()
        self._changed = False

    def last_scan(self, path: str) -> FileScan | None:
        """Return the last scan of a file, or None if there is no readable one."""
        self._seen.add(path)
        try:
            row = self._files[path]
            return FileScan._make([*row[:6], tuple(FoundSecret(*each) for each in row[6])])
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    def remember_scan(self, path: str, scanned: FileScan) -> None:
        """Store a scan."""
        if len(scanned.findings) > MOST_KEPT:
            return
        row = [*scanned[:6], [list(found) for found in scanned.findings]]
        if self._files.get(path) != row:
            self._files[path] = row
            self._changed = True

    def save_scans(self, *, everything: bool) -> str:
        """Save the cache; after a scan of ``everything``, deleted files are dropped.

        Return a warning or "".
        """
        if everything and self._files.keys() - self._seen:
            self._files = {path: row for path, row in self._files.items() if path in self._seen}
            self._changed = True
        if not self._changed:
            return ""
        try:
            content = orjson.dumps(
                {"version": VERSION, "rules": token_rules().version, "files": self._files}
            )
            state_file.replace_state_file(self._path, content, self._where)
        except (OSError, TypeError) as error:
            why = getattr(error, "strerror", "") or error
            return (
                f"The findings could not be stored, so the next --list reads all files again: {why}"
            )
        return ""

    def _read_scans(self) -> dict[str, Any]:
        if not is_private_folder(self._where.state, self._where):
            return {}
        try:
            value = orjson.loads(read_regular(self._path, LARGEST))
        except (OSError, ValueError):
            return {}
        ours = isinstance(value, dict) and (value.get("version"), value.get("rules")) == (
            VERSION,
            token_rules().version,
        )
        files = value.get("files") if ours else None
        if isinstance(files, dict):
            return files
        return {}


class _AuditRun:
    """The scans of one audit, for places with their sizes in bytes.

    A file with several names is read once.
    """

    def __init__(self, where: Where, sizes: dict[Location, int], progress: Progress) -> None:
        self.memory = AuditCache(where)
        self.sizes = sizes
        self.size = sum(sizes.values())
        self.read = 0
        self.unread: list[str] = []
        self._where = where
        self._progress = progress
        self._done = 0
        self._looks: dict[tuple[int, int], FileScan] = {}

    def leaks_of_place(self, place: Location) -> Iterator[Leak]:
        """Yield the secrets in a place; an existing place that cannot be read is added to ``unread``."""
        before = self.read
        try:
            scanned = self._scan_place(place)
        except OSError as error:
            if os.path.lexists(place.path):
                self.unread.append(f"{place.path} could not be read: {error.strerror or error}")
            return
        self._done += self.sizes[place] - (self.read - before)
        self._progress(self._done, self.size)
        yield from _leaks_of_scan(place, scanned)

    def _count_read(self, size: int) -> None:
        self.read += size
        self._done += size
        self._progress(self._done, self.size)

    def _scan_place(self, place: Location) -> FileScan:
        known = self.memory.last_scan(place.path)
        kept = archived_at(place, self._where)
        if kept is not None or place.kind == KEPT:
            scanned = self._scan_archived(place, kept, known)
        else:
            status = os.lstat(place.path)
            name = (status.st_dev, status.st_ino)
            scanned = self._looks.get(name) or scan_file(
                place.path, known, lines=is_lines(place.path), told=self._count_read
            )
            self._looks[name] = scanned
        self.memory.remember_scan(place.path, scanned)
        return scanned

    def _scan_archived(
        self, place: Location, kept: ArchivedSession | None, known: FileScan | None
    ) -> FileScan:
        """Scan a session's copy in the vault or trash, unless its note is unchanged since the last scan.

        Raise OSError.
        """
        if kept is None:
            if place.session_id:
                why = manifest.why_unreadable(place.session_id, self._where)
            else:
                why = ""
            raise OSError(errno.EINVAL, why or "It is a link, can't be listed, or has no note")
        status = os.stat(os.path.join(place.path, MANIFEST))
        told = (status.st_ino, self.sizes[place], status.st_mtime_ns)
        if known and known[:3] == told:
            return known
        findings = tuple(scan_pieces(pieces_of_kept(kept)))
        self._count_read(self.sizes[place])
        return FileScan(*told, 0, 0, "", findings)


def _places_to_audit(sessions: Collection[str] | None, where: Where) -> Iterator[Location]:
    files = (file for agent in other_agents(where) for file in agent.files())
    elsewhere = (Location(TRANSCRIPT, file.path, file.session_id, "") for file in files)
    for place in (*places_of_sessions({}, where), *elsewhere):
        unknown = not place.session_id and place.kind in _KEEPERS and not os.path.isfile(place.path)
        if sessions is None or place.session_id in sessions or unknown:
            yield place
    if sessions is None:
        own = os.path.join(where.state, FILE_NAME)
        for place in places_of_notes(where):
            if place.kind != INDEXED and place.path != own:
                yield place


def _sizes_of_places(places: Iterable[Location]) -> dict[Location, int]:
    """Return the size of each file, or of an archived session's folder.

    Deleted files are left out.
    """
    sizes = {}
    for place in places:
        with contextlib.suppress(OSError):
            sizes[place] = os.lstat(place.path).st_size
            if place.kind in {KEPT, TRASHED} and os.path.isdir(place.path):
                sizes[place] = sum(
                    os.lstat(inner).st_size for inner in regular_files_below(place.path)
                )
    return sizes


def _leaks_of_scan(place: Location, scanned: FileScan) -> Iterator[Leak]:
    when = clock.from_epoch(scanned.mtime_ns / 1e9)
    for found in scanned.findings:
        reference = ""
        own = place.kind == TRANSCRIPT and session_id_from_path(place.path)
        if own or (
            place.kind == KEPT and found.part.endswith(f"/{place.session_id}{TRANSCRIPT_SUFFIX}")
        ):
            reference = f"{place.session_id}:{found.line}"
        elif place.kind == SUBAGENT and place.session_id:
            reference = f"{place.session_id}/{subagent_name(place.path)}:{found.line}"
        named = found.part == FOLDER
        if found.part and not named:
            file = os.path.join(place.path, found.part)
        else:
            file = place.path
        at = (
            found.line,
            found.offset,
            found.length,
            found.uuid,
            clock.normalize_timestamp(found.time) or when,
        )
        yield Leak(
            found.kind, FOLDER if named else place.kind, place.session_id, reference, file, *at
        )
