"""Push a session: send only the data that is not on the server yet.

The server accepts a piece only with the digest of all previous pieces. A local cursor records the
progress. If there is no cursor, or the file was rewritten, the server's pieces are compared with
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
from resume_hooks.parts.team.connect import (
    EXPIRED,
    FORGOTTEN,
    SCRUBBED,
    TeamFailed,
    translate_errors,
)
from resume_hooks.parts.team.cursor import (
    Cursor,
    FileProgress,
    is_forgotten,
    is_unchanged,
    note_forgotten,
    progress_at,
    read_cursor,
    session_folder,
    write_cursor,
)
from resume_hooks.parts.team.membership import project_name
from resume_hooks.parts.team.pieces import MOST_RAW, LinePiece, clean_records, cut_pieces
from resume_hooks.parts.team.rows import Database, RowFormat
from resume_hooks.parts.team.stored_pieces import MOST_STORED_BYTES, fetch_slices
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
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.locks import lock_folder
from resume_hooks.system.text import collapse_line, plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail

_BUSY = "Another command is sending this session"
_APPEND_QUERY = (
    "select records::text, head from team.append(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, "
    "%s, %s)"
)

_RESULT_OF_REFUSAL: dict[str, Literal["forgotten", "scrubbed", "expired"]] = {
    FORGOTTEN: "forgotten", SCRUBBED: "scrubbed", EXPIRED: "expired"
}  # fmt: skip
"""The results for sessions that the server refuses: permanently, from this machine, or because they are too old."""


class Pushed(NamedTuple):
    """The result of a push; ``secrets`` is the number of removed secrets by kind.

    ``records`` records with ``raw`` bytes were sent in ``pieces`` pieces, compressed to ``stored``
    bytes.
    """

    session_id: str
    title: str
    result: Literal[
        "sent", "unchanged", "replaced", "shorter", "forgotten", "scrubbed", "expired", "busy"
    ]
    pieces: int = 0
    records: int = 0
    raw: int = 0
    stored: int = 0
    secrets: dict[str, int] = {}  # noqa: RUF012 - as above


class _ServerState(NamedTuple):
    """A file's state on the server: the number of records and the digest of all records."""

    records: int
    head: bytes


class _SentPiece(NamedTuple):
    """A piece on the server."""

    first: int
    records: int
    sha: bytes
    head: bytes


_STATE_FORMAT = RowFormat(_ServerState, (rows.parse_count, rows.parse_head))
_PIECE_FORMAT = RowFormat(
    _SentPiece, (rows.parse_count, rows.parse_whole_number(1), rows.parse_digest, rows.parse_digest)
)


class _DivergedError(Exception):
    """The content on the server differs from the file."""


class _ShorterError(Exception):
    """The file is only a prefix of the content on the server."""


def push_session(
    session: SessionFile, team: Team, db: Database, where: Where, *, rescan: bool = False
) -> Pushed:
    """Upload a session's data that is not on the server yet. Raise TeamFailed, SessionNotFound or WriteFailed."""
    if reason := data_rules.reason_against_copies(where):
        raise TeamFailed(f"Nothing was pushed: {reason}", "Ask who manages this account.")
    title = session_metadata(session, Family(where), where)["title"]
    try:
        folder = session_folder(session.session_id, where)
        with translate_errors(), lock_folder(folder, where, _BUSY, "Could not write to"):
            return _SessionPush(session, team, db, where, rescan=rescan).run()
    except TeamFailed as error:
        if error.state not in _RESULT_OF_REFUSAL:
            raise
        if error.state == FORGOTTEN:
            note_forgotten(session.session_id, where)
        return Pushed(session.session_id, title, _RESULT_OF_REFUSAL[error.state])
    except _ShorterError:
        return Pushed(session.session_id, title, "shorter")
    except SessionOpen:
        return Pushed(session.session_id, title, "busy")


def preview_push(session: SessionFile, where: Where) -> Pushed:
    """Return the data that the first push of a session would send, without a connection to the server."""
    counter = _PushCounter()
    redactor = find_secrets_in_sessions([session])
    for _, path in files_to_push(session):
        for piece in cut_pieces(path, redactor):
            counter.add(piece)
    return counter.pushed(
        session.session_id,
        session_metadata(session, Family(where), where, redactor)["title"],
        "sent",
    )


