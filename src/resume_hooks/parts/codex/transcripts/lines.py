"""Lines of a rollout, streamed: memory is bounded by the longest line, and no line may be longer than ``MAX_LINE``.

After the first line everything is tolerant, as in Codex itself: what is blank, broken, or of no
known form is skipped.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.transcripts.records import Record, mapping, parse, string

META, ITEM, COMPACTED, CONTEXT, EVENT = (
    "session_meta",
    "response_item",
    "compacted",
    "turn_context",
    "event_msg",
)
"""The kinds of lines that say something; others are for the client alone."""

WORLD = "world_state"  # what the client told of its surroundings, whole or what changed
SETTINGS = "thread_settings_applied"  # the event of what the thread is set to, by which clients of today go on

DIGEST = "resume-hooks-digest"  # a line of ours, in our form of record but for its envelope
TITLE, OPENING = "title", "isCompactSummary"  # what our own lines say beside their payload

ENDING, PACKED = ".jsonl", ".jsonl.zst"
MAX_LINE = 64 * 1024 * 1024
"""Bytes of a line; a longer one is passed over.

The longest ever seen has 638 KB, but pictures have no limit.
"""

STEP = 1024 * 1024  # bytes that are read at a time
MAX_ORDINAL = 1 << 53


class RolloutLine(NamedTuple):
    """A line that holds an object with a type, a payload and a timestamp: ``record`` is all of it.

    ``number`` counts from 0, ``offset`` is a byte of ``file`` (of what is unpacked where it is
    packed).
    """

    record: Record
    file: str
    number: int
    offset: int

    @property
    def kind(self) -> str:
        """What the line is: ``META``, ``ITEM``, ``COMPACTED``, ``CONTEXT``, ``EVENT`` or anything else."""
        return string(self.record, "type")

    @property
    def payload(self) -> Record:
        """What it says."""
        return mapping(self.record, "payload")

    @property
    def timestamp(self) -> str:
        """When it was written, as it says so."""
        return string(self.record, "timestamp")

    @property
    def ordinal(self) -> int | None:
        """Its number in its thread, which goes on over forks and segments; None in legacy files."""
        value = self.record.get("ordinal")
        if isinstance(value, int) and value is not True and 0 <= value < MAX_ORDINAL:
            return value
        return None

    def event(self) -> str:
        """The kind of event that it tells of; ``""`` for a line of another kind."""
        if self.kind == EVENT:
            return string(self.payload, "type")
        return ""


def rollout_lines(path: str) -> Iterator[RolloutLine]:
    """The lines of one file that say something.

    SessionNotFound where it can't be read, or can't be unpacked here.
    """
    for number, offset, raw in raw_lines(path):
        if (line := read_line(raw, path, number, offset)) is not None:
            yield line


def raw_lines(path: str) -> Iterator[tuple[int, int, bytes]]:
    """Every line of a file: its number, its offset, its bytes; of one that is too long the first.

    Errors as above.
    """
    with open_rollout(path, STEP) as stream:
        offset = number = 0
        try:
            while raw := stream.readline(MAX_LINE):
                size, piece = len(raw), raw
                while (
                    size >= MAX_LINE and piece and not piece.endswith(b"\n")
                ):  # the rest of one that is too long
                    piece = stream.readline(STEP)
                    size += len(piece)
                yield number, offset, raw
                offset += size
                number += 1
        except (OSError, EOFError) as error:
            raise SessionNotFound(f"{path} can't be read: {error}", "Check the file.") from error


def read_line(raw: bytes, path: str, number: int = -1, offset: int = -1) -> RolloutLine | None:
    """A line as it lies in a file; None for one that Codex passes over."""
    if len(raw) < MAX_LINE or raw.endswith(b"\n"):
        record = parse(raw)
    else:
        record = None
    if (
        record is None
        or not string(record, "timestamp")
        or not isinstance(record.get("payload"), dict)
    ):
        return None
    if string(record, "type"):
        return RolloutLine(record, path, number, offset)
    return None


@contextlib.contextmanager
def open_rollout(path: str, step: int = -1) -> Iterator[BinaryIO]:
    """A rollout to be read from its start, a packed one as what it holds, so many bytes of the file at a time.

    SessionNotFound if that can't be done.
    """
    try:
        with open(path, "rb", buffering=step) as stream:
            if path.endswith(PACKED):
                with _unpacked(stream, path) as unpacked:
                    yield unpacked
            else:
                yield stream
    except OSError as error:
        raise SessionNotFound(
            f"{path} can't be read: {error.strerror or error}", "Check the path."
        ) from error


@functools.cache
def can_unpack() -> bool:
    """Whether packed rollouts can be read: the package ``zstandard`` is optional."""
    from importlib.util import find_spec  # what few runs need

    return find_spec("zstandard") is not None


def _unpacked(stream: BinaryIO, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    if not can_unpack():
        raise SessionNotFound(
            f"{os.path.basename(path)} is compressed by Codex",
            (
                "Open it in Codex once, which unpacks it, or install the Python package "
                "zstandard beside resume-hooks."
            ),
        )
    import io

    import zstandard

    class Reader(io.BufferedReader):
        """Turns what a damaged file makes of the unpacking into the failure of a read."""

        def readline(self, size: int | None = -1, /) -> bytes:
            try:
                return super().readline(-1 if size is None else size)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from error

    return Reader(zstandard.ZstdDecompressor().stream_reader(stream))


def first_lines(path: str) -> list[RolloutLine]:
    """The line that a rollout must begin with, and the next where it says something.

    Other programs put one of their own before it, which Codex up to 0.146 took. NotATranscript
    where neither tells of a session, SessionNotFound as ``open_rollout``.
    """
    with open_rollout(path) as stream:
        raws = [stream.readline(MAX_LINE), stream.readline(MAX_LINE)]
    first, second = (read_line(raw, path, number) for number, raw in enumerate(raws))
    if second is not None and second.kind == META and (first is None or first.kind != META):
        return [second]
    if first is None or first.kind != META:
        raise NotATranscript(
            f"{path} is not a rollout of Codex", "Its first line tells nothing of a session."
        )
    return [first, *([second] if second else [])]
