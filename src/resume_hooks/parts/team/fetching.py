"""Fetch a session from the team's server in order to read or continue it.

Your own session is restored completely in the chosen folder, together with those of its ancestors
that are also yours. From a colleague's session, only the conversation is imported. The imported
session has a new id and is marked as foreign. A session is returned only after the digest of each
chunk and the chained digest of each file were verified. The only names from the server that are
used in local paths are session ids and the names of known files in a session's folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.derive.imports.read_bundle import BundledFile, BundledSession
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.import_ import ImportedSession, ImportSpec, import_sessions
from resume_hooks.errors import ImportFailed, WriteFailed
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.connect import TeamRequestFailed
from resume_hooks.parts.team.cursor import (
    UploadProgress,
    build_file_progress,
    write_upload_progress,
)
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.sessions import TeamSession, fetch_sessions_by_id
from resume_hooks.parts.team.stored_chunks import (
    STORED_CHUNK_ROW_FORMAT,
    StoredChunk,
    batch_chunks,
    build_damaged_chunk_error,
    fetch_slices,
    fetch_small_chunks,
    parse_file_name,
    unpack_lines,
)
from resume_hooks.parts.team.team_file import find_team_folder
from resume_hooks.paths import Where, is_session_id, make_private_folder, read_json_object
from resume_hooks.reading.bundle import MAX_ACCOMPANYING_FILES, BundleChecksums, BundleHead
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.storage import removal, state_file
from resume_hooks.storage.staging import MAX_IMPORT_BYTES, MAX_LINES
from resume_hooks.system.text import format_count

TEAM_LINK_KIND = "team"
"""The kind of the link between a colleague's session and the local session that was imported from
it."""

MAX_ANCESTORS = 50

_MAX_SESSION_BYTES = 5 * MAX_IMPORT_BYTES
"""The maximum total size of a session's files in bytes."""

_MAX_FETCH_SECONDS = 600.0
"""The maximum number of seconds for fetching a session. Without it, a server that sends many
answers could delay the fetch indefinitely."""

_CHUNKS_PER_QUERY = 1_000
_PULLED_FOLDER_NAME = "pulled"
_PULLED_ROWS_FILE_NAME = "rows.json"


class _FetchedFile(NamedTuple):
    """A downloaded file of a session.

    ``name`` is its name on the server, and ``chain_digest`` the digest of all its chunks.
    """

    name: str
    path: str
    record_count: int
    chain_digest: bytes
    byte_count: int
    sha256: str


class _ServerFile(NamedTuple):
    """A file of a session, as listed by the server."""

    row_id: int
    name: str
    record_count: int
    chain_digest: bytes


_SERVER_FILE_ROW_FORMAT = RowFormat(
    _ServerFile, (rows.parse_row_id, parse_file_name, rows.parse_count, rows.parse_chain_digest)
)


def resume_team_session(
    team_session: TeamSession, spec: ImportSpec, db: Database, caller: Caller
) -> tuple[list[ImportedSession], list[str]]:
    """Create local sessions from a session on the server.

    Your own session is restored completely, together with its ancestors. From a colleague's
    session, only the conversation is imported. Return the created sessions, oldest first, and notes
    for the user.

    Raise ImportFailed if the server's copy is invalid, WriteFailed if the sessions cannot be written,
    and TeamRequestFailed if the server does not send them.
    """
    where = caller.where
    if not team_session.is_own or team_session.is_transferred:
        name = f"the team ({team_session.owner}, {team_session.machine}, {team_session.session_id})"
        with _unpack_session(team_session, db, where) as (bundled_session, _):
            imported_sessions = import_sessions(
                [bundled_session], name, spec._replace(imports_all_records=False), caller
            )
        if team_session.is_transferred:
            owner_text = "a member's who left"
        else:
            owner_text = f"{team_session.owner}'s"
        notes = [
            f"It is {owner_text}: only the conversation was imported, and its text is unverified."
        ]
        if imported_sessions[0].hidden_record_count:
            notes.append(
                f"The model sees {format_count(imported_sessions[0].hidden_record_count, 'record')} "
                "that the screen does not show."
            )
        if _is_own_session(team_session.session_id, db, where):
            return imported_sessions, [
                *notes,
                "The imported session is not linked to the original, because one of your own sessions has the same id.",
            ]
        if not caller.dry_run and not imported_sessions[0].existed_before:
            with contextlib.suppress(OSError):
                link = Link(
                    imported_sessions[0].session_id,
                    team_session.session_id,
                    TEAM_LINK_KIND,
                    clock.now(),
                    owner=team_session.owner,
                )
                record_link(link, where)
        return imported_sessions, notes
    lineage, notes = _fetch_own_lineage(team_session, db)
    with contextlib.ExitStack() as stack:
        fetched_files = []
        for session in lineage:
            fetched_files.append(stack.enter_context(_unpack_session(session, db, where)))
        imported_sessions = import_sessions(
            [bundled_session for bundled_session, _ in fetched_files],
            team_session.title,
            spec,
            caller,
        )
        if not caller.dry_run:
            for session, (_, parts), imported_session in zip(
                lineage, fetched_files, imported_sessions, strict=True
            ):
                if not imported_session.existed_before:
                    _record_fetched_files(session, parts, imported_session, where)
    return imported_sessions, notes


