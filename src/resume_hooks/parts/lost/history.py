"""Reading the client's ``history.jsonl``: the prompts of every session, with folder and time.

The file is only appended to: reading goes on where it ended last, or from the start where the file
was rewritten.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Container, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from resume_hooks.paths import Where, is_session_id, open_regular, read_bytes_at, read_regular
from resume_hooks.storage import state_file
from resume_hooks.transcripts.records import Record, mapping, parse, string

NAME = "history.jsonl"
PASTES = "paste-cache"  # in the config home: long pastes by their hash, swept by the client after its period

MAX_PASTE = 16 * 1024 * 1024
"""Bytes of a paste that is put back; a larger one stays a placeholder."""

WORTH_NOTING = 64 * 1024
"""Fewer new bytes are read again next time, so that not every typed prompt costs a write of the note."""

_CHECKED = (
    4_096  # bytes before the end of the last reading, which are unchanged where the file only grew
)
_VERSION = 2
_LATEST = 253_402_300_799_000  # the last millisecond that a calendar holds
_COMMAND = re.compile(
    r"/[\w:-]+\s*\Z|>[a-z-]+(?:\s|\Z)|/(?:resume|model|rename|export|plugin|mcp|add-dir|theme|resume-hooks:\S+)\s"
)
"""Entries that are not prompts: a slash command alone, the client's own with words, and our triggers."""

_PASTE = re.compile(r"\[(?:Pasted text|\.\.\.Truncated text) #(\d{1,6})[^\]\n]{0,40}\]")
_SESSION = re.compile(
    rb'"sessionId"\s*:\s*"([0-9a-f-]{36})"'
)  # within a text its quotes follow a backslash
_HASH = re.compile(r"[0-9a-f]{16}")


class Entry(NamedTuple):
    """One prompt; ``at`` in milliseconds since the epoch, ``pasted`` as the client notes it, by number."""

    session_id: str
    project: str
    at: int
    text: str
    pasted: Record

    @property
    def is_prompt(self) -> bool:
        """Whether the entry is a prompt to a model."""
        return not _COMMAND.match(self.text)

    def text_with_pastes(self, where: Where) -> str:
        """The text with its pastes, as far as the client still has them."""
        return _PASTE.sub(
            lambda found: _text_of_paste(mapping(self.pasted, found[1]), where) or found[0],
            self.text,
        )


class PromptedSession(NamedTuple):
    """A session in the history: the project of its first prompt, the number of prompts, the time of the last."""

    project: str
    prompts: int
    last: int


def read_history(noted: str, where: Where) -> tuple[dict[str, PromptedSession], bool]:
    """All sessions of the history by id, and whether the file only grew since the last reading.

    The note of the last reading, at the path ``noted``, is renewed. A file that was rewritten may
    lack earlier sessions. OSError where it can't be read.
    """
    with open_regular(os.path.join(where.config, NAME)) as stream:
        inode, start, check, sessions = _read_note_of_history(noted)
        grown = inode == os.fstat(stream.fileno()).st_ino and check == _checksum_before(
            stream, start
        )
        if not grown:
            start, sessions = 0, {}
        end = start
        stream.seek(start)
        for line in stream:
            if not line.endswith(b"\n"):
                break  # still being written
            end += len(line)
            if (entry := _entry_of_record(parse(line) or {})) is not None:
                before = sessions.get(entry.session_id) or PromptedSession(entry.project, 0, 0)
                last = max(before.last, entry.at)
                sessions[entry.session_id] = PromptedSession(
                    before.project, before.prompts + entry.is_prompt, last
                )
        if not grown or end - start > WORTH_NOTING:
            place = {
                "inode": os.fstat(stream.fileno()).st_ino,
                "end": end,
                "check": _checksum_before(stream, end),
            }
            note = {
                "version": _VERSION,
                **place,
                "sessions": {own: list(told) for own, told in sessions.items()},
            }
            state_file.replace_state_file(noted, orjson.dumps(note), where)
        return sessions, grown


def read_entries(sessions: Container[str], where: Where) -> Iterator[Entry]:
    """The entries of these sessions, in order. OSError where the history can't be read."""
    with open_regular(os.path.join(where.config, NAME)) as stream:
        for line in stream:
            named = _SESSION.search(line)  # takes a tenth of the time of parsing the line
            if named and named[1].decode() in sessions and line.endswith(b"\n"):
                entry = _entry_of_record(parse(line) or {})
                if entry is not None and entry.session_id in sessions:
                    yield entry


def _entry_of_record(record: Record) -> Entry | None:
    session_id, project, at = (
        string(record, "sessionId"),
        string(record, "project"),
        record.get("timestamp"),
    )
    text = string(record, "display")
    known = (
        is_session_id(session_id)
        and os.path.isabs(project)
        and "\0" not in project
        and bool(text.strip())
    )
    if not known or not isinstance(at, (int, float)) or not 0 < at < _LATEST:
        return None
    return Entry(session_id, project, int(at), text, mapping(record, "pastedContents"))


def _text_of_paste(pasted: Record, where: Where) -> str:
    """The text of a paste: beside the prompt, or in the client's folder of long ones; ``""`` where it is gone."""
    digest = string(pasted, "contentHash")
    if string(pasted, "type") != "text" or string(pasted, "content") or not _HASH.fullmatch(digest):
        if string(pasted, "type") == "text":
            return string(pasted, "content")
        return ""
    try:
        return read_regular(os.path.join(where.config, PASTES, f"{digest}.txt"), MAX_PASTE).decode(
            errors="replace"
        )
    except OSError:
        return ""


def _read_note_of_history(path: str) -> tuple[int, int, int, dict[str, PromptedSession]]:
    """The inode, the end, the checksum and the sessions of the last reading; zeros without one."""
    try:
        note: Any = orjson.loads(read_regular(path, 256 * 1024 * 1024))
        if note["version"] != _VERSION:
            return 0, 0, 0, {}
        sessions = {}
        for name, told in note["sessions"].items():
            sessions[name] = PromptedSession(str(told[0]), int(told[1]), int(told[2]))
        return int(note["inode"]), int(note["end"]), int(note["check"]), sessions
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return 0, 0, 0, {}


def _checksum_before(stream: BinaryIO, end: int) -> int:
    """A checksum of the bytes before a place."""
    start = max(0, end - _CHECKED)
    return zlib.crc32(read_bytes_at(stream.fileno(), end - start, start), end & 0xFFFFFFFF)
