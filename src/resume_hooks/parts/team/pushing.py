"""Push a session: send the lines that are not on the server yet.

With each chunk, the push sends the digest of all previous chunks of the file, and the server
accepts the chunk only if that digest is right. A state file on this machine records what was sent.
If there is no state file, or if the file was rewritten, the push first compares the file with the
chunks on the server. If the contents differ, the push begins a new generation of the session. If
the file is only the beginning of the server's copy, the push sends nothing and returns the result
``shorter``.
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
from resume_hooks.derive.imports.read_bundle import is_valid_file_name
from resume_hooks.errors import ImportFailed, SessionInUse, SessionNotFound
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.chunks import (
    MAX_CHUNK_BYTES,
    LineChunk,
    cut_chunks,
    read_clean_records,
)
from resume_hooks.parts.team.connect import (
    EXPIRED_STATE,
    FORGOTTEN_STATE,
    INVALID_SERVER_ANSWER_ADVICE,
    SCRUBBED_STATE,
    TeamRequestFailed,
    convert_driver_errors,
)
from resume_hooks.parts.team.cursor import (
    FileProgress,
    UploadProgress,
    build_file_progress,
    find_upload_progress_folder,
    is_forgotten,
    is_uploaded_content_unchanged,
    read_upload_progress,
    record_forgotten_session,
    write_upload_progress,
)
from resume_hooks.parts.team.membership import read_project_name
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.stored_chunks import MAX_STORED_BYTES, fetch_slices
from resume_hooks.parts.team.team_file import Team
from resume_hooks.paths import Where
from resume_hooks.reading.bundle import list_bundled_files
from resume_hooks.reading.session_secrets import (
    learn_secrets_in_file,
    make_redactor_for_ends,
    make_redactor_for_sessions,
)
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.load_rules import token_rules
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.project_folder import home_folder_of_session
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
"""Maps each SQLSTATE with which the server refuses a push to the result of that push.

