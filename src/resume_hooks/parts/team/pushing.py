"""Push a session: send only the data that is not on the server yet.

The server accepts a chunk only with the digest of all previous chunks. A local cursor records the
progress. If there is no cursor, or the file was rewritten, the server's chunks are compared with
the file. If they differ, a new generation begins. If the file is shorter than the server's copy,
nothing is sent, and the result says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections import Counter
from itertools import islice
from typing import Any, Literal, NamedTuple

from resume_hooks.archive import data_rules
from resume_hooks.derive.imports.read_bundle import is_valid_name
from resume_hooks.errors import ImportFailed, SessionNotFound, SessionOpen
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.chunks import MAX_CHUNK_BYTES, LineChunk, clean_records, cut_chunks
from resume_hooks.parts.team.connect import (
    EXPIRED_STATE,
    FORGOTTEN_STATE,
    SCRUBBED_STATE,
    TeamFailed,
    translate_errors,
)
from resume_hooks.parts.team.cursor import (
    Cursor,
    FileProgress,
    begins_with_uploaded_part,
    cursor_folder,
    is_forgotten,
    measure_progress,
    read_cursor,
    record_forgotten_session,
    write_cursor,
)
from resume_hooks.parts.team.membership import read_project_name
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.stored_chunks import MAX_STORED_BYTES, fetch_slices
from resume_hooks.parts.team.team_file import Team
from resume_hooks.paths import Where
from resume_hooks.reading.bundle import list_bundled_files
from resume_hooks.reading.session_secrets import (
    find_secrets_in_ends,
    find_secrets_in_sessions,
    learn_file,
)
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.load_rules import token_rules
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.locks import lock_folder
from resume_hooks.system.text import collapse_line, plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail

_BUSY_MESSAGE = "Another command is sending this session"
_APPEND_QUERY = (
    "select records::text, head from team.append(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, "
    "%s, %s)"
)

_RESULTS_BY_SQLSTATE: dict[str, Literal["forgotten", "scrubbed", "expired"]] = {
    FORGOTTEN_STATE: "forgotten", SCRUBBED_STATE: "scrubbed", EXPIRED_STATE: "expired"
}  # fmt: skip
"""The results for sessions that the server refuses: permanently, from this machine, or because they are too old."""


class PushResult(NamedTuple):
    """The result of a push; ``secrets`` is the number of removed secrets by kind.

    ``record_count`` records with ``raw_bytes`` bytes were sent in ``piece_count`` pieces, which have
    ``stored_bytes`` bytes after compression.
    """

    session_id: str
    title: str
    result: Literal[
        "sent", "unchanged", "replaced", "shorter", "forgotten", "scrubbed", "expired", "busy"
    ]
    piece_count: int = 0
    record_count: int = 0
    raw_bytes: int = 0
    stored_bytes: int = 0
    secrets: dict[str, int] = {}  # noqa: RUF012 - as above


class _ServerState(NamedTuple):
    """A file's state on the server: the number of records and the digest of all records."""

    record_count: int
    chain_digest: bytes


class _ServerChunk(NamedTuple):
    """A chunk on the server."""

    first_line: int
    record_count: int
    sha256: bytes
    chain_digest: bytes


_STATE_FORMAT = RowFormat(_ServerState, (rows.parse_count, rows.parse_chain_digest))
_CHUNK_FORMAT = RowFormat(
    _ServerChunk,
    (rows.parse_count, rows.parse_whole_number(1), rows.parse_digest, rows.parse_digest),
)


class _ContentDifferError(Exception):
    """The content on the server differs from the file."""


class _FileShorterError(Exception):
    """The file is only a prefix of the content on the server."""


