"""Parse references to records, ``<session>:<record>``, and find the lines to which they refer.

References are untrusted. ``<session>`` is a locator. ``<record>`` is a line number, a uuid, or
``@`` and the byte offset of the line. Only the necessary part of a file is read, and a whole file
is never loaded into memory.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import BinaryIO, NamedTuple

from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, find_session, is_session_id
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import store_of_agents
from resume_hooks.sessions.archived.layout import session_id_of_copy
from resume_hooks.sessions.archived.manifest import archived_ids
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagents_of_session
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import (
    Line,
    LineNumbers,
    SharedFile,
    find_line_start,
    find_offset_of_last_line_containing,
    open_transcript,
    read_exactly,
    read_lines,
)
from resume_hooks.transcripts.records import Record

SESSION_REFERENCE_HELP = (
    "A reference is a session id (or at least its first four characters), a colon and a line "
    "number counted from 0, such as 1a2b3c4d:56."
)
# Number of characters in a short id. An id is shortened to this length if no other id begins with
# the same characters.
SHORT_ID_CHARACTERS = 8
MAX_LINE_NUMBER_DIGITS = 9  # maximum number of digits of a line number; no file has a billion lines
MAX_OFFSET_DIGITS = 15  # maximum number of digits of a byte offset; no file needs more


class RecordOffset(NamedTuple):
    """A record at a byte offset, written ``@<offset>`` or ``<uuid>@<offset>`` in a reference.

    With a uuid, the record is found even if it has moved to another offset.
    """

    offset: int
    record_uuid: str = ""

    @property
    def record_part(self) -> str:
        """The text after the colon in a reference to this record."""
        return f"{self.record_uuid}@{self.offset}"


class Reference(NamedTuple):
    """A parsed reference.

    ``record`` is a line number counted from 0, a uuid, or an offset.
    """

    session_locator: str
    record: int | str | RecordOffset


def parse_reference(text: str, session: str | None = None) -> Reference:
    """Parse a reference. If ``session`` is given, ``text`` is only the part after the colon.

    Raise UsageError if ``text`` is not a valid reference.
    """
    stripped = text.strip()
    session_locator, colon, record = stripped.rpartition(":")
    if session is not None:
        if colon:
            raise UsageError(
                f"'{_shorten_for_message(stripped)}' contains a session, and --session is given as well",
                "Give only one of them.",
            )
        return Reference(session, _parse_record_part(stripped))
    if not colon:
        raise UsageError(
            f"'{_shorten_for_message(stripped)}' has no colon between a session and a record",
            SESSION_REFERENCE_HELP,
        )
    if not session_locator.strip():
        raise UsageError(
            f"'{_shorten_for_message(stripped)}' has no session before its colon",
            SESSION_REFERENCE_HELP,
        )
    return Reference(session_locator.strip(), _parse_record_part(record.strip()))


class ShortIds:
    """Shortens session ids for display.

    An id is shortened to its first ``SHORT_ID_CHARACTERS`` characters if exactly one of the
    ``known`` ids begins with these characters. Otherwise it is not shortened.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._prefix_counts = Counter(session_id[:SHORT_ID_CHARACTERS] for session_id in set(known))

    def shorten(self, session_id: str) -> str:
        """Return the short form of an id."""
        prefix = session_id[:SHORT_ID_CHARACTERS]
        if self._prefix_counts[prefix] == 1:
            return prefix
        return session_id


class TranscriptNames(NamedTuple):
    """The names of a transcript in commands and references.

    ``full_name`` is for programs, and ``short_name`` is for people. For a file outside the project
    folders, both names are its path.
    """

    full_name: str
    short_name: str

    def make_reference(self, record: int | str) -> str:
        """Return the short reference of a record, quoted for a shell.

        ``record`` is the part after the colon: a line number, or a ``record_part``.
        """
        return shlex.quote(f"{self.short_name}:{record}")

    @property
    def quoted_name(self) -> str:
        """The short name, quoted for a shell."""
        return shlex.quote(self.short_name)


