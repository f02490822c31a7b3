"""Archive a session: pack all its files into the vault, and pack them again when they change.

The vault's files are never hard links to the client's files, so changes to the client's files do
not affect the vault. If the client has only appended to a file, the new version replaces the
archived version. Otherwise the archived version is kept as an earlier state.
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
from resume_hooks.archive.vault.permission import require_archiving_allowed
from resume_hooks.errors import SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import Where, open_regular
from resume_hooks.sessions.archived.layout import (
    FOLDERS_WITH_ID_SUBFOLDERS,
    HISTORY_FOLDER,
    MAX_SESSION_FILES,
    MAX_SESSION_FOLDER_DEPTH,
    PROJECTS_FOLDER,
    archive_folder,
    config_home_name,
    path_in_archive,
    path_in_config_home,
)
from resume_hooks.sessions.archived.manifest import (
    ArchiveDetails,
    ArchivedFile,
    ArchivedSession,
    EarlierState,
    find_archived,
)
from resume_hooks.sessions.locator_forms import session_titles
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session_files import SessionFile, can_client_resume
from resume_hooks.sessions.transcript_files import subagents_by_session
from resume_hooks.storage.state_file import read_chunks
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent

MAX_ARCHIVED_TITLES = 100
"""The maximum number of titles, and of pull requests, in a manifest. Real sessions have fewer of
each."""


class ClientFile(NamedTuple):
    """A file of the client.

    ``relative_path`` is relative to the config home, with slashes.
    """

    relative_path: str
    path: str
    status: os.stat_result


class ClientFiles:
    """Finds the files of sessions.

    The sub-agents next to the transcripts in a project folder are listed only once.
    """

    def __init__(self, where: Where) -> None:
        self._where = where
        self._subagents_by_folder: dict[str, dict[str, list[str]]] = {}

    def find_files_and_problems(
        self, session: SessionFile, *, for_deletion: bool = False
    ) -> tuple[list[ClientFile], list[str]]:
        """Return the files of a session, and a sentence about each file that cannot be archived.

        The transcript comes first. For a deletion, the session's tasks and the symbolic links in
        its folders are included. Raises OSError if the transcript's status cannot be read.
        """
        self._failures: list[str] = []
        self._is_for_deletion = for_deletion
        folder = os.path.dirname(session.path)
        key = f"{PROJECTS_FOLDER}/{os.path.basename(folder)}"
        files = [
            ClientFile(f"{key}/{session.session_id}.jsonl", session.path, os.lstat(session.path))
        ]
        session_folder = session.path.removesuffix(".jsonl")
        files += self._scan_folder(
            session_folder, f"{key}/{session.session_id}", MAX_SESSION_FOLDER_DEPTH
        )
        if folder not in self._subagents_by_folder:
            self._subagents_by_folder[folder] = subagents_by_session(folder)
        for path in self._subagents_by_folder[folder].get(session.session_id, []):
            files += self._list_file_if_archivable(path, f"{key}/{os.path.basename(path)}")
        for config_folder in FOLDERS_WITH_ID_SUBFOLDERS if for_deletion else [HISTORY_FOLDER]:
            place = f"{config_folder}/{session.session_id}"
            by_id_folder = path_in_config_home(place, self._where)
            files += self._scan_folder(
                by_id_folder, place, MAX_SESSION_FOLDER_DEPTH if for_deletion else 0
            )
        if len(files) > MAX_SESSION_FILES:
            self._failures.append(f"{session_folder} has more than {MAX_SESSION_FILES:,} files")
        return files[:MAX_SESSION_FILES], self._failures

    def _scan_folder(self, folder: str, relative_path: str, depth: int) -> Iterator[ClientFile]:
        if os.path.islink(folder):
            if self._is_for_deletion:
                # The user may have replaced the folder with a symbolic link, which a deletion
                # leaves as it is.
                return
            self._failures.append(f"{folder} is a symbolic link")
            return
        try:
            with os.scandir(folder) as entries:
                sorted_entries = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._failures.append(f"{folder} can't be listed: {error.strerror}")
            return
        for entry in sorted_entries:
            if not entry.is_dir(follow_symlinks=False):
                yield from self._list_file_if_archivable(
                    entry.path, f"{relative_path}/{entry.name}"
                )
            elif depth:
                yield from self._scan_folder(entry.path, f"{relative_path}/{entry.name}", depth - 1)
            else:
                self._failures.append(f"{entry.path} is nested too deeply")

    def _list_file_if_archivable(self, path: str, relative_path: str) -> Iterator[ClientFile]:
        try:
            status = os.lstat(path)
        except OSError:
            return  # The file was deleted after it was listed.
        is_archivable = stat.S_ISREG(status.st_mode) or (
            self._is_for_deletion and stat.S_ISLNK(status.st_mode)
        )
        if is_archivable and relative_path == replace_surrogates(relative_path):
            yield ClientFile(relative_path, path, status)
        else:
            self._failures.append(f"{replace_surrogates(path)} is not a file that can be archived")


def describe_transcript(head_tail: HeadTail, parent: Sequence[str]) -> ArchiveDetails:
    """Return the details of a transcript that are stored in the manifest and used to find the session.

    ``parent`` has the values of the fields of ``provenance.Parent``.
    """
    return ArchiveDetails(
        created=replace_surrogates(head_tail.created_at),
        ended=replace_surrogates(head_tail.ended_at),
        titles=tuple(sorted(map(replace_surrogates, session_titles(head_tail))))[
            :MAX_ARCHIVED_TITLES
        ],
        tag=replace_surrogates(head_tail.tag),
        pulls=tuple(sorted(map(replace_surrogates, head_tail.pull_requests)))[:MAX_ARCHIVED_TITLES],
        listed=head_tail.is_shown_in_lists,
        parent=tuple(map(replace_surrogates, parent)),
    )


class _OldPackUnreadableError(Exception):
    """Raised if the archived files cannot be copied from the old pack into a new pack."""


def archive_session(
    session: SessionFile,
    where: Where,
    *,
    client_files: ClientFiles | None = None,
    max_wait_seconds: float = commit.MAX_LOCK_WAIT_SECONDS,
) -> ArchivedSession:
    """Archive a session with all of its files.

    If no file has changed since it was archived, only the status of each file is read.

    Raises VaultOff if archiving is not allowed, UsageError if the session is not in a project
    folder, SessionNotFound if its file was deleted, WriteFailed if the vault cannot be written, and
    SessionInUse if another command keeps the session locked. After a failure, the earlier archived
    copy is unchanged.
    """
    require_archiving_allowed(where)
    if not os.path.lexists(session.path):
        raise _make_missing_error(session.path)
    if not can_client_resume(session, where) or os.path.islink(os.path.dirname(session.path)):
        raise UsageError(
            f"{session.path} is not a session in a project folder",
            "Only such sessions are archived.",
        )
    client_files = client_files or ClientFiles(where)
    try:
        archived = find_archived(session.session_id, where)
        if archived and is_archive_current(archived, session, client_files):
            commit.reset_future_mtime(archived)
            return archived
        with commit.lock_archived(session.session_id, where, max_wait_seconds):
            old_copy, (sources, failures) = (
                find_archived(session.session_id, where),
                client_files.find_files_and_problems(session),
            )
            folder = archive_folder(session.session_id, where)
            new_manifest = describe_session(session, where)._replace(
                folder=folder, complete=not failures
            )
            packed_files, earlier_states = _pack_files(
                old_copy, *_split_changed_files(old_copy, sources), folder
            )
            parts = {part.place: part for part in packed_files}
            whole_manifest = new_manifest._replace(
                parts=(parts.pop(new_manifest.place), *parts.values()), earlier=earlier_states
            )
            return commit.commit_manifest(whole_manifest, where)
    except FileNotFoundError as error:
        raise _make_missing_error(error.filename or session.path) from error
    except OSError as error:
        raise WriteFailed(
            f"{session.path} could not be archived: {commit.describe_cause(error, session.path)}",
            "Check free space and permissions. An earlier archived copy is unchanged.",
        ) from error


def is_archive_current(
    archived: ArchivedSession, session: SessionFile, client_files: ClientFiles
) -> bool:
    """Check whether the archived copy of a session is up to date. Return False if that is unknown."""
    try:
        sources, failures = client_files.find_files_and_problems(session)
    except OSError:
        return False
    transcript = sources[0]
    is_same_transcript = (
        clock.timestamp_from_epoch(transcript.status.st_mtime) == archived.ended
        and transcript.relative_path == archived.place
    )
    has_changes = _split_changed_files(archived, sources)[0] or archived.complete == bool(failures)
    return (is_same_transcript or _is_earlier_state(archived, transcript)) and not has_changes


def _make_missing_error(path: object) -> SessionNotFound:
    return SessionNotFound(f"{path} is gone", "It may have just been deleted.")


def _split_changed_files(
    archived: ArchivedSession | None, sources: Sequence[ClientFile]
) -> tuple[list[ClientFile], list[ArchivedFile]]:
    """Return the client's files that must be packed, and the archived files that are still current.

    Archived files that the client has deleted also count as current.
    """
    if archived:
        parts = {path_in_archive(part.place): part for part in archived.parts}
    else:
        parts = {}
    packs = set(os.listdir(archived.folder)) if archived else set()
    new_sources = []
    for source in sources:
        name = path_in_archive(source.relative_path)
        part = parts.get(name)
        if archived and _is_earlier_state(archived, source):
            continue
        if part and _has_same_size_and_time(part, source) and part.where in packs:
            parts[name] = part._replace(place=source.relative_path)
        else:
            new_sources.append(source)
            parts.pop(name, None)
    return new_sources, list(parts.values())


def _is_earlier_state(archived: ArchivedSession, client_file: ClientFile) -> bool:
    """Check whether an earlier state of the session contains a client's file as the file is now.

    This is the case if two copies with the same session id but different contents are archived
    alternately.
    """
    name = path_in_archive(client_file.relative_path)
    for state in archived.earlier:
        for part in state.parts:
            if path_in_archive(part.place) == name and _has_same_size_and_time(part, client_file):
                return True
    return False


def _has_same_size_and_time(archived_file: ArchivedFile, client_file: ClientFile) -> bool:
    return (archived_file.seen, archived_file.mtime_ns) == (
        client_file.status.st_size,
        client_file.status.st_mtime_ns,
    )


def describe_session(session: SessionFile, where: Where) -> ArchivedSession:
    """Return the manifest of a session in its current state, without the list of files.

    Raises SessionNotFound if the session's file was deleted.
    """
    head_tail = HeadTail(session.file)
    return ArchivedSession(
        session_id=session.session_id,
        folder="",
        place=f"{PROJECTS_FOLDER}/{os.path.basename(os.path.dirname(session.path))}/{session.session_id}.jsonl",
        title=replace_surrogates(plain_line(head_tail.title)),
        cwd=replace_surrogates(home_folder_of_session(head_tail, where)),
        ended=clock.timestamp_from_epoch(head_tail.mtime),
        archived_at=clock.now(),
        parts=(),
        stored=0,
        complete=False,
        about=describe_transcript(head_tail, read_parent(session.file) or ()),
        home=config_home_name(where),
    )


def _pack_files(
    old_copy: ArchivedSession | None,
    new_files: Sequence[ClientFile],
    unchanged_files: Sequence[ArchivedFile],
    folder: str,
) -> tuple[list[ArchivedFile], tuple[EarlierState, ...]]:
    """Pack the new files. Return all archived files and the earlier states.

    The unchanged files are copied into the new pack, so that one pack contains all files. If the
    old pack is unreadable, it is kept, and the new pack contains only the new files.
    """
    if old_copy and not new_files:
        return list(unchanged_files), old_copy.earlier
    try:
        return _write_pack(old_copy, new_files, unchanged_files, folder)
    except _OldPackUnreadableError:
        return _write_pack(old_copy, new_files, unchanged_files, folder, copy_archived=False)


def _write_pack(
    old_copy: ArchivedSession | None,
    new_files: Sequence[ClientFile],
    unchanged_files: Sequence[ArchivedFile],
    folder: str,
    *,
    copy_archived: bool = True,
) -> tuple[list[ArchivedFile], tuple[EarlierState, ...]]:
    """Write a pack of the new files and, if ``copy_archived``, of the unchanged files and earlier states.

    Return all archived files and the earlier states.
    """
    if old_copy:
        old_parts = {path_in_archive(part.place): part for part in old_copy.parts}
    else:
        old_parts = {}
    with PackWriter(folder, commit.choose_pack_name(folder, old_copy)) as pack:
        added: list[ArchivedFile] = []
        replaced_parts: list[ArchivedFile] = []
        for source in new_files:
            part, replaced_part = _append_file(
                pack, source, old_parts.get(path_in_archive(source.relative_path))
            )
            added.append(part)
            if replaced_part:
                replaced_parts.append(replaced_part)
        old_states = list(old_copy.earlier) if old_copy else []
        if old_copy and replaced_parts:
            old_states.append(EarlierState(old_copy.archived_at, tuple(replaced_parts)))
        copied_files: dict[ArchivedFile, ArchivedFile] = {}
        if copy_archived:
            to_copy = list(unchanged_files)
            for state in old_states:
                to_copy += state.parts
            try:
                copied_files = pack.copy_files(to_copy)
            except OSError as error:
                raise _OldPackUnreadableError from error
        pack.finish_pack()
    earlier_states: list[EarlierState] = []
    for state in old_states:
        parts = tuple(copied_files.get(part, part) for part in state.parts)
        earlier_states.append(state._replace(parts=parts))
    return [*added, *(copied_files.get(part, part) for part in unchanged_files)], tuple(
        earlier_states
    )


def _append_file(
    pack: PackWriter, client_file: ClientFile, previous_version: ArchivedFile | None
) -> tuple[ArchivedFile, ArchivedFile | None]:
    """Append a client's file to a pack. Return the archived file, and an earlier version to keep or None.

    If the new content does not begin with ``previous_version``, that version is returned, and
    becomes an earlier state. Bytes that the client appends during the copy are archived the next
    time.
    """
    with open_regular(client_file.path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        mode = stat.S_IMODE(status.st_mode) & 0o777
        new_part = ArchivedFile(
            client_file.relative_path, 0, "", status.st_mtime_ns, mode, "", 0, status.st_size
        )
        prefix_hash = _PrefixHash(previous_version.size if previous_version else 0)
        added_part = pack.add_file(
            new_part, prefix_hash.hash_while_yielding(read_chunks(stream.fileno(), status.st_size))
        )
    if added_part.size < status.st_size:
        raise OSError(errno.EIO, "The file was cut short while it was read", client_file.path)
    return (
        added_part,
        None
        if previous_version is None or prefix_hash.sha256 == previous_version.sha256
        else previous_version,
    )


class _PrefixHash:
    """Computes the hash of the first ``prefix_bytes`` bytes of a stream."""

    def __init__(self, prefix_bytes: int) -> None:
        self._remaining_bytes = prefix_bytes
        self._hash = hashlib.sha256()

    def hash_while_yielding(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks unchanged, and add them to the hash."""
        for chunk in chunks:
            self._hash.update(chunk[: self._remaining_bytes])
            self._remaining_bytes = max(0, self._remaining_bytes - len(chunk))
            yield chunk

    @property
    def sha256(self) -> str:
        """The hash in hex, or ``""`` if the stream had fewer than ``prefix_bytes`` bytes."""
        if self._remaining_bytes:
            return ""
        return self._hash.hexdigest()
