"""Titles of child sessions: the root's title, what was done, a counter; unique within the project folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator

from resume_hooks.paths import read_at
from resume_hooks.sessions.locate import SessionFile, sessions_in
from resume_hooks.storage.locks import lock
from resume_hooks.system.text import one_line
from resume_hooks.transcripts.head_tail import REACH, TITLE_LENGTH

MAX_DIGITS = 4  # digits of a counter; a title with more is somebody's own
LONGEST = 1_000  # characters of a title that may be one of ours; longer ones are somebody's own
PATIENCE = 10.0  # seconds to wait for another process that holds a folder's titles; a large child is checked in a few
_SUFFIX = re.compile(r"(?: · [a-z-]+ \d+)+\Z")


def child_title(root_title: str, kind: str, folder: str) -> str:
    """``<root title> · handoff 2``: at most 80 characters, and the first counter that no session there has.

    It stays free for as long as nobody else writes a child there (``titles_locked``).
    """
    stem = f"{title_stem(root_title, kind)} "
    marker = f'"customTitle":{json.dumps(stem, ensure_ascii=False)}'.encode("utf-8", "replace")[:-1]
    return f"{stem}{max(_counters(folder, marker), default=0) + 1}"


def title_stem(root_title: str, kind: str) -> str:
    """A child's title without its counter, which is known only once the child is written."""
    suffix_room = len(f" · {kind} ") + MAX_DIGITS
    return f"{one_line(root_title, TITLE_LENGTH - suffix_room)} · {kind}"


@contextlib.contextmanager
def titles_locked(folder: str) -> Iterator[None]:
    """Hold a folder's lock from the choice of a title until the session that has it is there.

    The folder itself is locked, so nothing is written. Without the lock after ``PATIENCE``, or on a volume that has
    none, the block runs all the same: two sessions may have the same title then.
    """
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        lock(descriptor, PATIENCE)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


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
        return read_at(descriptor, REACH, max(0, session.size - REACH))
    finally:
        os.close(descriptor)
