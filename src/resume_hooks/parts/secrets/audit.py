"""List the kind, location and age of every secret, but never the secret itself or a digest of it.

Findings are cached in a small file in the state folder. If the file is lost or damaged, or if the
rules have changed, every file is scanned again.
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
    FOLDER_NAME,
    FileScan,
    FoundSecret,
    scan_chunks,
    scan_file,
)
from resume_hooks.parts.secrets.locations import (
    BACKUP,
    INDEXED,
    SUBAGENT,
    TRANSCRIPT,
    TRASHED,
    UNPACKED_COPY,
    VAULT_COPY,
    Location,
    contains_record_lines,
    find_archived_session,
    find_session_places,
    find_state_places,
    list_regular_files,
    read_archived_chunks,
)
from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    is_private_folder,
    read_regular_file,
    session_id_from_path,
)
from resume_hooks.redaction.load_rules import token_rules
from resume_hooks.sessions.agents.registry import list_other_agents
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.layout import MANIFEST
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.storage import state_file

Progress = Callable[[int, int], None]
"""Called with the number of bytes processed so far and the total number of bytes."""

CACHE_FILE = "audit.json"
CACHE_VERSION = 2
MAX_CACHE_BYTES = 64 * 1024 * 1024
"""The maximum size of the cache in bytes. We never write a larger cache."""

MAX_CACHED_SECRETS_PER_FILE = 10_000
"""The maximum number of cached findings per file. A file with more findings is scanned each time."""

_ANY_SESSION_KINDS = frozenset({BACKUP, VAULT_COPY, UNPACKED_COPY, TRASHED})
"""Our own folders that can contain any session. An unreadable file in them is reported for each session."""


class Leak(NamedTuple):
    """A secret in a file. ``reference`` is an argument for ``read``, or ``""`` if ``read`` cannot print the record.

    ``place`` is the kind of file (transcript, sub-agent, sidecar, backup, trash, vault ...). A
    secret in a folder name that records contain has the place ``FOLDER_NAME``, and is reported once
    per file. ``line`` is 0-based. ``time`` is the record's time, or else the file's. ``length`` is
    in bytes of the file.
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
    """The result of an audit: the secrets found, oldest first, the number of files and bytes searched, and warnings.

    ``unreadable_files`` explains why some files could not be read. They may contain more secrets.
    """

    leaks: list[Leak]
    file_count: int
    total_bytes: int
    bytes_read: int
    unreadable_files: list[str]
    warnings: list[str]


def audit_sessions(
    where: Where,
    *,
    sessions: Collection[str] | None,
    kinds: Collection[str] = (),
    start_time: str = "",
    progress: Progress = lambda _done, _all: None,
) -> Audit:
    """Return every secret in the given sessions. If they are None, search all sessions and our own notes.

    Only secrets of the given ``kinds`` and since the time ``start_time`` are returned. Unchanged
    files are not read again.
    """
    audit_run = _AuditRun(where, _measure_places(_find_places(sessions, where)), progress)
    leaks = [
        leak for location in audit_run.bytes_by_place for leak in audit_run.find_leaks(location)
    ]
    warning = audit_run.cache.save_scans(is_complete=sessions is None)
    selected_leaks = [
        leak for leak in leaks if (not kinds or leak.kind in kinds) and leak.time >= start_time
    ]
    selected_leaks.sort(key=lambda leak: (leak.time, leak.file, leak.offset))
    return Audit(
        selected_leaks,
        len(audit_run.bytes_by_place),
        audit_run.size,
        audit_run.bytes_read,
        audit_run.unreadable_files,
        [warning] if warning else [],
    )