def files_to_push(session: SessionFile) -> list[tuple[str, str]]:
    """Return the files of a session to push, by their names on the server.

    The name of the transcript is ``""``.

    A file is left out if its name is not valid in a session's folder or contains a secret.
    """
    attachments = []
    for name, path in list_bundled_files(session):
        if is_valid_name(name) and not redact(name)[1]:
            attachments.append((name, path))
    return [("", session.path), *attachments]


def session_metadata(
    session: SessionFile, family: Family, where: Where, redactor: Redactor | None = None
) -> dict[str, str]:
    """Return a session's metadata, without the secrets that ``redactor`` knows or finds.

    Raise SessionNotFound.
    """
    ends, parent = HeadTail(session.path), family.find_parent(session.path)
    home = home_folder(ends, where)
    redactor = redactor or find_secrets_in_ends(ends)

    def clean(text: str) -> str:
        return collapse_line(plain_line(replace_surrogates(redactor.redact(text))), 1_000)

    return {
        "title": clean(ends.title_by(redactor.redact)),
        "folder": clean(home),
        "project": clean(project_name(home)),
        "created": clean(ends.created),
        "ended": clean(ends.ended),
        "parent": clean(parent.session_id) if parent else "",
        "kind": clean(parent.kind) if parent else "",
    }


def is_behind(session: SessionFile, where: Where) -> bool:
    """Check whether a session has unsent data, according to this machine's records."""
    if is_forgotten(session.session_id, where):
        return False
    cursor = read_cursor(session.session_id, where)
    if not cursor.row or cursor.drop:
        return True
    for name, path in files_to_push(session):
        progress = cursor.places.get(name)
        with contextlib.suppress(OSError):
            if (progress and not is_unchanged(progress, path)) or any(
                True for _ in clean_records(path, Redactor(), progress.offset if progress else 0)
            ):
                return True
    return False


