"""Read the lines of a rollout (the .jsonl file of a Codex thread) one by one.

Only one line is in memory at a time, and at most ``MAX_LINE_BYTES`` bytes of it. Blank, broken and
unknown lines after the first line are skipped, as Codex does.
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

META_LINE, ITEM_LINE, COMPACTION_LINE, TURN_CONTEXT_LINE, EVENT_LINE = (
    "session_meta",
    "response_item",
    "compacted",
    "turn_context",
    "event_msg",
)
"""The types of lines that are read: metadata, item, compaction, context of a turn, and event."""

# The type of lines in which the client describes the environment to the model. Such a line contains
# either the complete description or only the changes.
WORLD_STATE_LINE = "world_state"
# The type of the event that contains the thread's settings. When newer clients resume the thread,
# they use these settings.
SETTINGS_EVENT_TYPE = "thread_settings_applied"

# The type of a line that this plugin adds to a rollout for its own data. Codex ignores the line.
PLUGIN_LINE_TYPE = "resume-hooks-digest"
TITLE_KEY, OPENING_KEY = "title", "isCompactSummary"  # The keys that this plugin adds to a line.

ROLLOUT_SUFFIX, COMPRESSED_SUFFIX = ".jsonl", ".jsonl.zst"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""The maximum number of bytes in a line. Longer lines are skipped.

The longest line in the examined rollouts is 638 KB long. A line with pictures may be longer.
"""

READ_BUFFER_BYTES = 1024 * 1024  # Number of bytes to read in one step.
MAX_ORDINAL = 1 << 53


class RolloutLine(NamedTuple):
    """A parsed line of a rollout.

    ``record`` is an object with a type, a payload and a timestamp. ``line_number`` is the number of
    lines before the line. ``offset`` is the number of bytes before the line in the uncompressed
    content of ``file_path``.
    """

    record: Record
    file_path: str
    line_number: int
    offset: int

    @property
    def kind(self) -> str:
        """The type of the line, for example ``ITEM_LINE`` or ``EVENT_LINE``."""
        return get_string(self.record, "type")

    @property
    def payload(self) -> Record:
        """The content of the line, without its type and timestamp."""
        return get_mapping(self.record, "payload")

    @property
    def timestamp(self) -> str:
        """The time at which the line was written, as recorded in the line."""
        return get_string(self.record, "timestamp")

    @property
    def ordinal(self) -> int | None:
        """The number of the line in its thread, or None in old files.

        A fork, or a later file of the same thread, continues the numbering.
        """
        value = self.record.get("ordinal")
        if isinstance(value, int) and value is not True and 0 <= value < MAX_ORDINAL:
            return value
        return None

    def event_type(self) -> str:
        """Return the type of the event in the line, or ``""`` if the line is not an event."""
        if self.kind == EVENT_LINE:
            return get_string(self.payload, "type")
        return ""


def read_rollout_lines(path: str) -> Iterator[RolloutLine]:
    """Yield the valid lines of a rollout.

    Raise SessionNotFound if the file cannot be read or decompressed.
    """
    for number, offset, raw in read_raw_lines(path):
        if (line := parse_line(raw, path, number, offset)) is not None:
            yield line


def read_raw_lines(path: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number, the offset and the bytes of every line.

    If a line is too long, only its first ``MAX_LINE_BYTES`` bytes are yielded. Raise
    SessionNotFound if the file cannot be read or decompressed.
    """
    with open_rollout(path, READ_BUFFER_BYTES) as stream:
        offset = number = 0
        try:
            while raw := stream.readline(MAX_LINE_BYTES):
                line_bytes, chunk = len(raw), raw
                # Skip the rest of a line that is too long.
                while line_bytes >= MAX_LINE_BYTES and chunk and not chunk.endswith(b"\n"):
                    chunk = stream.readline(READ_BUFFER_BYTES)
                    line_bytes += len(chunk)
                yield number, offset, raw
                offset += line_bytes
                number += 1
        except (OSError, EOFError) as error:
            raise SessionNotFound(f"{path} can't be read: {error}", "Check the file.") from error


def parse_line(raw: bytes, path: str, number: int = -1, offset: int = -1) -> RolloutLine | None:
    """Return a parsed line, or None for a line that Codex skips."""
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
    """Open a rollout, decompress it if necessary, and close it after the ``with`` block.

    ``buffer_bytes`` is the size of the read buffer. Raise SessionNotFound if the file cannot be
    opened.
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
    """Check whether compressed rollouts can be read. This needs the optional package ``zstandard``."""
    from importlib.util import find_spec  # Imported here because it is rarely needed.

    return find_spec("zstandard") is not None


def _open_decompressed(stream: BinaryIO, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    if not can_decompress():
        raise SessionNotFound(
            f"{os.path.basename(path)} is compressed by Codex",
            (
                "Open the session in Codex once, so that Codex unpacks the file, or install the "
                "Python package zstandard."
            ),
        )
    import zstandard  # optional

    class RolloutReader(io.BufferedReader):
        """A buffered reader that raises OSError if a compressed file is damaged."""

        def readline(self, max_bytes: int | None = -1, /) -> bytes:
            try:
                return super().readline(-1 if max_bytes is None else max_bytes)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from error

    return RolloutReader(zstandard.ZstdDecompressor().stream_reader(stream))


def read_first_lines(path: str) -> list[RolloutLine]:
    """Return the ``session_meta`` line of a rollout, and the next line if it is valid.

    Some programs insert a line before the ``session_meta`` line, and Codex up to 0.146 accepted
    this. Raise NotATranscript if neither of the first two lines is a ``session_meta`` line, and
    SessionNotFound if the file cannot be opened.
    """
    with open_rollout(path) as stream:
        raw_lines = [stream.readline(MAX_LINE_BYTES), stream.readline(MAX_LINE_BYTES)]
    first_line, second_line = (
        parse_line(raw, path, number) for number, raw in enumerate(raw_lines)
    )
    if (
        second_line is not None
        and second_line.kind == META_LINE
        and (first_line is None or first_line.kind != META_LINE)
    ):
        return [second_line]
    if first_line is None or first_line.kind != META_LINE:
        raise NotATranscript(
            f"{path} is not a Codex rollout", "The file's first line does not describe a session."
        )
    return [first_line, *([second_line] if second_line else [])]
