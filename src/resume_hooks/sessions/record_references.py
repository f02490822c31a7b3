"""References to a record, ``<session>:<record>``, and the lines that they identify.

The input is untrusted. The session is a locator like any other; the record is a line number, a
uuid, or the byte offset of its line. Only the necessary part of a file is read, never all of it
into memory.
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
from resume_hooks.sessions.agents.registry import store_of
from resume_hooks.sessions.archived.layout import session_id_of_copy
from resume_hooks.sessions.archived.manifest import archived_ids
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagents_of
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import (
    Line,
    LineNumbers,
    SharedFile,
    find_last_line_with,
    find_line_start,
    open_transcript,
    read_exactly,
    read_lines,
)
from resume_hooks.transcripts.records import Record

EXAMPLE = (
    "A reference is <session id or four of its characters>:<line, from 0>, such as 1a2b3c4d:56."
)
SHORT = 8  # displayed characters of an id, if they identify the session
MAX_DIGITS = 9  # digits of a line number; no file has more lines
MAX_PLACE_DIGITS = 15  # digits of a byte offset; no file is longer


class RecordOffset(NamedTuple):
    """The line at a byte offset, ``@<offset>``.

    ``<uuid>@<offset>`` is the record with that uuid, even if it has moved.
    """

    offset: int
    uuid: str = ""

    @property
    def word(self) -> str:
        """The record's part of a reference."""
        return f"{self.uuid}@{self.offset}"


class Reference(NamedTuple):
    """A parsed reference: ``session`` is a locator, ``record`` a 0-based line number, a uuid, or an offset."""

    session: str
    record: int | str | RecordOffset


def parse_reference(text: str, session: str | None = None) -> Reference:
    """Parse a reference; with ``session``, ``text`` is the record's part alone.

    UsageError explains the mistake.
    """
    wanted = text.strip()
    named, colon, record = wanted.rpartition(":")
    if session is not None:
        if colon:
            raise UsageError(
                f"'{_shown_word(wanted)}' contains a session, and --session is given as well",
                "Give only one of them.",
            )
        return Reference(session, _parse_record(wanted))
    if not colon:
        raise UsageError(
            f"'{_shown_word(wanted)}' has no colon between a session and a record", EXAMPLE
        )
    if not named.strip():
        raise UsageError(f"'{_shown_word(wanted)}' has no session before its colon", EXAMPLE)
    return Reference(named.strip(), _parse_record(record.strip()))


class ShortIds:
    """Shortens ids for display, without ambiguity among the ``known`` ones.

    The short form is the first ``SHORT`` characters if only one known id begins with them, else the
    whole id.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._beginnings = Counter(session_id[:SHORT] for session_id in set(known))

    def shorten(self, session_id: str) -> str:
        """Return the short form of an id."""
        beginning = session_id[:SHORT]
        if self._beginnings[beginning] == 1:
            return beginning
        return session_id


class TranscriptNames(NamedTuple):
    """The names of a transcript in commands and references: ``full`` for programs, ``short`` for people.

    For a file outside the project folders both are its path.
    """

    full: str
    short: str

    def reference(self, record: int | str) -> str:
        """Return the short reference of a record, by line or by a line's ``word``, quoted for a shell."""
        return shlex.quote(f"{self.short}:{record}")

    @property
    def word(self) -> str:
        """The short name, quoted for a shell."""
        return shlex.quote(self.short)


def names_of(session: SessionFile, where: Where) -> TranscriptNames:
    """Return the names of a transcript that ``resolve_transcript`` accepts."""
    session_id, slash, agent = session.session_id.partition("/")
    known = find_session(session_id, where)
    vaulted = known is None and (
        session_id_of_copy(session.path, where) == session_id or session.agent != CLAUDE_NAME
    )
    files = [one.path for one in subagents_of(known)] if slash and known else [known]
    if not vaulted and session.original not in files:
        return TranscriptNames(session.original, session.original)
    alike = {other.session_id for other in store_of(where).sessions(prefix=session_id[:SHORT])}
    if vaulted:
        alike |= {other for other in archived_ids(where) if other.startswith(session_id[:SHORT])}
    short = ShortIds(alike).shorten(session_id)
    return TranscriptNames(session.session_id, f"{short}{slash}{agent}")


class RecordLine(NamedTuple):
    """A line of a session's file: its 0-based ``number``, -1 if not counted, and its bytes on disk.

    ``opened`` is the file if it is held open.
    """

    session_id: str
    file: str
    number: int
    offset: int
    length: int
    opened: SharedFile | None = None

    @property
    def word(self) -> str:
        """The record's part of a reference to this line: its number or its byte offset."""
        if self.number >= 0:
            return str(self.number)
        return RecordOffset(self.offset).word

    @property
    def reference(self) -> str:
        """The reference to this line."""
        return f"{self.session_id}:{self.word}"

    def raw(self) -> bytes:
        """Return the line with its ending. Raise SessionNotFound if the file is gone or has become shorter."""
        with open_transcript(self.opened or self.file) as stream:
            return read_exactly(stream, self.offset, self.length)

    def record(self) -> Record | None:
        """Parse the line; return None if it has no JSON object."""
        return records.parse(Line(self.number, self.offset, self.raw()).body)


