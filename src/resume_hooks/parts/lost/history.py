"""What the client's ``history.jsonl`` tells: which prompts were typed in which session, where and when.

The file is only appended to: it is read on from where it was read last, and from its start where it was rewritten.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Container, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from resume_hooks.paths import Where, is_session_id, open_regular, read_at, read_regular
from resume_hooks.storage import state_file
from resume_hooks.transcripts.records import Record, mapping, parse, string

NAME = "history.jsonl"
PASTES = "paste-cache"  # in the config home: long pastes by their hash, swept by the client after its period

MAX_PASTE = 16 * 1024 * 1024
"""Bytes of a paste that is put back; a larger one stays a placeholder."""

WORTH_NOTING = 64 * 1024
"""Bytes that are rather read again than noted, so that not every prompt that was typed costs a write."""

_CHECKED = 4_096  # bytes before the place that was read up to, which are still there where the file only grew
_VERSION = 2
_LATEST = 253_402_300_799_000  # the last millisecond that a calendar holds
_COMMAND = re.compile(
    r"/[\w:-]+\s*\Z|>[a-z-]+(?:\s|\Z)|/(?:resume|model|rename|export|plugin|mcp|add-dir|theme|resume-hooks:\S+)\s"
)
"""What nobody asked a model: a slash command alone, the client's own with words, and what begins as our triggers do."""

_PASTE = re.compile(r"\[(?:Pasted text|\.\.\.Truncated text) #(\d{1,6})[^\]\n]{0,40}\]")
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([0-9a-f-]{36})"')  # within a text its quotes follow a backslash
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
        """Whether a model was asked."""
        return not _COMMAND.match(self.text)

    def whole(self, where: Where) -> str:
        """The text with its pastes, as far as the client still has them."""
        return _PASTE.sub(lambda found: _paste(mapping(self.pasted, found[1]), where) or found[0], self.text)


class PromptedSession(NamedTuple):
    """What the history has of a session: where it was first asked in, how many prompts, when the last was typed."""

    project: str
    prompts: int
    last: int


def read_history(noted: str, where: Where) -> tuple[dict[str, PromptedSession], bool]:
    """All sessions of the history by id, by the note at the path ``noted`` of what was read already, which is renewed.

    And whether it only grew: else what was read before may be there no more. OSError where it can't be read.
    """
    with open_regular(os.path.join(where.config, NAME)) as stream:
        inode, start, check, sessions = _note(noted)
        grown = inode == os.fstat(stream.fileno()).st_ino and check == _check(stream, start)
        if not grown:
            start, sessions = 0, {}
        end = start
        stream.seek(start)
        for line in stream:
            if not line.endswith(b"\n"):
                break  # still being written
            end += len(line)
            if (entry := _entry(parse(line) or {})) is not None:
                before = sessions.get(entry.session_id) or PromptedSession(entry.project, 0, 0)
                last = max(before.last, entry.at)
                sessions[entry.session_id] = PromptedSession(before.project, before.prompts + entry.is_prompt, last)
        if not grown or end - start > WORTH_NOTING:
            place = {"inode": os.fstat(stream.fileno()).st_ino, "end": end, "check": _check(stream, end)}
            note = {"version": _VERSION, **place, "sessions": {own: list(told) for own, told in sessions.items()}}
            state_file.replace(noted, orjson.dumps(note), where)
        return sessions, grown


def entries(sessions: Container[str], where: Where) -> Iterator[Entry]:
    """What was typed in these sessions, in its order. OSError where the history can't be read."""
    with open_regular(os.path.join(where.config, NAME)) as stream:
        for line in stream:
            named = _SESSION.search(line)  # a tenth of what it takes to parse a line
            if named and named[1].decode() in sessions and line.endswith(b"\n"):
                entry = _entry(parse(line) or {})
                if entry is not None and entry.session_id in sessions:
                    yield entry


def _entry(record: Record) -> Entry | None:
    session_id, project, at = string(record, "sessionId"), string(record, "project"), record.get("timestamp")
    text = string(record, "display")
    known = is_session_id(session_id) and os.path.isabs(project) and "\0" not in project and bool(text.strip())
    if not known or not isinstance(at, (int, float)) or not 0 < at < _LATEST:
        return None
    return Entry(session_id, project, int(at), text, mapping(record, "pastedContents"))


def _paste(pasted: Record, where: Where) -> str:
    """The text of a paste: beside the prompt, or in the client's folder of long ones; ``""`` where it is gone."""
    digest = string(pasted, "contentHash")
    if string(pasted, "type") != "text" or string(pasted, "content") or not _HASH.fullmatch(digest):
        return string(pasted, "content") if string(pasted, "type") == "text" else ""
    try:
        return read_regular(os.path.join(where.config, PASTES, f"{digest}.txt"), MAX_PASTE).decode(errors="replace")
    except OSError:
        return ""


def _note(path: str) -> tuple[int, int, int, dict[str, PromptedSession]]:
    """The inode, the end, the check and the sessions of what was read last; zeros where nothing was."""
    try:
        note: Any = orjson.loads(read_regular(path, 256 * 1024 * 1024))
        if note["version"] != _VERSION:
            return 0, 0, 0, {}
        sessions = {
            name: PromptedSession(str(told[0]), int(told[1]), int(told[2])) for name, told in note["sessions"].items()
        }
        return int(note["inode"]), int(note["end"]), int(note["check"]), sessions
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return 0, 0, 0, {}


def _check(stream: BinaryIO, end: int) -> int:
    """What tells the bytes before a place from others."""
    start = max(0, end - _CHECKED)
    return zlib.crc32(read_at(stream.fileno(), end - start, start), end & 0xFFFFFFFF)
