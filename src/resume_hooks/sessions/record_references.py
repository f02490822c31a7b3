"""References to one record, ``<session>:<record>``, and the line of a file that they lead to.

What was typed is data: a session's part is a locator like any other; a record's part is a line
number, a uuid, or the byte at which its line begins. Of a file is read what leads to the line,
never all of it into memory.
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
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import store_of
from resume_hooks.sessions.archived.layout import session_in
from resume_hooks.sessions.archived.manifest import archived_ids
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagents_of
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import (
    Line,
    Numbers,
    OneOpen,
    line_start,
    line_with,
    open_transcript,
    read_at,
    read_lines,
)
from resume_hooks.transcripts.records import Record

EXAMPLE = (
    "A reference is <session id or four of its characters>:<line, from 0>, such as 1a2b3c4d:56."
)
SHORT = 8  # characters of an id that people see, where no other session's id begins alike
MAX_DIGITS = 9  # digits of a line number; no file has more lines
MAX_PLACE_DIGITS = 15  # digits of a byte's place; no file is longer


class RecordOffset(NamedTuple):
    """The line that begins at a byte, ``@<offset>``.

    As ``<uuid>@<offset>`` that record, wherever it is by now.
    """

    offset: int
    uuid: str = ""

    @property
    def word(self) -> str:
        """What names it behind a session."""
        return f"{self.uuid}@{self.offset}"


class Reference(NamedTuple):
    """A record as it was named: ``session`` is a locator, ``record`` a 0-based line number, a uuid, or a place."""

    session: str
    record: int | str | RecordOffset


def parse_reference(text: str, session: str | None = None) -> Reference:
    """The record that ``text`` names; with ``session`` it is the record's part alone.

    UsageError says what is wrong.
    """
    wanted = text.strip()
    named, colon, record = wanted.rpartition(":")
    if session is not None:
        if colon:
            raise UsageError(
                f"'{_shown_word(wanted)}' names a session, and so does --session",
                "Leave one of them out.",
            )
        return Reference(session, _parse_record(wanted))
    if not colon:
        raise UsageError(
            f"'{_shown_word(wanted)}' has no colon between a session and a record", EXAMPLE
        )
    if not named.strip():
        raise UsageError(f"'{_shown_word(wanted)}' names no session before its colon", EXAMPLE)
    return Reference(named.strip(), _parse_record(record.strip()))


class ShortIds:
    """Ids as short as people can use them, among the ``known`` ones.

    That is the first ``SHORT`` characters where one known id alone begins so, else all of it.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._beginnings = Counter(session_id[:SHORT] for session_id in set(known))

    def shorten(self, session_id: str) -> str:
        """The short form of an id."""
        beginning = session_id[:SHORT]
        if self._beginnings[beginning] == 1:
            return beginning
        return session_id


class TranscriptNames(NamedTuple):
    """How commands and references name one transcript: in ``full`` for programs, as ``short`` as it can be for people.

    A file that no id leads to (it lies in no project folder) goes by its path in both.
    """

    full: str
    short: str

    def reference(self, record: int | str) -> str:
        """The short words for a record, by its line or the word of its entry, ready for a shell."""
        return shlex.quote(f"{self.short}:{record}")

    @property
    def word(self) -> str:
        """The short name, ready for a shell."""
        return shlex.quote(self.short)


def names_of(session: SessionFile, where: Where) -> TranscriptNames:
    """The names of a transcript that ``resolve_transcript`` finds again."""
    session_id, slash, agent = session.session_id.partition("/")
    known = find_session(session_id, where)
    vaulted = known is None and (
        session_in(session.path, where) == session_id or session.agent != NAME
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
    """A line of a session's file: its 0-based ``number``, -1 where it was not counted, and its bytes on disk.

    ``opened`` is the file where it is held open.
    """

    session_id: str
    file: str
    number: int
    offset: int
    length: int
    opened: OneOpen | None = None

    @property
    def word(self) -> str:
        """What names it behind a session: its line, or the byte that it begins at."""
        if self.number >= 0:
            return str(self.number)
        return RecordOffset(self.offset).word

    @property
    def reference(self) -> str:
        """The words that name it."""
        return f"{self.session_id}:{self.word}"

    def raw(self) -> bytes:
        """The line with its ending. SessionNotFound where the file is gone, or shorter by now."""
        with open_transcript(self.opened or self.file) as stream:
            return read_at(stream, self.offset, self.length)

    def record(self) -> Record | None:
        """What the line says; None for one that holds no JSON object."""
        return records.parse(Line(self.number, self.offset, self.raw()).body)


class RecordLines:
    """The lines of one file as long as it is now, by number, uuid or offset.

    SessionNotFound if it can't be read.
    """

    def __init__(self, file: str, session_id: str) -> None:
        self.file = file
        self.session_id = session_id
        with open_transcript(file) as stream:
            self.size = os.fstat(stream.fileno()).st_size
        self._counts = Numbers(self.size)

    def __len__(self) -> int:
        with open_transcript(self.file) as stream:
            return self._counts.total(stream)

    def at(self, number: int) -> RecordLine | None:
        """The line of that number, counted from 0."""
        with open_transcript(self.file) as stream:
            start = self._counts.start(stream, number)
            if start >= 0:
                return self._entry(stream, start, number)
            return None

    def of(self, uuid: str, near: int = -1) -> RecordLine | None:
        """The record of a uuid, in line ``near`` or the last one.

        Then all ids of the file are kept.
        """
        entry = self.at(near)
        if entry is not None and uuid in records.uuids(entry.record() or {}):
            return entry
        number = self._numbers.get(uuid)
        if number is None:
            return None
        return self.at(number)

    def last_of(self, uuid: str) -> RecordLine | None:
        """The last record of a uuid, not counted.

        Only lines that hold these characters are parsed.
        """
        with open_transcript(self.file) as stream:
            offset = self.size
            while (offset := line_with(stream, uuid.encode(), offset)) >= 0:
                entry = self._entry(stream, offset)
                if uuid in records.uuids(entry.record() or {}):
                    return entry
        return None

    def find(self, record: int | str | RecordOffset) -> RecordLine | None:
        """The line that a reference's part names, counted only where its number was given."""
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
                if line_start(stream, place.offset) == place.offset:
                    line = self._entry(stream, place.offset)
                else:
                    line = None
            if line and (
                not spellings or not spellings.keys().isdisjoint(records.uuids(line.record() or {}))
            ):
                return line
        return next((entry for spelt in spellings if (entry := self.last_of(spelt))), None)

    def with_number(self, entry: RecordLine) -> RecordLine:
        """A line with its number."""
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
    """A reference with the first characters of its session's id."""
    session, _, record = reference.rpartition(":")
    session_id, slash, agent = session.partition("/")
    return f"{session_id[:SHORT]}{slash}{agent}:{record}"


def place_of(reference: Reference, entries: RecordLines) -> RecordLine:
    """The line that a reference names in its session, counted where that costs nothing.

    UsageError for none.
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
    """The line that a reference names in its session, with its number.

    UsageError if it does not exist.
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
    """Whether a reference can name a record by this uuid: those of clients have the shape of a session's id."""
    return is_session_id(text.lower())


def _shown_word(text: str) -> str:
    return collapse_line(plain_line(text), 80)
