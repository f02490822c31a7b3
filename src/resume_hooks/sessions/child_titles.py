"""Titles of child sessions: what was done, a counter, the root's title; unique within the project folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Literal, get_args

from resume_hooks.paths import read_at
from resume_hooks.sessions.locate import SessionFile, sessions_in
from resume_hooks.storage.locks import lock
from resume_hooks.system.text import one_line
from resume_hooks.transcripts.head_tail import REACH, TITLE_LENGTH

MAX_DIGITS = 4  # digits of a counter; a title with more is somebody's own
LONGEST = 1_000  # characters of a title that may be one of ours; longer ones are somebody's own
PATIENCE = 10.0  # seconds to wait for another process that holds a folder's titles; a large child is checked in a few
Kind = Literal[
    "fork", "handoff", "import", "rehome", "repair", "rewind", "rollover", "scrub", "smart-trim", "trim", "untrim"
]  # fmt: skip
"""What is done to a session that makes a child."""

_OURS = re.compile(rf"\A(?:(?:{'|'.join(get_args(Kind))}) \d+ · )+")


def child_title(root_title: str, kind: Kind, number: int | None = None) -> str:
    """``handoff 2 · <root title>``: at most 80 characters, told apart from its siblings by the first few.

    Without a number it is what a child is called whose title is not chosen yet.
    """
    front = kind if number is None else f"{kind} {number}"
    return f"{front} · {one_line(root_title, TITLE_LENGTH - len(f'{kind}  · ') - MAX_DIGITS)}"


def free_title(root_title: str, kind: Kind, folder: str) -> str:
    """The title with the first counter that no session of the folder has.

    It stays free for as long as nobody else writes a child there (``titles_locked``).
    """
    stem = child_title(root_title, kind, 0).removeprefix(f"{kind} 0")
    behind = json.dumps(stem, ensure_ascii=False).encode("utf-8", "replace")[1:]
    taken = _counters(folder, f'"customTitle":"{kind} '.encode(), behind)
    return child_title(root_title, kind, max(taken, default=0) + 1)


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
    """The root's title as the title of a derived session tells it: what stands behind kind and counter."""
    return title if len(title) > LONGEST else _OURS.sub("", title) or title


def _counters(folder: str, front: bytes, behind: bytes) -> set[int]:
    """The numbers between ``front`` and ``behind`` in the last titles of a folder's sessions.

    All of them are asked: the client gives a title on when it clears or branches a session.
    """
    taken = set()
    for session in sessions_in(folder):
        tail = _tail(session)
        start = tail.rfind(front) + len(front)
        end = tail.find(behind, start, start + MAX_DIGITS + len(behind)) if start >= len(front) else -1
        if (digits := tail[start : max(start, end)]).isdigit():
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
