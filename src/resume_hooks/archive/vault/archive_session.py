"""Archive a session: put all its files into one pack of the vault, and pack them again when they change.

Invariant: the vault shares no bytes with the client's files, so changes to the client's files do
not affect it. If a file begins with its archived version, it replaces that version. Otherwise the
archived version is kept as an earlier state.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.archive.vault import commit
from resume_hooks.archive.vault.packs import PackWriter
from resume_hooks.archive.vault.permission import require_allowed
from resume_hooks.errors import SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import Where, open_regular
from resume_hooks.sessions.archived.layout import (
    FOLDERS_BY_ID,
    HISTORY,
    MAX_DEPTH,
    MAX_FILES,
    PROJECTS,
    archive_folder,
    config_home_name,
    path_of_place,
    place_in_archive,
)
from resume_hooks.sessions.archived.manifest import (
    ArchiveDetails,
    ArchivedFile,
    ArchivedSession,
    EarlierState,
    find_archived,
)
from resume_hooks.sessions.locator_forms import titles_of
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile, can_client_resume
from resume_hooks.sessions.transcript_files import subagents_by_session
from resume_hooks.storage.state_file import read_pieces
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent

MAX_TITLES = 100
"""The maximum number of titles and of pull requests in a manifest. No real session has more."""


class ClientFile(NamedTuple):
    """A file of the client. ``place`` is its path relative to the config home, with slashes."""

    place: str
    path: str
    status: os.stat_result


class ClientFiles:
    """A finder for the files of sessions.

    It lists the sub-agents next to transcripts only once per project folder.
    """

    def __init__(self, where: Where) -> None:
        self._where = where
        self._beside: dict[str, dict[str, list[str]]] = {}

    def of(
        self, session: SessionFile, *, deleting: bool = False
    ) -> tuple[list[ClientFile], list[str]]:
        """Return all files of a session, the transcript first, and a sentence for each file that can't be archived.

        For a deletion, tasks and symbolic links in the session's folders are included. Raises
        OSError if the transcript's status is unreadable.
        """
        self._missed: list[str] = []
        self._deleting = deleting
        folder = os.path.dirname(session.path)
        key = f"{PROJECTS}/{os.path.basename(folder)}"
        found = [
            ClientFile(f"{key}/{session.session_id}.jsonl", session.path, os.lstat(session.path))
        ]
        own = session.path.removesuffix(".jsonl")
        found += self._in(own, f"{key}/{session.session_id}", MAX_DEPTH)
        if folder not in self._beside:
            self._beside[folder] = subagents_by_session(folder)
        for path in self._beside[folder].get(session.session_id, []):
            found += self._file(path, f"{key}/{os.path.basename(path)}")
        for home in FOLDERS_BY_ID if deleting else [HISTORY]:
            place = f"{home}/{session.session_id}"
            by_id_folder = path_of_place(place, self._where)
            found += self._in(by_id_folder, place, MAX_DEPTH if deleting else 0)
        if len(found) > MAX_FILES:
            self._missed.append(f"{own} holds more than {MAX_FILES:,} files")
        return found[:MAX_FILES], self._missed

    def _in(self, folder: str, place: str, depth: int) -> Iterator[ClientFile]:
        if os.path.islink(folder):
            if self._deleting:
                return  # a symbolic link in place of a folder is not deleted
            self._missed.append(f"{folder} is a symbolic link")
            return
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._missed.append(f"{folder} can't be listed: {error.strerror}")
            return
        for entry in listed:
            if not entry.is_dir(follow_symlinks=False):
                yield from self._file(entry.path, f"{place}/{entry.name}")
            elif depth:
                yield from self._in(entry.path, f"{place}/{entry.name}", depth - 1)
            else:
                self._missed.append(f"{entry.path} is nested too deep")

    def _file(self, path: str, place: str) -> Iterator[ClientFile]:
        try:
            status = os.lstat(path)
        except OSError:
            return  # the file was deleted since the listing
        is_kind = stat.S_ISREG(status.st_mode) or (self._deleting and stat.S_ISLNK(status.st_mode))
        if is_kind and place == replace_surrogates(place):
            yield ClientFile(place, path, status)
        else:
            self._missed.append(f"{replace_surrogates(path)} is not a file that can be archived")


def describe_transcript(glance: HeadTail, parent: Sequence[str]) -> ArchiveDetails:
    """Return a transcript's metadata. ``parent`` has the fields that identify its parent."""
    return ArchiveDetails(
        created=replace_surrogates(glance.created),
        ended=replace_surrogates(glance.ended),
        titles=tuple(sorted(map(replace_surrogates, titles_of(glance))))[:MAX_TITLES],
        tag=replace_surrogates(glance.tag),
        pulls=tuple(sorted(map(replace_surrogates, glance.pull_requests)))[:MAX_TITLES],
        listed=glance.is_listed,
        parent=tuple(map(replace_surrogates, parent)),
    )