class AuditCache:
    """The last scan of every file, by path."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._path = os.path.join(where.state, CACHE_FILE)
        self._files = self._read_scans()
        self._seen: set[str] = set()
        self._changed = False

    def last_scan(self, path: str) -> FileScan | None:
        """Return the last scan of a file, or None if there is no valid one."""
        self._seen.add(path)
        try:
            row = self._files[path]
            return FileScan._make([*row[:6], tuple(FoundSecret(*fields) for fields in row[6])])
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    def store_scan(self, path: str, scan: FileScan) -> None:
        """Store a scan."""
        if len(scan.findings) > MAX_CACHED_SECRETS_PER_FILE:
            return
        row = [*scan[:6], [list(finding) for finding in scan.findings]]
        if self._files.get(path) != row:
            self._files[path] = row
            self._changed = True

    def save_scans(self, *, is_complete: bool) -> str:
        """Save the cache. If the scan ``is_complete``, the entries of deleted files are dropped.

        Return a warning, or ``""``.
        """
        if is_complete and self._files.keys() - self._seen:
            self._files = {path: row for path, row in self._files.items() if path in self._seen}
            self._changed = True
        if not self._changed:
            return ""
        try:
            content = orjson.dumps(
                {"version": CACHE_VERSION, "rules": token_rules().version, "files": self._files}
            )
            state_file.replace_state_file(self._path, content, self._where)
        except (OSError, TypeError) as error:
            reason = getattr(error, "strerror", "") or error
            return f"The findings could not be stored, so the next --list reads all files again: {reason}"
        return ""

    def _read_scans(self) -> dict[str, Any]:
        if not is_private_folder(self._where.state, self._where):
            return {}
        try:
            value = orjson.loads(read_regular_file(self._path, MAX_CACHE_BYTES))
        except (OSError, ValueError):
            return {}
        is_current = isinstance(value, dict) and (value.get("version"), value.get("rules")) == (
            CACHE_VERSION,
            token_rules().version,
        )
        files = value.get("files") if is_current else None
        if isinstance(files, dict):
            return files
        return {}


class _AuditRun:
    """The scans of one audit. ``bytes_by_place`` maps each file to its size.

    A file with several hard links is read once.
    """

    def __init__(
        self, where: Where, bytes_by_place: dict[Location, int], progress: Progress
    ) -> None:
        self.cache = AuditCache(where)
        self.bytes_by_place = bytes_by_place
        self.size = sum(bytes_by_place.values())
        self.bytes_read = 0
        self.unreadable_files: list[str] = []
        self._where = where
        self._progress = progress
        self._done = 0
        self._scans_by_inode: dict[tuple[int, int], FileScan] = {}

    def find_leaks(self, location: Location) -> Iterator[Leak]:
        """Yield the secrets in a file. If an existing file cannot be read, add it to ``unreadable_files``."""
        previous_bytes_read = self.bytes_read
        try:
            scan = self._scan_place(location)
        except OSError as error:
            if os.path.lexists(location.path):
                self.unreadable_files.append(
                    f"{location.path} could not be read: {error.strerror or error}"
                )
            return
        self._done += self.bytes_by_place[location] - (self.bytes_read - previous_bytes_read)
        self._progress(self._done, self.size)
        yield from _build_leaks(location, scan)

    def _add_bytes_read(self, byte_count: int) -> None:
        self.bytes_read += byte_count
        self._done += byte_count
        self._progress(self._done, self.size)

    def _scan_place(self, location: Location) -> FileScan:
        last_scan = self.cache.last_scan(location.path)
        archived = find_archived_session(location, self._where)
        if archived is not None or location.kind == VAULT_COPY:
            scan = self._scan_archived(location, archived, last_scan)
        else:
            status = os.lstat(location.path)
            name = (status.st_dev, status.st_ino)
            scan = self._scans_by_inode.get(name) or scan_file(
                location.path,
                last_scan,
                by_line=contains_record_lines(location.path),
                count_read=self._add_bytes_read,
            )
            self._scans_by_inode[name] = scan
        self.cache.store_scan(location.path, scan)
        return scan

    def _scan_archived(
        self, location: Location, archived: ArchivedSession | None, last_scan: FileScan | None
    ) -> FileScan:
        """Scan a session's copy in the vault or trash, unless the copy's note is unchanged since the last scan.

        Raise OSError.
        """
        if archived is None:
            if location.session_id:
                reason = manifest.unreadable_reason(location.session_id, self._where)
            else:
                reason = ""
            raise OSError(
                errno.EINVAL, reason or "The folder is a link, can't be listed, or has no note"
            )
        status = os.stat(os.path.join(location.path, MANIFEST))
        identity = (status.st_ino, self.bytes_by_place[location], status.st_mtime_ns)
        if last_scan and last_scan[:3] == identity:
            return last_scan
        findings = tuple(scan_chunks(read_archived_chunks(archived)))
        self._add_bytes_read(self.bytes_by_place[location])
        return FileScan(*identity, 0, 0, "", findings)


def _find_places(sessions: Collection[str] | None, where: Where) -> Iterator[Location]:
    agent_files = (file for agent in list_other_agents(where) for file in agent.list_files())
    agent_places = (Location(TRANSCRIPT, file.path, file.session_id, "") for file in agent_files)
    for location in (*find_session_places({}, where), *agent_places):
        is_unknown = (
            not location.session_id
            and location.kind in _ANY_SESSION_KINDS
            and not os.path.isfile(location.path)
        )
        if sessions is None or location.session_id in sessions or is_unknown:
            yield location
    if sessions is None:
        cache_path = os.path.join(where.state, CACHE_FILE)
        for location in find_state_places(where):
            if location.kind != INDEXED and location.path != cache_path:
                yield location


def _measure_places(locations: Iterable[Location]) -> dict[Location, int]:
    """Return the size of each file, or of an archived session's folder.

    Deleted files are left out.
    """
    bytes_by_place = {}
    for location in locations:
        with contextlib.suppress(OSError):
            bytes_by_place[location] = os.lstat(location.path).st_size
            if location.kind in {VAULT_COPY, TRASHED} and os.path.isdir(location.path):
                bytes_by_place[location] = sum(
                    os.lstat(inner_path).st_size for inner_path in list_regular_files(location.path)
                )
    return bytes_by_place


def _build_leaks(place: Location, scan: FileScan) -> Iterator[Leak]:
    file_time = clock.timestamp_from_epoch(scan.mtime_ns / 1e9)
    for finding in scan.findings:
        reference = ""
        is_transcript = place.kind == TRANSCRIPT and session_id_from_path(place.path)
        if is_transcript or (
            place.kind == VAULT_COPY
            and finding.part.endswith(f"/{place.session_id}{TRANSCRIPT_SUFFIX}")
        ):
            reference = f"{place.session_id}:{finding.line}"
        elif place.kind == SUBAGENT and place.session_id:
            reference = f"{place.session_id}/{subagent_name(place.path)}:{finding.line}"
        is_folder = finding.part == FOLDER_NAME
        if finding.part and not is_folder:
            file = os.path.join(place.path, finding.part)
        else:
            file = place.path
        location = (
            finding.line,
            finding.offset,
            finding.length,
            finding.uuid,
            clock.normalize_timestamp(finding.time) or file_time,
        )
        yield Leak(
            finding.kind,
            FOLDER_NAME if is_folder else place.kind,
            place.session_id,
            reference,
            file,
            *location,
        )