def names_of_transcript(session: SessionFile, where: Where) -> TranscriptNames:
    """Return the names that ``resolve_transcript`` accepts for a transcript."""
    session_id, slash, subagent_name = session.session_id.partition("/")
    path = find_session(session_id, where)
    is_only_copy = path is None and (
        session_id_of_copy(session.path, where) == session_id or session.agent != CLAUDE_NAME
    )
    files = [subagent.path for subagent in subagents_of_session(path)] if slash and path else [path]
    if not is_only_copy and session.original_path not in files:
        return TranscriptNames(session.original_path, session.original_path)
    similar_ids = {
        similar_session.session_id
        for similar_session in store_of_agents(where).sessions(
            prefix=session_id[:SHORT_ID_CHARACTERS]
        )
    }
    if is_only_copy:
        similar_ids |= {
            similar_session
            for similar_session in archived_ids(where)
            if similar_session.startswith(session_id[:SHORT_ID_CHARACTERS])
        }
    short_id = ShortIds(similar_ids).shorten(session_id)
    return TranscriptNames(session.session_id, f"{short_id}{slash}{subagent_name}")


class RecordLine(NamedTuple):
    """A line of a session's file.

    ``number`` is the line's number, counted from 0. It is -1 if the number is unknown. ``offset``
    and ``length`` are in bytes. ``open_file`` is the file if it is already open.
    """

    session_id: str
    file_path: str
    number: int
    offset: int
    length: int
    open_file: SharedFile | None = None

    @property
    def record_part(self) -> str:
        """The text after the colon in a reference to this line: its number, or ``@`` and its offset."""
        if self.number >= 0:
            return str(self.number)
        return RecordOffset(self.offset).record_part

    @property
    def reference(self) -> str:
        """The full reference to this line."""
        return f"{self.session_id}:{self.record_part}"

    def read_raw_line(self) -> bytes:
        """Return the bytes of the line with its newline.

        Raise SessionNotFound if the file was deleted or has become shorter.
        """
        with open_transcript(self.open_file or self.file_path) as stream:
            return read_exactly(stream, self.offset, self.length)

    def parse_record(self) -> Record | None:
        """Return the record in the line, or None if the line is not a JSON object."""
        return records.parse_record(Line(self.number, self.offset, self.read_raw_line()).body)


class RecordLines:
    """Finds the lines of a file by number, uuid or offset.

    Lines that are appended to the file after this object was created are ignored. Methods raise
    SessionNotFound if the file can't be read.
    """

    def __init__(self, file: str, session_id: str) -> None:
        self.file = file
        self.session_id = session_id
        with open_transcript(file) as stream:
            self.size = os.fstat(stream.fileno()).st_size
        self._line_numbers = LineNumbers(self.size)

    def __len__(self) -> int:
        with open_transcript(self.file) as stream:
            return self._line_numbers.count_lines(stream)

    def find_line_with_number(self, number: int) -> RecordLine | None:
        """Return the line with this number, counted from 0, or None if there is no such line."""
        with open_transcript(self.file) as stream:
            start = self._line_numbers.find_line_offset(stream, number)
            if start >= 0:
                return self._line_at_offset(stream, start, number)
            return None

    def find_record_with_uuid(self, uuid: str, expected_line_number: int = -1) -> RecordLine | None:
        """Return the line of a record with this uuid, or None if no record has it.

        If the record in line ``expected_line_number`` has the uuid, return this line. Otherwise return
        the last line whose record has it. This second search reads the whole file and caches all
        uuids.
        """
        entry = self.find_line_with_number(expected_line_number)
        if entry is not None and uuid in records.list_uuids(entry.parse_record() or {}):
            return entry
        number = self._line_numbers_by_uuid.get(uuid)
        if number is None:
            return None
        return self.find_line_with_number(number)

    def find_last_record_with_uuid(self, uuid: str) -> RecordLine | None:
        """Return the line of the last record with this uuid. The line's number is unknown.

        Only lines that contain the characters of the uuid are parsed.
        """
        with open_transcript(self.file) as stream:
            offset = self.size
            while (
                offset := find_offset_of_last_line_containing(stream, uuid.encode(), offset)
            ) >= 0:
                entry = self._line_at_offset(stream, offset)
                if uuid in records.list_uuids(entry.parse_record() or {}):
                    return entry
        return None

    def find_line(self, record: int | str | RecordOffset) -> RecordLine | None:
        """Return the line to which a parsed ``<record>`` refers, or None if there is no such line.

        ``<record>`` is the part of a reference after the colon. The line's number is known only if
        ``record`` is a line number.
        """
        if isinstance(record, int):
            return self.find_line_with_number(record)
        if isinstance(record, RecordOffset):
            record_offset = record
        else:
            record_offset = RecordOffset(-1, record)
        if record_offset.record_uuid:
            uuid_forms = dict.fromkeys(
                (record_offset.record_uuid, record_offset.record_uuid.lower())
            )
        else:
            uuid_forms = {}
        if 0 <= record_offset.offset < self.size:
            with open_transcript(self.file) as stream:
                if find_line_start(stream, record_offset.offset) == record_offset.offset:
                    line = self._line_at_offset(stream, record_offset.offset)
                else:
                    line = None
            if line and (
                not uuid_forms
                or not uuid_forms.keys().isdisjoint(records.list_uuids(line.parse_record() or {}))
            ):
                return line
        return next(
            (
                entry
                for uuid_form in uuid_forms
                if (entry := self.find_last_record_with_uuid(uuid_form))
            ),
            None,
        )

    def add_line_number(self, entry: RecordLine) -> RecordLine:
        """Return the line with its number. If the number is unknown, count the lines before it."""
        if entry.number >= 0:
            return entry
        with open_transcript(self.file) as stream:
            return entry._replace(number=self._line_numbers.find_line_number(stream, entry.offset))

    def _line_at_offset(self, stream: BinaryIO, offset: int, line_number: int = -1) -> RecordLine:
        stream.seek(offset)
        length = len(stream.readline(self.size - offset))
        return RecordLine(self.session_id, self.file, line_number, offset, length)

    @cached_property
    def _line_numbers_by_uuid(self) -> dict[str, int]:
        with open_transcript(self.file) as stream:
            rows = ((line.number, records.parse_record(line.body)) for line in read_lines(stream))
            numbers = {}
            for number, record in rows:
                if record:
                    for uuid in records.list_uuids(record):
                        numbers[uuid] = number
            return numbers


