"""Sifting sessions by words before any record is read: both ends of each file are searched as bytes.

A tenth of the cost of parsing them, and nothing that would fit is lost: what passes is then looked at in earnest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import orjson

from resume_hooks.errors import SessionNotFound
from resume_hooks.sessions.files import SessionFile
from resume_hooks.transcripts.head_tail import REACH, HeadTail

_KINDS = (b'-title"', b'"pr-link"', b'"tag"')
"""What stands in the lines that a session can be named by, and hardly elsewhere: quotes within text are escaped."""

_CUSTOM = re.compile(rb"""^\{.*"customTitle":\s?"[^"]""", re.MULTILINE)
_CLEARED = re.compile(rb'"customTitle":\s?""')
_TITLE = re.compile(rb"""^\{.*"(?:customTitle|aiTitle)":\s?"[^"]""", re.MULTILINE)


def sift(
    pattern: re.Pattern[bytes], sessions: Iterable[SessionFile], read: dict[str, bytes] | None = None
) -> list[SessionFile]:
    """The sessions in whose ends a line that names them matches ``pattern``, which sees small letters alone.

    Tags and pull requests are looked for in the last 64 KB, where clients keep them, titles at both ends. What ``read``
    holds by path is not read again, and what was read is added to it.
    """
    known = {} if read is None else read
    found = []
    for session in sessions:
        if session.path not in known:
            known[session.path] = _naming(session)
        if pattern.search(known[session.path]):
            found.append(session)
    return found


def titled(title: str, sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """The sessions whose custom, generated or derived title is exactly ``title``."""
    return [session for session in sift(as_written(title), sessions) if title in _titles_at(session.path)]


def titles_of(glance: HeadTail) -> frozenset[str]:
    """The titles that a session answers to: the custom one as it is, and the line that listings show."""
    return frozenset({glance.custom_title, glance.title}) - {""}


def _titles_at(path: str) -> frozenset[str]:
    try:
        return titles_of(HeadTail(path))
    except SessionNotFound:
        return frozenset()  # deleted since the folder was listed


def as_written(words: str) -> re.Pattern[bytes]:
    """What a file matches that holds these words in one string, however it was escaped: the plain ones in order."""
    plain = [word.lower().encode() for word in re.findall("[0-9A-Za-z]+", words)]
    if words.startswith("/"):
        plain = plain[:1]  # a slash command is stored in pieces
    between = rb"""(?:[^0-9a-z"\\]|\\u[0-9a-f]{4}|\\.)+"""
    return re.compile(between.join(plain))


def _naming(session: SessionFile) -> bytes:
    """The lines that may name a session, in small letters; by the fewest calls, for there may be thousands."""
    try:
        descriptor = os.open(session.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""  # gone since it was listed
    try:
        tail = os.pread(descriptor, REACH, max(0, session.size - REACH))
        lines = _lines_with(_KINDS, tail)
        cleared = _CLEARED.search(lines)
        if cleared or not _CUSTOM.search(lines):
            head = os.pread(descriptor, REACH, 0) if session.size > REACH else tail
            lines += _lines_with(_KINDS[:1], head)
            if cleared or not _TITLE.search(lines):  # then a summary or a prompt stands for one
                lines += orjson.dumps(HeadTail(session.path).title)
    except (OSError, SessionNotFound):
        return b""
    finally:
        os.close(descriptor)
    return lines.lower()


def _lines_with(kinds: Iterable[bytes], region: bytes) -> bytes:
    """The lines of a region that hold one of these, each with its ending."""
    found = []
    for kind in kinds:
        place = region.find(kind)
        while place >= 0:
            end = region.find(b"\n", place)
            end = len(region) if end < 0 else end
            found.append(region[region.rfind(b"\n", 0, place) + 1 : end] + b"\n")
            place = region.find(kind, end)
    return b"".join(found)