def _is_own_session(session_id: str, db: Database, where: Where) -> bool:
    """Check whether you have a session with this id on this machine or on the server.

    If you have one, a link with this id in another session refers to yours.
    """
    own_sessions = []
    for session in fetch_sessions_by_id(db, [session_id], only_own=True):
        if not session.is_transferred:
            own_sessions.append(session)
    return bool(own_sessions) or LineageFinder(where).has_session(session_id)


def pull_session(team_session: TeamSession, db: Database, where: Where) -> str:
    """Store a read-only copy of a session, and return the copy's path.

    Raise ImportFailed if the server's copy is invalid, WriteFailed if it cannot be stored, and
    TeamRequestFailed if the server does not send it.
    """
    folder = os.path.join(find_team_folder(where), _PULLED_FOLDER_NAME, str(team_session.row_id))
    path = os.path.join(folder, f"{team_session.session_id}.jsonl")
    with _unpack_session(team_session, db, where) as (bundled_session, _):
        try:
            make_private_folder(folder, where)
            os.replace(bundled_session.records_path, path)
            pulled_rows = {
                **read_pulled_sessions(where),
                team_session.row_id: team_session.session_id,
            }
            state_file.replace_state_file(
                os.path.join(find_team_folder(where), _PULLED_FOLDER_NAME, _PULLED_ROWS_FILE_NAME),
                json.dumps(pulled_rows).encode(),
                where,
            )
        except OSError as error:
            raise WriteFailed(
                f"Could not write {path}: {error.strerror}", "Check free space."
            ) from error
    return path


def read_pulled_sessions(where: Where) -> dict[int, str]:
    """Return the sessions of which ``pull_session`` stored a copy on this machine.

    The result maps the id of each session's row on the server to the session id.
    """
    rows = read_json_object(
        os.path.join(find_team_folder(where), _PULLED_FOLDER_NAME, _PULLED_ROWS_FILE_NAME)
    )
    return {int(row): name for row, name in rows.items() if row.isdecimal() and is_session_id(name)}


def remove_copies_without_read_access(db: Database, where: Where) -> list[str]:
    """Remove the local copies of sessions that were forgotten or are no longer shared with you.

    Return the ids of these sessions.
    """
    pulled_rows = read_pulled_sessions(where)
    if not pulled_rows:
        return []
    unreadable_rows = db.fetch_rows(
        "select gone::text from team.gone(%s) gone",
        (list(pulled_rows),),
        RowFormat(int, (rows.parse_row_id,)),
    )
    # Ignore rows that were not requested.
    removed_rows = sorted({row for row in unreadable_rows if row in pulled_rows})
    removed_ids = []
    for row in removed_rows:
        folder = os.path.join(find_team_folder(where), _PULLED_FOLDER_NAME, str(row))
        if os.path.lexists(folder):  # If the folder does not exist, the user has removed it.
            removed_ids.append(pulled_rows[row])
        removal.remove_if_possible(folder, where.state)
    if removed_rows:
        remaining_rows = {}
        for row, name in pulled_rows.items():
            if row not in removed_rows:
                remaining_rows[row] = name
        state_file.replace_state_file(
            os.path.join(find_team_folder(where), _PULLED_FOLDER_NAME, _PULLED_ROWS_FILE_NAME),
            json.dumps(remaining_rows).encode(),
            where,
        )
    return removed_ids


