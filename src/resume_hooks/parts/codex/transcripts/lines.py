"""Stream the lines of a rollout. Only one line is kept in memory, of at most ``MAX_LINE_BYTES`` bytes.

After the first line, the reader is as tolerant as Codex: it skips blank, broken and unknown lines.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.transcripts.records import Record, get_mapping, get_string, parse_record

META, ITEM, COMPACTED, CONTEXT, EVENT = (
    "session_meta",
    "response_item",
    "compacted",
    "turn_context",
    "event_msg",
)
"""The types of lines with content. Lines of other types matter only to the client."""

# the client's description of the environment for the model, either complete or only the changes
WORLD_STATE = "world_state"
# the event with the thread's settings, which newer clients use when they resume
SETTINGS_EVENT = "thread_settings_applied"

# the type of our own lines, in which Codex's envelope contains one of our records
DIGEST = "resume-hooks-digest"
TITLE_KEY, OPENING_KEY = "title", "isCompactSummary"  # extra keys in our own lines

ROLLOUT_SUFFIX, COMPRESSED_SUFFIX = ".jsonl", ".jsonl.zst"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""The maximum number of bytes in a line; longer lines are skipped.

The longest line found so far has 638 KB, but the size of pictures is not limited.
"""

READ_BUFFER_BYTES = 1024 * 1024  # the number of bytes per read
MAX_ORDINAL = 1 << 53


class RolloutLine(NamedTuple):
    """A parsed line: ``record`` is an object with a type, a payload and a timestamp.

    ``line_number`` starts at 0. ``offset`` is the line's byte offset in the uncompressed content of
    ``file``.
    """

    record: Record
    file: str
    line_number: int
    offset: int

    @property
    def kind(self) -> str:
        """The line's type: ``META``, ``ITEM``, ``COMPACTED``, ``CONTEXT``, ``EVENT`` or any other."""
        return get_string(self.record, "type")

    @property
    def payload(self) -> Record:
        """The line's content."""
        return get_mapping(self.record, "payload")

    @property
    def timestamp(self) -> str:
        """The time at which the line was written, as recorded in it."""
        return get_string(self.record, "timestamp")

    @property
    def ordinal(self) -> int | None:
        """The line's number in its thread, which continues across forks and segments, or None in old files."""
        value = self.record.get("ordinal")
        if isinstance(value, int) and value is not True and 0 <= value < MAX_ORDINAL:
            return value
        return None

    def event_type(self) -> str:
        """Return the line's event type, or ``""`` if the line is not an event."""
        if self.kind == EVENT:
            return get_string(self.payload, "type")
        return ""


def read_rollout_lines(path: str) -> Iterator[RolloutLine]:
    """Yield the valid lines of a file.

    Raise SessionNotFound if the file cannot be read or uncompressed.
    """
    for number, offset, raw in read_raw_lines(path):
        if (line := parse_line(raw, path, number, offset)) is not None:
            yield line


def read_raw_lines(path: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number, offset and bytes of every line. An overlong line is cut at ``MAX_LINE_BYTES`` bytes.

    Raise SessionNotFound like ``read_rollout_lines``.
    """
    with open_rollout(path, READ_BUFFER_BYTES) as stream:
        offset = number = 0
        try:
            while raw := stream.readline(MAX_LINE_BYTES):
                line_bytes, chunk = len(raw), raw
                while (
                    line_bytes >= MAX_LINE_BYTES and chunk and not chunk.endswith(b"\n")
                ):  # skip the rest of an overlong line
                    chunk = stream.readline(READ_BUFFER_BYTES)
                    line_bytes += len(chunk)
                yield number, offset, raw
                offset += line_bytes
                number += 1
        except (OSError, EOFError) as error:
            raise SessionNotFound(f"{path} can't be read: {error}", "Check the file.") from error


def parse_line(raw: bytes, path: str, number: int = -1, offset: int = -1) -> RolloutLine | None:
    """Return the parsed line, or None for a line that Codex skips."""
    if len(raw) < MAX_LINE_BYTES or raw.endswith(b"\n"):
        record = parse_record(raw)
    else:
        record = None
    if (
        record is None
        or not get_string(record, "timestamp")
        or not isinstance(record.get("payload"), dict)
    ):
        return None
    if get_string(record, "type"):
        return RolloutLine(record, path, number, offset)
    return None


@contextlib.contextmanager
def open_rollout(path: str, buffer_bytes: int = -1) -> Iterator[BinaryIO]:
    """Open a rollout for reading from its start, uncompressed if necessary; ``buffer_bytes`` is the buffer size.

    Raise SessionNotFound if the file cannot be opened.
    """
    try:
        with open(path, "rb", buffering=buffer_bytes) as stream:
            if path.endswith(COMPRESSED_SUFFIX):
                with _open_decompressed(stream, path) as decompressed:
                    yield decompressed
            else:
                yield stream
    except OSError as error:
        raise SessionNotFound(
            f"{path} can't be read: {error.strerror or error}", "Check the path."
        ) from error


@functools.cache
def can_decompress() -> bool:
    """Check whether the optional package ``zstandard`` is installed, so that compressed rollouts can be read."""
    from importlib.util import find_spec  # rarely needed

    return find_spec("zstandard") is not None


def _open_decompressed(stream: BinaryIO, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    if not can_decompress():
        raise SessionNotFound(
            f"{os.path.basename(path)} is compressed by Codex",
            (
                "Open the session in Codex once, which unpacks the file, or install the Python "
                "package zstandard."
            ),
        )
    import zstandard  # optional

    class RolloutReader(io.BufferedReader):
        """Turns the errors that a damaged file causes into OSError."""

        def readline(self, max_bytes: int | None = -1, /) -> bytes:
            try:
                return super().readline(-1 if max_bytes is None else max_bytes)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from error

    return RolloutReader(zstandard.ZstdDecompressor().stream_reader(stream))


def read_first_lines(path: str) -> list[RolloutLine]:
    """Return a rollout's ``session_meta`` line, and the next line if it is valid.

    Some programs insert a line before the ``session_meta``, which Codex up to 0.146 accepted. Raise
    NotATranscript if neither of the first two lines is a ``session_meta``, and SessionNotFound like
    ``open_rollout``.
    """
    with open_rollout(path) as stream:
        raw_lines = [stream.readline(MAX_LINE_BYTES), stream.readline(MAX_LINE_BYTES)]
    first_line, second_line = (
        parse_line(raw, path, number) for number, raw in enumerate(raw_lines)
    )
    if (
        second_line is not None
        and second_line.kind == META
        and (first_line is None or first_line.kind != META)
    ):
        return [second_line]
    if first_line is None or first_line.kind != META:
        raise NotATranscript(
            f"{path} is not a Codex rollout", "The file's first line does not describe a session."
        )
    return [first_line, *([second_line] if second_line else [])]
