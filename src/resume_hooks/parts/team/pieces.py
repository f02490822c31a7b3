"""Prepare data for the upload: redact lines, cut them into numbered pieces, and collect the words of each turn.

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
from resume_hooks.paths import open_regular, read_regular
from resume_hooks.reading.bundle import DAMAGED_KIND, MAX_FILE, make_stand_in, normalize_json
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.texts import Secret
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.tokenize import index_words
from resume_hooks.transcripts.lines import read_bytes_before, read_lines
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import MEDIA, parse
from resume_hooks.transcripts.turns import opens_turn

Redacted = NewType("Redacted", bytes)
"""Bytes that ``clean_line`` has cleaned. Pieces accept no other type."""

MOST_RAW = 256 * 1024
"""The maximum size of a piece in bytes, without its last line."""

MOST_LINE = 64 * 1024 * 1024
"""The maximum size of a line in bytes. A longer line is replaced by a placeholder."""

_MOST_LEXEMES = 400_000
"""The maximum total length of a turn's words in a piece, because the size of a database row is limited."""

_MOST_POSITIONS = 4
_LAST_POSITION = 16_383
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class CleanRecord(NamedTuple):
    """A cleaned line with its line end; ``end`` is the offset after the original line in the local file."""

    body: Redacted
    end: int
    secrets: list[Secret]


class TurnWords(NamedTuple):
    """The words of a turn in a piece, starting at line ``record``."""

    record: int
    at: datetime
    words: str


class LinePiece(NamedTuple):
    """Complete lines of a file, starting at line ``first``; ``end`` is the offset after them in the local file."""

    first: int
    records: int
    raw: int
    sha: bytes
    data: bytes
    secrets: Counter[str]
    passages: list[TurnWords]
    end: int


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
        is_ended = read_bytes_before(stream, offset)[-1:] in {b"", b"\n"}
        stream.seek(offset)
        for line in read_lines(stream, offset):
            if line.torn and parse(line.body) is None:
                return
            if line.offset == offset and not is_ended and not line.raw.strip():
                continue  # the line feed after the last line that was sent
            body, secrets = clean_line(line.body, redactor)
            yield CleanRecord(Redacted(body + b"\n"), line.offset + len(line.raw), secrets)


def clean_line(line: bytes, redactor: Redactor) -> tuple[Redacted, list[Secret]]:
    """Return a line without images, documents and secrets (including ``known`` secrets), and the removed secrets."""
    body = normalize_json(line) if len(line) <= MOST_LINE else None
    if body is None:
        return Redacted(make_stand_in(DAMAGED_KIND)), []
    clean, secrets = redactor.redact_line(_replace_media(body) if b"base64" in body else body)
    return Redacted(clean), secrets


def cut_pieces(
    path: str, redactor: Redactor, first: int = 0, offset: int = 0
) -> Iterator[LinePiece]:
    """Yield the pieces of a file, starting at line ``first``, which begins at ``offset``.

    Raise OSError.
    """
    words, body, secrets, number, end = (
        _WordCollector(path, first),
        bytearray(),
        Counter[str](),
        first,
        offset,
    )

    def make_piece() -> LinePiece:
        sha, data = hashlib.sha256(body).digest(), zlib.compress(body)
        return LinePiece(
            first, number - first, len(body), sha, data, secrets, words.passages(), end
        )

    for record in clean_records(path, redactor, offset):
        words.take(record.body, number)
        body += record.body
        secrets.update(secret.kind for secret in record.secrets)
        number, end = number + 1, record.end
        if len(body) >= MOST_RAW:
            yield make_piece()
            first, body, secrets = number, bytearray(), Counter()
    if body:
        yield make_piece()


def _read_text_record(path: str, redactor: Redactor) -> Iterator[CleanRecord]:
    raw = read_regular(path, MAX_FILE)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return
    clean, secrets = redactor.redact_and_list_secrets(text)
    if clean:
        yield CleanRecord(Redacted(clean.encode()), len(raw), secrets)