class _PushCounter:
    """Counts the data that was sent."""

    def __init__(self) -> None:
        self.pieces = self.records = self.raw = self.stored = 0
        self.secrets: Counter[str] = Counter()

    def add(self, piece: LinePiece) -> None:
        """Count a piece."""
        self.pieces += 1
        self.records += piece.records
        self.raw += piece.raw
        self.stored += len(piece.data)
        self.secrets.update(piece.secrets)

    def pushed(self, session_id: str, title: str, result: Any) -> Pushed:
        """Return the result of the push."""
        return Pushed(
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
        self._known = self._find_secrets()
        self._about = session_metadata(session, Family(where), where, self._known)
        self._count = _PushCounter()

    def _find_secrets(self) -> Redactor:
        """Return a redactor with the secrets in the unsent data, and in the beginning and the end of the session."""
        redactor = find_secrets_in_ends(HeadTail(self._session.path))
        for name, path in files_to_push(self._session):
            progress = self._cursor.places.get(name)
            learn_file(
                redactor, path, progress.offset if progress and is_unchanged(progress, path) else 0
            )
        return redactor

    def run(self) -> Pushed:
        """Send the missing data."""
        cursor, result = self._cursor, "sent"
        if cursor.drop:
            self._db.run(
                "select team.scrubbed(%s, %s)", (self._session.session_id, self._team.machine)
            )
        row = self._begin(0, drop=False)
        if cursor.row in {0, row} and not (self._rescan or cursor.drop):
            places = cursor.places
        else:
            places = {}
        try:
            places = self._send(row, places)
        except _DivergedError:
            result, self._count = "replaced", _PushCounter()
            row = self._begin(row, drop=self._rescan or cursor.drop)
            try:
                places = self._send(row, {})
            except _DivergedError as error:
                raise TeamFailed(
                    f"Session {self._session.session_id} changed while it was sent",
                    "Push it again.",
                ) from error
        write_cursor(self._session.session_id, Cursor(row, cursor.base, places=places), self._where)
        if not self._count.pieces and result == "sent":
            result = "unchanged"
        return self._count.pushed(self._session.session_id, self._about["title"], result)

    def _begin(self, previous_row: int, *, drop: bool) -> int:
        base = self._cursor.base if not previous_row else 0
        values = (
            self._session.session_id,
            self._team.machine,
            json.dumps(self._about),
            previous_row or None,
            drop,
            base or None,
        )
        row = self._db.value(
            "select team.begin_session(%s, %s, %s, %s, %s, %s)::text", values, rows.parse_row_number
        )
        if row is None:
            raise TeamFailed("The team's database returned no row for the session", "Who runs it?")
        return row

    def _send(self, row: int, places: dict[str, FileProgress]) -> dict[str, FileProgress]:
        """Send the missing data of every file, and return the progress of each file."""
        if (
            self._cursor.drop and row == self._cursor.row
        ):  # This and earlier generations may contain scrubbed text.
            raise _DivergedError
        sent_places: dict[str, FileProgress] = {}
        for name, path in files_to_push(self._session):
            try:
                progress = places.get(name)
                if progress is None or not is_unchanged(progress, path):
                    progress = self._compare_with_server(row, name, path)
                sent_places[name] = self._send_file(row, name, path, progress)
            except OSError as error:
                if not name:
                    raise SessionNotFound(
                        f"{path} can't be read: {error.strerror}", "Was it just deleted?"
                    ) from error
        return sent_places

    def _send_file(self, row: int, name: str, path: str, progress: FileProgress) -> FileProgress:
        while True:
            records, offset, head = progress.records, progress.offset, bytes.fromhex(progress.head)
            for piece in cut_pieces(path, self._known, records, offset):
                answer = self._append(row, name, head, piece)
                if answer != (records + piece.records, hashlib.sha256(head + piece.sha).digest()):
                    break
                self._count.add(piece)
                (records, head), offset = answer, piece.end
            else:
                return progress_at(path, offset, records, head)
            # Another process has sent data, or our cursor is outdated.
            progress = self._compare_with_server(row, name, path)
            if progress.records <= records:
                raise _DivergedError

    def _append(self, row: int, name: str, head: bytes, piece: LinePiece) -> _ServerState:
        if piece.passages:
            turns, times, words = zip(*piece.passages, strict=True)
        else:
            turns, times, words = ((), (), ())
        values = (
            row, name, piece.first, head, piece.records, piece.raw, piece.sha, piece.data, token_rules().version,
            json.dumps(piece.secrets), list(turns), list(times), list(words),
        )  # fmt: skip
        state = self._db.row(_APPEND_QUERY, values, _STATE_FORMAT)
        if state is None:
            raise _DivergedError
        return state

    def _compare_with_server(self, row: int, name: str, path: str) -> FileProgress:
        """Return the progress up to which the file and the server's content are equal."""
        query = (
            "select c.first::text, c.records::text, c.sha, c.head from team.chunk c join team.part p on p.id = c.part"
            " where p.session = %s and p.name = %s order by c.first"
        )
        learn_file(self._known, path)
        ours, offset, number, head = clean_records(path, self._known), 0, 0, b""
        for piece in self._db.rows(query, (row, name), _PIECE_FORMAT):
            body, lines, end = bytearray(), 0, offset
            for record in islice(ours, piece.records):
                # Our pieces are never longer than this, whatever size the server reports.
                if len(body) >= MOST_RAW:
                    raise _DivergedError
                body += record.body
                lines, end = lines + 1, record.end
            if lines < piece.records:
                self._compare_rest(row, name, piece.first, bytes(body))
            if piece.first != number or hashlib.sha256(body).digest() != piece.sha:
                raise _DivergedError
            number, offset, head = number + lines, end, piece.head
        return FileProgress(0, offset, number, 0, head.hex())

    def _compare_rest(self, row: int, name: str, first: int, body: bytes) -> None:
        """Raise the error for a file that is shorter than the server's copy: it was either truncated or changed."""
        query = (
            "select c.part::text from team.chunk c join team.part p on p.id = c.part"
            " where p.session = %s and p.name = %s and c.first = %s"
        )
        part = self._db.value(query, (row, name, first), rows.parse_row_number)
        if part is None or not self._begins_with(body, part, first):
            raise _DivergedError
        if self._rescan or self._cursor.drop:
            raise _DivergedError
        raise _ShorterError

    def _begins_with(self, body: bytes, part: int, first: int) -> bool:
        unpacking, content = zlib.decompressobj(), b""
        with contextlib.suppress(zlib.error, ImportFailed):
            for packed in fetch_slices(part, first, MOST_STORED_BYTES, self._db):
                content += unpacking.decompress(packed, len(body) - len(content) or 1)
                if len(content) >= len(body):
                    break
        return content[: len(body)] == body