class RecordLines:
    """The lines of a file at its current length, by number, uuid or offset.

    Raises SessionNotFound if it can't be read.
    """

    def __init__(self, file: str, session_id: str) -> None:
        self.file = file
        self.session_id = session_id
        with open_transcript(file) as stream:
            self.size = os.fstat(stream.fileno()).st_size
        self._counts = LineNumbers(self.size)

    def __len__(self) -> int:
        with open_transcript(self.file) as stream:
            return self._counts.total(stream)

    def at(self, number: int) -> RecordLine | None:
        """Return the line with a number, counted from 0."""
        with open_transcript(self.file) as stream:
            start = self._counts.start(stream, number)
            if start >= 0:
                return self._entry(stream, start, number)
            return None

    def of(self, uuid: str, near: int = -1) -> RecordLine | None:
        """Return the record with a uuid, in line ``near`` or the last one.

        A full search caches all ids of the file.
        """
        entry = self.at(near)
        if entry is not None and uuid in records.uuids(entry.record() or {}):
            return entry
        number = self._numbers.get(uuid)
        if number is None:
            return None
        return self.at(number)

    def last_of(self, uuid: str) -> RecordLine | None:
        """Return the last record with a uuid, without its line number.

        Parse only lines that contain its characters.
        """
        with open_transcript(self.file) as stream:
            offset = self.size
            while (offset := find_last_line_with(stream, uuid.encode(), offset)) >= 0:
                entry = self._entry(stream, offset)
                if uuid in records.uuids(entry.record() or {}):
                    return entry
        return None

    def find(self, record: int | str | RecordOffset) -> RecordLine | None:
        """Return the line for a reference's record part; its number is set only if it was given."""
        if isinstance(record, int):
            return self.at(record)
        if isinstance(record, RecordOffset):
            place = record
        else:
            place = RecordOffset(-1, record)
        if place.uuid:
            spellings = dict.fromkeys((place.uuid, place.uuid.lower()))
        else:
            spellings = {}
        if 0 <= place.offset < self.size:
            with open_transcript(self.file) as stream:
                if find_line_start(stream, place.offset) == place.offset:
                    line = self._entry(stream, place.offset)
                else:
                    line = None
            if line and (
                not spellings or not spellings.keys().isdisjoint(records.uuids(line.record() or {}))
            ):
                return line
        return next((entry for spelt in spellings if (entry := self.last_of(spelt))), None)

    def with_number(self, entry: RecordLine) -> RecordLine:
        """Return a line with its number."""
        if entry.number >= 0:
            return entry
        with open_transcript(self.file) as stream:
            return entry._replace(number=self._counts.of(stream, entry.offset))

    def _entry(self, stream: BinaryIO, offset: int, number: int = -1) -> RecordLine:
        stream.seek(offset)
        length = len(stream.readline(self.size - offset))
        return RecordLine(self.session_id, self.file, number, offset, length)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        with open_transcript(self.file) as stream:
            rows = ((line.number, records.parse(line.body)) for line in read_lines(stream))
            numbers = {}
            for number, record in rows:
                if record:
                    for uuid in records.uuids(record):
                        numbers[uuid] = number
            return numbers


def shorten_reference(reference: str) -> str:
    """Shorten the session id in a reference."""
    session, _, record = reference.rpartition(":")
    session_id, slash, agent = session.partition("/")
    return f"{session_id[:SHORT]}{slash}{agent}:{record}"


def place_of(reference: Reference, entries: RecordLines) -> RecordLine:
    """Return the line for a reference in its session, numbered only if that is free.

    Raise UsageError if it does not exist.
    """
    named = reference.record
    line = entries.find(named)
    if line is not None:
        return line
    if isinstance(named, int):
        count = len(entries)
        lines = f"lines 0 to {count - 1}" if count else "no lines"
        raise UsageError(f"No line {named} in {entries.file}", f"It has {lines}.")
    if isinstance(named, RecordOffset) and not named.uuid:
        remedy = (
            "It may have been rewritten since: begin again at its end, with read SESSION --page."
        )
        raise UsageError(f"No line of {entries.file} begins at byte {named.offset}", remedy)
    uuid = named.uuid if isinstance(named, RecordOffset) else named
    raise UsageError(f"No record {uuid} in {entries.file}", "Was it taken from another session?")


def line_of_reference(reference: Reference, entries: RecordLines) -> RecordLine:
    """Return the line for a reference in its session, with its number.

    Raise UsageError if it does not exist.
    """
    return entries.with_number(place_of(reference, entries))


def _parse_record(text: str) -> int | str | RecordOffset:
    if _is_number(text, MAX_DIGITS):
        return int(text)
    uuid, at, offset = text.partition("@")
    if is_record_id(uuid) or (at and not uuid):
        if not at:
            return uuid
        if _is_number(offset, MAX_PLACE_DIGITS):
            return RecordOffset(int(offset), uuid)
    raise UsageError(
        f"'{_shown_word(text)}' is neither a line number, nor a uuid, nor @ and a byte", EXAMPLE
    )


def _is_number(text: str, digits: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= digits


def is_record_id(text: str) -> bool:
    """Check whether ``text`` can be a record's uuid; clients' uuids have the shape of a session's id."""
    return is_session_id(text.lower())


def _shown_word(text: str) -> str:
    return collapse_line(plain_line(text), 80)