def _fetch_own_lineage(
    team_session: TeamSession, db: Database
) -> tuple[list[TeamSession], list[str]]:
    """Return the session and those of its ancestors that are yours, oldest first, and notes for the user.

    If an ancestor is not yours, a note reports this, and the search for older ancestors ends.
    """
    lineage = [team_session]
    while (parent := lineage[0].parent_id) and len(lineage) < MAX_ANCESTORS:
        own_sessions = []
        for session in fetch_sessions_by_id(db, [parent], only_own=True):
            if not session.is_transferred:
                own_sessions.append(session)
        if not own_sessions:
            return lineage, [
                f"Its ancestor {parent} is private to another member, or was never pushed."
            ]
        if any(session.session_id == parent for session in lineage):
            break
        # If several machines pushed the parent, this is the latest copy.
        lineage.insert(0, own_sessions[0])
    return lineage, []


def _record_fetched_files(
    session: TeamSession, files: list[_FetchedFile], imported_session: ImportedSession, where: Where
) -> None:
    """Record the fetched lines of a session as uploaded, so that the next push sends only later lines."""
    file, progress_by_file = imported_session.receipt.file, {}
    with contextlib.suppress(OSError):  # If this fails, the next push sends all lines again.
        for part in files:
            if part.name:
                path = os.path.join(file.removesuffix(".jsonl"), *part.name.split("/"))
            else:
                path = file
            progress_by_file[part.name] = build_file_progress(
                path, os.path.getsize(path), part.record_count, part.chain_digest
            )
        write_upload_progress(
            imported_session.session_id,
            UploadProgress(0, session.row_id, progress_by_file=progress_by_file),
            where,
        )


@contextlib.contextmanager
def _unpack_session(
    session: TeamSession, db: Database, where: Where
) -> Iterator[tuple[BundledSession, list[_FetchedFile]]]:
    """Download the files of a session into private temporary files for the duration of the block."""
    session_id, paths = session.session_id, list[str]()
    try:
        try:
            fetched_files = _fetch_files(session, db, where, paths)
        except OSError as error:
            raise WriteFailed(
                f"The session could not be stored: {error.strerror}", "Check free space."
            ) from error
        transcript = next(
            (fetched_file for fetched_file in fetched_files if not fetched_file.name), None
        )
        if transcript is None:
            raise ImportFailed(
                f"No data of session {session_id} has been pushed yet",
                "Push the session from the machine that has it.",
            )
        if session.parent_id:
            parent_fields = (session.parent_id, session.kind)
        else:
            parent_fields = ("", "")
        head = BundleHead(
            session_id,
            session.title,
            session.folder,
            session.creation_time,
            session.end_time,
            *parent_fields,
        )
        attachments = [fetched_file for fetched_file in fetched_files if fetched_file.name]
        files = tuple(
            BundledFile(fetched_file.name, fetched_file.path) for fetched_file in attachments
        )
        sums = BundleChecksums(transcript.record_count, transcript.sha256, 0, 0)
        yield (
            BundledSession(head, sums, transcript.path, transcript.byte_count, files, 0),
            [transcript, *attachments],
        )
    finally:
        for path in paths:
            state_file.discard_temporary(path)


class _FetchBudget:
    """The number of bytes and seconds that may still be used to fetch a session.

    Fetching a file reduces both, even if the file turns out to be damaged.
    """

    def __init__(self) -> None:
        self._remaining_bytes = _MAX_SESSION_BYTES
        self._deadline = time.monotonic() + _MAX_FETCH_SECONDS

    def spend_bytes(self, byte_count: int) -> None:
        """Subtract ``byte_count`` downloaded bytes from the number of remaining bytes.

        Raise TeamRequestFailed if no bytes or no time remain.
        """
        self._remaining_bytes -= byte_count
        if self._remaining_bytes < 0:
            raise TeamRequestFailed(
                "The session on the server exceeds the size limit",
                "Ask the teammate who pushed the session.",
            )
        if time.monotonic() > self._deadline:
            raise TeamRequestFailed(
                "The team's database is sending the session too slowly",
                "Check the network and the server.",
            )


