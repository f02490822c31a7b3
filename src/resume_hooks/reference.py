"""References: the words that name one record, ``<session>:<record>``, and the line of a file that they lead to.

What was typed is data: a session's part is a locator like any other, a record's part a line number or a uuid.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import BinaryIO, NamedTuple

from resume_hooks import records, store
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.glance import one_line
from resume_hooks.lines import Line, read_lines
from resume_hooks.paths import find_session, is_session_id
from resume_hooks.plain import plain_line
from resume_hooks.records import Record, string
from resume_hooks.store import SessionFile
from resume_hooks.subagents import subagents_of

EXAMPLE = "A reference is <session id or four of its characters>:<line, from 0>, such as 1a2b3c4d:56."
SHORT = 8
"""Characters of an id that people see, where no other session's id begins alike."""

MAX_DIGITS = 9
"""Digits of a line number; no file has more lines."""


class Reference(NamedTuple):
    """A record as it was named: ``session`` is a locator, ``record`` a 0-based line number or a uuid."""

    session: str
    record: int | str


def parse(text: str, session: str | None = None) -> Reference:
    """The record that ``text`` names; with ``session`` it is the record's part alone. UsageError says what is wrong."""
    wanted = text.strip()
    named, colon, record = wanted.rpartition(":")
    if session is not None:
        if colon:
            raise UsageError(f"'{_shown(wanted)}' names a session, and so does --session", "Leave one of them out.")
        return Reference(session, _record(wanted))
    if not colon:
        raise UsageError(f"'{_shown(wanted)}' has no colon between a session and a record", EXAMPLE)
    if not named.strip():
        raise UsageError(f"'{_shown(wanted)}' names no session before its colon", EXAMPLE)
    return Reference(named.strip(), _record(record.strip()))


class Names(NamedTuple):
    """How commands and references name one transcript: in ``full`` for programs, as ``short`` as it can be for people.

    A file that no id leads to (it lies in no project folder) goes by its path in both.
    """

    full: str
    short: str

    def reference(self, number: int) -> str:
        """The short words for a record, ready for a shell."""
        return shlex.quote(f"{self.short}:{number}")

    @property
    def word(self) -> str:
        """The short name, ready for a shell."""
        return shlex.quote(self.short)


def names_of(session: SessionFile, environ: Mapping[str, str]) -> Names:
    """The names of a transcript that ``subagents.locate`` finds again."""
    session_id, slash, agent = session.session_id.partition("/")
    known = find_session(session_id, environ)
    files = [one.path for one in subagents_of(known)] if slash and known else [known]
    if session.path not in files:
        return Names(session.path, session.path)
    alike = {other.session_id for other in store.all_sessions(environ, session_id[:SHORT])}
    short = session_id[:SHORT] if len(alike) == 1 else session_id
    return Names(session.session_id, f"{short}{slash}{agent}")


class Entry(NamedTuple):
    """A line of a session's file: its 0-based ``number`` and its bytes on disk."""

    session_id: str
    file: str
    number: int
    offset: int
    length: int

    @property
    def reference(self) -> str:
        """The words that name it."""
        return f"{self.session_id}:{self.number}"

    def raw(self) -> bytes:
        """The line with its ending. SessionNotFound where the file is gone, or shorter by now."""
        with _opened(self.file) as stream:
            stream.seek(self.offset)
            found = stream.read(self.length)
        if len(found) < self.length:
            raise SessionNotFound(f"{self.file} changed while it was read", "Run the command again.")
        return found

    def record(self) -> Record | None:
        """What the line says; None for one that holds no JSON object."""
        return records.parse(Line(self.number, self.offset, self.raw()).body)


class Entries:
    """The lines of one file, found by number or by uuid. SessionNotFound where it can't be read."""

    def __init__(self, file: str, session_id: str) -> None:
        self.file = file
        self.session_id = session_id
        self._ends = [0]
        with _opened(file) as stream:
            self._ends += (line.offset + len(line.raw) for line in read_lines(stream))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """Bytes of the file as it was read."""
        return self._ends[-1]

    def at(self, number: int) -> Entry | None:
        """The line of that number, counted from 0."""
        if not 0 <= number < len(self):
            return None
        start, end = self._ends[number : number + 2]
        return Entry(self.session_id, self.file, number, start, end - start)

    def of(self, uuid: str, near: int = -1) -> Entry | None:
        """The record of a uuid: line ``near`` where it is that one, else the last of that uuid, as clients have it."""
        entry = self.at(near)
        if entry is not None and uuid in _uuids(entry.record() or {}):
            return entry
        number = self._numbers.get(uuid)
        return None if number is None else self.at(number)

    def calling(self, calls: Sequence[str]) -> list[Entry]:
        """The records that make tool calls of these ids, in the file's order."""
        wanted = {call: call.encode("utf-8", "replace") for call in calls if call}
        found = []
        with _opened(self.file) as stream:
            for line in read_lines(stream) if wanted else ():
                if b'"tool_use"' not in line.raw or not any(call in line.raw for call in wanted.values()):
                    continue
                if wanted.keys() & {string(block, "id") for block in records.blocks(records.parse(line.body) or {})}:
                    found.append(Entry(self.session_id, self.file, line.number, line.offset, len(line.raw)))
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        with _opened(self.file) as stream:
            rows = ((line.number, records.parse(line.body)) for line in read_lines(stream))
            return {uuid: number for number, record in rows if record for uuid in _uuids(record)}


def shortened(reference: str) -> str:
    """A reference with the first characters of its session's id."""
    session, _, record = reference.rpartition(":")
    session_id, slash, agent = session.partition("/")
    return f"{session_id[:SHORT]}{slash}{agent}:{record}"


def named_by(reference: Reference, entries: Entries) -> Entry:
    """The line that a reference names in its session. UsageError where there is none."""
    if isinstance(reference.record, str):
        found = entries.of(reference.record) or entries.of(reference.record.lower())
        if found is None:
            raise UsageError(f"No record {reference.record} in {entries.file}", "Was it taken from another session?")
        return found
    found = entries.at(reference.record)
    if found is None:
        there = f"lines 0 to {len(entries) - 1}" if len(entries) else "no lines"
        raise UsageError(f"No line {reference.record} in {entries.file}", f"It has {there}.")
    return found


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    try:
        with open(file, "rb") as stream:
            yield stream
    except OSError as error:
        raise SessionNotFound(f"{file} can't be read: {error.strerror}", "Check the path.") from error


def _record(text: str) -> int | str:
    if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS:
        return int(text)
    if is_session_id(text.lower()):  # ids of records have the same shape
        return text
    raise UsageError(f"'{_shown(text)}' is neither a line number nor the uuid of a record", EXAMPLE)


def _uuids(record: Record) -> list[str]:
    """What a record is known by: its own uuid, and the one that a queued prompt was sent under."""
    return [uuid for key in ("uuid", "sentAsUuid") if (uuid := string(record, key))]


def _shown(text: str) -> str:
    return one_line(plain_line(text), 80)
