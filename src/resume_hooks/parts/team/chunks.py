"""Prepare data for the upload: redact lines, cut them into numbered chunks, and collect the words of each turn.

Images, documents and known secrets are removed from each line first. Words only come from these
cleaned lines. If anything fails, the push of the session stops, so that no unredacted data is sent.
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
    MAX_FILE_BYTES,
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
"""Bytes that ``clean_line`` has cleaned. Chunks accept no other type."""

MAX_CHUNK_BYTES = 256 * 1024
"""The maximum size of a chunk in bytes, without its last line."""

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The maximum size of a line in bytes. A longer line is replaced by a placeholder."""

_MAX_LEXEMES = 400_000
"""The maximum total length of a turn's words in a chunk, because the size of a database row is limited."""

_MAX_POSITIONS = 4
_MAX_POSITION = 16_383
_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class CleanRecord(NamedTuple):
    """A cleaned line with its line end; ``end_offset`` is the offset after the original line in the local file."""

    body: RedactedBytes
    end_offset: int
    secrets: list[Secret]


class TurnWords(NamedTuple):
    """The words of a turn in a chunk, starting at line ``first_line``."""

    first_line: int
    start_time: datetime
    words: str


class LineChunk(NamedTuple):
    """Complete lines of a file, starting at line ``first_line``.

    ``end_offset`` is the offset after them in the local file.
    """

    first_line: int
    record_count: int
    raw_bytes: int
    sha256: bytes
    compressed: bytes
    secrets: Counter[str]
    turn_words: list[TurnWords]
    end_offset: int


def clean_records(path: str, redactor: Redactor, offset: int = 0) -> Iterator[CleanRecord]:
    """Yield the cleaned lines of a transcript, starting at an offset. Any other text file is yielded as one record.

    Raise OSError.

    If the last line has no line feed but is a complete object, it is included, with a line feed
    added. If it is incomplete, it is left for a later push. Binary files yield nothing.
    """
    if not path.endswith(".jsonl"):
        yield from _read_text_record(path, redactor) if not offset else ()
        return
    with open_regular(path, follow=False) as stream:
        starts_at_line = read_bytes_before(stream, offset)[-1:] in {b"", b"\n"}
        stream.seek(offset)
        for line in read_lines(stream, offset):
            if line.is_torn and parse_record(line.body) is None:
                return
            if line.offset == offset and not starts_at_line and not line.raw.strip():
                continue  # the chunk is only the line feed after the last line that was sent
            body, secrets = clean_line(line.body, redactor)
            yield CleanRecord(RedactedBytes(body + b"\n"), line.offset + len(line.raw), secrets)


def clean_line(line: bytes, redactor: Redactor) -> tuple[RedactedBytes, list[Secret]]:
    """Return a line without images, documents and secrets, including those that ``redactor`` knows, and the secrets."""
    body = normalize_json(line) if len(line) <= MAX_LINE_BYTES else None
    if body is None:
        return RedactedBytes(make_placeholder_record(DAMAGED_KIND)), []
    clean, secrets = redactor.redact_line(_replace_media(body) if b"base64" in body else body)
    return RedactedBytes(clean), secrets


def cut_chunks(
    path: str, redactor: Redactor, first_line: int = 0, offset: int = 0
) -> Iterator[LineChunk]:
    """Yield the chunks of a file, starting at line ``first_line``, which begins at ``offset``.

    Raise OSError.
    """
    word_collector, body, secrets, line_number, end_offset = (
        _WordCollector(path, first_line),
        bytearray(),
        Counter[str](),
        first_line,
        offset,
    )

    def make_chunk() -> LineChunk:
        sha256, compressed = hashlib.sha256(body).digest(), zlib.compress(body)
        return LineChunk(
            first_line,
            line_number - first_line,
            len(body),
            sha256,
            compressed,
            secrets,
            word_collector.pop_turn_words(),
            end_offset,
        )

    for record in clean_records(path, redactor, offset):
        word_collector.add_line(record.body, line_number)
        body += record.body
        secrets.update(secret.kind for secret in record.secrets)
        line_number, end_offset = line_number + 1, record.end_offset
        if len(body) >= MAX_CHUNK_BYTES:
            yield make_chunk()
            first_line, body, secrets = line_number, bytearray(), Counter()
    if body:
        yield make_chunk()


def _read_text_record(path: str, redactor: Redactor) -> Iterator[CleanRecord]:
    raw = read_regular_file(path, MAX_FILE_BYTES)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return
    clean, secrets = redactor.redact_and_list_secrets(text)
    if clean:
        yield CleanRecord(RedactedBytes(clean.encode()), len(raw), secrets)


def _replace_media(body: bytes) -> bytes:
    """Replace each image and document in a line by a short placeholder."""
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
    """Return the replacement for a value that contains the bytes of an image or document.

    Return None if no replacement is needed.
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
    """Collects the words of a file's turns from cleaned lines."""

    def __init__(self, path: str, first_line: int) -> None:
        self._subagent = "/subagents/" in path.replace("\\", "/")
        self._is_transcript = path.endswith(".jsonl")
        self._extractor = TextExtractor(subagent=self._subagent)
        self._finished_turns: list[TurnWords] = []
        self._positions_by_word: dict[str, list[str]] = {}
        self._size = 0
        self._start = first_line
        self._at: datetime | None = None
        self._last = _UNKNOWN_TIME

    def add_line(self, body: RedactedBytes, line_number: int) -> None:
        """Process a line."""
        record = parse_record(body) if self._is_transcript else {}
        if record is None:
            return
        if opens_turn(record, subagent=self._subagent):
            self._finish_turn()
        texts_of_record = (
            self._extractor.extract_texts(record)
            if self._is_transcript
            else RecordTexts("result", result=body.decode())
        )
        if texts_of_record is None:
            return
        self._last = clock.parse_timestamp(record.get("timestamp")) or self._last
        if not self._positions_by_word:
            self._start, self._at = line_number, self._last
        position = str(min(line_number - self._start + 1, _MAX_POSITION))
        texts = (
            (texts_of_record.prompt, "A", False),
            (texts_of_record.reply, "B", False),
            (texts_of_record.input, "C", True),
            (texts_of_record.result, "D", True),
        )
        for text, speaker_weight, has_numbers in texts:
            for word in (
                distinct_words(text, has_line_numbers=has_numbers)
                .decode("utf-8", "replace")
                .split()
            ):
                if word not in self._positions_by_word:
                    if self._size > _MAX_LEXEMES:
                        continue
                    self._positions_by_word[word] = []
                    self._size += len(word) + 12
                positions = self._positions_by_word[word]
                if len(positions) < _MAX_POSITIONS and position + speaker_weight not in positions:
                    positions.append(position + speaker_weight)

    def pop_turn_words(self) -> list[TurnWords]:
        """Return the words of turns since the last call. The rest of an unfinished turn follows in a later call."""
        self._finish_turn()
        finished_turns, self._finished_turns = self._finished_turns, []
        return finished_turns

    def _finish_turn(self) -> None:
        if self._positions_by_word:
            text = " ".join(
                f"{quote_word(word)}:{','.join(positions)}"
                for word, positions in self._positions_by_word.items()
            )
            self._finished_turns.append(TurnWords(self._start, self._at or _UNKNOWN_TIME, text))
        self._positions_by_word, self._size = {}, 0


def quote_word(word: str) -> str:
    """Return a word as a safely quoted term for PostgreSQL's text search types."""
    escaped = word.replace("\\", "\\\\").replace("'", "''").replace("\x00", "")
    return f"'{escaped}'"
