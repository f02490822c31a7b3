"""One transcript as rows for the index: what was appended since it was last read, or all of it.

Runs in worker processes: what goes in and comes out are plain values. A last line without its ending is left for the
next time, unless nobody has been writing for a while and it is whole.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import BinaryIO, NamedTuple

from resume_hooks import clock, records
from resume_hooks.index.texts import Listener
from resume_hooks.index.words import words_of
from resume_hooks.lines import Line, read_lines
from resume_hooks.records import Record, string
from resume_hooks.turns import opens_turn

CHECKED = 1_024
"""Bytes before the end of what is indexed that tell whether a file was only appended to."""

SETTLED = 60.0
"""Seconds after which nobody is expected to finish a torn line."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a file that are read in one go; a larger one comes in several batches, so that memory stays bounded."""


class Place(NamedTuple):
    """How far a file was read: bytes, lines and turns, a checksum of the last bytes, and the calls left open."""

    offset: int = 0
    lines: int = 0
    turns: int = 0
    check: int = 0
    calls: tuple[tuple[str, str], ...] = ()


class Row(NamedTuple):
    """A record that says something.

    ``key`` is the same for a record and its copies in other sessions (None: not known by an id), ``stub`` a copy whose
    contents were taken out. The texts are words, ready for the index.
    """

    line: int
    offset: int
    length: int
    turn: int
    time: int
    role: str
    tool: str
    branch: str
    key: int | None
    stub: bool
    prompt: bytes
    reply: bytes
    input: bytes
    result: bytes
    files: tuple[str, ...]


class Batch(NamedTuple):
    """The rows from byte ``start`` on; ``more`` says that the file goes on. What was not seen is ``""``."""

    rows: list[Row]
    start: int
    place: Place
    more: bool
    cwd: str
    entrypoint: str


class Job(NamedTuple):
    """A file to be read on from a place; ``subagent`` whether it is a sub-agent's."""

    path: str
    place: Place
    subagent: bool


def read(job: Job) -> Batch | None:
    """Read a file on from where it was left; from its start if what was read is no longer there. None if it is gone."""
    try:
        with open(job.path, "rb") as stream:
            unchanged = job.place.offset and _check(stream, job.place.offset) == job.place.check
            return _read(stream, job._replace(place=job.place if unchanged else Place()))
    except OSError:
        return None


def _read(stream: BinaryIO, job: Job) -> Batch:
    status = os.fstat(stream.fileno())
    settled = time.time() - status.st_mtime > SETTLED
    stream.seek(job.place.offset)
    reader = _Reader(job)
    end, lines, more = job.place.offset, job.place.lines, False
    for line in read_lines(stream, job.place.offset, job.place.lines):
        if line.offset - job.place.offset >= MOST_BYTES:
            more = True
            break
        if line.torn and not (settled and records.parse(line.body) is not None):
            break
        reader.take(line)
        end, lines = line.offset + len(line.raw), line.number + 1
    place = Place(end, lines, reader.turn, _check(stream, end), tuple(reader.listener.calls.items())[-50:])
    return Batch(reader.rows, job.place.offset, place, more, reader.cwd, reader.entrypoint)


def _check(stream: BinaryIO, end: int) -> int:
    """A checksum of the bytes before ``end``."""
    start = max(0, end - CHECKED)
    stream.seek(start)
    return zlib.crc32(stream.read(end - start))


class _Reader:
    def __init__(self, job: Job) -> None:
        self.rows: list[Row] = []
        self.turn = job.place.turns
        self.cwd = self.entrypoint = ""
        self.listener = Listener(dict(job.place.calls), subagent=job.subagent)
        self._subagent = job.subagent
        self._time = 0

    def take(self, line: Line) -> None:
        record = records.parse(line.body)
        if record is None:
            return
        self.turn += opens_turn(record, subagent=self._subagent)
        self.cwd = self.cwd or string(record, "cwd")
        self.entrypoint = self.entrypoint or string(record, "entrypoint")
        said = self.listener.said(record)
        if said is None:
            return
        stamp = clock.parse(record.get("timestamp"))
        self._time = int(stamp.timestamp()) if stamp else self._time
        self.rows.append(
            Row(
                line.number,
                line.offset,
                len(line.raw),
                self.turn,
                self._time,
                said.role,
                said.tool,
                string(record, "gitBranch"),
                _key(record),
                record.get("truncated") is True,
                words_of(said.prompt),
                words_of(said.reply),
                words_of(said.input, numbered=True),
                words_of(said.result, numbered=True),
                said.files,
            )
        )


def _key(record: Record) -> int | None:
    """What a record and its copies have in common, as 63 bits: a fork that gives new ids names the old one."""
    fork = record.get("forkedFrom")
    named = string(fork, "messageUuid") if isinstance(fork, dict) else ""
    text = named or string(record, "uuid")
    digits = text.replace("-", "")
    try:
        return (int(digits[:16], 16) ^ int(digits[16:32], 16)) & 0x7FFF_FFFF_FFFF_FFFF if len(digits) == 32 else None
    except ValueError:
        return None
