"""Prepare a session's files for the upload: redact their lines, cut chunks, and collect words.

Images, documents and known secrets are removed from each line first. The words for the server's
search are taken from these cleaned lines. An error stops the push of the session, so that no
unredacted data is sent.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, NewType

from resume_hooks import clock
from resume_hooks.paths import open_regular, read_regular_file
from resume_hooks.reading.bundle import (
    DAMAGED_KIND,
    MAX_ACCOMPANYING_FILE_BYTES,
    make_placeholder_record,
    normalize_json,
)
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.texts import Secret
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.tokenize import distinct_words
from resume_hooks.transcripts.lines import read_bytes_before, read_lines
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import MEDIA_TYPES, parse_record
from resume_hooks.transcripts.turns import opens_turn

RedactedBytes = NewType("RedactedBytes", bytes)
"""Bytes from which ``clean_line`` has removed secrets, images and documents. A chunk contains only
bytes of this type."""

MAX_CHUNK_BYTES = 256 * 1024
"""The size at which a chunk ends. The line that reaches this size is the last line of the chunk."""

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The maximum number of bytes in a line. A longer line is replaced by a placeholder when it is
pushed."""

_MAX_SEARCHABLE_BYTES_PER_TURN = 400_000
"""The maximum size, in bytes, of the searchable words of one turn in a chunk. The server stores
these words in one row, and PostgreSQL limits the size of a row."""

_MAX_POSITIONS_PER_WORD = 4
_MAX_WORD_POSITION = 16_383
_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class CleanRecord(NamedTuple):
    """A cleaned line with its line feed, and the secrets that were removed from it.

    ``end_offset`` is the offset in the local file at which the original line ends.
    """

    body: RedactedBytes
    end_offset: int
    secrets: list[Secret]


class TurnWords(NamedTuple):
    """The searchable words of one turn in a chunk, joined into one string.

    ``first_line_number`` is the number of the first line with such words.
    """

    first_line_number: int
    start_time: datetime
    joined_words: str


class LineChunk(NamedTuple):
    """A sequence of complete lines from a file, starting with line ``first_line_number``.

    ``end_offset`` is the offset in the local file at which the last line ends.
    """

    first_line_number: int
    record_count: int
    raw_byte_count: int
    sha256: bytes
    compressed_lines: bytes
    secret_counts_by_kind: Counter[str]
    turn_words: list[TurnWords]
    end_offset: int


def read_clean_records(path: str, redactor: Redactor, offset: int = 0) -> Iterator[CleanRecord]:
    """Yield the cleaned lines of a transcript, beginning at the byte ``offset``.

    The last line may lack a line feed. If it is a complete JSON object, it is yielded with a line
    feed. If it is incomplete, it is not yielded, so that a later push sends the complete line. A
    text file that is not a transcript is yielded as a single record. For a binary file, nothing is
    yielded. Raise OSError if the file cannot be read.
    """
    if not path.endswith(".jsonl"):
        yield from _read_text_file(path, redactor) if not offset else ()
        return
    with open_regular(path, follow=False) as stream:
        starts_at_line = read_bytes_before(stream, offset)[-1:] in {b"", b"\n"}
        stream.seek(offset)
        for line in read_lines(stream, offset):
            if line.is_torn and parse_record(line.body) is None:
                return
            if line.offset == offset and not starts_at_line and not line.raw.strip():
                continue  # An earlier push sent this line before its line feed was written.
            body, secrets = clean_line(line.body, redactor)
            yield CleanRecord(RedactedBytes(body + b"\n"), line.offset + len(line.raw), secrets)


def clean_line(line: bytes, redactor: Redactor) -> tuple[RedactedBytes, list[Secret]]:
    """Return a line without its images, documents and secrets, and a list of the removed secrets.

    The removed secrets include those that ``redactor`` knows from other lines.
    """
    body = normalize_json(line) if len(line) <= MAX_LINE_BYTES else None
    if body is None:
        return RedactedBytes(make_placeholder_record(DAMAGED_KIND)), []
    clean, secrets = redactor.redact_line(_replace_media(body) if b"base64" in body else body)
    return RedactedBytes(clean), secrets


def cut_chunks(
    path: str, redactor: Redactor, first_line_number: int = 0, offset: int = 0
) -> Iterator[LineChunk]:
    """Yield the chunks of a file from line ``first_line_number``, which begins at the byte ``offset``.

    Raise OSError if the file cannot be read.
    """
    word_collector, body, secrets, line_number, end_offset = (
        _WordCollector(path, first_line_number),
        bytearray(),
        Counter[str](),
        first_line_number,
        offset,
    )

    def finish_current_chunk() -> LineChunk:
        sha256, compressed = hashlib.sha256(body).digest(), zlib.compress(body)
        return LineChunk(
            first_line_number,
            line_number - first_line_number,
            len(body),
            sha256,
            compressed,
            secrets,
            word_collector.pop_turn_words(),
            end_offset,
        )

    for record in read_clean_records(path, redactor, offset):
        word_collector.add_line(record.body, line_number)
        body += record.body
        secrets.update(secret.kind for secret in record.secrets)
        line_number, end_offset = line_number + 1, record.end_offset
        if len(body) >= MAX_CHUNK_BYTES:
            yield finish_current_chunk()
            first_line_number, body, secrets = line_number, bytearray(), Counter()
    if body:
        yield finish_current_chunk()