class _OldPackUnreadableError(Exception):
    """The error if the archived files can't be copied into a new pack."""


def archive_session(
    session: SessionFile,
    where: Where,
    *,
    client_files: ClientFiles | None = None,
    patience: float = commit.LOCK_SECONDS,
) -> ArchivedSession:
    """Archive a session with all of its files.

    If no file changed, this only reads the status of each file.

    Raises VaultOff if archiving is not allowed, UsageError if it is not a client's session,
    SessionNotFound if the session is gone, WriteFailed if the vault is not writable, and
    SessionOpen if another command keeps the session locked. After a failure the earlier archived
    copy is unchanged.
    """
    require_allowed(where)
    if not os.path.lexists(session.path):
        raise _make_gone_error(session.path)
    if not can_client_resume(session, where) or os.path.islink(os.path.dirname(session.path)):
        raise UsageError(
            f"{session.path} is not a session in a project folder",
            "Only such sessions are archived.",
        )
    client_files = client_files or ClientFiles(where)
    try:
        archived = find_archived(session.session_id, where)
        if archived and is_archive_current(archived, session, client_files):
            commit.reset_future_time(archived)
            return archived
        with commit.lock_archived(session.session_id, where, patience):
            old, (sources, failures) = (
                find_archived(session.session_id, where),
                client_files.of(session),
            )
            folder = archive_folder(session.session_id, where)
            current = describe_session(session, where)._replace(
                folder=folder, complete=not failures
            )
            files, earlier = _pack_files(old, *_split_by_change(old, sources), folder)
            parts = {part.place: part for part in files}
            whole_manifest = current._replace(
                parts=(parts.pop(current.place), *parts.values()), earlier=earlier
            )
            return commit.commit_manifest(whole_manifest, where)
    except FileNotFoundError as error:
        raise _make_gone_error(error.filename or session.path) from error
    except OSError as error:
        raise WriteFailed(
            f"{session.path} could not be archived: {commit.describe_cause(error, session.path)}",
            "The earlier archived copy is unchanged. Check free space and permissions.",
        ) from error


def is_archive_current(
    archived: ArchivedSession, session: SessionFile, client_files: ClientFiles
) -> bool:
    """Check whether the archived copy of a session is current. Return False if this is unknown."""
    try:
        sources, failures = client_files.of(session)
    except OSError:
        return False
    transcript = sources[0]
    is_same_transcript = (
        clock.from_epoch(transcript.status.st_mtime) == archived.ended
        and transcript.place == archived.place
    )
    changed = _split_by_change(archived, sources)[0] or archived.complete == bool(failures)
    return (is_same_transcript or _is_earlier_state(archived, transcript)) and not changed


def _make_gone_error(path: object) -> SessionNotFound:
    return SessionNotFound(f"{path} is gone", "Was it deleted just now?")


def _split_by_change(
    archived: ArchivedSession | None, sources: Sequence[ClientFile]
) -> tuple[list[ClientFile], list[ArchivedFile]]:
    """Return the client's files to pack, and the archived files to keep, including those that the client deleted."""
    if archived:
        parts = {place_in_archive(part.place): part for part in archived.parts}
    else:
        parts = {}
    packs = set(os.listdir(archived.folder)) if archived else set()
    new_sources = []
    for source in sources:
        name = place_in_archive(source.place)
        part = parts.get(name)
        if archived and _is_earlier_state(archived, source):
            continue
        if part and _is_unchanged(part, source) and part.where in packs:
            parts[name] = part._replace(place=source.place)
        else:
            new_sources.append(source)
            parts.pop(name, None)
    return new_sources, list(parts.values())


def _is_earlier_state(archived: ArchivedSession, source: ClientFile) -> bool:
    """Check whether a client's file is archived as an earlier state.

    This happens if two copies with the same id are archived alternately.
    """
    name = place_in_archive(source.place)
    for state in archived.earlier:
        for part in state.parts:
            if place_in_archive(part.place) == name and _is_unchanged(part, source):
                return True
    return False


