"""One transcript as rows for the index: what was appended since it was last read, or all of it.

Runs in worker processes: what goes in and comes out are plain values. A last line without its ending is left for the
next time, unless nobody has been writing for a while and it is whole.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import BinaryIO, NamedTuple

from resume_hooks import clock
from resume_hooks.paths import open_regular
from resume_hooks.search.index.extract import TextExtractor
from resume_hooks.search.index.tokenize import words_of
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line, read_lines
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.turns import opens_turn

CHECKED = 1_024  # bytes before the end of what is indexed that tell whether a file was only appended to
MOST_CALLS = 50  # calls without an answer that are kept in mind until the next time
MOST_LABEL = 255  # characters of the name of a branch or of tools that are kept; more is no name
SETTLED = 60.0  # seconds after which nobody is expected to finish a torn line
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a file that are read in one go; a larger one comes in several batches, so that memory stays bounded."""


_PRIME = 2**61 - 1
"""Ids are kept as what is left of them when divided by it: they fit a column, and differ if they differ anywhere."""


class ReadPosition(NamedTuple):
    """How far a file was read: bytes, lines, turns.

    With a checksum of the last bytes, the last time that was told (seconds), and the calls left open.
    """

    offset: int = 0
    lines: int = 0
    turns: int = 0
    check: int = 0
    time: int = 0
    calls: tuple[tuple[str, str], ...] = ()


class IndexRow(NamedTuple):
    """A record that says something.

    ``key`` is the same for a record and its copies in other sessions (None: not known by an id); ``own`` stands for the
    new id that a fork gave it (None: it has none), ``digest`` for what it says. ``stub`` is a copy whose contents were
    taken out. The texts are words, ready for the index.
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
    own: int | None
    digest: int
    stub: bool
    prompt: bytes
    reply: bytes
    input: bytes
    result: bytes
    files: tuple[str, ...]


class Batch(NamedTuple):
    """The rows from byte ``start`` on.

    ``more`` says that the file goes on, ``torn`` that its last line may still be written. What was not seen is ``""``.
    """

    rows: list[IndexRow]
    start: int
    place: ReadPosition
    more: bool
    torn: bool
    cwd: str
    entrypoint: str


class ReadJob(NamedTuple):
    """A file to be read on from a place; ``subagent`` whether it is a sub-agent's."""

    path: str
    place: ReadPosition
    subagent: bool


def read(job: ReadJob) -> Batch | None:
    """Read a file on from where it was left; from its start if what was read is no longer there. None if it is gone."""
    try:
        with open_regular(job.path, follow=False) as stream:
            return _read(stream, job if _goes_on(stream, job.place) else job._replace(place=ReadPosition()))
    except OSError:
        return None


def _read(stream: BinaryIO, job: ReadJob) -> Batch:
    status = os.fstat(stream.fileno())
    settled = abs(time.time() - status.st_mtime) > SETTLED
    stream.seek(job.place.offset)
    reader = _RowReader(job)
    end, lines, more, torn = job.place.offset, job.place.lines, False, False
    for line in read_lines(stream, job.place.offset, job.place.lines):
        if line.offset - job.place.offset >= MOST_BYTES:
            more = True
            break
        if line.torn and not (settled and records.parse(line.body) is not None):
            torn = not settled
            break
        reader.take(line)
        end, lines = line.offset + len(line.raw), line.number + 1
    calls = tuple(reader.extractor.calls.items())[-MOST_CALLS:]
    place = ReadPosition(end, lines, reader.turn, zlib.crc32(_before(stream, end)), reader.time, calls)
    return Batch(reader.rows, job.place.offset, place, more, torn, reader.cwd, reader.entrypoint)


def _goes_on(stream: BinaryIO, place: ReadPosition) -> bool:
    """Whether what was read is still there. A torn line that was taken in may have been finished since."""
    if not place.offset:
        return False
    tail = _before(stream, place.offset)
    if zlib.crc32(tail) != place.check:
        return False
    return tail.endswith(b"\n") or stream.seek(0, os.SEEK_END) == place.offset


def _before(stream: BinaryIO, end: int) -> bytes:
    """The bytes before ``end`` that tell whether a file was only appended to."""
    start = max(0, end - CHECKED)
    stream.seek(start)
    return stream.read(end - start)


class _RowReader:
    def __init__(self, job: ReadJob) -> None:
        self.rows: list[IndexRow] = []
        self.turn = job.place.turns
        self.cwd = self.entrypoint = ""
        self.extractor = TextExtractor(dict(job.place.calls), subagent=job.subagent)
        self.time = job.place.time
        self._subagent = job.subagent
        self._name = os.path.basename(job.path)

    def take(self, line: Line) -> None:
        record = records.parse(line.raw if line.offset else line.body)  # a copy of each line would be felt
        if record is None:
            return
        self.turn += opens_turn(record, subagent=self._subagent)
        self.cwd = self.cwd or string(record, "cwd")
        self.entrypoint = self.entrypoint or string(record, "entrypoint")
        texts = self.extractor.texts_of(record)
        if texts is None:
            return
        stamp = clock.parse(record.get("timestamp"))
        self.time = int(stamp.timestamp()) if stamp else self.time
        key, own = _keys(record) if texts.role != "title" else (_title_key(self._name, texts.prompt), None)
        self.rows.append(
            IndexRow(
                line.number,
                line.offset,
                len(line.raw),
                self.turn,
                self.time,
                texts.role,
                texts.tool[:MOST_LABEL],
                string(record, "gitBranch")[:MOST_LABEL],
                key,
                own,
                zlib.crc32("".join(texts[2:6]).encode("utf-8", "replace")),
                record.get("truncated") is True,
                words_of(texts.prompt) if texts.prompt else b"",
                words_of(texts.reply) if texts.reply else b"",
                words_of(texts.input, numbered=True) if texts.input else b"",
                words_of(texts.result, numbered=True) if texts.result else b"",
                texts.files,
            )
        )


def _keys(record: Record) -> tuple[int | None, int | None]:
    """What a record and its copies have in common; and its own id, where a fork gave it one and names the old one."""
    fork = record.get("forkedFrom")
    own = _number(string(record, "uuid"))
    named = _number(string(fork, "messageUuid")) if isinstance(fork, dict) else None
    return (own, None) if named is None else (named, own)


def _number(uuid: str) -> int | None:
    """A UUID as 61 bits; None for what is none."""
    digits = uuid.replace("-", "")
    try:
        return int(digits, 16) % _PRIME if len(digits) == 32 else None
    except ValueError:
        return None


def _title_key(name: str, title: str) -> int:
    """What makes a title be kept once in a session, however often it is written."""
    return int.from_bytes(f"{name}\n{title}".encode(errors="replace")) % _PRIME