def shorten_reference(reference: str) -> str:
    """Shorten the session id in a reference to its first characters."""
    session, _, record = reference.rpartition(":")
    session_id, slash, subagent_name = session.partition("/")
    return f"{session_id[:SHORT_ID_CHARACTERS]}{slash}{subagent_name}:{record}"


def find_referenced_line(reference: Reference, record_lines: RecordLines) -> RecordLine:
    """Return the line to which a reference refers.

    The line's number is -1 unless the reference contains it. Raise UsageError if the line does not
    exist.
    """
    record = reference.record
    line = record_lines.find_line(record)
    if line is not None:
        return line
    if isinstance(record, int):
        count = len(record_lines)
        line_range = f"lines 0 to {count - 1}" if count else "no lines"
        raise UsageError(f"No line {record} in {record_lines.file}", f"It has {line_range}.")
    if isinstance(record, RecordOffset) and not record.record_uuid:
        remedy = "The file may have been rewritten. Begin again at its end: read SESSION --page."
        raise UsageError(f"No line of {record_lines.file} begins at byte {record.offset}", remedy)
    uuid = record.record_uuid if isinstance(record, RecordOffset) else record
    raise UsageError(
        f"No record {uuid} in {record_lines.file}", "Was it taken from another session?"
    )


def find_numbered_line(reference: Reference, record_lines: RecordLines) -> RecordLine:
    """Return the line to which a reference refers, with its number.

    Raise UsageError if there is no such line.
    """
    return record_lines.add_line_number(find_referenced_line(reference, record_lines))


def _parse_record_part(text: str) -> int | str | RecordOffset:
    if _is_number(text, MAX_LINE_NUMBER_DIGITS):
        return int(text)
    uuid, at, offset = text.partition("@")
    if is_record_id(uuid) or (at and not uuid):
        if not at:
            return uuid
        if _is_number(offset, MAX_OFFSET_DIGITS):
            return RecordOffset(int(offset), uuid)
    raise UsageError(
        f"'{_shorten_for_message(text)}' is not a line number, a uuid, or @ followed by a byte offset",
        SESSION_REFERENCE_HELP,
    )


def _is_number(text: str, max_digits: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= max_digits


def is_record_id(text: str) -> bool:
    """Check whether ``text`` has the form of a record's uuid, which is also the form of session ids."""
    return is_session_id(text.lower())


def _shorten_for_message(text: str) -> str:
    return collapse_line(plain_line(text), 80)
