"""Read the client's ``history.jsonl``: the prompts of every session, with their folder and time.

The client only appends to this file. Reading continues at the end of the last reading, or at the
start if the file was rewritten.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Container, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from resume_hooks.paths import Where, is_session_id, open_regular, read_bytes_at, read_regular_file
from resume_hooks.storage import state_file
from resume_hooks.transcripts.records import Record, get_mapping, get_string, parse_record

HISTORY_FILE = "history.jsonl"
# a folder in the config home with long pastes by hash, which the client deletes after its retention
# period
PASTES_FOLDER = "paste-cache"

MAX_PASTE_BYTES = 16 * 1024 * 1024
"""The maximum size of a paste in bytes. A larger paste remains a placeholder."""

MIN_NEW_BYTES_TO_SAVE = 64 * 1024
"""The minimum number of new bytes for which the record of the last reading is rewritten. Fewer bytes are read again."""

# The number of bytes before the end of the last reading that show whether the file was only
# appended to.
_CHECKSUM_BYTES = 4_096
_NOTE_VERSION = 2
_MAX_TIME_MILLISECONDS = 253_402_300_799_000  # the last millisecond that a date can represent
_COMMAND_ENTRY = re.compile(
    r"/[\w:-]+\s*\Z|>[a-z-]+(?:\s|\Z)|/(?:resume|model|rename|export|plugin|mcp|add-dir|theme|resume-hooks:\S+)\s"
)
"""Matches entries that are not prompts: a lone slash command, the client's own commands, and our triggers."""

_PASTE_PLACEHOLDER = re.compile(r"\[(?:Pasted text|\.\.\.Truncated text) #(\d{1,6})[^\]\n]{0,40}\]")
_SESSION_FIELD = re.compile(
    rb'"sessionId"\s*:\s*"([0-9a-f-]{36})"'
)  # inside a text, quotes are escaped with a backslash
_PASTE_HASH = re.compile(r"[0-9a-f]{16}")


class HistoryEntry(NamedTuple):
    """A prompt; ``time_ms`` is in milliseconds since the epoch, ``pastes`` are the client's pastes by number."""

    session_id: str
    project: str
    time_ms: int
    text: str
    pastes: Record

    @property
    def is_prompt(self) -> bool:
        """Whether the entry is a prompt to a model."""
        return not _COMMAND_ENTRY.match(self.text)

    def text_with_pastes(self, where: Where) -> str:
        """Return the text, including the pastes that the client still has."""
        return _PASTE_PLACEHOLDER.sub(
            lambda match: _read_paste(get_mapping(self.pastes, match[1]), where) or match[0],
            self.text,
        )


class SessionPrompts(NamedTuple):
    """A session in the history: its first prompt's project, its number of prompts, and its last prompt's time."""

    project: str
    prompt_count: int
    last_time_ms: int


def read_history(note_path: str, where: Where) -> tuple[dict[str, SessionPrompts], bool]:
    """Return all sessions in the history by id, and whether the file was only appended to since the last reading.

    The note of the last reading, at ``note_path``, is updated. A rewritten file may lack
    earlier sessions. Raise OSError if it cannot be read.
    """
    with open_regular(os.path.join(where.config, HISTORY_FILE)) as stream:
        inode, start_offset, checksum, sessions = _read_note(note_path)
        has_only_grown = inode == os.fstat(
            stream.fileno()
        ).st_ino and checksum == _compute_checksum(stream, start_offset)
        if not has_only_grown:
            start_offset, sessions = 0, {}
        end_offset = start_offset
        stream.seek(start_offset)
        for line in stream:
            if not line.endswith(b"\n"):
                break  # an incomplete line, which is still being written
            end_offset += len(line)
            if (entry := _parse_entry(parse_record(line) or {})) is not None:
                earlier_prompts = sessions.get(entry.session_id) or SessionPrompts(
                    entry.project, 0, 0
                )
                last_time_ms = max(earlier_prompts.last_time_ms, entry.time_ms)
                sessions[entry.session_id] = SessionPrompts(
                    earlier_prompts.project,
                    earlier_prompts.prompt_count + entry.is_prompt,
                    last_time_ms,
                )
        if not has_only_grown or end_offset - start_offset > MIN_NEW_BYTES_TO_SAVE:
            position_fields = {
                "inode": os.fstat(stream.fileno()).st_ino,
                "end": end_offset,
                "check": _compute_checksum(stream, end_offset),
            }
            note = {
                "version": _NOTE_VERSION,
                **position_fields,
                "sessions": {
                    session_id: list(session_prompts)
                    for session_id, session_prompts in sessions.items()
                },
            }
            state_file.replace_state_file(note_path, orjson.dumps(note), where)
        return sessions, has_only_grown


def read_entries(sessions: Container[str], where: Where) -> Iterator[HistoryEntry]:
    """Yield the entries of the given sessions in order. Raise OSError if the history cannot be read."""
    with open_regular(os.path.join(where.config, HISTORY_FILE)) as stream:
        for line in stream:
            # this test takes a tenth of the time that parsing takes
            match = _SESSION_FIELD.search(line)
            if match and match[1].decode() in sessions and line.endswith(b"\n"):
                entry = _parse_entry(parse_record(line) or {})
                if entry is not None and entry.session_id in sessions:
                    yield entry


def _parse_entry(record: Record) -> HistoryEntry | None:
    session_id, project, timestamp = (
        get_string(record, "sessionId"),
        get_string(record, "project"),
        record.get("timestamp"),
    )
    text = get_string(record, "display")
    is_valid = (
        is_session_id(session_id)
        and os.path.isabs(project)
        and "\0" not in project
        and bool(text.strip())
    )
    if (
        not is_valid
        or not isinstance(timestamp, (int, float))
        or not 0 < timestamp < _MAX_TIME_MILLISECONDS
    ):
        return None
    return HistoryEntry(
        session_id, project, int(timestamp), text, get_mapping(record, "pastedContents")
    )


def _read_paste(paste: Record, where: Where) -> str:
    """Return the text of a paste, from the entry or from the client's paste folder, or ``""`` if it was deleted."""
    digest = get_string(paste, "contentHash")
    if (
        get_string(paste, "type") != "text"
        or get_string(paste, "content")
        or not _PASTE_HASH.fullmatch(digest)
    ):
        if get_string(paste, "type") == "text":
            return get_string(paste, "content")
        return ""
    try:
        return read_regular_file(
            os.path.join(where.config, PASTES_FOLDER, f"{digest}.txt"), MAX_PASTE_BYTES
        ).decode(errors="replace")
    except OSError:
        return ""


def _read_note(path: str) -> tuple[int, int, int, dict[str, SessionPrompts]]:
    """Return the inode, end, checksum and sessions of the last reading, or zeros if there is none."""
    try:
        note: Any = orjson.loads(read_regular_file(path, 256 * 1024 * 1024))
        if note["version"] != _NOTE_VERSION:
            return 0, 0, 0, {}
        sessions = {}
        for name, fields in note["sessions"].items():
            sessions[name] = SessionPrompts(str(fields[0]), int(fields[1]), int(fields[2]))
        return int(note["inode"]), int(note["end"]), int(note["check"]), sessions
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return 0, 0, 0, {}


def _compute_checksum(stream: BinaryIO, end_offset: int) -> int:
    """Return a checksum of the bytes before ``end_offset``."""
    start = max(0, end_offset - _CHECKSUM_BYTES)
    return zlib.crc32(
        read_bytes_at(stream.fileno(), end_offset - start, start), end_offset & 0xFFFFFFFF
    )