The server refuses a session that was forgotten, that was scrubbed on another machine, or that ended
before the start of the retention period.
"""


class PushResult(NamedTuple):
    """The result of pushing one session.

    ``record_count`` is the number of sent records, and ``raw_byte_count`` is their total size in
    bytes. They were sent in ``piece_count`` chunks, whose total size after compression is
    ``stored_byte_count``. ``secret_counts_by_kind`` maps each kind of secret to the number of
    secrets that were removed.
    """

    session_id: str
    title: str
    result: Literal[
        "sent", "unchanged", "replaced", "shorter", "forgotten", "scrubbed", "expired", "busy"
    ]
    piece_count: int = 0
    record_count: int = 0
    raw_byte_count: int = 0
    stored_byte_count: int = 0
    secret_counts_by_kind: dict[str, int] = {}  # noqa: RUF012 - as above


class _ServerState(NamedTuple):
    """The state of a file on the server: the number of its records, and the digest of all its chunks."""

    record_count: int
    chain_digest: bytes


class _ServerChunk(NamedTuple):
    """A chunk of a file, as listed by the server."""

    first_line_number: int
    record_count: int
    sha256: bytes
    chain_digest: bytes


_STATE_ROW_FORMAT = RowFormat(_ServerState, (rows.parse_count, rows.parse_chain_digest))
_CHUNK_ROW_FORMAT = RowFormat(
    _ServerChunk,
    (rows.parse_count, rows.make_whole_number_parser(1), rows.parse_digest, rows.parse_digest),
)


class _ContentDiffersError(Exception):
    """Raised if the content on the server differs from the file on this machine."""


class _LocalFileShorterError(Exception):
    """Raised if the file on this machine is only the beginning of the content on the server."""


def push_session(
    session: SessionFile, team: Team, db: Database, where: Where, *, rescan: bool = False
) -> PushResult:
    """Upload the data of a session that the server does not have yet.

    With ``rescan``, also compare the data that was sent earlier with the local files, and replace
    the server's copy if they differ. Raise TeamRequestFailed if the server does not accept the
    data, SessionNotFound if the session was deleted, and WriteFailed if the progress cannot be
    saved.
    """
    if reason := data_rules.find_reason_not_to_copy(where):
        raise TeamRequestFailed(
            f"Nothing was pushed: {reason}", "Ask the person who manages this account."
        )
    title = build_session_metadata(session, LineageFinder(where), where)["title"]
    try:
        folder = find_upload_progress_folder(session.session_id, where)
        with (
            convert_driver_errors(),
            lock_folder(folder, where, _BUSY_MESSAGE, "Could not write to"),
        ):
            return _SessionPush(session, team, db, where, rescan=rescan).push()
    except TeamRequestFailed as error:
        if error.sqlstate not in _RESULTS_BY_SQLSTATE:
            raise
        if error.sqlstate == FORGOTTEN_STATE:
            record_forgotten_session(session.session_id, where)
        return PushResult(session.session_id, title, _RESULTS_BY_SQLSTATE[error.sqlstate])
    except _LocalFileShorterError:
        return PushResult(session.session_id, title, "shorter")
    except SessionInUse:
        return PushResult(session.session_id, title, "busy")


def preview_push(session: SessionFile, where: Where) -> PushResult:
    """Return the result that a first push of the session would have. The server is not contacted."""
    counter = _PushTotals()
    redactor = make_redactor_for_sessions([session])
    for _, path in list_names_and_paths_to_push(session):
        for chunk in cut_chunks(path, redactor):
            counter.add_chunk(chunk)
    return counter.build_push_result(
        session.session_id,
        build_session_metadata(session, LineageFinder(where), where, redactor)["title"],
        "sent",
    )


def list_names_and_paths_to_push(session: SessionFile) -> list[tuple[str, str]]:
    """Return, for each file of a session to be pushed, its name on the server and its local path.

    The transcript has the name ``""``. A file in the session's folder is omitted if its name is
    unknown or contains a secret.
    """
    attachments = []
    for name, path in list_bundled_files(session):
        if is_valid_file_name(name) and not redact(name)[1]:
            attachments.append((name, path))
    return [("", session.path), *attachments]


def build_session_metadata(
    session: SessionFile,
    lineage_finder: LineageFinder,
    where: Where,
    redactor: Redactor | None = None,
) -> dict[str, str]:
    """Return the metadata of a session, for example its title, without secrets.

    If ``redactor`` is None, only the secrets that are found at the beginning and the end of the
    transcript are removed from the metadata. Raise SessionNotFound if the session was deleted.
    """
    ends, parent = HeadTail(session.path), lineage_finder.find_parent(session.path)
    session_folder = home_folder_of_session(ends, where)
    redactor = redactor or make_redactor_for_ends(ends)

    def clean_metadata_text(text: str) -> str:
        return collapse_line(plain_line(replace_surrogates(redactor.redact(text))), 1_000)

    return {
        "title": clean_metadata_text(ends.make_title(redactor.redact)),
        "folder": clean_metadata_text(session_folder),
        "project": clean_metadata_text(read_project_name(session_folder)),
        "created": clean_metadata_text(ends.created_at),
        "ended": clean_metadata_text(ends.ended_at),
        "parent": clean_metadata_text(parent.session_id) if parent else "",
        "kind": clean_metadata_text(parent.kind) if parent else "",
    }


def has_unsent_data(session: SessionFile, where: Where) -> bool:
    """Check, without the server, whether a session has data that this machine has not sent yet."""
    if is_forgotten(session.session_id, where):
        return False
    upload_progress = read_upload_progress(session.session_id, where)
    if not upload_progress.row_id or upload_progress.must_replace_server_copy:
        return True
    for name, path in list_names_and_paths_to_push(session):
        progress = upload_progress.progress_by_file.get(name)
        with contextlib.suppress(OSError):
            if (progress and not is_uploaded_content_unchanged(progress, path)) or any(
                True
                for _ in read_clean_records(path, Redactor(), progress.offset if progress else 0)
            ):
                return True
    return False


class _PushTotals:
    """Counts the chunks, records, bytes and secrets of a push."""

    def __init__(self) -> None:
        self.chunk_count = self.record_count = self.raw_byte_count = self.stored_byte_count = 0
        self.secrets: Counter[str] = Counter()

    def add_chunk(self, chunk: LineChunk) -> None:
        """Add the chunk and its records, bytes and secrets to the counts."""
        self.chunk_count += 1
        self.record_count += chunk.record_count
        self.raw_byte_count += chunk.raw_byte_count
        self.stored_byte_count += len(chunk.compressed_lines)
        self.secrets.update(chunk.secret_counts_by_kind)

    def build_push_result(self, session_id: str, title: str, outcome: Any) -> PushResult:
        """Return the counts as the result of the push."""
        return PushResult(
            session_id,
            title,
            outcome,
            self.chunk_count,
            self.record_count,
            self.raw_byte_count,
            self.stored_byte_count,
            dict(self.secrets),
        )


class _SessionPush:
    """Pushes one session. Keeps the progress of the push, and the redactor for the session's secrets."""

    def __init__(
        self, session: SessionFile, team: Team, db: Database, where: Where, *, rescan: bool
    ) -> None:
        self._session = session
        self._team = team
        self._db = db
        self._where = where
        self._rescan = rescan
        self._upload_progress = read_upload_progress(session.session_id, where)
        self._redactor = self._build_session_redactor()
        self._metadata = build_session_metadata(
            session, LineageFinder(where), where, self._redactor
        )
        self._counter = _PushTotals()

    def _build_session_redactor(self) -> Redactor:
        """Return a redactor that knows the secrets in the unsent data and at both ends of the transcript."""
        redactor = make_redactor_for_ends(HeadTail(self._session.path))
        for name, path in list_names_and_paths_to_push(self._session):
            progress = self._upload_progress.progress_by_file.get(name)
            learn_secrets_in_file(
                redactor,
                path,
                progress.offset
                if progress and is_uploaded_content_unchanged(progress, path)
                else 0,
            )
        return redactor

    def push(self) -> PushResult:
        """Send the data that the server lacks, record the progress, and return the result."""
        upload_progress, result = self._upload_progress, "sent"
        if upload_progress.must_replace_server_copy:
            self._db.run_statement(
                "select team.scrubbed(%s, %s)", (self._session.session_id, self._team.machine)
            )
        row_id = self._find_or_create_session_row(0, must_replace_server_copy=False)
        if upload_progress.row_id in {0, row_id} and not (
            self._rescan or upload_progress.must_replace_server_copy
        ):
            progress_by_file = upload_progress.progress_by_file
        else:
            progress_by_file = {}
        try:
            progress_by_file = self._send_files(row_id, progress_by_file)
        except _ContentDiffersError:
            result, self._counter = "replaced", _PushTotals()
            row_id = self._find_or_create_session_row(
                row_id,
                must_replace_server_copy=self._rescan or upload_progress.must_replace_server_copy,
            )
            try:
                progress_by_file = self._send_files(row_id, {})
            except _ContentDiffersError as error:
                raise TeamRequestFailed(
                    f"Session {self._session.session_id} changed while it was being sent",
                    "Push it again.",
                ) from error
        write_upload_progress(
            self._session.session_id,
            UploadProgress(
                row_id, upload_progress.restored_from_row_id, progress_by_file=progress_by_file
            ),
            self._where,
        )
        if not self._counter.chunk_count and result == "sent":
            result = "unchanged"
        return self._counter.build_push_result(
            self._session.session_id, self._metadata["title"], result
        )

    def _find_or_create_session_row(
        self, previous_row_id: int, *, must_replace_server_copy: bool
    ) -> int:
        continued_row_id = self._upload_progress.restored_from_row_id if not previous_row_id else 0
        values = (
            self._session.session_id,
            self._team.machine,
            json.dumps(self._metadata),
            previous_row_id or None,
            must_replace_server_copy,
            continued_row_id or None,
        )
        row_id = self._db.fetch_value(
            "select team.begin_session(%s, %s, %s, %s, %s, %s)::text", values, rows.parse_row_id
        )
        if row_id is None:
            raise TeamRequestFailed(
                "The team's database returned no row for the session",
                INVALID_SERVER_ANSWER_ADVICE,
            )
        return row_id

    def _send_files(
        self, row_id: int, progress_by_file: dict[str, FileProgress]
    ) -> dict[str, FileProgress]:
        """Send the part of each file that the server lacks, and return the new progress of each file."""
        # The server's copy may contain text that has been scrubbed on this machine since the last
        # push.
        if (
            self._upload_progress.must_replace_server_copy
            and row_id == self._upload_progress.row_id
        ):
            raise _ContentDiffersError
        new_progress: dict[str, FileProgress] = {}
        for name, path in list_names_and_paths_to_push(self._session):
            try:
                progress = progress_by_file.get(name)
                if progress is None or not is_uploaded_content_unchanged(progress, path):
                    progress = self._measure_progress_against_server(row_id, name, path)
                new_progress[name] = self._send_file(row_id, name, path, progress)
            except OSError as error:
                if not name:
                    raise SessionNotFound(
                        f"{path} can't be read: {error.strerror}", "Was it just deleted?"
                    ) from error
        return new_progress

    def _send_file(self, row_id: int, name: str, path: str, progress: FileProgress) -> FileProgress:
        while True:
            record_count, offset, chain_digest = (
                progress.record_count,
                progress.offset,
                bytes.fromhex(progress.chain_digest),
            )
            for chunk in cut_chunks(path, self._redactor, record_count, offset):
                answer = self._append_chunk(row_id, name, chain_digest, chunk)
                if answer != (
                    record_count + chunk.record_count,
                    hashlib.sha256(chain_digest + chunk.sha256).digest(),
                ):
                    break
                self._counter.add_chunk(chunk)
                (record_count, chain_digest), offset = answer, chunk.end_offset
            else:
                return build_file_progress(path, offset, record_count, chain_digest)
            # Either another process has sent data, or the recorded progress is outdated.
            progress = self._measure_progress_against_server(row_id, name, path)
            if progress.record_count <= record_count:
                raise _ContentDiffersError

    def _append_chunk(
        self, row_id: int, name: str, chain_digest: bytes, chunk: LineChunk
    ) -> _ServerState:
        if chunk.turn_words:
            turn_lines, turn_times, turn_words = zip(*chunk.turn_words, strict=True)
        else:
            turn_lines, turn_times, turn_words = ((), (), ())
        values = (
            row_id, name, chunk.first_line_number, chain_digest, chunk.record_count, chunk.raw_byte_count,
            chunk.sha256, chunk.compressed_lines, token_rules().version,
            json.dumps(chunk.secret_counts_by_kind), list(turn_lines), list(turn_times), list(turn_words),
        )  # fmt: skip
        state = self._db.fetch_row(_APPEND_QUERY, values, _STATE_ROW_FORMAT)
        if state is None:
            raise _ContentDiffersError
        return state

    def _measure_progress_against_server(self, row_id: int, name: str, path: str) -> FileProgress:
        """Return the upload progress of a file, measured by comparing the file with the server's copy.

        Raise _ContentDiffersError if the contents differ, and _LocalFileShorterError if the file is
        shorter than the server's copy.
        """
        query = (
            "select c.first::text, c.records::text, c.sha, c.head from team.chunk c join team.part p on p.id = c.part"
            " where p.session = %s and p.name = %s order by c.first"
        )
        learn_secrets_in_file(self._redactor, path)
        local_records, offset, line_number, chain_digest = (
            read_clean_records(path, self._redactor),
            0,
            0,
            b"",
        )
        for server_chunk in self._db.fetch_rows(query, (row_id, name), _CHUNK_ROW_FORMAT):
            body, line_count, end_offset = bytearray(), 0, offset
            for record in islice(local_records, server_chunk.record_count):
                # A push ends each chunk when it reaches this size. A chunk on the server that
                # continues past this point was therefore not made from this file.
                if len(body) >= MAX_CHUNK_BYTES:
                    raise _ContentDiffersError
                body += record.body
                line_count, end_offset = line_count + 1, record.end_offset
            if line_count < server_chunk.record_count:
                self._raise_for_shorter_file(
                    row_id, name, server_chunk.first_line_number, bytes(body)
                )
            if (
                server_chunk.first_line_number != line_number
                or hashlib.sha256(body).digest() != server_chunk.sha256
            ):
                raise _ContentDiffersError
            line_number, offset, chain_digest = (
                line_number + line_count,
                end_offset,
                server_chunk.chain_digest,
            )
        return FileProgress(0, offset, line_number, 0, chain_digest.hex())

    def _raise_for_shorter_file(
        self, row_id: int, name: str, first_line_number: int, body: bytes
    ) -> None:
        """Raise an error because the file has fewer lines than its copy on the server.

        Raise _LocalFileShorterError if the server's copy begins with the content of the file, so
        that the copy can be kept. Otherwise, raise _ContentDiffersError.
        """
        query = (
            "select c.part::text from team.chunk c join team.part p on p.id = c.part"
            " where p.session = %s and p.name = %s and c.first = %s"
        )
        file_row_id = self._db.fetch_value(
            query, (row_id, name, first_line_number), rows.parse_row_id
        )
        if file_row_id is None or not self._server_chunk_begins_with(
            body, file_row_id, first_line_number
        ):
            raise _ContentDiffersError
        if self._rescan or self._upload_progress.must_replace_server_copy:
            raise _ContentDiffersError
        raise _LocalFileShorterError

    def _server_chunk_begins_with(
        self, body: bytes, file_row_id: int, first_line_number: int
    ) -> bool:
        decompressor, content = zlib.decompressobj(), b""
        with contextlib.suppress(zlib.error, ImportFailed):
            for packed_slice in fetch_slices(
                file_row_id, first_line_number, MAX_STORED_BYTES, self._db
            ):
                content += decompressor.decompress(packed_slice, len(body) - len(content) or 1)
                if len(content) >= len(body):
                    break
        return content[: len(body)] == body