def _read_text_file(path: str, redactor: Redactor) -> Iterator[CleanRecord]:
    raw = read_regular_file(path, MAX_ACCOMPANYING_FILE_BYTES)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return
    clean, secrets = redactor.redact_and_list_secrets(text)
    if clean:
        yield CleanRecord(RedactedBytes(clean.encode()), len(raw), secrets)


def _replace_media(body: bytes) -> bytes:
    """Replace each image and document in a record with a short placeholder."""
    record = parse_record(body)
    if record is None:
        return body
    pending_values: list[Any] = [record]
    is_changed = False
    while pending_values:
        value = pending_values.pop()
        entries = list(value.items() if isinstance(value, dict) else enumerate(value))
        for key, inner_value in entries:
            if (replacement := _build_media_placeholder(key, inner_value, value)) is not None:
                value[key] = replacement
                is_changed = True
            elif isinstance(inner_value, (dict, list)):
                pending_values.append(inner_value)
    if is_changed:
        return encode_record(record)
    return body


def _build_media_placeholder(key: object, inner_value: object, container: object) -> object:
    """Return a replacement for ``inner_value`` if it is an image or document, and None for other values.

    ``container`` is the list or dictionary in which ``inner_value`` has the index or key ``key``.
    """
    if (
        isinstance(inner_value, dict)
        and inner_value.get("type") in MEDIA_TYPES
        and isinstance(source := inner_value.get("source"), dict)
    ):
        data = source.get("data")
        if source.get("type") == "base64" and isinstance(data, str):
            return {
                "type": "text",
                "text": f"[{inner_value['type']} left out: {len(data) * 3 // 4:,} bytes]",
            }
    is_encoded = key == "base64" or (
        key == "data" and isinstance(container, dict) and container.get("type") == "base64"
    )
    if is_encoded and isinstance(inner_value, str) and inner_value:
        return ""
    return None


class _WordCollector:
    """Collects the words in the cleaned lines of a file, separately for each turn."""

    def __init__(self, path: str, first_line_number: int) -> None:
        self._is_subagent = "/subagents/" in path.replace("\\", "/")
        self._is_transcript = path.endswith(".jsonl")
        self._extractor = TextExtractor(subagent=self._is_subagent)
        self._finished_turns: list[TurnWords] = []
        self._positions_by_word: dict[str, list[str]] = {}
        self._word_bytes = 0
        self._start_line = first_line_number
        self._start_time: datetime | None = None
        self._last_time = _UNKNOWN_TIME

    def add_line(self, body: RedactedBytes, line_number: int) -> None:
        """Add the words of the line with the number ``line_number``."""
        record = parse_record(body) if self._is_transcript else {}
        if record is None:
            return
        if opens_turn(record, is_subagent=self._is_subagent):
            self._finish_turn()
        record_texts = (
            self._extractor.extract_texts(record)
            if self._is_transcript
            else RecordTexts("result", result=body.decode())
        )
        if record_texts is None:
            return
        self._last_time = clock.parse_timestamp(record.get("timestamp")) or self._last_time
        if not self._positions_by_word:
            self._start_line, self._start_time = line_number, self._last_time
        position = str(min(line_number - self._start_line + 1, _MAX_WORD_POSITION))
        texts = (
            (record_texts.prompt, "A", False),
            (record_texts.reply, "B", False),
            (record_texts.input, "C", True),
            (record_texts.result, "D", True),
        )
        for text, speaker_weight, has_numbers in texts:
            for word in (
                distinct_words(text, has_line_numbers=has_numbers)
                .decode("utf-8", "replace")
                .split()
            ):
                if word not in self._positions_by_word:
                    if self._word_bytes > _MAX_SEARCHABLE_BYTES_PER_TURN:
                        continue
                    self._positions_by_word[word] = []
                    self._word_bytes += len(word) + 12
                positions = self._positions_by_word[word]
                if (
                    len(positions) < _MAX_POSITIONS_PER_WORD
                    and position + speaker_weight not in positions
                ):
                    positions.append(position + speaker_weight)

    def pop_turn_words(self) -> list[TurnWords]:
        """Return the words that were collected since the last call, separately for each turn.

        If lines of the last turn are added later, the next call returns only the words of these
        lines.
        """
        self._finish_turn()
        finished_turns, self._finished_turns = self._finished_turns, []
        return finished_turns

    def _finish_turn(self) -> None:
        if self._positions_by_word:
            text = " ".join(
                f"{quote_word(word)}:{','.join(positions)}"
                for word, positions in self._positions_by_word.items()
            )
            self._finished_turns.append(
                TurnWords(self._start_line, self._start_time or _UNKNOWN_TIME, text)
            )
        self._positions_by_word, self._word_bytes = {}, 0


def quote_word(word: str) -> str:
    """Return a word as a quoted term for PostgreSQL's types ``tsvector`` and ``tsquery``."""
    escaped = word.replace("\\", "\\\\").replace("'", "''").replace("\x00", "")
    return f"'{escaped}'"
