"""List the secrets in sessions, each with its kind, location and age.

Neither a secret nor its digest is printed or stored. A small file in the state folder caches the
results for each file. If the cache is lost or damaged, or if the rules have changed, all files are
searched again.
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
    PLACE_FOR_SECRETS_IN_FOLDER_NAMES,
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
    find_archived_session,
    find_locations_in_state_folder,
    find_session_locations,
    is_record_file,
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
from resume_hooks.sessions.archived.layout import MANIFEST_NAME
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.storage import state_file

ProgressCallback = Callable[[int, int], None]
"""A function that is called with the number of bytes that have been searched, and the total number
of bytes."""

CACHE_FILE_NAME = "audit.json"
CACHE_VERSION = 2
MAX_CACHE_BYTES = 64 * 1024 * 1024
"""The maximum size of the cache file in bytes. This program never writes a larger cache file."""

MAX_CACHED_SECRETS_PER_FILE = 10_000
"""The maximum number of secrets per file that are cached. A file with more secrets is searched
again each time."""

_SHARED_FOLDER_KINDS = frozenset({BACKUP, VAULT_COPY, UNPACKED_COPY, TRASHED})
"""The kinds of folders whose files can belong to any session. If a file in such a folder cannot be
read, every audit reports it, regardless of the sessions that the audit searches."""


class Leak(NamedTuple):
    """A secret in a file.

    ``place`` is the kind of the file, for example ``transcript`` or ``trash``. If the secret is in
    the folder name that every record of the file repeats, ``place`` is ``folder name``, and the
    secret is reported once per file. ``record_reference`` is an argument for ``resume-hooks read``,
    or ``""`` if ``read`` cannot print the record. ``line_number`` counts from 0. ``offset`` and
    ``length`` give the position and the size of the secret in the file, in bytes. ``time`` is the
    record's time, or the file's time if the file has no records.
    """

    kind: str
    place: str
    session_id: str
    record_reference: str
    file_path: str
    line_number: int
    offset: int
    length: int
    record_uuid: str
    time: str


class Audit(NamedTuple):
    """The result of an audit.

    ``leaks`` are the secrets, oldest first. ``file_count`` and ``total_bytes`` are the number and
    the size of the searched files. ``unreadable_files`` contains a sentence for each file that
    could not be read. Such a file may contain more secrets.
    """

    leaks: list[Leak]
    file_count: int
    total_bytes: int
    bytes_read: int
    unreadable_files: list[str]
    warnings: list[str]


def audit_sessions_for_secrets(
    where: Where,
    *,
    sessions: Collection[str] | None,
    kinds: Collection[str] = (),
    start_time: str = "",
    progress: ProgressCallback = lambda _done_bytes, _total_bytes: None,
) -> Audit:
    """Search sessions for secrets. If ``sessions`` is None, search all sessions and the state folder.

    If ``kinds`` or ``start_time`` is given, return only secrets of these kinds, or from this time
    on. Files that have not changed since the last audit are not read again.
    """
    audit_run = _AuditRun(
        where, _measure_location_sizes(_find_locations(sessions, where)), progress
    )
    leaks = [
        leak for location in audit_run.bytes_by_location for leak in audit_run.find_leaks(location)
    ]
    warning = audit_run.cache.save_scans(has_searched_all_files=sessions is None)
    selected_leaks = [
        leak for leak in leaks if (not kinds or leak.kind in kinds) and leak.time >= start_time
    ]
    selected_leaks.sort(key=lambda leak: (leak.time, leak.file_path, leak.offset))
    return Audit(
        selected_leaks,
        len(audit_run.bytes_by_location),
        audit_run.total_bytes,
        audit_run.bytes_read,
        audit_run.unreadable_files,
        [warning] if warning else [],
    )


class AuditCache:
    """Caches, for each file, the secrets that the last audit found in it."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._path = os.path.join(where.state, CACHE_FILE_NAME)
        self._files = self._read_cached_scans()
        self._seen_paths: set[str] = set()
        self._is_changed = False

    def get_last_scan(self, path: str) -> FileScan | None:
        """Return the cached result of the last search of a file, or None if there is no valid one."""
        self._seen_paths.add(path)
        try:
            row = self._files[path]
            return FileScan._make([*row[:6], tuple(FoundSecret(*fields) for fields in row[6])])
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    def store_scan(self, path: str, scan: FileScan) -> None:
        """Cache the result of searching a file, unless too many secrets were found in it."""
        if len(scan.found_secrets) > MAX_CACHED_SECRETS_PER_FILE:
            return
        row = [*scan[:6], [list(finding) for finding in scan.found_secrets]]
        if self._files.get(path) != row:
            self._files[path] = row
            self._is_changed = True

    def save_scans(self, *, has_searched_all_files: bool) -> str:
        """Write the cache to its file. Return a warning if this fails, and otherwise ``""``.

        If all files were searched, ``has_searched_all_files`` is true, and the results for deleted
        files are removed.
        """
        if has_searched_all_files and self._files.keys() - self._seen_paths:
            self._files = {
                path: row for path, row in self._files.items() if path in self._seen_paths
            }
            self._is_changed = True
        if not self._is_changed:
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

    def _read_cached_scans(self) -> dict[str, Any]:
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
    """Searches files for secrets during one audit. A file with several hard links is read only once.

    ``bytes_by_location`` maps each file to its size in bytes.
    """

    def __init__(
        self, where: Where, bytes_by_location: dict[Location, int], progress: ProgressCallback
    ) -> None:
        self.cache = AuditCache(where)
        self.bytes_by_location = bytes_by_location
        self.total_bytes = sum(bytes_by_location.values())
        self.bytes_read = 0
        self.unreadable_files: list[str] = []
        self._where = where
        self._progress = progress
        self._done_bytes = 0
        self._scans_by_inode: dict[tuple[int, int], FileScan] = {}

    def find_leaks(self, location: Location) -> Iterator[Leak]:
        """Yield the secrets in a file. If the file exists but is unreadable, add it to ``unreadable_files``."""
        previous_bytes_read = self.bytes_read
        try:
            scan = self._scan_location(location)
        except OSError as error:
            if os.path.lexists(location.path):
                self.unreadable_files.append(
                    f"{location.path} could not be read: {error.strerror or error}"
                )
            return
        self._done_bytes += self.bytes_by_location[location] - (
            self.bytes_read - previous_bytes_read
        )
        self._progress(self._done_bytes, self.total_bytes)
        yield from _build_leaks(location, scan)

    def _add_bytes_read(self, byte_count: int) -> None:
        self.bytes_read += byte_count
        self._done_bytes += byte_count
        self._progress(self._done_bytes, self.total_bytes)

    def _scan_location(self, location: Location) -> FileScan:
        last_scan = self.cache.get_last_scan(location.path)
        archived = find_archived_session(location, self._where)
        if archived is not None or location.kind == VAULT_COPY:
            scan = self._scan_archived_session(location, archived, last_scan)
        else:
            status = os.lstat(location.path)
            name = (status.st_dev, status.st_ino)
            scan = self._scans_by_inode.get(name) or scan_file(
                location.path,
                last_scan,
                is_read_by_line=is_record_file(location.path),
                count_read_bytes=self._add_bytes_read,
            )
            self._scans_by_inode[name] = scan
        self.cache.store_scan(location.path, scan)
        return scan

    def _scan_archived_session(
        self, location: Location, archived: ArchivedSession | None, last_scan: FileScan | None
    ) -> FileScan:
        """Search a session's copy in the vault or trash.

        If the copy's manifest has not changed since the last search, return the result of that
        search. Raise OSError if the copy cannot be read.
        """
        if archived is None:
            if location.session_id:
                reason = manifest.unreadable_reason(location.session_id, self._where)
            else:
                reason = ""
            raise OSError(
                errno.EINVAL, reason or "The folder is a link, can't be listed, or has no note"
            )
        status = os.stat(os.path.join(location.path, MANIFEST_NAME))
        identity = (status.st_ino, self.bytes_by_location[location], status.st_mtime_ns)
        if last_scan and last_scan[:3] == identity:
            return last_scan
        findings = tuple(scan_chunks(read_archived_chunks(archived)))
        self._add_bytes_read(self.bytes_by_location[location])
        return FileScan(*identity, 0, 0, "", findings)


