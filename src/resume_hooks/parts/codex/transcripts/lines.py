"""The lines of a rollout, streamed. Memory is bounded by the longest line, at most ``MAX_LINE``.

After the first line, the reader is as tolerant as Codex: it skips lines that are blank, broken or
of an unknown format.
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
"""The kinds of lines with content; the others matter only to the client."""

# the client's description of the environment for the model, complete or as changes
WORLD_STATE = "world_state"
# the event with the settings of the thread, from which newer clients continue
SETTINGS = "thread_settings_applied"

DIGEST = "resume-hooks-digest"  # a line of ours: a record of ours inside Codex's envelope
TITLE_KEY, OPENING_KEY = "title", "isCompactSummary"  # extra keys in our own lines

ENDING, PACKED = ".jsonl", ".jsonl.zst"
MAX_LINE = 64 * 1024 * 1024
"""The maximum bytes of a line; longer lines are skipped.

The longest line so far has 638 KB, but the size of pictures is not limited.
"""

READ_STEP = 1024 * 1024  # bytes per read
MAX_ORDINAL = 1 << 53


class RolloutLine(NamedTuple):
    """A line with an object that has a type, a payload and a timestamp; ``record`` is the whole object.

    ``number`` counts from 0. ``offset`` is in bytes of ``file``, or of its uncompressed content.
    """

    record: Record
    file: str
    number: int
    offset: int

    @property
    def kind(self) -> str:
        """The kind of line: ``META``, ``ITEM``, ``COMPACTED``, ``CONTEXT``, ``EVENT`` or any other type."""
        return string(self.record, "type")

    @property
    def payload(self) -> Record:
        """The content of the line."""
        return mapping(self.record, "payload")

    @property
    def timestamp(self) -> str:
        """The time of writing, as recorded in the line."""
        return string(self.record, "timestamp")

    @property
    def ordinal(self) -> int | None:
        """The line's number in its thread, which continues across forks and segments; None in old files."""
        value = self.record.get("ordinal")
        if isinstance(value, int) and value is not True and 0 <= value < MAX_ORDINAL:
            return value
        return None

    def event(self) -> str:
        """Return the type of the line's event, or ``""`` if the line is not an event."""
        if self.kind == EVENT:
            return string(self.payload, "type")
        return ""


def rollout_lines(path: str) -> Iterator[RolloutLine]:
    """Yield the valid lines of a file.

    Raise SessionNotFound if the file cannot be read or uncompressed.
    """
    for number, offset, raw in raw_lines(path):
        if (line := parse_line(raw, path, number, offset)) is not None:
            yield line


def raw_lines(path: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number, offset and bytes of every line; an overlong line is cut at ``MAX_LINE``.

    Raise SessionNotFound like ``rollout_lines``.
    """
    with open_rollout(path, READ_STEP) as stream:
        offset = number = 0
        try:
            while raw := stream.readline(MAX_LINE):
                size, piece = len(raw), raw
                while (
                    size >= MAX_LINE and piece and not piece.endswith(b"\n")
                ):  # skip the rest of an overlong line
                    piece = stream.readline(READ_STEP)
                    size += len(piece)
                yield number, offset, raw
                offset += size
                number += 1
        except (OSError, EOFError) as error:
            raise SessionNotFound(f"{path} can't be read: {error}", "Check the file.") from error


def parse_line(raw: bytes, path: str, number: int = -1, offset: int = -1) -> RolloutLine | None:
    """Return the parsed line, or None for a line that Codex skips."""
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
    """Open a rollout for reading from its start, uncompressed if necessary; ``step`` is the buffer size.

    Raise SessionNotFound if that fails.
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
    """Check whether compressed rollouts can be read; the package ``zstandard`` is optional."""
    from importlib.util import find_spec  # rarely needed

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
        """Turns errors from a damaged file into OSError."""

        def readline(self, size: int | None = -1, /) -> bytes:
            try:
                return super().readline(-1 if size is None else size)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from error

    return Reader(zstandard.ZstdDecompressor().stream_reader(stream))


def read_first_lines(path: str) -> list[RolloutLine]:
    """Return the line that a rollout must begin with, and the next line if it is valid.

    Some programs insert a line of their own before it, which Codex up to 0.146 accepted. Raise
    NotATranscript if neither line describes a session, and SessionNotFound like ``open_rollout``.
    """
    with open_rollout(path) as stream:
        raws = [stream.readline(MAX_LINE), stream.readline(MAX_LINE)]
    first, second = (parse_line(raw, path, number) for number, raw in enumerate(raws))
    if second is not None and second.kind == META and (first is None or first.kind != META):
        return [second]
    if first is None or first.kind != META:
        raise NotATranscript(
            f"{path} is not a rollout of Codex", "Its first line does not describe a session."
        )
    return [first, *([second] if second else [])]
