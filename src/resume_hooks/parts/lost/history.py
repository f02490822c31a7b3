"""Read the client's ``history.jsonl``, which contains the prompts of all sessions.

Each entry contains a prompt with its folder and time. The client only appends to this file, so
reading continues where it stopped the last time. If the file was rewritten, it is read from its
start.
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

HISTORY_FILE_NAME = "history.jsonl"
# The folder in which the client keeps long pasted texts. The client deletes the texts after its
# retention period.
PASTES_FOLDER = "paste-cache"

MAX_PASTE_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes in a pasted text. A longer text is shown as a placeholder."""

MIN_NEW_BYTES_TO_SAVE_PROGRESS = 64 * 1024
"""The reading progress is saved only if at least this number of new bytes was read. Fewer bytes are
read again the next time."""

# The number of bytes that a checksum covers, just before the place where the last reading ended. If
# the checksum is unchanged, the file was only appended to.
_CHECKSUM_BYTE_COUNT = 4_096
_PROGRESS_NOTE_VERSION = 2
_MAX_TIME_MILLISECONDS = 253_402_300_799_000  # The last millisecond that a date can represent.
_COMMAND_ENTRY_PATTERN = re.compile(
    r"/[\w:-]+\s*\Z|>[a-z-]+(?:\s|\Z)|/(?:resume|model|rename|export|plugin|mcp|add-dir|theme|resume-hooks:\S+)\s"
)
"""Matches entries that are not prompts: a slash command without arguments, the client's own
commands, and the triggers of this plugin."""

_PASTE_PLACEHOLDER_PATTERN = re.compile(
    r"\[(?:Pasted text|\.\.\.Truncated text) #(\d{1,6})[^\]\n]{0,40}\]"
)
# Quotes in a prompt are escaped with a backslash, so this pattern matches only the field itself.
_SESSION_FIELD_PATTERN = re.compile(rb'"sessionId"\s*:\s*"([0-9a-f-]{36})"')
_PASTE_HASH_PATTERN = re.compile(r"[0-9a-f]{16}")


class HistoryEntry(NamedTuple):
    """A prompt in the history.

    ``time_ms`` is its time in milliseconds since the epoch. ``pastes_by_number`` maps the numbers of pasted
    texts to the client's records of them.
    """

    session_id: str
    project: str
    time_ms: int
    text: str
    pastes_by_number: Record

    @property
    def is_prompt(self) -> bool:
        """Whether the entry is a prompt to a model, and not a command."""
        return not _COMMAND_ENTRY_PATTERN.match(self.text)

    def read_text_with_pastes(self, where: Where) -> str:
        """Return the text of the prompt. Pasted texts are inserted if they still exist."""
        return _PASTE_PLACEHOLDER_PATTERN.sub(
            lambda match: (
                _read_paste(get_mapping(self.pastes_by_number, match[1]), where) or match[0]
            ),
            self.text,
        )


class SessionPrompts(NamedTuple):
    """The facts that the history contains about the prompts of a session.

    ``project`` is the project of the first prompt, and ``last_time_ms`` is the time of the last
    prompt.
    """

    project: str
    prompt_count: int
    last_time_ms: int


class HistoryContent(NamedTuple):
    """The prompts of all sessions in the history.

    ``was_only_appended_to`` is true if the history was only appended to since the last reading. If
    it was rewritten, sessions that earlier readings found may be missing in ``prompts_by_session``.
    """

    prompts_by_session: dict[str, SessionPrompts]
    was_only_appended_to: bool


class _ReadingProgress(NamedTuple):
    """How far the history was read. All values are zero or empty before the first reading."""

    inode: int
    end_offset: int
    checksum: int
    prompts_by_session: dict[str, SessionPrompts]


def read_history(note_path: str, where: Where) -> HistoryContent:
    """Return the prompts of all sessions in the history.

    The file at ``note_path`` records how far the history was read, and is updated. Raise OSError if
    the history cannot be read.
    """
    with open_regular(os.path.join(where.config, HISTORY_FILE_NAME)) as stream:
        inode, start_offset, checksum, sessions = _read_progress_note(note_path)
        was_only_appended_to = inode == os.fstat(
            stream.fileno()
        ).st_ino and checksum == _compute_checksum(stream, start_offset)
        if not was_only_appended_to:
            start_offset, sessions = 0, {}
        end_offset = start_offset
        stream.seek(start_offset)
        for line in stream:
            if not line.endswith(b"\n"):
                break  # The client has not finished this line.
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
        if not was_only_appended_to or end_offset - start_offset > MIN_NEW_BYTES_TO_SAVE_PROGRESS:
            position_fields = {
                "inode": os.fstat(stream.fileno()).st_ino,
                "end": end_offset,
                "check": _compute_checksum(stream, end_offset),
            }
            note = {
                "version": _PROGRESS_NOTE_VERSION,
                **position_fields,
                "sessions": {
                    session_id: list(session_prompts)
                    for session_id, session_prompts in sessions.items()
                },
            }
            state_file.replace_state_file(note_path, orjson.dumps(note), where)
        return HistoryContent(sessions, was_only_appended_to)


def read_entries(session_ids: Container[str], where: Where) -> Iterator[HistoryEntry]:
    """Yield the entries of the given sessions in order. Raise OSError if the history cannot be read."""
    with open_regular(os.path.join(where.config, HISTORY_FILE_NAME)) as stream:
        for line in stream:
            # This check takes a tenth of the time of parsing.
            match = _SESSION_FIELD_PATTERN.search(line)
            if match and match[1].decode() in session_ids and line.endswith(b"\n"):
                entry = _parse_entry(parse_record(line) or {})
                if entry is not None and entry.session_id in session_ids:
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
    """Return the text of a paste, or ``""`` if the client has deleted it.

    The text is in the paste's record or in the client's folder for pasted texts.
    """
    digest = get_string(paste, "contentHash")
    if (
        get_string(paste, "type") != "text"
        or get_string(paste, "content")
        or not _PASTE_HASH_PATTERN.fullmatch(digest)
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


def _read_progress_note(path: str) -> _ReadingProgress:
    """Return the progress that was saved after the last reading."""
    try:
        note: Any = orjson.loads(read_regular_file(path, 256 * 1024 * 1024))
        if note["version"] != _PROGRESS_NOTE_VERSION:
            return _ReadingProgress(0, 0, 0, {})
        sessions = {}
        for name, fields in note["sessions"].items():
            sessions[name] = SessionPrompts(str(fields[0]), int(fields[1]), int(fields[2]))
        return _ReadingProgress(int(note["inode"]), int(note["end"]), int(note["check"]), sessions)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return _ReadingProgress(0, 0, 0, {})


def _compute_checksum(stream: BinaryIO, end_offset: int) -> int:
    """Return a checksum of the last ``_CHECKSUM_BYTE_COUNT`` bytes before ``end_offset``."""
    start = max(0, end_offset - _CHECKSUM_BYTE_COUNT)
    return zlib.crc32(
        read_bytes_at(stream.fileno(), end_offset - start, start), end_offset & 0xFFFFFFFF
    )