def _is_unchanged(part: ArchivedFile, source: ClientFile) -> bool:
    return (part.seen, part.mtime_ns) == (source.status.st_size, source.status.st_mtime_ns)


def describe_session(session: SessionFile, where: Where) -> ArchivedSession:
    """Return the manifest of a session in its current state, without its files.

    Raises SessionNotFound if the session is gone.
    """
    glance = HeadTail(session.file)
    return ArchivedSession(
        session_id=session.session_id,
        folder="",
        place=f"{PROJECTS}/{os.path.basename(os.path.dirname(session.path))}/{session.session_id}.jsonl",
        title=replace_surrogates(plain_line(glance.title)),
        cwd=replace_surrogates(home_folder(glance, where)),
        ended=clock.from_epoch(glance.mtime),
        archived_at=clock.now(),
        parts=(),
        stored=0,
        complete=False,
        about=describe_transcript(glance, read_parent(session.file) or ()),
        home=config_home_name(where),
    )


def _pack_files(
    old: ArchivedSession | None,
    new: Sequence[ClientFile],
    unchanged: Sequence[ArchivedFile],
    folder: str,
) -> tuple[list[ArchivedFile], tuple[EarlierState, ...]]:
    """Return all archived files and earlier states. If any file is new, they are packed together.

    An unreadable pack is kept, and the client's files are still archived.
    """
    if old and not new:
        return list(unchanged), old.earlier
    try:
        return _write_pack(old, new, unchanged, folder)
    except _OldPackUnreadableError:
        return _write_pack(old, new, unchanged, folder, copies=False)


def _write_pack(
    old: ArchivedSession | None,
    new: Sequence[ClientFile],
    unchanged: Sequence[ArchivedFile],
    folder: str,
    *,
    copies: bool = True,
) -> tuple[list[ArchivedFile], tuple[EarlierState, ...]]:
    """Write a pack of the new files and, if ``copies``, of the archived files."""
    if old:
        old_parts = {place_in_archive(part.place): part for part in old.parts}
    else:
        old_parts = {}
    with PackWriter(folder, commit.next_pack_name(folder, old)) as pack:
        added: list[ArchivedFile] = []
        replaced: list[ArchivedFile] = []
        for source in new:
            part, before = _append_file(pack, source, old_parts.get(place_in_archive(source.place)))
            added.append(part)
            if before:
                replaced.append(before)
        states = list(old.earlier) if old else []
        if old and replaced:
            states.append(EarlierState(old.archived_at, tuple(replaced)))
        copied_files: dict[ArchivedFile, ArchivedFile] = {}
        if copies:
            to_copy = list(unchanged)
            for state in states:
                to_copy += state.parts
            try:
                copied_files = pack.copy(to_copy)
            except OSError as error:
                raise _OldPackUnreadableError from error
        pack.finish()
    earlier: list[EarlierState] = []
    for state in states:
        parts = tuple(copied_files.get(part, part) for part in state.parts)
        earlier.append(state._replace(parts=parts))
    return [*added, *(copied_files.get(part, part) for part in unchanged)], tuple(earlier)


def _append_file(
    pack: PackWriter, source: ClientFile, before: ArchivedFile | None
) -> tuple[ArchivedFile, ArchivedFile | None]:
    """Append a client's file in its current state.

    If the file does not begin with its archived version ``before``, also return that version.

    Bytes that are appended during the copy are archived the next time.
    """
    with open_regular(source.path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        mode = stat.S_IMODE(status.st_mode) & 0o777
        draft = ArchivedFile(source.place, 0, "", status.st_mtime_ns, mode, "", 0, status.st_size)
        prefix = _PrefixHash(before.size if before else 0)
        added = pack.add(draft, prefix.through(read_pieces(stream.fileno(), status.st_size)))
    if added.size < status.st_size:
        raise OSError(errno.EIO, "It was cut short while it was read", source.path)
    return added, None if before is None or prefix.sha256 == before.sha256 else before


class _PrefixHash:
    """The hash of the first bytes of a stream."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._whole = hashlib.sha256()

    def through(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks unchanged."""
        for piece in pieces:
            self._whole.update(piece[: self._left])
            self._left = max(0, self._left - len(piece))
            yield piece

    @property
    def sha256(self) -> str:
        """The hash as a hex string, or ``""`` if the stream is shorter."""
        if self._left:
            return ""
        return self._whole.hexdigest()