def _fetch_files(
    session: TeamSession, db: Database, where: Where, created_paths: list[str]
) -> list[_FetchedFile]:
    """Download the files of a session, verify their digests, and return the valid files.

    If the transcript is damaged, raise ImportFailed. Any other damaged file is omitted. The paths
    of all created files are added to ``created_paths``. Raise OSError if a file cannot be written.
    """
    folder = make_private_folder(find_team_folder(where), where)
    state_file.remove_stale_temporaries(folder)
    query = (
        "select id::text, name, records::text, head from team.part where session = %s order "
        "by name limit %s"
    )
    files: list[_FetchedFile] = []
    budget = _FetchBudget()
    for server_file in db.fetch_rows(
        query, (session.row_id, MAX_ACCOMPANYING_FILES), _SERVER_FILE_ROW_FORMAT
    ):
        path = state_file.temporary_path(folder)
        created_paths.append(path)
        try:
            part = _fetch_file(server_file, path, budget, db)
        except ImportFailed:
            if not server_file.name:
                raise
            db.refused_row_count += 1
            continue
        files.append(part)
    return files


def _fetch_file(
    server_file: _ServerFile, path: str, budget: _FetchBudget, db: Database
) -> _FetchedFile:
    """Download a file of a session and verify it.

    Raise ImportFailed if the file is invalid, and OSError if it cannot be written.
    """
    file_hash, record_count, chain_digest, byte_count = hashlib.sha256(), 0, b"", 0
    # A text file that is not a transcript is stored as a single record.
    has_lines = not server_file.name or server_file.name.endswith(".jsonl")
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, state_file.PRIVATE_MODE), "wb"
    ) as stream:
        for chunk, slices in _fetch_chunks(server_file, db):
            if (
                chunk.first_record_number != record_count
                or byte_count + chunk.raw_byte_count > MAX_IMPORT_BYTES
            ):
                raise build_damaged_chunk_error()
            if has_lines and record_count + chunk.record_count > MAX_LINES:
                raise ImportFailed(
                    f"The session has a file with more than {MAX_LINES:,} lines",
                    "No valid transcript has that many lines.",
                )
            line_count = 0
            for body in unpack_lines(slices, chunk.raw_byte_count, chunk.sha256):
                budget.spend_bytes(len(body))
                byte_count += stream.write(body)
                file_hash.update(body)
                line_count += body.count(b"\n")
            if has_lines and line_count != chunk.record_count:
                raise build_damaged_chunk_error()
            chain_digest = hashlib.sha256(chain_digest + chunk.sha256).digest()
            record_count += chunk.record_count
    if (record_count, chain_digest) != (server_file.record_count, server_file.chain_digest):
        raise build_damaged_chunk_error()
    return _FetchedFile(
        server_file.name, path, record_count, chain_digest, byte_count, file_hash.hexdigest()
    )


def _fetch_chunks(
    server_file: _ServerFile, db: Database
) -> Iterator[tuple[StoredChunk, Iterable[bytes]]]:
    """Yield the chunks of a file in order, each with an iterable of the slices of its compressed bytes."""
    query = (
        "select first::text, records::text, raw::text, sha, octet_length(data)::text from team.chunk"
        " where part = %s and first >= %s and first < %s order by first limit %s"
    )
    first_record_number = 0
    while first_record_number < server_file.record_count:
        chunks = db.fetch_rows(
            query,
            (server_file.row_id, first_record_number, server_file.record_count, _CHUNKS_PER_QUERY),
            STORED_CHUNK_ROW_FORMAT,
        )
        if not chunks:
            return
        for batch in batch_chunks(chunks):
            if len(batch) == 1:
                yield (
                    batch[0],
                    fetch_slices(
                        server_file.row_id,
                        batch[0].first_record_number,
                        batch[0].stored_byte_count,
                        db,
                    ),
                )
                continue
            packed_by_address = fetch_small_chunks(
                [(server_file.row_id, chunk.first_record_number) for chunk in batch], db
            )
            for chunk in batch:
                yield (
                    chunk,
                    [packed_by_address.get((server_file.row_id, chunk.first_record_number), b"")],
                )
        if chunks[-1].first_record_number + chunks[-1].record_count <= first_record_number:
            return  # The server sent the same chunks again.
        first_record_number = chunks[-1].first_record_number + chunks[-1].record_count
