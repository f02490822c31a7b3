"""Names of derived sessions: the root's title, what was done, a counter; unique within the project folder."""

from __future__ import annotations

import json
import os
import re

from resume_hooks.sessions.locate import SessionFile, sessions_in
from resume_hooks.sessions.title_lock import hold
from resume_hooks.system.text import one_line
from resume_hooks.transcripts.head_tail import REACH, TITLE_LENGTH

MAX_DIGITS = 4
"""Digits of a counter; a title with more is somebody's own."""

LONGEST = 1_000
"""Characters of a title that may be one of ours; longer ones are somebody's own."""

_SUFFIX = re.compile(r"(?: · [a-z-]+ \d+)+\Z")


def child_title(root_title: str, kind: str, folder: str) -> str:
    """``<root title> · handoff 2``: at most 80 characters, and the first counter that no session there has.

    It is this process's until that lets go of it (``numbering``).
    """
    suffix_room = len(f" · {kind} ") + MAX_DIGITS
    stem = f"{one_line(root_title, TITLE_LENGTH - suffix_room)} · {kind} "
    marker = f'"customTitle":{json.dumps(stem, ensure_ascii=False)}'.encode("utf-8", "replace")[:-1]
    hold(folder)
    return f"{stem}{max(_counters(folder, marker), default=0) + 1}"


def root_of(title: str) -> str:
    """The root's title as the title of a derived session tells it: what stands before kind and counter."""
    return title if len(title) > LONGEST else _SUFFIX.sub("", title) or title


def _counters(folder: str, marker: bytes) -> set[int]:
    """The numbers after ``marker`` in the last titles of a folder's sessions.

    All of them are asked: the client gives a title on when it clears or branches a session.
    """
    taken = set()
    for session in sessions_in(folder):
        tail = _tail(session)
        start = tail.rfind(marker)
        digits = tail[start + len(marker) :].split(b'"', 1)[0] if start >= 0 else b""
        if digits.isdigit() and len(digits) <= MAX_DIGITS:
            taken.add(int(digits))
    return taken


def _tail(session: SessionFile) -> bytes:
    """The end of a file, by the fewest calls: a folder may hold thousands."""
    try:
        descriptor = os.open(session.path, os.O_RDONLY)
    except OSError:
        return b""  # gone since the folder was listed: its name is free
    try:
        return os.pread(descriptor, REACH, max(0, session.size - REACH))
    finally:
        os.close(descriptor)