def _replace_media(body: bytes) -> bytes:
    """Replace each image and document in a line by a short placeholder."""
    record = parse(body)
    if record is None:
        return body
    pending: list[Any] = [record]
    is_changed = False
    while pending:
        value = pending.pop()
        entries = list(value.items() if isinstance(value, dict) else enumerate(value))
        for key, inner in entries:
            if (replacement := _media_replacement(key, inner, value)) is not None:
                value[key] = replacement
                is_changed = True
            elif isinstance(inner, (dict, list)):
                pending.append(inner)
    if is_changed:
        return encode_record(record)
    return body


def _media_replacement(key: object, inner: object, holder: object) -> object:
    """Return the replacement for a value that contains the bytes of an image or document.

    Return None if no replacement is needed.
    """
    if (
        isinstance(inner, dict)
        and inner.get("type") in MEDIA
        and isinstance(source := inner.get("source"), dict)
    ):
        data = source.get("data")
        if source.get("type") == "base64" and isinstance(data, str):
            return {
                "type": "text",
                "text": f"[{inner['type']} left out: {len(data) * 3 // 4:,} bytes]",
            }
    encoded = key == "base64" or (
        key == "data" and isinstance(holder, dict) and holder.get("type") == "base64"
    )
    if encoded and isinstance(inner, str) and inner:
        return ""
    return None


class _WordCollector:
    """Collects the words of a file's turns from cleaned lines."""

    def __init__(self, path: str, first: int) -> None:
        self._subagent = "/subagents/" in path.replace("\\", "/")
        self._is_transcript = path.endswith(".jsonl")
        self._extractor = TextExtractor(subagent=self._subagent)
        self._done: list[TurnWords] = []
        self._places: dict[str, list[str]] = {}
        self._size = 0
        self._start = first
        self._at: datetime | None = None
        self._last = _NO_TIME

    def take(self, body: Redacted, number: int) -> None:
        """Process a line."""
        record = parse(body) if self._is_transcript else {}
        if record is None:
            return
        if opens_turn(record, subagent=self._subagent):
            self._close()
        texts_of_record = (
            self._extractor.extract_texts(record)
            if self._is_transcript
            else RecordTexts("result", result=body.decode())
        )
        if texts_of_record is None:
            return
        self._last = clock.parse_timestamp(record.get("timestamp")) or self._last
        if not self._places:
            self._start, self._at = number, self._last
        position = str(min(number - self._start + 1, _LAST_POSITION))
        texts = (
            (texts_of_record.prompt, "A", False),
            (texts_of_record.reply, "B", False),
            (texts_of_record.input, "C", True),
            (texts_of_record.result, "D", True),
        )
        for text, weight, numbered in texts:
            for word in (
                index_words(text, has_line_numbers=numbered).decode("utf-8", "replace").split()
            ):
                if word not in self._places:
                    if self._size > _MOST_LEXEMES:
                        continue
                    self._places[word] = []
                    self._size += len(word) + 12
                positions = self._places[word]
                if len(positions) < _MOST_POSITIONS and position + weight not in positions:
                    positions.append(position + weight)

    def passages(self) -> list[TurnWords]:
        """Return the passages since the last call. If a turn is unfinished, a new passage starts in it."""
        self._close()
        done, self._done = self._done, []
        return done

    def _close(self) -> None:
        if self._places:
            text = " ".join(
                f"{quote_word(word)}:{','.join(places)}" for word, places in self._places.items()
            )
            self._done.append(TurnWords(self._start, self._at or _NO_TIME, text))
        self._places, self._size = {}, 0


def quote_word(word: str) -> str:
    """Return a word as a safely quoted term for PostgreSQL's text search types."""
    escaped = word.replace("\\", "\\\\").replace("'", "''").replace("\x00", "")
    return f"'{escaped}'"