def _find_locations(sessions: Collection[str] | None, where: Where) -> Iterator[Location]:
    agent_files = (file for agent in list_other_agents(where) for file in agent.list_files())
    agent_locations = (Location(TRANSCRIPT, file.path, file.session_id, "") for file in agent_files)
    for location in (*find_session_locations({}, where), *agent_locations):
        is_unknown = (
            not location.session_id
            and location.kind in _SHARED_FOLDER_KINDS
            and not os.path.isfile(location.path)
        )
        if sessions is None or location.session_id in sessions or is_unknown:
            yield location
    if sessions is None:
        cache_path = os.path.join(where.state, CACHE_FILE_NAME)
        for location in find_locations_in_state_folder(where):
            if location.kind != INDEXED and location.path != cache_path:
                yield location


def _measure_location_sizes(locations: Iterable[Location]) -> dict[Location, int]:
    """Map each location to its size in bytes. The size of a folder is the total size of its files.

    Deleted files are omitted.
    """
    bytes_by_location = {}
    for location in locations:
        with contextlib.suppress(OSError):
            bytes_by_location[location] = os.lstat(location.path).st_size
            if location.kind in {VAULT_COPY, TRASHED} and os.path.isdir(location.path):
                bytes_by_location[location] = sum(
                    os.lstat(inner_path).st_size for inner_path in list_regular_files(location.path)
                )
    return bytes_by_location


def _build_leaks(location: Location, scan: FileScan) -> Iterator[Leak]:
    file_time = clock.timestamp_from_epoch(scan.mtime_ns / 1e9)
    for finding in scan.found_secrets:
        reference = ""
        is_transcript = location.kind == TRANSCRIPT and session_id_from_path(location.path)
        if is_transcript or (
            location.kind == VAULT_COPY
            and finding.archived_file_path.endswith(f"/{location.session_id}{TRANSCRIPT_SUFFIX}")
        ):
            reference = f"{location.session_id}:{finding.line_number}"
        elif location.kind == SUBAGENT and location.session_id:
            reference = (
                f"{location.session_id}/{subagent_name(location.path)}:{finding.line_number}"
            )
        is_folder = finding.archived_file_path == PLACE_FOR_SECRETS_IN_FOLDER_NAMES
        if finding.archived_file_path and not is_folder:
            file = os.path.join(location.path, finding.archived_file_path)
        else:
            file = location.path
        position_and_record = (
            finding.line_number,
            finding.offset,
            finding.length,
            finding.record_uuid,
            clock.normalize_timestamp(finding.time) or file_time,
        )
        yield Leak(
            finding.kind,
            PLACE_FOR_SECRETS_IN_FOLDER_NAMES if is_folder else location.kind,
            location.session_id,
            reference,
            file,
            *position_and_record,
        )