def push_session(
    session: SessionFile, team: Team, db: Database, where: Where, *, rescan: bool = False
) -> PushResult:
    """Upload a session's data that is not on the server yet. Raise TeamFailed, SessionNotFound or WriteFailed."""
    if reason := data_rules.reason_not_to_copy(where):
        raise TeamFailed(f"Nothing was pushed: {reason}", "Ask who manages this account.")
    title = build_session_metadata(session, LineageFinder(where), where)["title"]
    try:
        folder = cursor_folder(session.session_id, where)
        with translate_errors(), lock_folder(folder, where, _BUSY_MESSAGE, "Could not write to"):
            return _SessionPush(session, team, db, where, rescan=rescan).push()
    except TeamFailed as error:
        if error.sqlstate not in _RESULTS_BY_SQLSTATE:
            raise
        if error.sqlstate == FORGOTTEN_STATE:
            record_forgotten_session(session.session_id, where)
        return PushResult(session.session_id, title, _RESULTS_BY_SQLSTATE[error.sqlstate])
    except _FileShorterError:
        return PushResult(session.session_id, title, "shorter")
    except SessionOpen:
        return PushResult(session.session_id, title, "busy")


def preview_push(session: SessionFile, where: Where) -> PushResult:
    """Return the counts that a first push would report, without connecting to the server."""
    counter = _PushCounter()
    redactor = find_secrets_in_sessions([session])
    for _, path in list_files_to_push(session):
        for chunk in cut_chunks(path, redactor):
            counter.add_chunk(chunk)
    return counter.build_result(
        session.session_id,
        build_session_metadata(session, LineageFinder(where), where, redactor)["title"],
        "sent",
    )


def list_files_to_push(session: SessionFile) -> list[tuple[str, str]]:
    """Return the files of a session to push, by their names on the server.

    The name of the transcript is ``""``.

    A file is left out if its name is not valid in a session's folder or contains a secret.
    """
    attachments = []
    for name, path in list_bundled_files(session):
        if is_valid_name(name) and not redact(name)[1]:
            attachments.append((name, path))
    return [("", session.path), *attachments]


def build_session_metadata(
    session: SessionFile,
    lineage_finder: LineageFinder,
    where: Where,
    redactor: Redactor | None = None,
) -> dict[str, str]:
    """Return a session's metadata, without the secrets that ``redactor`` knows or finds.

    Raise SessionNotFound.
    """
    ends, parent = HeadTail(session.path), lineage_finder.find_parent(session.path)
    session_folder = home_folder(ends, where)
    redactor = redactor or find_secrets_in_ends(ends)

    def clean_text(text: str) -> str:
        return collapse_line(plain_line(replace_surrogates(redactor.redact(text))), 1_000)

    return {
        "title": clean_text(ends.make_title(redactor.redact)),
        "folder": clean_text(session_folder),
        "project": clean_text(read_project_name(session_folder)),
        "created": clean_text(ends.created),
        "ended": clean_text(ends.ended),
        "parent": clean_text(parent.session_id) if parent else "",
        "kind": clean_text(parent.kind) if parent else "",
    }


def has_unsent_data(session: SessionFile, where: Where) -> bool:
    """Check whether a session has unsent data, according to this machine's records."""
    if is_forgotten(session.session_id, where):
        return False
    cursor = read_cursor(session.session_id, where)
    if not cursor.row or cursor.drop:
        return True
    for name, path in list_files_to_push(session):
        progress = cursor.places.get(name)
        with contextlib.suppress(OSError):
            if (progress and not begins_with_uploaded_part(progress, path)) or any(
                True for _ in clean_records(path, Redactor(), progress.offset if progress else 0)
            ):
                return True
    return False


class _PushCounter:
    """Counts the data that was sent."""

    def __init__(self) -> None:
        self.pieces = self.records = self.raw = self.stored = 0
        self.secrets: Counter[str] = Counter()

    def add_chunk(self, chunk: LineChunk) -> None:
        """Count a chunk."""
        self.pieces += 1
        self.records += chunk.record_count
        self.raw += chunk.raw_bytes
        self.stored += len(chunk.compressed)
        self.secrets.update(chunk.secrets)

    def build_result(self, session_id: str, title: str, result: Any) -> PushResult:
        """Return the result of the push."""
        return PushResult(
            session_id,
            title,
            result,
            self.pieces,
            self.records,
            self.raw,
            self.stored,
            dict(self.secrets),
        )


class _SessionPush:
    """The push of one session."""

    def __init__(
        self, session: SessionFile, team: Team, db: Database, where: Where, *, rescan: bool
    ) -> None:
        self._session = session
        self._team = team
        self._db = db
        self._where = where
        self._rescan = rescan
        self._cursor = read_cursor(session.session_id, where)
        self._redactor = self._find_secrets()
        self._metadata = build_session_metadata(
            session, LineageFinder(where), where, self._redactor
        )
        self._count = _PushCounter()

    def _find_secrets(self) -> Redactor:
        """Return a redactor with the secrets in the unsent data, and in the beginning and the end of the session."""
        redactor = find_secrets_in_ends(HeadTail(self._session.path))
        for name, path in list_files_to_push(self._session):
            progress = self._cursor.places.get(name)
            learn_file(
                redactor,
                path,
                progress.offset if progress and begins_with_uploaded_part(progress, path) else 0,
            )
        return redactor

    def push(self) -> PushResult:
        """Send the missing data."""
        cursor, result = self._cursor, "sent"
        if cursor.drop:
            self._db.run_statement(
                "select team.scrubbed(%s, %s)", (self._session.session_id, self._team.machine)
            )
        row = self._begin_push(0, must_replace=False)
        if cursor.row in {0, row} and not (self._rescan or cursor.drop):
            progress_by_file = cursor.places
        else:
            progress_by_file = {}
        try:
            progress_by_file = self._send_files(row, progress_by_file)
        except _ContentDifferError:
            result, self._count = "replaced", _PushCounter()
            row = self._begin_push(row, must_replace=self._rescan or cursor.drop)
            try:
                progress_by_file = self._send_files(row, {})
            except _ContentDifferError as error:
                raise TeamFailed(
                    f"Session {self._session.session_id} changed while it was sent",
                    "Push it again.",
                ) from error
        write_cursor(
            self._session.session_id,
            Cursor(row, cursor.base, places=progress_by_file),
            self._where,
        )
        if not self._count.pieces and result == "sent":
            result = "unchanged"
        return self._count.build_result(self._session.session_id, self._metadata["title"], result)

    def _begin_push(self, previous_row: int, *, must_replace: bool) -> int:
        continued_row = self._cursor.base if not previous_row else 0
        values = (
            self._session.session_id,
            self._team.machine,
            json.dumps(self._metadata),
            previous_row or None,
            must_replace,
            continued_row or None,
        )
        row = self._db.fetch_value(
            "select team.begin_session(%s, %s, %s, %s, %s, %s)::text", values, rows.parse_row_number
        )
        if row is None:
            raise TeamFailed("The team's database returned no row for the session", "Who runs it?")
        return row

    def _send_files(
        self, row: int, progress_by_file: dict[str, FileProgress]
    ) -> dict[str, FileProgress]:
        """Send the missing data of every file, and return the progress of each file."""
        if (
            self._cursor.drop and row == self._cursor.row
        ):  # This and earlier generations may contain scrubbed text.
            raise _ContentDifferError
        new_progress: dict[str, FileProgress] = {}
        for name, path in list_files_to_push(self._session):
            try:
                progress = progress_by_file.get(name)
                if progress is None or not begins_with_uploaded_part(progress, path):
                    progress = self._compare_with_server(row, name, path)
                new_progress[name] = self._send_file(row, name, path, progress)
            except OSError as error:
                if not name:
                    raise SessionNotFound(
                        f"{path} can't be read: {error.strerror}", "Was it just deleted?"
                    ) from error
        return new_progress

    def _send_file(self, row: int, name: str, path: str, progress: FileProgress) -> FileProgress:
        while True:
            record_count, offset, chain_digest = (
                progress.record_count,
                progress.offset,
                bytes.fromhex(progress.chain_digest),
            )
            for chunk in cut_chunks(path, self._redactor, record_count, offset):
                answer = self._append_chunk(row, name, chain_digest, chunk)
                if answer != (
                    record_count + chunk.record_count,
                    hashlib.sha256(chain_digest + chunk.sha256).digest(),
                ):
                    break
                self._count.add_chunk(chunk)
                (record_count, chain_digest), offset = answer, chunk.end_offset
            else:
                return measure_progress(path, offset, record_count, chain_digest)
            # Another process has sent data, or our cursor is outdated.
            progress = self._compare_with_server(row, name, path)
            if progress.record_count <= record_count:
                raise _ContentDifferError

    def _append_chunk(
        self, row: int, name: str, chain_digest: bytes, chunk: LineChunk
    ) -> _ServerState:
        if chunk.turn_words:
            turn_lines, turn_times, turn_words = zip(*chunk.turn_words, strict=True)
        else:
            turn_lines, turn_times, turn_words = ((), (), ())
        values = (
            row, name, chunk.first_line, chain_digest, chunk.record_count, chunk.raw_bytes,
            chunk.sha256, chunk.compressed, token_rules().version,
            json.dumps(chunk.secrets), list(turn_lines), list(turn_times), list(turn_words),
        )  # fmt: skip
        state = self._db.fetch_row(_APPEND_QUERY, values, _STATE_FORMAT)
        if state is None:
            raise _ContentDifferError
        return state

    def _compare_with_server(self, row: int, name: str, path: str) -> FileProgress:
        """Return the progress up to which the file and the server's content are equal."""
        query = (
            "select c.first::text, c.records::text, c.sha, c.head from team.chunk c join team.part p on p.id = c.part"
            " where p.session = %s and p.name = %s order by c.first"
        )
        learn_file(self._redactor, path)
        local_records, offset, line_number, chain_digest = (
            clean_records(path, self._redactor),
            0,
            0,
            b"",
        )
        for server_chunk in self._db.fetch_rows(query, (row, name), _CHUNK_FORMAT):
            body, line_count, end_offset = bytearray(), 0, offset
            for record in islice(local_records, server_chunk.record_count):
                # Our chunks are never longer than this, even if the server reports another size.
                if len(body) >= MAX_CHUNK_BYTES:
                    raise _ContentDifferError
                body += record.body
                line_count, end_offset = line_count + 1, record.end_offset
            if line_count < server_chunk.record_count:
                self._make_shorter_file_error(row, name, server_chunk.first_line, bytes(body))
            if (
                server_chunk.first_line != line_number
                or hashlib.sha256(body).digest() != server_chunk.sha256
            ):
                raise _ContentDifferError
            line_number, offset, chain_digest = (
                line_number + line_count,
                end_offset,
                server_chunk.chain_digest,
            )
        return FileProgress(0, offset, line_number, 0, chain_digest.hex())

    def _make_shorter_file_error(self, row: int, name: str, first_line: int, body: bytes) -> None:
        """Raise the error for a file that is shorter than the server's copy: it was either truncated or changed."""
        query = (
            "select c.part::text from team.chunk c join team.part p on p.id = c.part"
            " where p.session = %s and p.name = %s and c.first = %s"
        )
        part_row = self._db.fetch_value(query, (row, name, first_line), rows.parse_row_number)
        if part_row is None or not self._begins_with(body, part_row, first_line):
            raise _ContentDifferError
        if self._rescan or self._cursor.drop:
            raise _ContentDifferError
        raise _FileShorterError

    def _begins_with(self, body: bytes, part_row: int, first_line: int) -> bool:
        decompressor, content = zlib.decompressobj(), b""
        with contextlib.suppress(zlib.error, ImportFailed):
            for packed_slice in fetch_slices(part_row, first_line, MAX_STORED_BYTES, self._db):
                content += decompressor.decompress(packed_slice, len(body) - len(content) or 1)
                if len(content) >= len(body):
                    break
        return content[: len(body)] == body
